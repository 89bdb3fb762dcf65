//! Three mixes of operations in the harness of conc-map-bench, which asserts every answer: threads, each with keys of its
//! own, of which it looks up present and absent ones. It knows no false positives, so fingerprints have 32 bits, or 30 where
//! the filter grows: some in 10^9 lookups of absent keys are wrong. The seeds are fixed.

use bustle::{Collection, CollectionHandle, Mix, Workload};
use concurrent_cuckoo_filter::{CuckooFilter, DefaultHashBuilder};
use std::sync::Arc;

/// A filter built for the capacity, or one that grows to it from a sixteenth.
struct Set<const GROWS: bool>(Arc<CuckooFilter<u64>>);

struct Handle(Arc<CuckooFilter<u64>>);

impl<const GROWS: bool> Collection for Set<GROWS> {
    type Handle = Handle;

    fn with_capacity(capacity: usize) -> Self {
        let builder = CuckooFilter::builder().hasher(DefaultHashBuilder::with_seeds(1, 2, 3, 4));
        let builder = match GROWS {
            true => builder.capacity(capacity / 16).max_capacity(capacity).fingerprint_bits(30),
            false => builder.capacity(capacity).fingerprint_bits(32),
        };
        Set(Arc::new(builder.build().expect("a possible filter")))
    }

    fn pin(&self) -> Handle {
        Handle(Arc::clone(&self.0))
    }
}

impl CollectionHandle for Handle {
    type Key = u64;

    fn get(&mut self, key: &u64) -> bool {
        self.0.contains(key)
    }

    fn insert(&mut self, key: &u64) -> bool {
        self.0.insert_unique(key).expect("room for the capacity")
    }

    fn remove(&mut self, key: &u64) -> bool {
        self.0.remove(key)
    }

    /// A set has no values to update: a lookup in a batch.
    fn update(&mut self, key: &u64) -> bool {
        let mut found = [false];
        self.0.contains_batch(&[key], &mut found);
        found[0]
    }
}

fn run<const GROWS: bool>() {
    // Reads, insertions, removals and updates; and how much of the capacity is filled before.
    for ([read, insert, remove, update], prefilled) in
        [([98, 1, 1, 0], 0.75), ([10, 40, 40, 10], 0.5), ([5, 80, 5, 10], 0.0)]
    {
        for threads in [1, 2, 4] {
            let mut workload = Workload::new(threads, Mix { read, insert, remove, update, upsert: 0 });
            workload.initial_capacity_log2(18).prefill_fraction(prefilled).seed([threads as u8; 32]);
            workload.run_silently::<Set<GROWS>>();
        }
    }
}

#[test]
fn every_answer_of_every_mix_is_right() {
    run::<false>();
}

#[test]
fn every_answer_of_a_filter_that_grows_is_right() {
    run::<true>();
}
