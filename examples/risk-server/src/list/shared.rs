//! What the threads of a list share.

use super::error::StoreError;
use super::front::{Front, Refused, Side};
use super::options::{Filter, Options};
use super::stats::{FilterStats, ListStats, SnapshotStats};
use super::store::{KEYS, Meta, Store};
use parking_lot::Mutex;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio::sync::Notify;

/// What the threads of a list share. The writer alone changes the store and the front.
pub(super) struct Shared {
    pub(super) options: Options,
    pub(super) store: Store,
    pub(super) front: Front,
    pub(super) refused: Arc<Refused>,
    /// Builds end early when it is set.
    pub(super) closing: AtomicBool,
    /// The overflow has become smaller, or the list is being closed.
    pub(super) room: Notify,
    /// Held while a snapshot is saved: one at a time.
    pub(super) saving: Mutex<()>,
    /// A thread of its own waits to save one.
    pub(super) save_waits: AtomicBool,
    pub(super) last_snapshot: Mutex<Option<SnapshotStats>>,
    pub(super) counters: Counters,
}

/// Numbers for [`ListStats`]. Nothing is decided by them.
#[derive(Default)]
pub(super) struct Counters {
    pub(super) keys: AtomicU64,
    pub(super) sequence: AtomicU64,
    /// The last change that the snapshot has.
    pub(super) watermark: AtomicU64,
    pub(super) puts: AtomicU64,
    pub(super) deletes: AtomicU64,
    pub(super) rebuilds: AtomicU64,
    pub(super) rebuild_failures: AtomicU64,
    pub(super) replacements: AtomicU64,
    pub(super) faults: AtomicU64,
    pub(super) reopenings: AtomicU64,
    pub(super) snapshot_failures: AtomicU64,
    pub(super) write_failures: AtomicU64,
    pub(super) store_bytes: AtomicU64,
}

impl Shared {
    /// An empty side with this filter.
    pub(super) fn side(&self, filter: Filter) -> Side {
        Side::new(filter, Arc::clone(&self.refused))
    }

    pub(super) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    /// Whether puts wait for a larger filter.
    pub(super) fn is_overflowing(&self) -> bool {
        self.front.current().overflow.len() > self.options.overflow_limit
    }

    /// Notes the size of the store's file, for the numbers. What cannot be read stays as it was.
    pub(super) fn measure_store(&self) {
        if let Ok(file) = std::fs::metadata(self.options.store()) {
            self.counters.store_bytes.store(file.len(), Ordering::Relaxed);
        }
    }

    /// Says which keys the store has, all at one moment.
    pub(super) fn confirm(&self, keys: &[&str]) -> Result<Vec<bool>, StoreError> {
        let transaction = self.store.read()?;
        let table = transaction.open_table(KEYS[Meta::read(&transaction)?.current])?;
        keys.iter().map(|key| Ok(table.get(*key)?.is_some())).collect()
    }

    pub(super) fn stats(&self) -> ListStats {
        let side = self.front.current();
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let of = &self.counters;
        let filter = side.filter.stats();
        // The watermark first: it never passes the sequence.
        let watermark = get(&of.watermark);
        ListStats {
            keys: get(&of.keys),
            filter: FilterStats {
                len: filter.len as u64,
                capacity: side.filter.capacity() as u64,
                load_factor: filter.load_factor,
                fingerprint_bits: side.filter.fingerprint_bits(),
                expected_false_positive_rate: filter.expected_false_positive_rate,
                memory_bytes: side.filter.memory_usage() as u64,
                relocations: filter.relocations,
                longest_path: filter.longest_path,
            },
            overflow_keys: side.overflow.len() as u64,
            puts: get(&of.puts),
            deletes: get(&of.deletes),
            refusals: self.refused.counts(),
            rebuilds: get(&of.rebuilds),
            rebuild_failures: get(&of.rebuild_failures),
            replacements: get(&of.replacements),
            filter_faults: get(&of.faults),
            store_reopenings: get(&of.reopenings),
            store_bytes: get(&of.store_bytes),
            write_failures: get(&of.write_failures),
            changes_since_snapshot: get(&of.sequence).saturating_sub(watermark),
            last_snapshot: *self.last_snapshot.lock(),
            snapshot_failures: get(&of.snapshot_failures),
        }
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("folder", &self.options.folder).finish_non_exhaustive()
    }
}
