//! The committed list: tables of one redb file.

use super::error::StoreError;
use super::{Filter, Options};
use parking_lot::RwLock;
use redb::backends::FileBackend;
use redb::{
    Database, DatabaseError, ReadTransaction, ReadableDatabase, ReadableTable, ReadableTableMetadata, TableDefinition,
    TableHandle, WriteTransaction,
};
use std::fs::{File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// The keys of the list, and those of a replacement in progress; [`Meta::current`] says which is which.
pub(super) const KEYS: [TableDefinition<&str, ()>; 2] =
    [TableDefinition::new("keys_0"), TableDefinition::new("keys_1")];

/// The log of changes: sequence number, [`PUT`] or [`DELETE`], key.
pub(super) const CHANGES: TableDefinition<u64, (u8, &str)> = TableDefinition::new("changes");

pub(super) const PUT: u8 = 1;
pub(super) const DELETE: u8 = 2;

/// One row: the format, and the fields of [`Meta`].
const META: TableDefinition<(), (u32, u128, u64, u64, u8)> = TableDefinition::new("meta");

/// The version of the tables.
const FORMAT: u32 = 1;

/// How the database is opened: the first time, and again after it failed.
pub(super) type Opener = Box<dyn Fn() -> Result<Database, DatabaseError> + Send + Sync>;

/// The database. It can be reopened in place, since redb refuses everything after an error of its file.
pub(super) struct Store {
    opener: Opener,
    /// `None` while it is being reopened, if that failed, and once it is closed.
    database: RwLock<Option<Database>>,
}

impl Store {
    /// Opens a store, and creates its tables if it is new.
    pub(super) fn open(opener: Opener) -> Result<Self, StoreOpenError> {
        let database = opener().map_err(|error| match error {
            DatabaseError::DatabaseAlreadyOpen => StoreOpenError::InUse,
            error => StoreOpenError::Database(error.into()),
        })?;
        create_tables(&database)?;
        Ok(Store { opener, database: RwLock::new(Some(database)) })
    }

    /// Opens a file, with this much memory for its pages. A new file is for its owner alone.
    pub(super) fn file_opener(path: &Path, cache_bytes: usize) -> Opener {
        let path = path.to_owned();
        Box::new(move || {
            Database::builder().set_cache_size(cache_bytes).create_with_backend(FileBackend::new(open_file(&path)?)?)
        })
    }

    /// A consistent view of the store as it is now.
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

    /// Reopens the database, provided that its meta row is `expected`. Reads in progress fail.
    pub(super) fn reopen(&self, expected: impl FnOnce(&Meta) -> bool) -> Result<Meta, StoreError> {
        // The lock is not held while the file is opened, which may take long: reads fail meanwhile.
        let old = self.database.write().take();
        drop(old);
        let new = (self.opener)()?;
        let meta = Meta::read(&new.begin_read()?)?;
        if !expected(&meta) {
            // It must not be read: the front does not belong to it.
            let message = "another store, or an older state of this one, is in its place";
            return Err(redb::Error::Corrupted(message.into()).into());
        }
        *self.database.write() = Some(new);
        Ok(meta)
    }

    /// Closes the database. Reads in progress fail.
    pub(super) fn close(&self) -> Result<(), StoreError> {
        let database = self.database.write().take();
        Ok(database.map_or(Ok(()), Database::close)?)
    }
}

/// Why a store cannot be opened.
#[derive(Debug)]
pub(super) enum StoreOpenError {
    InUse,
    NotAList,
    Database(StoreError),
}

impl<E: Into<redb::Error>> From<E> for StoreOpenError {
    fn from(error: E) -> Self {
        StoreOpenError::Database(StoreError::from(error))
    }
}

fn create_tables(database: &Database) -> Result<(), StoreOpenError> {
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

/// The keys of std's hasher are random, so its hash of a constant is too.
fn random_id() -> u128 {
    let random = RandomState::new();
    u128::from(random.hash_one(0)) << 64 | u128::from(random.hash_one(1))
}

/// The meta row: the state of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Meta {
    /// Random, chosen when the store is created.
    pub(super) id: u128,
    /// The number of the last change.
    pub(super) sequence: u64,
    /// The log has every change after this one. Entries up to it may remain, and mean nothing.
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

    /// The table for a replacement.
    pub(super) fn spare(&self) -> usize {
        1 - self.current
    }
}

/// The number of keys in one of the two tables.
pub(super) fn count(transaction: &ReadTransaction, table: usize) -> Result<u64, StoreError> {
    Ok(transaction.open_table(KEYS[table])?.len()?)
}

fn open_file(path: &Path) -> io::Result<File> {
    let mut file = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut file, 0o600);
    file.read(true).write(true).create(true).truncate(false).open(path)
}

