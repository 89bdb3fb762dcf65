//! This crate beside what a user might take instead: ratios in one process, turn by turn.
//!
//! ```text
//! cargo bench --bench versus                 # every contest, about 4 minutes
//! cargo bench --bench versus -- miss 2^16    # those whose names hold all the words
//! cargo bench --bench versus -- --turns 1    # a moment of each
//! ```
//!
//! In each turn every contestant does the same work once, in alternating order; a line shows the median of the turns'
//! ratios, their range, and the median speed of each side. Keys are drawn before the clock starts, every result is
//! checked, and in contests of several threads the clocks start behind a barrier inside the threads.

mod turns;

use concurrent_cuckoo_filter::{CuckooFilter, DefaultHashBuilder};
use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use turns::Program;

/// What all contestants can do.
trait Set: Sync {
    fn insert(&self, key: u64);
    fn contains(&self, key: u64) -> bool;
    fn remove(&self, key: u64) -> bool;
}

impl Set for CuckooFilter<u64> {
    #[inline]
    fn insert(&self, key: u64) {
        CuckooFilter::insert(self, &key).expect("below capacity");
    }
    #[inline]
    fn contains(&self, key: u64) -> bool {
        CuckooFilter::contains(self, &key)
    }
    #[inline]
    fn remove(&self, key: u64) -> bool {
        CuckooFilter::remove(self, &key)
    }
}

type AtomicCuckoo = atomic_cuckoo_filter::CuckooFilter<ahash::AHasher>;

impl Set for AtomicCuckoo {
    #[inline]
    fn insert(&self, key: u64) {
        // It refuses a few keys below 95 % load; what it does with them is its own affair.
        let _ = AtomicCuckoo::insert(self, &key);
    }
    #[inline]
    fn contains(&self, key: u64) -> bool {
        AtomicCuckoo::contains(self, &key)
    }
    #[inline]
    fn remove(&self, key: u64) -> bool {
        AtomicCuckoo::remove(self, &key)
    }
}

type AtomicBloom = fastbloom::AtomicBloomFilter<ahash::RandomState>;

impl Set for AtomicBloom {
    #[inline]
    fn insert(&self, key: u64) {
        AtomicBloom::insert(self, &key);
    }
    #[inline]
    fn contains(&self, key: u64) -> bool {
        AtomicBloom::contains(self, &key)
    }
    fn remove(&self, _: u64) -> bool {
        unreachable!("a Bloom filter cannot remove")
    }
}

type DashSet = dashmap::DashSet<u64, ahash::RandomState>;

impl Set for DashSet {
    #[inline]
    fn insert(&self, key: u64) {
        DashSet::insert(self, key);
    }
    #[inline]
    fn contains(&self, key: u64) -> bool {
        DashSet::contains(self, &key)
    }
    #[inline]
    fn remove(&self, key: u64) -> bool {
        DashSet::remove(self, &key).is_some()
    }
}

/// The size of a contest and its keys.
struct Field {
    slots: usize,
    present: Vec<u64>,
    /// Some of `present`, in random order.
    hits: Vec<u64>,
    misses: Vec<u64>,
}

impl Field {
    /// Keys for a table of `slots` slots at 95 % load.
    fn new(slots: usize) -> Self {
        let mut random = fastrand::Rng::with_seed(slots as u64);
        let present: Vec<u64> = (0..slots * 95 / 100).map(|_| random.u64(..)).collect();
        let probes = 1 << 20;
        Field {
            slots,
            hits: (0..probes).map(|_| present[random.usize(..present.len())]).collect(),
            misses: (0..probes).map(|_| random.u64(..)).collect(),
            present,
        }
    }

    /// A filter of ours with as many slots as the name of the field says, within 0.1 %.
    fn ours(&self, bits: u32) -> CuckooFilter<u64> {
        let slots = self.slots as f64;
        let mut capacity = (slots * 0.955) as usize;
        while capacity as f64 / 0.955 + (2.5 * (capacity as f64).sqrt()).min(2000.0) + 14.0 > slots {
            capacity -= 1;
        }
        CuckooFilter::builder().capacity(capacity).fingerprint_bits(bits).build().expect("a possible filter")
    }

