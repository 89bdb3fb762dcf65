//! A filter within other values, by way of a snapshot.

use super::SnapshotReader;
use super::read::at_end;
use crate::error::SnapshotError;
use crate::filter::CuckooFilter;
use crate::hashing::SavedHasher;
use core::fmt;
use core::marker::PhantomData;
use serde::de::{self, Deserialize, Deserializer, SeqAccess, Visitor};
use serde::ser::{self, Serialize, Serializer};
use std::io::{self, BufRead, BufReader, Read};

/// The bytes that [`CuckooFilter::write_to`] writes, with the keys of the hasher among them, while the filter serves.
///
/// All of them are held in memory, as much as the filter takes; `write_to` itself holds a shard at a time. A text
/// format may take several characters for each byte.
///
/// # Errors
/// As [`CuckooFilter::write_to`], and if the hasher has no keys to keep: nothing could be deserialized then.
#[cfg_attr(docsrs, doc(cfg(feature = "serde")))]
impl<K: ?Sized + 'static, S: SavedHasher> Serialize for CuckooFilter<K, S> {
    fn serialize<T: Serializer>(&self, serializer: T) -> Result<T::Ok, T::Error> {
        serializer.serialize_bytes(&bytes(self).map_err(ser::Error::custom)?)
    }
}

/// As [`CuckooFilter::load`], of the bytes of a snapshot: with the keys that are there, and the same checks. What is
/// wrong is told in the same words, as far as the format passes them on.
#[cfg_attr(docsrs, doc(cfg(feature = "serde")))]
impl<'de, K: ?Sized + 'static, S: SavedHasher> Deserialize<'de> for CuckooFilter<K, S> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_byte_buf(Bytes(PhantomData))
    }
}

fn bytes<K: ?Sized + 'static, S: SavedHasher>(filter: &CuckooFilter<K, S>) -> Result<Vec<u8>, SnapshotError> {
    if filter.hasher().keys().and_then(S::from_keys).is_none() {
        return Err(SnapshotError::NoKeys { hasher: S::NAME.into() });
    }
    let mut bytes = Vec::new();
    let about = filter.memory_usage();
    bytes.try_reserve(about).map_err(|_| SnapshotError::OutOfMemory { bytes: about })?;
    filter.write_to(&mut bytes)?;
    Ok(bytes)
}

/// Reads all that there is.
fn filter<K, S>(mut reader: impl BufRead) -> Result<CuckooFilter<K, S>, SnapshotError>
where
    K: ?Sized + 'static,
    S: SavedHasher,
{
    let filter = SnapshotReader::new(&mut reader)?.into_filter_with_stored_keys()?;
    at_end(reader)?;
    Ok(filter)
}

struct Bytes<K: ?Sized, S>(PhantomData<fn(&K) -> S>);

impl<'de, K: ?Sized + 'static, S: SavedHasher> Visitor<'de> for Bytes<K, S> {
    type Value = CuckooFilter<K, S>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the bytes of a snapshot of a filter")
    }

    fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Self::Value, E> {
        filter(bytes).map_err(E::custom)
    }

    /// From formats without bytes, such as JSON. None are gathered beyond a shard, whatever length is claimed.
    fn visit_seq<A: SeqAccess<'de>>(self, sequence: A) -> Result<Self::Value, A::Error> {
        let mut elements = Elements { sequence: Some(sequence), error: None };
        let filter = filter(BufReader::new(&mut elements));
        filter.map_err(|error| elements.error.unwrap_or_else(|| de::Error::custom(error)))
    }
}

/// The elements of a sequence as a reader.
struct Elements<'de, A: SeqAccess<'de>> {
    /// `None` at the end: not every format may be asked again.
    sequence: Option<A>,
    /// What the format had to say, which a reader's error cannot carry.
    error: Option<A::Error>,
}

impl<'de, A: SeqAccess<'de>> Read for Elements<'de, A> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(sequence) = &mut self.sequence else { return Ok(0) };
        for (read, to) in buffer.iter_mut().enumerate() {
            match sequence.next_element() {
                Ok(Some(byte)) => *to = byte,
                Ok(None) => {
                    self.sequence = None;
                    return Ok(read);
                }
                Err(error) => {
                    self.error = Some(error);
                    return Err(io::ErrorKind::InvalidData.into());
                }
            }
        }
        Ok(buffer.len())
    }
}
