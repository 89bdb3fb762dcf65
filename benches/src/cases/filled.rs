//! Filters filled with the keys they were built for, and what is asked of them: memory, speed of construction, rate of
//! false positives. The peers go without the locks that sharing them would take, since one thread fills them.

use crate::clock::timed;
use ahash::RandomState;
use concurrent_cuckoo_filter::{Builder, CuckooFilter};
use fastbloom::BloomFilter;
use fastbloom_rs::{CountingBloomFilter, FilterBuilder, Membership};
use fastrand::Rng;
use rayon::prelude::*;
use xorf::{BinaryFuse8, BinaryFuse16, BinaryFuse32};

/// A filter that holds its keys.
pub(super) struct Filled {
    pub(super) keys: usize,
    pub(super) bytes: usize,
    /// What a key took to go in, the making of the filter included.
    pub(super) nanos: f64,
    contains: Box<dyn Fn(&u64) -> bool + Sync>,
}

impl Filled {
    /// Makes a filter of these keys, and checks that it finds them.
    fn new<F: Sync + 'static>(
        keys: &[u64],
        make: impl FnOnce() -> F,
        bytes: impl FnOnce(&F) -> usize,
        contains: impl Fn(&F, &u64) -> bool + Sync + 'static,
    ) -> Self {
        let (nanos, filter) = timed(keys.len(), make);
        assert!(keys.par_iter().all(|key| contains(&filter, key)), "every key that went in is found");
        let (keys, bytes) = (keys.len(), bytes(&filter));
        Filled { keys, bytes, nanos, contains: Box::new(move |key| contains(&filter, key)) }
    }

    pub(super) fn bits_a_key(&self) -> f64 {
        self.bytes as f64 * 8.0 / self.keys as f64
    }

    /// The part of this many absent keys that is found.
    pub(super) fn false_positive_rate(&self, absent: u64) -> f64 {
        // Runs of keys, each with a seed of its own, far from those of present keys.
        const RUN: u64 = 1 << 16;
        let runs = absent.div_ceil(RUN);
        let found = |run: u64| {
            let mut random = Rng::with_seed(0xab5e << 48 | run);
            (0..RUN).filter(|_| (self.contains)(&random.u64(..))).count()
        };
        let found: usize = (0..runs).into_par_iter().map(found).sum();
        found as f64 / (runs * RUN) as f64
    }
}

/// This crate at the capacity that it promises, filled by a function that returns how many keys went in.
fn ours_by(keys: &[u64], builder: Builder<u64>, insert: impl FnOnce(&CuckooFilter<u64>) -> usize) -> Filled {
    let make = || {
        let filter = builder.capacity(keys.len()).build().expect("a possible filter");
        assert_eq!(insert(&filter), keys.len(), "room for the capacity");
        filter
    };
    Filled::new(keys, make, CuckooFilter::memory_usage, CuckooFilter::contains)
}

/// This crate at the capacity that it promises, filled by single insertions.
pub(super) fn ours(keys: &[u64], builder: Builder<u64>) -> Filled {
    ours_by(keys, builder, |filter| keys.iter().filter(|key| filter.insert(key).is_ok()).count())
}

/// This crate at the capacity that it promises, filled by `par_insert`.
pub(super) fn ours_in_bulk(keys: &[u64], builder: Builder<u64>) -> Filled {
    ours_by(keys, builder, |filter| filter.par_insert(keys).inserted)
}

/// This crate, built for `capacity` keys, filled by single insertions until it refuses one of `keys`.
pub(super) fn ours_until_refused(capacity: usize, keys: &[u64], builder: Builder<u64>) -> Filled {
    let (nanos, (filter, count)) = timed(1, || {
        let filter = builder.capacity(capacity).build().expect("a possible filter");
        let refused = keys.iter().position(|key| filter.insert(key).is_err());
        (filter, refused.expect("more keys than slots"))
    });
    let filled = Filled::new(&keys[..count], || filter, CuckooFilter::memory_usage, CuckooFilter::contains);
    Filled { nanos: nanos / count as f64, ..filled }
}

/// A Bloom filter of this many bits a key.
pub(super) fn bloom(keys: &[u64], bits: usize) -> Filled {
    let builder = || BloomFilter::with_num_bits(keys.len() * bits).hasher(RandomState::new());
    bloom_by(keys, || builder().expected_items(keys.len()))
}

/// A Bloom filter for this rate of false positives.
pub(super) fn bloom_for(keys: &[u64], rate: f64) -> Filled {
    bloom_by(keys, || BloomFilter::with_false_pos(rate).hasher(RandomState::new()).expected_items(keys.len()))
}