    fn atomic_cuckoo(&self) -> AtomicCuckoo {
        atomic_cuckoo_filter::CuckooFilterBuilder::default()
            .capacity(self.slots)
            .fingerprint_size(16)
            .bucket_size(4)
            .build()
            .expect("a possible filter")
    }

    fn bloom(&self) -> AtomicBloom {
        fastbloom::AtomicBloomFilter::with_num_bits(self.slots * 16)
            .hasher(ahash::RandomState::new())
            .expected_items(self.present.len())
    }

    fn dash(&self) -> DashSet {
        DashSet::with_capacity_and_hasher(self.present.len(), ahash::RandomState::new())
    }

    fn fill<T: Set>(&self, set: T) -> T {
        for &key in &self.present {
            set.insert(key);
        }
        set
    }
}

/// Nanoseconds for each key of a pass of look-ups, of which `expected` (of all, as a range) must be found. A pass that
/// is not timed goes before it, since the other contestant had the caches to itself.
fn look_up(set: &impl Set, keys: &[u64], expected: std::ops::RangeInclusive<usize>) -> f64 {
    let pass = || keys.iter().filter(|&&key| set.contains(key)).count();
    black_box(pass());
    let start = Instant::now();
    let found = pass();
    let nanos = start.elapsed().as_nanos() as f64;
    assert!(expected.contains(&found), "{found} of {} found, {expected:?} expected", keys.len());
    nanos / keys.len() as f64
}

fn pass_hits<T: Set>(set: &T, field: &Field) -> f64 {
    // Atomic-cuckoo-filter loses a key now and then.
    let all = field.hits.len();
    look_up(set, &field.hits, all - all / 1000..=all)
}

fn pass_misses<T: Set>(set: &T, field: &Field) -> f64 {
    look_up(set, &field.misses, 0..=field.misses.len() / 100)
}

fn pass_insert<T: Set>(set: &T, field: &Field) -> f64 {
    let start = Instant::now();
    for &key in &field.present {
        set.insert(key);
    }
    start.elapsed().as_nanos() as f64 / field.present.len() as f64
}

fn pass_remove<T: Set>(set: &T, field: &Field) -> f64 {
    let start = Instant::now();
    let removed = field.present.iter().filter(|&&key| set.remove(key)).count();
    let nanos = start.elapsed().as_nanos() as f64;
    assert!(removed >= field.present.len() - field.present.len() / 1000, "{removed} removed");
    nanos / field.present.len() as f64
}

fn main() {
    let program = Program::from_arguments(15);
    println!("median of the turns' ratios (range), medians of both speeds, the ratio asked for");
    singles(&program, "2^16", &Field::new(1 << 16), &Bars { atomic_cuckoo_miss: Some(5.0), ..Bars::default() });
    let bars = Bars {
        atomic_cuckoo_miss: Some(3.0),
        atomic_cuckoo_hit: Some(3.0),
        fastbloom: Some(2.0),
        dash_miss: Some(1.3),
        atomic_cuckoo_writes: Some(2.0),
    };
    singles(&program, "2^20", &Field::new(1 << 20), &bars);
    let field = Field::new(1 << 20);
    widths(&program, &field);
    threads(&program, &field);
}

/// The ratios that are asked for, where any is.
#[derive(Default)]
struct Bars {
    atomic_cuckoo_miss: Option<f64>,
    atomic_cuckoo_hit: Option<f64>,
    atomic_cuckoo_writes: Option<f64>,
    fastbloom: Option<f64>,
    dash_miss: Option<f64>,
}

