//! Joins parts: in memory, or shard by shard from files to a file.

use super::file;
use super::read::{Parts, SnapshotHeader, SnapshotReader, check_filter, check_slots};
use super::write::Records;
use crate::error::SnapshotError;
use crate::filter::Filter;
use crate::filter::kind::Kind;
use crate::hashing::SavedHasher;
use crate::raw::Bare;
use std::io::{Read, Write};
use std::path::Path;

pub(super) fn join<K, S, T, R>(parts: impl IntoIterator<Item = R>, hasher: S) -> Result<Filter<K, S, T>, SnapshotError>
where
    K: ?Sized + 'static,
    S: SavedHasher,
    T: Kind,
    R: Read,
{
    let mut joined: Option<Parts<T::Slots>> = None;
    for part in parts {
        let reader = SnapshotReader::new(part)?;
        let joined = match &mut joined {
            None => {
                check_filter::<K, S, T>(reader.header(), &hasher)?;
                joined.insert(Parts::new(reader.header().clone()))
            }
            Some(joined) => joined,
        };
        joined.begin(reader.header())?;
        reader.read_into(joined)?;
    }
    joined.ok_or(SnapshotError::NoParts)?.into_filter(hasher)
}

impl<R: Read> SnapshotReader<R> {
    /// Joins parts, in any order, and writes the whole filter without holding it in memory. Returns the header of the
    /// result.
    ///
    /// The result is that of [`Filter::join`] and [`write_to`](Filter::write_to), for any type of keys and any hash
    /// function. It contains the seeds of the hash function if all parts contain them, and no metadata. Words are
    /// compared with their checksums; counts are checked when the result is loaded.
    ///
    /// # Errors
    /// Those of [`Filter::join`]. Missing, repeated and foreign parts are detected by their headers, before anything is
    /// written.
    ///
    /// # Complexity
    /// Memory: the bytes of one shard. All readers are open at the same time.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::{CuckooFilter, SnapshotReader, StableHashBuilder};
    ///
    /// let hasher = || StableHashBuilder::with_keys(1, 2);
    /// let parts = [2..4, 0..2].map(|shards| {
    ///     let builder = CuckooFilter::<u64>::builder().capacity(1_000_000).hasher(hasher());
    ///     let mut bytes = Vec::new();
    ///     builder.build_shards(shards).unwrap().snapshot().write_to(&mut bytes).unwrap();
    ///     bytes
    /// });
    /// let mut whole = Vec::new();
    /// let header = SnapshotReader::join_to(parts.iter().map(|part| &part[..]), &mut whole)?;
    /// assert_eq!((header.part(), header.key_type()), (0..4, "u64"));
    /// assert!(CuckooFilter::<u64, _>::read_from(&whole[..], hasher())?.is_empty());
    /// # Ok::<(), concurrent_cuckoo_filter::SnapshotError>(())
    /// ```
    pub fn join_to(parts: impl IntoIterator<Item = R>, writer: impl Write) -> Result<SnapshotHeader, SnapshotError> {
        let (header, readers) = whole(parts)?;
        write(&header, readers, writer)?;
        Ok(header)
    }

    /// Joins parts to a file, and replaces an older file. See [`join_to`](SnapshotReader::join_to) and
    /// [`Filter::save`].
    ///
    /// # Errors
    /// Those of [`join_to`](SnapshotReader::join_to) and [`Filter::save`].
    ///
    /// ```
    /// use concurrent_cuckoo_filter::{CuckooFilter, SnapshotReader};
    ///
    /// let path = std::env::temp_dir().join("concurrent-cuckoo-filter.example-join");
    /// let filter = CuckooFilter::<u64>::with_capacity(600_000);
    /// filter.insert(&7)?;
    /// let parts = [0..1, 1..filter.shards()].map(|shards| {
    ///     let mut part = Vec::new();
    ///     filter.snapshot().shards(shards).write_to(&mut part).map(|()| part)
    /// });
    /// let [first, second] = parts;
    /// SnapshotReader::join_to_file([&first?[..], &second?[..]], &path)?;
    /// assert!(CuckooFilter::<u64>::load(&path)?.contains(&7));
    /// # std::fs::remove_file(&path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn join_to_file(
        parts: impl IntoIterator<Item = R>,
        path: impl AsRef<Path>,
    ) -> Result<SnapshotHeader, SnapshotError> {
        let (path, (header, readers)) = (path.as_ref(), whole(parts)?);
        file::save(path, |file| write(&header, readers, file))?;
        Ok(header)
    }
}

/// Returns the parts in the order of their shards, and the header of the whole filter.
fn whole<R: Read>(
    parts: impl IntoIterator<Item = R>,
) -> Result<(SnapshotHeader, Vec<SnapshotReader<R>>), SnapshotError> {
    let mut readers = Vec::new();
    let mut joined: Option<Parts<Bare>> = None;
    for part in parts {
        let reader = SnapshotReader::new(part)?;
        check_slots(reader.header())?;
        joined.get_or_insert_with(|| Parts::new(reader.header().clone())).begin(reader.header())?;
        readers.push(reader);
    }
    joined.ok_or(SnapshotError::NoParts)?.complete()?;
    let mut whole = readers[0].header().clone();
    let keys_are_told = readers.iter().all(|reader| reader.header().has_keys());
    whole.0.part = 0..whole.shards();
    whole.0.stored = readers.iter().map(|reader| reader.header().stored()).fold(0, u64::wrapping_add);
    whole.0.keys = whole.0.keys.filter(|_| keys_are_told);
    whole.0.metadata.clear();
    readers.sort_by_key(|reader| reader.header().part().start);
    Ok((whole, readers))
}

fn write<R: Read>(
    header: &SnapshotHeader,
    readers: Vec<SnapshotReader<R>>,
    writer: impl Write,
) -> Result<(), SnapshotError> {
    let mut records = Records::begin(&header.0, writer)?;
    let mut bytes = Vec::new();
    for reader in readers {
        let mut arriving = reader.arriving();
        while let Some(arrived) = arriving.next(bytes)? {
            arrived.check()?;
            records.write(arrived.head, &arrived.bytes)?;
            bytes = arrived.bytes;
        }
        bytes = Vec::new();
    }
    records.end()
}