fn bloom_by(keys: &[u64], empty: impl FnOnce() -> BloomFilter<RandomState>) -> Filled {
    let make = || {
        let mut filter = empty();
        keys.iter().for_each(|key| _ = filter.insert(key));
        filter
    };
    Filled::new(keys, make, |filter| filter.num_bits() / 8, |filter, key| filter.contains(key))
}

/// A split-block Bloom filter of this many bits a key.
pub(super) fn blocked_bloom(keys: &[u64], bits: usize) -> Filled {
    let make = || {
        let (mut filter, hasher) = (sbbf_rs_safe::Filter::new(bits, keys.len()), RandomState::new());
        keys.iter().for_each(|key| _ = filter.insert_hash(hasher.hash_one(key)));
        (filter, hasher)
    };
    let bytes = |(filter, _): &(sbbf_rs_safe::Filter, _)| filter.as_bytes().len();
    Filled::new(keys, make, bytes, |(filter, hasher), key| filter.contains_hash(hasher.hash_one(key)))
}

/// A counting Bloom filter of this many counters a key, each of 4 bits.
pub(super) fn counting_bloom(keys: &[u64], counters: usize) -> Filled {
    let make = || {
        let hashes = (counters as f64 * std::f64::consts::LN_2).round() as u32;
        let size = (keys.len() * counters).next_multiple_of(64) as u64;
        let mut filter = CountingBloomFilter::new(FilterBuilder::from_size_and_hashes(size, hashes));
        keys.iter().for_each(|key| filter.add(&key.to_le_bytes()));
        filter
    };
    Filled::new(keys, make, |filter| filter.get_u8_array().len(), |filter, key| filter.contains(&key.to_le_bytes()))
}

/// A quotient filter for this rate of false positives.
pub(super) fn quotient(keys: &[u64], rate: f64) -> Filled {
    let make = || {
        let hasher = RandomState::new();
        let mut filter = qfilter::Filter::new_with_hasher(keys.len() as u64, rate, hasher).expect("a possible filter");
        // As keys must go in that can be removed again.
        keys.iter().for_each(|key| filter.insert_duplicated(key).expect("room for the capacity"));
        filter
    };
    Filled::new(keys, make, |filter| filter.memory_usage(), |filter, key| filter.contains(key))
}

/// A binary fuse filter with fingerprints of 8, 16 or 32 bits, which is built from all its keys at once.
pub(super) fn binary_fuse(keys: &[u64], bits: u32) -> Filled {
    match bits {
        8 => fuse::<BinaryFuse8>(keys, 1),
        16 => fuse::<BinaryFuse16>(keys, 2),
        32 => fuse::<BinaryFuse32>(keys, 4),
        _ => unreachable!("widths are 8, 16 and 32 bits"),
    }
}

fn fuse<'a, F>(keys: &'a [u64], fingerprint_bytes: usize) -> Filled
where
    F: xorf::Filter<u64> + TryFrom<&'a [u64], Error = &'static str> + Sync + 'static,
{
    let make = || F::try_from(keys).expect("distinct keys");
    Filled::new(keys, make, |filter| filter.len() * fingerprint_bytes, F::contains)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field;

    /// Each structure finds its keys, is as large as it should be, and as often wrong.
    #[test]
    fn structures_keep_their_sizes_and_rates() {
        // As many as a quotient filter of 2^16 slots takes.
        let count = (1 << 16) * 95 / 100;
        let keys: Vec<u64> = field::keys(1, 2 * count);
        let some = &keys[..count];
        let twelve = || CuckooFilter::builder().fingerprint_bits(12);
        let expected = [
            (ours(some, twelve()), 12.8, 0.00186),
            (ours_in_bulk(some, twelve()), 12.8, 0.00186),
            (ours_until_refused(count, &keys, twelve()), 12.5, 0.0019),
            (bloom(some, 13), 13.0, 0.00193),
            (bloom_for(some, 0.01), 9.6, 0.01),
            (blocked_bloom(some, 13), 13.0, 0.0037),
            (counting_bloom(some, 13), 52.0, 0.00193),
            (quotient(some, 0.5f64.powi(9)), 11.7, 0.00185),
            (binary_fuse(some, 8), 9.7, 0.0039),
        ];
        for (number, (filter, bits, rate)) in expected.iter().enumerate() {
            let (is, wrong) = (filter.bits_a_key(), filter.false_positive_rate(1_000_000));
            assert!((is / bits - 1.0).abs() < 0.05, "{number}: {is} bits a key, {bits} expected");
            assert!((wrong / rate - 1.0).abs() < 0.15, "{number}: a rate of {wrong}, {rate} expected");
        }
    }
}
