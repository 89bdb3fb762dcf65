//! Where a key lies: from a 64-bit hash to a shard, a fingerprint and two candidate buckets. Values in, values out.
//!
//! ```text
//! hash --Mixed::of--> mixed: 63 .................................. 0
//!                         | shard, then position (from the top)  |
//!                                           | fingerprint: 31..0 |
//! ```
//!
//! Index and fingerprint come from different ends of the mixed hash; they begin to share bits only in a filter of more
//! than 2^32 buckets.

mod sizing;

pub(crate) use sizing::{
    FINGERPRINT_BITS, Plan, Unplannable, expected_false_positive_rate, fingerprint_bits_for, lowest_rate,
};

/// A stored value: 1 to 2^f - 1. The 0 of an empty slot is never a fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fingerprint(u32);

impl Fingerprint {
    /// `None` for the 0 of an empty slot.
    #[inline]
    pub(crate) fn from_slot(slot: u32) -> Option<Self> {
        (slot != 0).then_some(Fingerprint(slot))
    }

    #[inline]
    pub(crate) fn get(self) -> u32 {
        self.0
    }
}

/// The number of a bucket inside its shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Bucket(u32);

impl Bucket {
    #[cfg(all(test, cuckoo_loom))]
    pub(crate) fn new(index: u32) -> Self {
        Bucket(index)
    }

    #[inline]
    pub(crate) fn get(self) -> u32 {
        self.0
    }

    #[inline]
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// What the table knows of a key: its class. Keys with equal candidates cannot be told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Candidates {
    pub(crate) fingerprint: Fingerprint,
    pub(crate) first: Bucket,
    /// The alternate of `first`. It may be the same bucket as far as shards are concerned; a [`Geometry`] never makes
    /// such a pair.
    pub(crate) second: Bucket,
}

impl Candidates {
    /// Says whether both candidates are one bucket: the class then has 4 slots, not 8.
    #[inline]
    pub(crate) fn coincide(self) -> bool {
        self.first == self.second
    }

    /// The bucket whose stripe keeps the count of this class, whichever candidate the key was found by.
    #[inline]
    pub(crate) fn lower(self) -> Bucket {
        if self.first < self.second { self.first } else { self.second }
    }
}

/// A hash spread over the whole word, so that hashes of poor quality (an identity hash of small integers, raw numbers,
/// pointers) still give even and independent places and fingerprints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mixed(u64);

impl Mixed {
    /// A folded multiplication of the hash by a constant is linear enough to leave regular keys up to six times as many
    /// false positives as they should have, and to refuse some (tests/rates.rs); the hash multiplied by itself, twice
    /// disguised, is not. Two hashes that differ by the exclusive or of the constants, which are from wyhash's secret,
    /// are mixed alike: one pair in 2^63.
    #[inline]
    pub(crate) fn of(hash: u64) -> Self {
        let (high, low) = widening_mul(hash ^ 0xe703_7ed1_a0b4_28db, hash ^ 0xa076_1d64_78bd_642f);
        Mixed(high ^ low)
    }
}

/// The numbers that place a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Geometry {
    shards: u64,
    /// Buckets in each shard: even, at most [`sizing::SHARD_BUCKETS`].
    buckets: u32,
    /// 2^f - 1.
    fingerprints: u32,
    /// 2^k - 1 for the largest 2^k that is not above the number of buckets.
    sums: u32,
}

impl Geometry {
    pub(crate) fn new(plan: &Plan) -> Self {
        debug_assert!(plan.buckets >= 2 && plan.buckets % 2 == 0);
        Geometry {
            shards: plan.shards as u64,
            buckets: plan.buckets,
            fingerprints: u32::MAX >> (32 - plan.width),
            sums: u32::MAX >> (plan.buckets.leading_zeros() + 1),
        }
    }

    /// Splits a hash into the number of its shard and its place there.
    #[inline]
    pub(crate) fn locate(&self, hash: u64) -> (usize, Candidates) {
        self.locate_mixed(Mixed::of(hash))
    }

    /// All buckets of a shard, in order.
    pub(crate) fn all_buckets(&self) -> impl ExactSizeIterator<Item = Bucket> + use<> {
        (0..self.buckets).map(Bucket)
    }

    pub(crate) fn shards(&self) -> usize {
        self.shards as usize
    }

    /// The number of the shard alone.
    #[inline]
    pub(crate) fn shard(&self, Mixed(mixed): Mixed) -> usize {
        widening_mul(mixed, self.shards).0 as usize
    }

    /// The same as [`Geometry::locate`], for a hash that is mixed already.
    #[inline(always)]
    pub(crate) fn locate_mixed(&self, Mixed(mixed): Mixed) -> (usize, Candidates) {
        // The product by one is the number itself; the branch is worth 5 to 10 % of a look-up in a filter of one shard.
        let (shard, position) = if self.shards == 1 { (0, mixed) } else { widening_mul(mixed, self.shards) };
        let first = Bucket(widening_mul(position, u64::from(self.buckets)).0 as u32);
        // An even draw from 1 ..= 2^f - 1; folding 0 onto 1 would make 1 twice as common.
        let drawn = ((mixed & u64::from(u32::MAX)) * u64::from(self.fingerprints)) >> 32;
        let fingerprint = Fingerprint(drawn as u32 + 1);
        (shard as usize, Candidates { fingerprint, first, second: self.alternate(fingerprint, first) })
    }