/// A filter of all keys in one of the two tables, loaded on all threads of the pool. `progress` is told now and then how many
/// keys there are so far.
pub(super) fn load(
    transaction: &ReadTransaction,
    table: usize,
    options: &Options,
    cancel: &AtomicBool,
    progress: impl FnMut(usize),
) -> Result<Filter, StoreError> {
    let table = transaction.open_table(KEYS[table])?;
    let filter = options.filter(table.len()?).map_err(StoreError::new)?;
    let mut failure = None;
    let mut fail = |error| {
        failure = Some(error);
        None
    };
    let hashes = table.iter()?.map_while(|entry| match entry {
        _ if cancel.load(Ordering::Relaxed) => fail(StoreError::new("loading was cancelled")),
        Ok((key, _)) => Some(filter.hash(key.value())),
        Err(error) => fail(error.into()),
    });
    let report = filter.bulk().max_listed(1).progress(progress).insert_iter_hash(hashes);
    let refused = report.rejected.first().map(|rejection| StoreError::new(rejection.error));
    failure.or(refused).map_or(Ok(filter), Err)
}

/// Applies the changes after `after` to a filter that holds the list as it was then. Returns how many there were, and how
/// many cannot follow what it held: none, unless something is broken.
pub(super) fn replay(transaction: &ReadTransaction, after: u64, filter: &Filter) -> Result<(u64, u64), StoreError> {
    let (mut last, mut faults) = (after, 0);
    for entry in transaction.open_table(CHANGES)?.range(after.saturating_add(1)..)? {
        let (sequence, change) = entry?;
        let sound = match change.value() {
            (PUT, key) => filter.insert(key).is_ok(),
            (DELETE, key) => filter.remove(key),
            _ => false,
        };
        faults += u64::from(!sound || sequence.value() != last + 1);
        last = sequence.value();
    }
    Ok((last - after, faults))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_store_of_this_format_is_opened_and_only_the_same_one_is_reopened() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("one"), folder.path().join("other"));
        let open = |path: &Path| Store::open(Store::file_opener(path, 1 << 20));
        let meta = |store: &Store| Meta::read(&store.read().unwrap()).unwrap();
        let store = open(&path).unwrap();
        let created = meta(&store);
        assert_eq!((created.sequence, created.floor, created.current), (0, 0, 0));
        assert_ne!(created.id, meta(&open(&other).unwrap()).id);
        assert_eq!(store.reopen(|_| true).unwrap(), created);
        std::fs::rename(&other, &path).unwrap();
        for _ in 0..2 {
            assert!(store.reopen(|meta| meta.id == created.id).is_err());
            assert!(store.read().is_err() && store.write().is_err());
        }

        let store = open(&path).unwrap();
        let transaction = store.write().unwrap();
        transaction.open_table(META).unwrap().insert((), (FORMAT + 1, 0, 0, 0, 0)).unwrap();
        transaction.commit().unwrap();
        store.close().unwrap();
        assert!(matches!(open(&path), Err(StoreOpenError::NotAList)));

        let transaction = Database::create(&other).unwrap().begin_write().unwrap();
        transaction.open_table(TableDefinition::<u64, u64>::new("something")).unwrap();
        transaction.commit().unwrap();
        for _ in 0..2 {
            assert!(matches!(open(&other), Err(StoreOpenError::NotAList)));
        }
    }
}
