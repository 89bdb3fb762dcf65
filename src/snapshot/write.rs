//! Writing: each shard is copied under its locks, and written without them.

use super::Snapshot;
use super::format::{self, Header, MAX_METADATA, MAX_NAME};
use super::key_type::KeyType;
use crate::error::SnapshotError;
use crate::hashing::{SavedHasher, probe};
use crc32c::crc32c_append;
use std::io::Write;

impl<K: ?Sized + 'static, S: SavedHasher> Snapshot<'_, K, S> {
    /// Writes what the header announces.
    pub(super) fn write(&self, header: &Header, mut writer: impl Write) -> Result<(), SnapshotError> {
        let mut words = filled(header.plan.words, 0_u64)?;
        let mut bytes = filled(header.plan.words * size_of::<u64>(), 0_u8)?;
        let header = header.to_bytes();
        let filter = self.filter;
        writer.write_all(&header)?;
        let origin = format::origin(&header);
        let (mut checksums, mut total) = (origin, 0);
        for number in self.shards.clone() {
            let count = filter.raw.shard(number).copy_to(&mut words);
            for (word, to) in words.iter().zip(bytes.chunks_exact_mut(size_of::<u64>())) {
                to.copy_from_slice(&word.to_le_bytes());
            }
            let prefix = format::shard_prefix(number, count, words.len());
            let checksum = crc32c_append(crc32c_append(origin, &prefix), &bytes).to_le_bytes();
            writer.write_all(&prefix)?;
            writer.write_all(&bytes)?;
            writer.write_all(&checksum)?;
            checksums = crc32c_append(checksums, &checksum);
            total += count;
        }
        writer.write_all(&format::trailer(self.shards.len(), total, checksums))?;
        writer.flush()?;
        Ok(())
    }

    /// Refuses what cannot be written, before anything is. The user code that a snapshot takes runs here.
    pub(super) fn header(&self) -> Result<Header, SnapshotError> {
        const { assert!(S::NAME.len() <= MAX_NAME, "the name of a hasher has 64 bytes at the most") };
        let (filter, shards) = (self.filter, self.filter.shards());
        if self.shards.is_empty() || self.shards.end > shards {
            return Err(SnapshotError::NoSuchShards { asked: self.shards.clone(), shards });
        }
        if self.metadata.len() > MAX_METADATA {
            return Err(SnapshotError::MetadataTooLong { len: self.metadata.len(), most: MAX_METADATA });
        }
        Ok(Header {
            plan: *filter.plan(),
            part: self.shards.clone(),
            capacity: filter.capacity(),
            rate: filter.rate(),
            key_type: KeyType::of::<K>(),
            hasher: S::NAME.into(),
            probe: probe(filter.hasher()),
            keys: if self.with_keys { filter.hasher().keys() } else { None },
            metadata: self.metadata.into(),
        })
    }
}

/// `len` copies of a value; an error when there is no memory.
fn filled<T: Clone>(len: usize, value: T) -> Result<Vec<T>, SnapshotError> {
    let mut vec = Vec::new();
    vec.try_reserve_exact(len).map_err(|_| SnapshotError::OutOfMemory { bytes: len * size_of::<T>() })?;
    vec.resize(len, value);
    Ok(vec)
}