    /// A hash, mixed, that leads to this class in a filter of one shard and finds it by its first candidate: the inverse
    /// of [`Geometry::locate_mixed`]. `None` if the candidates are not those of any key.
    #[cfg(test)]
    pub(crate) fn leading_to(&self, key: Candidates) -> Option<Mixed> {
        assert_eq!(self.shards, 1);
        // The least numbers that the two draws take there.
        let position = (u64::from(key.first.0) << 32).div_ceil(u64::from(self.buckets));
        let drawn = (u64::from(key.fingerprint.0 - 1) << 32).div_ceil(u64::from(self.fingerprints));
        let mixed = Mixed(position << 32 | drawn);
        (self.locate_mixed(mixed) == (0, key)).then_some(mixed)
    }

    /// The other candidate bucket of a fingerprint that lies in `bucket`. Its own inverse.
    ///
    /// The two candidates add up to `sum(fingerprint)` modulo the number of buckets. That number is even and the sum is
    /// odd, so the two are never the same bucket: coinciding candidates cause most refusals in small filters.
    #[inline]
    pub(crate) fn alternate(&self, fingerprint: Fingerprint, bucket: Bucket) -> Bucket {
        let (difference, below_zero) = self.sum(fingerprint).overflowing_sub(bucket.0);
        Bucket(if below_zero { difference.wrapping_add(self.buckets) } else { difference })
    }

    /// An odd number below the number of buckets, from a real mix of the fingerprint: a bare multiply-shift is linear
    /// in it and costs 5 to 15 points of load at 4 and 5 bits. That the sums stop at a power of two saves a
    /// multiplication, and only in filters of a few buckets does it cost some load (see `sizing`).
    #[inline]
    fn sum(&self, fingerprint: Fingerprint) -> u32 {
        // 2^64 divided by the golden ratio.
        let product = u64::from(fingerprint.0).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (product ^ (product >> 32)) as u32 & self.sums | 1
    }
}

/// The high and the low half of a 128-bit product.
#[inline]
fn widening_mul(a: u64, b: u64) -> (u64, u64) {
    let product = u128::from(a) * u128::from(b);
    ((product >> 64) as u64, product as u64)
}

#[cfg(all(test, not(any(cuckoo_loom, cuckoo_shuttle))))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn geometry(shards: u64, half_buckets: u32, width: u32) -> Geometry {
        let plan =
            Plan { shards: shards as usize, buckets: half_buckets * 2, width, stripe_shift: 4, words: 0, stripes: 0 };
        Geometry::new(&plan)
    }

    proptest! {
        #[test]
        fn every_key_lies_in_its_shard_in_two_buckets_that_lead_to_each_other(
            hash: u64,
            shards in 1u64..100_000,
            half_buckets in 1u32..=1 << 15,
            width in 4u32..=32,
        ) {
            let geometry = geometry(shards, half_buckets, width);
            let (shard, key) = geometry.locate(hash);
            prop_assert!((shard as u64) < shards);
            prop_assert_eq!(geometry.shard(Mixed::of(hash)), shard);
            prop_assert!(key.first.get() < half_buckets * 2);
            prop_assert!(key.second.get() < half_buckets * 2);
            prop_assert!(key.fingerprint.get() >= 1);
            prop_assert!(key.fingerprint.get() <= u32::MAX >> (32 - width));
            prop_assert!(!key.coincide());
            prop_assert_eq!(geometry.alternate(key.fingerprint, key.first), key.second);
            prop_assert_eq!(geometry.alternate(key.fingerprint, key.second), key.first);
        }
    }

    proptest! {
        #[test]
        fn each_class_has_a_hash_that_leads_to_each_of_its_buckets(
            hash: u64,
            half_buckets in 1u32..=1 << 15,
            width in 4u32..=32,
        ) {
            let geometry = geometry(1, half_buckets, width);
            let key = geometry.locate(hash).1;
            let turned = Candidates { first: key.second, second: key.first, ..key };
            prop_assert!(geometry.leading_to(key).is_some() && geometry.leading_to(turned).is_some());
            prop_assert_eq!(geometry.leading_to(Candidates { second: key.first, ..key }), None);
        }
    }

    /// So that no stripe counts below zero where the keys of one class have their buckets the other way round.
    #[test]
    fn the_bucket_that_counts_a_class_is_the_same_whichever_is_first() {
        for (first, second, lower) in [(0, 1, 0), (1, 0, 0), (7, 3, 3), (3, 7, 3), (5, 5, 5)] {
            let key = Candidates { fingerprint: Fingerprint(1), first: Bucket(first), second: Bucket(second) };
            assert_eq!(key.lower(), Bucket(lower));
        }
    }

    /// Draws keys and checks that shards, buckets and fingerprints are each even, for good and for poor hashes.
    #[test]
    fn the_draws_are_even() {
        let geometry = geometry(3, 8, 4);
        for (name, hash) in [
            ("random", (|i| fastrand::Rng::with_seed(i).u64(..)) as fn(u64) -> u64),
            ("small integers", |i| i),
            ("multiples of 2^32", |i| i << 32),
            ("multiples of 2^40", |i| i << 40),
            ("multiples of 4096", |i| i * 4096),
        ] {
            let draws = 480_000u64;
            let (mut places, mut fingerprints) = (vec![0u64; 48], vec![0u64; 16]);
            for i in 0..draws {
                let (shard, key) = geometry.locate(hash(i));
                places[shard * 16 + key.first.index()] += 1;
                fingerprints[key.fingerprint.get() as usize] += 1;
            }
            assert_eq!(fingerprints[0], 0);
            for (counts, expected) in [(&places[..], draws / 48), (&fingerprints[1..], draws / 15)] {
                // 8 standard deviations of a fair draw.
                let slack = 8.0 * (expected as f64).sqrt();
                for &count in counts {
                    assert!(
                        (count as f64 - expected as f64).abs() < slack,
                        "{name}: {count} of {expected}: {counts:?}"
                    );
                }
            }
        }
    }
}
