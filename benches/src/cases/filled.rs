//! Filters filled with the keys they were built for, and what is asked of them: memory, rate of
//! false positives. The peers go without the locks that sharing them would take, since one thread fills them.

use ahash::RandomState;
use concurrent_cuckoo_filter::{Builder, CuckooFilter};
use fastbloom::BloomFilter;
use fastrand::Rng;
use rayon::prelude::*;
use xorf::{BinaryFuse8, BinaryFuse16, BinaryFuse32};

/// A filter that holds its keys.
pub(super) struct Filled {
    pub(super) keys: usize,
    pub(super) bytes: usize,
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
        let filter = make();
        assert!(keys.par_iter().all(|key| contains(&filter, key)), "every key that went in is found");
        let (keys, bytes) = (keys.len(), bytes(&filter));
        Filled { keys, bytes, contains: Box::new(move |key| contains(&filter, key)) }
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

/// This crate at the capacity that it promises, filled by single insertions.
pub(super) fn ours(keys: &[u64], builder: Builder<u64>) -> Filled {
    let make = || {
        let filter = builder.capacity(keys.len()).build().expect("a possible filter");
        keys.iter().for_each(|key| filter.insert(key).expect("room for the capacity"));
        filter
    };
    Filled::new(keys, make, CuckooFilter::memory_usage, CuckooFilter::contains)
}

/// A Bloom filter for this rate of false positives.
pub(super) fn bloom_for(keys: &[u64], rate: f64) -> Filled {
    let make = || {
        let builder = BloomFilter::with_false_pos(rate).hasher(RandomState::new());
        let mut filter = builder.expected_items(keys.len());
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
            (bloom_for(some, 0.01), 9.6, 0.01),
            (blocked_bloom(some, 13), 13.0, 0.0037),
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
