//! The committed list: tables of one redb file.

use super::error::StoreError;
use super::file::open_store;
use parking_lot::RwLock;
use redb::backends::FileBackend;
use redb::{
    Database, DatabaseError, ReadTransaction, ReadableDatabase, ReadableTable, ReadableTableMetadata, TableDefinition,
    TableHandle, WriteTransaction,
};
use std::hash::{BuildHasher, RandomState};
use std::path::Path;

/// The keys of the list and those of a list that is on its way; [`Meta::current`] says which is which.
pub(super) const KEYS: [TableDefinition<&str, ()>; 2] =
    [TableDefinition::new("keys_0"), TableDefinition::new("keys_1")];

/// The changes of the list: their sequence numbers, what was done ([`PUT`] or [`DELETE`]), and the keys.
pub(super) const CHANGES: TableDefinition<u64, (u8, &str)> = TableDefinition::new("changes");

/// A change that put its key on the list.
pub(super) const PUT: u8 = 1;

/// A change that took its key from the list.
pub(super) const DELETE: u8 = 2;

/// One row: the format, and the fields of [`Meta`].
const META: TableDefinition<(), (u32, u128, u64, u64, u8)> = TableDefinition::new("meta");

/// The tables and what their fields mean.
const FORMAT: u32 = 1;

/// How the database is opened: the first time, and again after it failed.
pub(super) type Opener = Box<dyn Fn() -> Result<Database, DatabaseError> + Send + Sync>;

/// The database. It can be opened anew in place, since redb refuses everything after an error of the file.
pub(super) struct Store {
    opener: Opener,
    /// `None` while it is being opened anew, if that failed, and when it is closed.
    database: RwLock<Option<Database>>,
}

impl Store {
    /// Opens a store, and makes its tables if it is new.
    pub(super) fn open(opener: Opener) -> Result<Self, StoreOpenError> {
        let database = opener().map_err(|error| match error {
            DatabaseError::DatabaseAlreadyOpen => StoreOpenError::InUse,
            error => StoreOpenError::Database(error.into()),
        })?;
        make_tables(&database)?;
        Ok(Store { opener, database: RwLock::new(Some(database)) })
    }

    /// How a file is opened with so much memory for its pages.
    pub(super) fn of_file(path: &Path, cache_bytes: usize) -> Opener {
        let path = path.to_owned();
        Box::new(move || {
            Database::builder().set_cache_size(cache_bytes).create_with_backend(FileBackend::new(open_store(&path)?)?)
        })
    }

    /// One moment of the store.
    pub(super) fn read(&self) -> Result<ReadTransaction, StoreError> {
        let database = self.database.read();
        Ok(database.as_ref().ok_or(redb::Error::DatabaseClosed)?.begin_read()?)
    }

    /// Only the writer writes. What is committed is on disk.
    ///
    /// redb could also save with each commit which pages are free, and then would not have to read its file after a
    /// crash; commits of many changes would take about twice as long for it, every day.
    pub(super) fn write(&self) -> Result<WriteTransaction, StoreError> {
        let database = self.database.read();
        Ok(database.as_ref().ok_or(redb::Error::DatabaseClosed)?.begin_write()?)
    }

    /// Opens the database anew, if it is the one that it may be. Reads that are under way fail.
    pub(super) fn reopen(&self, may_be: impl FnOnce(&Meta) -> bool) -> Result<Meta, StoreError> {
        // The lock is not held while the file is opened, which may take its time: reads fail meanwhile.
        let old = self.database.write().take();
        drop(old);
        let new = (self.opener)()?;
        let meta = Meta::read(&new.begin_read()?)?;
        if !may_be(&meta) {
            // It is never read from: the front is not its.
            let message = "another store, or an older state of this one, is in its place";
            return Err(redb::Error::Corrupted(message.into()).into());
        }
        *self.database.write() = Some(new);
        Ok(meta)
    }

    /// Closes the database. Reads that are under way fail.
    pub(super) fn close(&self) -> Result<(), StoreError> {
        let database = self.database.write().take();
        Ok(database.map_or(Ok(()), Database::close)?)
    }
}

/// Why a store cannot be opened.
#[derive(Debug)]
pub(super) enum StoreOpenError {
    /// Somebody has it open.
    InUse,
    /// It is a database of something else, or of another version.
    NotAList,
    /// The database says so.
    Database(StoreError),
}

impl<E: Into<redb::Error>> From<E> for StoreOpenError {
    fn from(error: E) -> Self {
        StoreOpenError::Database(error.into().into())
    }
}

