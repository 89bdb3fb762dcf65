//! All keys of a table into a filter: one thread reads them, all others store them.

use super::error::StoreError;
use super::front::Side;
use super::store::KEYS;
use redb::{ReadTransaction, ReadableTable};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;

/// Keys that are stored at a time, while as many others are read.
const CHUNK_KEYS: usize = 1 << 17;

/// Bytes of such keys, about: long ones make a chunk sooner.
const CHUNK_BYTES: usize = 1 << 23;

/// Why a load ended early.
#[derive(Debug, thiserror::Error)]
pub(super) enum LoadError {
    /// It was asked to.
    #[error("it was cancelled")]
    Cancelled,
    /// The store could not be read.
    #[error("{0}")]
    Store(StoreError),
    /// The system gave no thread.
    #[error("the system gave no thread: {0}")]
    Thread(io::Error),
}

impl<E: Into<StoreError>> From<E> for LoadError {
    fn from(error: E) -> Self {
        LoadError::Store(error.into())
    }
}

/// Stores all keys of the table in an empty side; tells after each chunk how many have been read.
pub(super) fn load(
    transaction: &ReadTransaction,
    table: usize,
    side: &Side,
    cancel: &AtomicBool,
    mut progress: impl FnMut(u64),
) -> Result<u64, LoadError> {
    let table = transaction.open_table(KEYS[table])?;
    thread::scope(|scope| {
        // Memory stays bounded: one chunk is being stored, one waits, one is being filled.
        let (sender, chunks) = mpsc::sync_channel::<Chunk>(1);
        let store = move || chunks.into_iter().for_each(|chunk| side.insert_bulk(&chunk.keys()));
        thread::Builder::new().name("list-load".into()).spawn_scoped(scope, store).map_err(LoadError::Thread)?;
        let mut chunk = Chunk::default();
        let mut keys = 0;
        for entry in table.iter()? {
            chunk.push(entry?.0.value());
            if chunk.is_full() {
                if cancel.load(Ordering::Relaxed) {
                    return Err(LoadError::Cancelled);
                }
                keys += chunk.ends.len() as u64;
                // It is received: the other thread ends when this one lets go of the sender.
                let _ = sender.send(std::mem::take(&mut chunk));
                progress(keys);
            }
        }
        keys += chunk.ends.len() as u64;
        let _ = sender.send(chunk);
        progress(keys);
        Ok(keys)
    })
}

/// Keys in one piece of memory.
#[derive(Default)]
struct Chunk {
    text: String,
    /// Where each key ends.
    ends: Vec<usize>,
}

impl Chunk {
    fn push(&mut self, key: &str) {
        self.text.push_str(key);
        self.ends.push(self.text.len());
    }

    fn is_full(&self) -> bool {
        self.ends.len() >= CHUNK_KEYS || self.text.len() >= CHUNK_BYTES
    }

    fn keys(&self) -> Vec<&str> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| &self.text[start..end]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_gives_back_the_keys_that_it_was_given() {
        let mut chunk = Chunk::default();
        assert!(chunk.keys().is_empty());
        for key in ["a", "", "schlüssel", "b"] {
            chunk.push(key);
        }
        assert_eq!(chunk.keys(), ["a", "", "schlüssel", "b"]);
    }
}
