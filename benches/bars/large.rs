//! A table that no cache holds, and the keys for it.

use compare::clock::timed;
use compare::field::keys;
use compare::peers::ours;
use compare::{Key, Size};
use concurrent_cuckoo_filter::CuckooFilter;
use rayon::{ThreadPool, ThreadPoolBuilder};

/// 2^27 slots of 16 bits are 256 MiB.
pub(crate) const LOG2: u32 = 27;

/// The ratio that is asked for, if the large table has its full size.
pub(crate) fn asked(log2: u32, ratio: f64) -> Option<f64> {
    (log2 == LOG2).then_some(ratio)
}

/// A filter of about 2^`log2` slots, and how many keys go in for certain, 95 % of its load at the most.
pub(crate) fn table<K: Key>(log2: u32, bits: u32) -> (CuckooFilter<K>, usize) {
    let size = Size::new(log2, bits);
    let filter = ours::build(size);
    let load = size.keys.min(filter.capacity());
    (filter, load)
}

/// A filter that each contest empties and fills again, so that all its pages are there.
pub(crate) struct Large {
    pub(crate) filter: CuckooFilter<u64>,
    pub(crate) present: Vec<u64>,
    pub(crate) one: ThreadPool,
    pub(crate) two: ThreadPool,
}

impl Large {
    pub(crate) fn new(log2: u32) -> Self {
        let pool = |threads| ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        let (filter, load) = table(log2, 16);
        let large = Large { filter, present: keys(1, load), one: pool(1), two: pool(2) };
        large.par_fill(&large.two);
        large
    }

    /// The cost of work that inserts all the keys into the empty filter.
    pub(crate) fn fill(&self, work: impl FnOnce() -> usize) -> f64 {
        self.filter.clear();
        let (nanos, inserted) = timed(self.present.len(), work);
        assert_eq!((inserted, self.filter.len()), (self.present.len(), self.present.len()));
        nanos
    }

    /// The same of the bulk operation.
    pub(crate) fn par_fill(&self, pool: &ThreadPool) -> f64 {
        self.fill(|| pool.install(|| self.filter.par_insert(&self.present).inserted))
    }

    /// The cost of work that removes all the keys from the full filter.
    pub(crate) fn empty(&self, work: impl FnOnce() -> usize) -> f64 {
        self.par_fill(&self.two);
        let (nanos, removed) = timed(self.present.len(), work);
        assert_eq!((removed, self.filter.len()), (self.present.len(), 0));
        nanos
    }

    /// The same of the bulk operation, on two threads.
    pub(crate) fn par_empty(&self) -> f64 {
        self.empty(|| self.two.install(|| self.filter.par_remove(&self.present).removed))
    }
}