fn make_tables(database: &Database) -> Result<(), StoreOpenError> {
    let transaction = database.begin_write()?;
    let names: Vec<String> = transaction.list_tables()?.map(|table| table.name().to_owned()).collect();
    if !names.is_empty() && !names.iter().any(|name| name == META.name()) {
        return Err(StoreOpenError::NotAList);
    }
    if names.is_empty() {
        for keys in KEYS {
            transaction.open_table(keys)?;
        }
        transaction.open_table(CHANGES)?;
        let meta = Meta { id: random_id(), sequence: 0, floor: 0, current: 0 };
        meta.write(&transaction).map_err(StoreOpenError::Database)?;
        transaction.commit()?;
        return Ok(());
    }
    let meta = transaction.open_table(META).map_err(|error| match error {
        redb::TableError::Storage(error) => error.into(),
        _ => StoreOpenError::NotAList,
    })?;
    match meta.get(())?.map(|row| row.value()) {
        Some((FORMAT, _, _, _, 0 | 1)) => Ok(()),
        _ => Err(StoreOpenError::NotAList),
    }
}

/// The keys of std's hasher are random, so what it makes of a constant is.
fn random_id() -> u128 {
    let random = RandomState::new();
    u128::from(random.hash_one(0)) << 64 | u128::from(random.hash_one(1))
}

/// What the store says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Meta {
    /// Made at random with the store.
    pub(super) id: u128,
    /// The number of the last change.
    pub(super) sequence: u64,
    /// The log has all changes after this one. Up to it, it may have any, which mean nothing.
    pub(super) floor: u64,
    /// Which of [`KEYS`] is the list.
    pub(super) current: usize,
}

impl Meta {
    pub(super) fn read(transaction: &ReadTransaction) -> Result<Self, StoreError> {
        let table = transaction.open_table(META)?;
        let row =
            table.get(())?.ok_or_else(|| redb::Error::Corrupted("the row of the table meta is missing".into()))?;
        let (_, id, sequence, floor, current) = row.value();
        Ok(Meta { id, sequence, floor, current: usize::from(current & 1) })
    }

    pub(super) fn write(&self, transaction: &WriteTransaction) -> Result<(), StoreError> {
        let row = (FORMAT, self.id, self.sequence, self.floor, self.current as u8);
        transaction.open_table(META)?.insert((), row)?;
        Ok(())
    }

    /// The table of a list that is on its way.
    pub(super) fn spare(&self) -> usize {
        1 - self.current
    }
}

/// Keys in one of the two tables.
pub(super) fn count(transaction: &ReadTransaction, table: usize) -> Result<u64, StoreError> {
    Ok(transaction.open_table(KEYS[table])?.len()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("list.redb");
        (folder, path)
    }

    #[test]
    fn a_new_store_has_an_id_of_its_own_and_keeps_it() {
        let ((_a, first), (_b, second)) = (file(), file());
        let open = |path: &Path| Store::open(Store::of_file(path, 1 << 20)).unwrap();
        let meta = |store: &Store| Meta::read(&store.read().unwrap()).unwrap();
        let store = open(&first);
        let made = meta(&store);
        assert_eq!((made.sequence, made.floor, made.current), (0, 0, 0));
        assert_ne!(made.id, meta(&open(&second)).id);
        assert_eq!(store.reopen(|_| true).unwrap(), made);
        assert_eq!(meta(&store), made);
        store.close().unwrap();
        assert!(store.read().is_err() && store.write().is_err());
        assert_eq!(meta(&open(&first)), made);
    }

    #[test]
    fn another_store_in_the_place_of_this_one_is_never_read() {
        let ((_a, path), (_b, other)) = (file(), file());
        drop(Store::open(Store::of_file(&other, 1 << 20)).unwrap());
        let store = Store::open(Store::of_file(&path, 1 << 20)).unwrap();
        let id = Meta::read(&store.read().unwrap()).unwrap().id;
        std::fs::rename(&other, &path).unwrap();
        for _ in 0..2 {
            assert!(store.reopen(|meta| meta.id == id).is_err());
            assert!(store.read().is_err() && store.write().is_err());
        }
    }

    #[test]
    fn a_database_of_something_else_is_refused_and_left_alone() {
        let (_folder, path) = file();
        let database = Database::create(&path).unwrap();
        let transaction = database.begin_write().unwrap();
        transaction.open_table(TableDefinition::<u64, u64>::new("something")).unwrap();
        transaction.commit().unwrap();
        drop(database);
        let open = || Store::open(Store::of_file(&path, 1 << 20)).map(|_| ());
        assert!(matches!(open(), Err(StoreOpenError::NotAList)));
        assert!(matches!(open(), Err(StoreOpenError::NotAList)));
    }

    #[test]
    fn a_store_of_another_format_is_refused() {
        let (_folder, path) = file();
        let store = Store::open(Store::of_file(&path, 1 << 20)).unwrap();
        let transaction = store.write().unwrap();
        transaction.open_table(META).unwrap().insert((), (FORMAT + 1, 0, 0, 0, 0)).unwrap();
        transaction.commit().unwrap();
        store.close().unwrap();
        let error = Store::open(Store::of_file(&path, 1 << 20)).map(|_| ()).unwrap_err();
        assert!(matches!(error, StoreOpenError::NotAList));
    }
}
