//! Mixes of operations on several threads, in the harness of conc-map-bench (the crate `bustle`), which asserts every answer.
//! It allows no false positives, so filters have fingerprints of 32 bits.

use super::Plan;
use crate::record::{Record, Table};
use crate::slices::{self, Case, speed};
use ahash::RandomState;
use bustle::{Collection, CollectionHandle, Mix, Workload};
use concurrent_cuckoo_filter::{CuckooFilter, DefaultHashBuilder};
use parking_lot::Mutex;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::time::Instant;

/// Lookups, insertions, removals and updates in percent, and the fraction of the capacity that is filled before. With a fraction
/// of 1, half of the queried keys are present.
const MIXES: [([u8; 4], f64); 3] = [([98, 1, 1, 0], 1.0), ([10, 40, 40, 10], 1.0), ([5, 80, 5, 10], 0.0)];

/// Defines a set of this kind, and its handle per thread.
macro_rules! collection {
    ($name:ident: $set:ty, |$capacity:ident| $new:expr, |$this:ident, $key:ident| $get:expr, $insert:expr, $remove:expr) => {
        struct $name(Arc<$set>);

        impl Collection for $name {
            type Handle = Handle<$set>;

            fn with_capacity($capacity: usize) -> Self {
                $name(Arc::new($new))
            }

            fn pin(&self) -> Self::Handle {
                Handle(Arc::clone(&self.0), None)
            }
        }

        impl CollectionHandle for Handle<$set> {
            type Key = u64;

            fn get(&mut self, $key: &u64) -> bool {
                let $this = self.set();
                $get
            }

            fn insert(&mut self, $key: &u64) -> bool {
                let $this = self.set();
                $insert
            }

            fn remove(&mut self, $key: &u64) -> bool {
                let $this = self.set();
                $remove
            }

            /// A lookup, because a set has no values.
            fn update(&mut self, key: &u64) -> bool {
                self.get(key)
            }
        }
    };
}

/// A handle of a set, and the time of its first operation.
struct Handle<T>(Arc<T>, Option<Instant>);

/// The times from the first operation of each thread to its last one. The harness reads its clock on a thread of its own, which
/// may not run while the others work.
static SPANS: Mutex<Vec<[Instant; 2]>> = Mutex::new(Vec::new());

impl<T> Handle<T> {
    #[inline]
    fn set(&mut self) -> &T {
        self.1.get_or_insert_with(Instant::now);
        &self.0
    }
}

impl<T> Drop for Handle<T> {
    fn drop(&mut self) {
        self.1.into_iter().for_each(|begin| SPANS.lock().push([begin, Instant::now()]));
    }
}

/// With fixed seeds, because the false-positive rate is not 0.
fn hasher() -> DefaultHashBuilder {
    DefaultHashBuilder::with_seeds(1, 2, 3, 4)
}

/// A little above the capacity, since a mix may insert before it removes.
fn with_room(capacity: usize) -> usize {
    capacity + capacity / 64
}

collection!(Ours: CuckooFilter<u64>,
    |capacity| CuckooFilter::builder().capacity(with_room(capacity)).fingerprint_bits(32).hasher(hasher()).build().unwrap(),
    |set, key| set.contains(key), set.insert_unique(key).unwrap(), set.remove(key));
/// A filter that begins with a sixteenth of the capacity.
struct Grows(CuckooFilter<u64>);
collection!(Growing: Grows,
    |capacity| Grows(CuckooFilter::builder().capacity(capacity / 16).max_capacity(with_room(capacity)).fingerprint_bits(30)
        .hasher(hasher()).build().unwrap()),
    |set, key| set.0.contains(key), set.0.insert_unique(key).unwrap(), set.0.remove(key));
collection!(AtomicCuckoo: atomic_cuckoo_filter::CuckooFilter<ahash::AHasher>,
    |capacity| atomic_cuckoo_filter::CuckooFilterBuilder::default().capacity(with_room(capacity)).fingerprint_size(32usize)
        .build().unwrap(),
    |set, key| set.contains(key), set.insert(key).is_ok(), set.remove(key));
collection!(DashSet: dashmap::DashSet<u64, RandomState>,
    |capacity| dashmap::DashSet::with_capacity_and_hasher(capacity, RandomState::new()),
    |set, key| set.contains(key), set.insert(*key), set.remove(key).is_some());
collection!(Papaya: papaya::HashSet<u64, RandomState>,
    |capacity| papaya::HashSet::with_capacity_and_hasher(capacity, RandomState::new()),
    |set, key| set.pin().contains(key), set.pin().insert(*key), set.pin().remove(key));
