//! The measured false-positive rate: poor hashes change neither the rate, 1 - exp(-8 load / (2^f - 1)), nor the load that a table
//! takes. (`crates/reliability` measures every width and load, and the requested rate at full capacity.)

use concurrent_cuckoo_filter::{CuckooFilter, Prehashed};
use testkit::rate::Rate;
use testkit::slots;

type Sequence = (&'static str, fn(u64) -> u64);

/// Keys as programs number them. Those used here differ even modulo 2^40.
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
        // An effect of a hash function on one size may not occur at another; the last size has several shards.
        for (capacity, bits) in [(20_000, 13), (95_000, 8), (95_000, 13), (95_000, 16), (700_000, 13)] {
            let builder = CuckooFilter::<u64>::builder().capacity(capacity as usize).fingerprint_bits(bits);
            let filter = builder.hasher(Prehashed).build().unwrap();
            let (mut refused, mut first) = (0, None);
            for i in 0..capacity {
                if filter.insert(&key(i)).is_err() {
                    refused += 1;
                    first.get_or_insert(filter.load_factor());
                }
            }
            // The sequence continues, and so do random numbers.
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
