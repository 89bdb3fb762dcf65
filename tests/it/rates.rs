//! The false-positive rate, measured: it follows 1 - exp(-8 load / (2^f - 1)) at every width and load, it keeps what
//! was asked for at full capacity, and poor hashes change neither it nor the load that a table takes.

use concurrent_cuckoo_filter::CuckooFilter;
use std::hash::{BuildHasher, Hasher};
use testkit::rate::{Rate, formula};
use testkit::{random_seeds, slots};

#[test]
fn the_rate_follows_the_formula_at_every_width_and_load() {
    const LOOKUPS: u64 = 2_000_000;
    for bits in 4..=16 {
        let mut rng = fastrand::Rng::with_seed(u64::from(bits));
        let builder = CuckooFilter::<u64>::builder().capacity(95_000).fingerprint_bits(bits);
        let filter = builder.hasher(random_seeds(&mut rng)).build().unwrap();
        // Inserted keys are even, the others odd.
        let mut keys = (0u64..).step_by(2);
        for load in [0.1, 0.5, 0.8, 0.94] {
            while filter.load_factor() < load {
                // With 4 bits a class may overflow; its keys then count as little as any that were not tried.
                let _ = filter.insert(&keys.next().unwrap());
            }
            let load = filter.load_factor();
            let found = (0..LOOKUPS).filter(|key| filter.contains(&(2 * key + 1))).count();
            let rate = Rate::of(LOOKUPS, found as u64, slots(&filter), load, bits);
            println!(
                "{bits:>2} bits, load {load:.2}: measured {:.6}, expected {:.6}, off by {:+.1} sigma",
                rate.measured(),
                rate.expected(),
                rate.sigmas()
            );
            assert!(rate.is_likely(), "{bits} bits, load {load}: {} for {}", rate.measured(), rate.expected());
            assert!((filter.stats().expected_false_positive_rate - formula(load, bits)).abs() < 1e-9);
        }
    }
}

/// Hands integers through as they are.
#[derive(Clone, Default)]
struct Identity(u64);

impl BuildHasher for Identity {
    type Hasher = Identity;

    fn build_hasher(&self) -> Identity {
        Identity(0)
    }
}

impl Hasher for Identity {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("the keys are u64");
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }
}

type Sequence = (&'static str, fn(u64) -> u64);

/// Keys as programs number them. As many as are used here stay different up to multiples of 2^40.
const SEQUENCES: [Sequence; 12] = [
    ("0..n", |i| i),
    ("multiples of 3", |i| i * 3),
    ("multiples of 1000", |i| i * 1000),
    ("multiples of 2^8", |i| i << 8),
    ("multiples of 2^12", |i| i << 12),
    ("multiples of 2^16", |i| i << 16),
    ("multiples of 2^32", |i| i << 32),
    ("multiples of 2^40", |i| i << 40),
    ("bits reversed", |i| i.reverse_bits()),
    ("pointers", |i| 0x7f3a_5c00_1040 + 64 * i),
    ("time in nanoseconds", |i| 1_700_000_000_000_000_000 + 1000 * i),
    ("two counters of 32 bits", |i| (i % 1000) << 32 | (i / 1000)),
];

#[test]
fn poor_hashes_keep_the_capacity_the_load_and_the_rate() {
    const LOOKUPS: u64 = 1_000_000;
    let mut failed = Vec::new();
    for (name, key) in SEQUENCES {
        // What a hash does to one size it need not do to another; the last has several shards.
        for (capacity, bits) in [(20_000, 13), (95_000, 8), (95_000, 13), (95_000, 16), (700_000, 13)] {
            let builder = CuckooFilter::<u64>::builder().capacity(capacity as usize).fingerprint_bits(bits);
            let filter = builder.hasher(Identity::default()).build().unwrap();
            let (mut refused, mut first) = (0, None);
            for i in 0..capacity {
                if filter.insert(&key(i)).is_err() {
                    refused += 1;
                    first.get_or_insert(filter.load_factor());
                }
            }
            // The sequence goes on, and so do random numbers.
            let found = (capacity..capacity + LOOKUPS).filter(|&i| filter.contains(&key(i))).count();
            let mut rng = fastrand::Rng::with_seed(1);
            let random = (0..LOOKUPS).filter(|_| filter.contains(&rng.u64(..))).count();
            let (slots, load) = (slots(&filter), filter.load_factor());
            let [found, random] = [found, random].map(|hits| Rate::of(LOOKUPS, hits as u64, slots, load, bits));
            let load = first.unwrap_or_else(|| {
                (capacity..).find(|&i| filter.insert(&key(i)).is_err());
                filter.load_factor()
            });
            println!(
                "{name:<24} {capacity:>6} keys of {bits:>2} bits: {refused} refused, first at a load of {load:.4}; \
                 the next keys are off by {:+.1} sigma, others by {:+.1}",
                found.sigmas(),
                random.sigmas()
            );
            if refused > 0 || load < 0.95 || found.sigmas() > 6.0 || random.sigmas().abs() > 6.0 {
                failed.push((name, capacity, bits, refused, load, found.sigmas(), random.sigmas()));
            }
        }
    }
    assert!(failed.is_empty(), "(name, capacity, bits, refused, load, sigmas): {failed:#?}");
}
