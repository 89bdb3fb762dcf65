//! Serialization of filters through a snapshot.

use super::SnapshotReader;
use super::read::at_end;
use crate::error::SnapshotError;
use crate::filter::Filter;
use crate::filter::kind::Kind;
use crate::hashing::SavedHasher;
use core::fmt;
use core::marker::PhantomData;
use serde::de::{self, Deserialize, Deserializer, SeqAccess, Visitor};
use serde::ser::{self, Serialize, Serializer};
use std::io::{self, BufRead, BufReader, Read};

/// Serializes the bytes of [`Filter::write_to`], including the seeds of the hash function, while other threads use the filter.
///
/// All bytes are held in memory, as many as the filter takes; `write_to` holds one shard at a time. A text format may take several
/// characters per byte.
///
/// # Errors
/// Those of [`Filter::write_to`], and if the hash function has no seeds to store, without which the filter cannot be deserialized.
#[cfg_attr(docsrs, doc(cfg(feature = "serde")))]
impl<K: ?Sized + 'static, S: SavedHasher, U: Kind> Serialize for Filter<K, S, U> {
    fn serialize<T: Serializer>(&self, serializer: T) -> Result<T::Ok, T::Error> {
        serializer.serialize_bytes(&bytes(self).map_err(ser::Error::custom)?)
    }
}

/// Reads the bytes of a snapshot as [`Filter::load`] reads a file, with the same checks. Errors have the same texts if the format
/// forwards them.
#[cfg_attr(docsrs, doc(cfg(feature = "serde")))]
impl<'de, K: ?Sized + 'static, S: SavedHasher, U: Kind> Deserialize<'de> for Filter<K, S, U> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_byte_buf(Bytes(PhantomData))
    }
}

fn bytes<K: ?Sized + 'static, S: SavedHasher, U: Kind>(filter: &Filter<K, S, U>) -> Result<Vec<u8>, SnapshotError> {
    if filter.hasher().seeds().and_then(S::from_seeds).is_none() {
        return Err(SnapshotError::NoSeeds { hasher: S::NAME.into() });
    }
    let mut bytes = Vec::new();
    let about = filter.memory_usage();
    bytes.try_reserve(about).map_err(|_| SnapshotError::OutOfMemory { bytes: about })?;
    filter.write_to(&mut bytes)?;
    Ok(bytes)
}

/// Reads a filter, and checks that the reader ends after it.
fn filter<K: ?Sized + 'static, S: SavedHasher, U: Kind>(
    mut reader: impl BufRead,
) -> Result<Filter<K, S, U>, SnapshotError> {
    let filter = SnapshotReader::new(&mut reader)?.into_filter()?;
    at_end(reader)?;
    Ok(filter)
}

struct Bytes<K: ?Sized, S, U>(PhantomData<fn(&K, U) -> S>);

impl<'de, K: ?Sized + 'static, S: SavedHasher, U: Kind> Visitor<'de> for Bytes<K, S, U> {
    type Value = Filter<K, S, U>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the bytes of a snapshot of a filter")
    }

    fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Self::Value, E> {
        filter(bytes).map_err(E::custom)
    }

    /// Reads formats without bytes, such as JSON. No more than a shard is collected, whatever length the input claims.
    fn visit_seq<A: SeqAccess<'de>>(self, sequence: A) -> Result<Self::Value, A::Error> {
        let mut elements = Elements { sequence: Some(sequence), error: None };
        let filter = filter(BufReader::new(&mut elements));
        filter.map_err(|error| elements.error.unwrap_or_else(|| de::Error::custom(error)))
    }
}

/// The elements of a sequence as a reader.
struct Elements<'de, A: SeqAccess<'de>> {
    /// `None` at the end: not every format may be polled again.
    sequence: Option<A>,
    /// The error of the format, which the error of a reader cannot carry.
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