collection!(Scc: scc::HashSet<u64, RandomState>,
    |capacity| scc::HashSet::with_capacity_and_hasher(capacity, RandomState::new()),
    |set, key| set.contains_sync(key), set.insert_sync(*key).is_ok(), set.remove_sync(key).is_some());

/// Returns the nanoseconds per operation of a run with this number of threads.
fn nanos<C: Collection>(workload: &Workload, threads: usize) -> f64
where
    C::Handle: CollectionHandle<Key = u64>,
{
    let operations = workload.run_silently::<C>().total_ops;
    // Earlier handles belong to the threads that filled the set.
    let spans = std::mem::take(&mut *SPANS.lock());
    let spans = &spans[spans.len() - threads..];
    let begin = spans.iter().map(|span| span[0]).min().expect("a thread");
    let end = spans.iter().map(|span| span[1]).max().expect("a thread");
    (end - begin).as_nanos() as f64 / operations as f64
}

type Contestant = (&'static str, fn(&Workload, usize) -> f64);
const ALL: [Contestant; 6] = [
    ("this crate, 32 bits", nanos::<Ours>),
    ("this crate, growing, 30 bits", nanos::<Growing>),
    ("atomic-cuckoo-filter, 32 bits", nanos::<AtomicCuckoo>),
    ("DashSet", nanos::<DashSet>),
    ("papaya", nanos::<Papaya>),
    ("scc", nanos::<Scc>),
];

fn workload(
    ([read, insert, remove, update], prefilled): ([u8; 4], f64),
    threads: usize,
    log2: u32,
    seed: usize,
) -> Workload {
    let mut workload = Workload::new(threads, Mix { read, insert, remove, update, upsert: 0 });
    workload.initial_capacity_log2(log2 as u8).prefill_fraction(prefilled).seed([seed as u8; 32]);
    workload
}

pub(super) fn run(plan: &Plan, record: &mut Record) {
    let log2 = plan.log2(20);
    record.heading("Mixed operations");
    record.text(&format!(
        "The harness of conc-map-bench (`bustle`), a capacity of 2^{log2} keys, threads with keys of their own. Every \
         answer is asserted, so filters have wide fingerprints. A mix names lookups, insertions, removals and updates \
         (lookups here) in percent. In the first two mixes the set is full, and half of the lookups are of present keys; \
         in the third it is filled from empty. *Wrong* has given a wrong answer."
    ));
    let cases = MIXES.iter().flat_map(|mix| [1, 2].map(|threads| (*mix, threads)));
    let cases: Vec<_> = cases.collect();
    let heads = cases.iter().map(|((mix, _), threads)| {
        let mix = mix.map(|part| part.to_string()).join("/");
        format!("{mix}, {threads} thread{}", if *threads > 1 { "s" } else { "" })
    });
    let mut table = Table::new(std::iter::once(String::new()).chain(heads));
    let mut rows = ALL.map(|(name, _)| vec![name.to_owned()]);
    for (mix, threads) in cases {
        plan.step(&format!("mix {mix:?}, {threads} threads"));
        // One wrong answer disqualifies a set from this mix.
        let wrong = ALL.map(|_| std::cell::Cell::new(false));
        let mut turns: Vec<_> = ALL
            .iter()
            .zip(&wrong)
            .map(|((_, nanos), wrong)| {
                Case::new(move |round| {
                    let workload = workload(mix, threads, log2, round);
                    let run = || panic::catch_unwind(AssertUnwindSafe(|| nanos(&workload, threads)));
                    (!wrong.get()).then(run).and_then(Result::ok).unwrap_or_else(|| {
                        wrong.set(true);
                        f64::INFINITY
                    })
                })
            })
            .collect();
        let nanos = slices::take(plan.few(), &mut turns);
        for ((row, nanos), wrong) in rows.iter_mut().zip(nanos).zip(&wrong) {
            row.push(if wrong.get() { "wrong".into() } else { speed(nanos) });
        }
    }
    rows.into_iter().for_each(|row| _ = table.row(row));
    record.table(&table);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The harness asserts every answer.
    #[test]
    fn every_answer_of_every_mix_is_right() {
        for mix in MIXES.into_iter().chain([([98, 1, 1, 0], 0.75), ([10, 40, 40, 10], 0.5)]) {
            for threads in [1, 2, 4] {
                nanos::<Ours>(&workload(mix, threads, 18, threads), threads);
                nanos::<Growing>(&workload(mix, threads, 18, threads), threads);
            }
        }
    }
}