fn singles(program: &Program, name: &str, field: &Field, bars: &Bars) {
    let named = |contest: &str| format!("{contest} {name}");
    if !program.wants(&named("miss hit insert remove against atomic-cuckoo-filter fastbloom DashSet")) {
        return;
    }
    let ours = field.fill(field.ours(16));
    {
        let peer = field.fill(field.atomic_cuckoo());
        program.contest(
            &named("miss against atomic-cuckoo-filter"),
            bars.atomic_cuckoo_miss,
            || pass_misses(&ours, field),
            || pass_misses(&peer, field),
        );
        program.contest(
            &named("hit against atomic-cuckoo-filter"),
            bars.atomic_cuckoo_hit,
            || pass_hits(&ours, field),
            || pass_hits(&peer, field),
        );
    }
    {
        let peer = field.fill(field.bloom());
        program.contest(
            &named("miss against fastbloom"),
            bars.fastbloom,
            || pass_misses(&ours, field),
            || pass_misses(&peer, field),
        );
        program.contest(
            &named("hit against fastbloom"),
            bars.fastbloom,
            || pass_hits(&ours, field),
            || pass_hits(&peer, field),
        );
    }
    {
        let peer = field.fill(field.dash());
        program.contest(
            &named("miss against DashSet"),
            bars.dash_miss,
            || pass_misses(&ours, field),
            || pass_misses(&peer, field),
        );
    }
    program.contest(
        &named("insert against atomic-cuckoo-filter"),
        bars.atomic_cuckoo_writes,
        || pass_insert(&field.ours(16), field),
        || pass_insert(&field.atomic_cuckoo(), field),
    );
    program.contest(
        &named("remove against atomic-cuckoo-filter"),
        bars.atomic_cuckoo_writes,
        || pass_remove(&field.fill(field.ours(16)), field),
        || pass_remove(&field.fill(field.atomic_cuckoo()), field),
    );
}

fn widths(program: &Program, field: &Field) {
    let sixteen = field.fill(field.ours(16));
    for bits in [13, 12] {
        let named = |contest: &str| format!("{contest} {bits} bits against 16 bits 2^20");
        if !program.wants(&named("miss hit insert")) {
            continue;
        }
        let narrow = field.fill(field.ours(bits));
        program.contest(&named("miss"), 0.8, || pass_misses(&narrow, field), || pass_misses(&sixteen, field));
        program.contest(&named("hit"), 0.8, || pass_hits(&narrow, field), || pass_hits(&sixteen, field));
        program.contest(
            &named("insert"),
            0.8,
            || pass_insert(&field.ours(bits), field),
            || pass_insert(&field.ours(16), field),
        );
    }
}

/// The cost of a look-up to all of `readers` threads together, each doing its own pass.
fn readers(set: &impl Set, field: &Field, readers: usize) -> f64 {
    let barrier = Barrier::new(readers);
    let nanos: f64 = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..readers)
            .map(|_| {
                scope.spawn(|| {
                    barrier.wait();
                    (0..4).map(|_| pass_misses(set, field)).sum::<f64>() / 4.0
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).sum()
    });
    nanos / (readers * readers) as f64
}

/// The cost of a look-up while another thread works on the same filter.
fn reader_beside(ours: &CuckooFilter<u64>, field: &Field, work: impl Fn(u64) + Sync) -> f64 {
    let (stop, barrier) = (AtomicBool::new(false), Barrier::new(2));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            barrier.wait();
            let mut keys = field.hits.iter().cycle();
            while !stop.load(Ordering::Relaxed) {
                work(*keys.next().expect("a cycle"));
            }
        });
        barrier.wait();
        let nanos = (0..4).map(|_| pass_misses(ours, field)).sum::<f64>() / 4.0;
        stop.store(true, Ordering::Relaxed);
        nanos
    })
}

fn threads(program: &Program, field: &Field) {
    let ours = field.fill(field.ours(16));
    program.contest("two readers against one 2^20", 1.8, || readers(&ours, field, 2), || readers(&ours, field, 1));
    let hasher = DefaultHashBuilder::new();
    program.contest(
        "reader beside a writer against beside a hasher 2^20",
        0.8,
        || {
            reader_beside(&ours, field, |key| {
                if ours.remove(&key) {
                    ours.insert(&key).expect("the slot that was just freed");
                }
            })
        },
        || {
            reader_beside(&ours, field, |key| {
                black_box(std::hash::BuildHasher::hash_one(&hasher, key));
            })
        },
    );
}
