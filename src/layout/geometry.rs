//! Where a key lies: from a 64-bit hash to a shard, a fingerprint and two candidate buckets.
//!
//! ```text
//! mixed: 63 .................................. 0
//!        | bucket (from the top)            |
//!                          | fingerprint: 31..0 |
//! ```
//!
//! Buckets are numbered through all shards, so that one draw gives both bucket and shard. Bucket and fingerprint come
//! from different ends of the hash; they begin to share bits only in a filter of more than 2^32 buckets.

use super::plan::Plan;

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
    #[cfg(test)]
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

/// What the table knows of a key. Keys of one class cannot be told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Class {
    pub(crate) fingerprint: Fingerprint,
    pub(crate) first: Bucket,
    /// The alternate of `first`. It may be the same bucket as far as shards are concerned; a [`Geometry`] never makes
    /// such a pair.
    pub(crate) second: Bucket,
}

impl Class {
    /// Says whether both candidates are one bucket: the class then has 4 slots, not 8.
    #[inline]
    pub(crate) fn coincides(self) -> bool {
        self.first == self.second
    }

    /// The same class, found by its other candidate.
    #[cfg(test)]
    pub(crate) fn turned(self) -> Class {
        Class { first: self.second, second: self.first, ..self }
    }
}

/// A hash spread over the whole word, so that hashes of poor quality (an identity hash of small integers, raw numbers,
/// pointers) still give even and independent places and fingerprints. Those of some functions are spread as they come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mixed(u64);

impl Mixed {
    /// "degski64", a mixer in use since 2018 and a permutation of all numbers: no two hashes are mixed alike. A folded
    /// multiplication by a constant is not enough: it left regular keys up to six times as many false positives as they
    /// should have (tests/it/rates.rs).
    #[inline]
    pub(crate) fn of(hash: u64) -> Self {
        let hash = (hash ^ (hash >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        let hash = (hash ^ (hash >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        Mixed(hash ^ (hash >> 32))
    }

    /// The hash of which [`Mixed::of`] makes this number. Compiled together, the two cancel out.
    #[inline]
    pub(crate) fn unmix(mixed: u64) -> u64 {
        // The inverse of the constant, modulo 2^64.
        let hash = (mixed ^ (mixed >> 32)).wrapping_mul(0xcfee_444d_8b59_a89b);
        let hash = (hash ^ (hash >> 32)).wrapping_mul(0xcfee_444d_8b59_a89b);
        hash ^ (hash >> 32)
    }
}

/// Where a key lies in the whole filter.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) shard: u64,
    /// The numbers of its buckets, counted through all shards.
    pub(crate) first: u64,
    pub(crate) second: u64,
    pub(crate) class: Class,
}

/// The numbers that place a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Geometry {
    shards: u64,
    /// Buckets of all shards.
    total: u64,
    /// Buckets in each shard: even, at most 2^16.
    buckets: u32,
    /// 2^f - 1.
    fingerprints: u64,
    /// 2^k - 1 for the largest 2^k that is not above the number of buckets.
    sums: u32,
}

impl Geometry {
    pub(crate) fn new(plan: &Plan) -> Self {
        debug_assert!(plan.buckets >= 2 && plan.buckets.is_multiple_of(2));
        Geometry {
            shards: plan.shards as u64,
            total: plan.shards as u64 * u64::from(plan.buckets),
            buckets: plan.buckets,
            fingerprints: u64::from(u32::MAX >> (32 - plan.fingerprint_bits)),
            sums: u32::MAX >> (plan.buckets.leading_zeros() + 1),
        }
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
        high_product(mixed, self.shards) as usize
    }

    /// The number of the shard, and the place of the key in it.
    #[inline(always)]
    pub(crate) fn locate(&self, mixed: Mixed) -> (usize, Class) {
        let Place { shard, class, .. } = self.draw(mixed, high_product);
        (shard as usize, class)
    }

    /// As [`Geometry::locate`], with the numbers that buckets have in the whole filter.
    #[inline(always)]
    pub(crate) fn locate_flat(&self, mixed: Mixed) -> Place {
        self.draw(mixed, high_product)
    }

    /// As [`Geometry::locate_flat`], for loops that the compiler vectorises; only where [`Geometry::is_narrow`].
    #[inline(always)]
    pub(crate) fn locate_narrow(&self, mixed: Mixed) -> Place {
        self.draw(mixed, high_product_of_narrow)
    }

    /// Whether buckets are numbered by 32 bits.
    #[inline]
    pub(crate) fn is_narrow(&self) -> bool {
        self.total <= u64::from(u32::MAX)
    }

    /// Draws a bucket of the filter, of which the whole part of its quotient by the buckets of a shard is the shard: the
    /// same draw from fewer numbers. Then a fingerprint.
    #[inline(always)]
    fn draw(&self, Mixed(mixed): Mixed, high_product: impl Fn(u64, u64) -> u64) -> Place {
        let (number, shard) = (high_product(mixed, self.total), high_product(mixed, self.shards));
        let begin = shard * u64::from(self.buckets);
        let first = Bucket((number - begin) as u32);
        // An even draw from 1 ..= 2^f - 1, from the other end of the hash; folding 0 onto 1 would make 1 twice as common.
        let drawn = high_product(mixed.rotate_left(32), self.fingerprints);
        let fingerprint = Fingerprint(drawn as u32 + 1);
        let second = self.alternate(fingerprint, first);
        Place { shard, first: number, second: begin + u64::from(second.0), class: Class { fingerprint, first, second } }
    }

    /// A hash, mixed, that leads to this class in a filter of one shard and finds it by its first candidate: the inverse
    /// of [`Geometry::locate`]. `None` if the candidates are not those of any key.
    #[cfg(test)]
    pub(crate) fn leading_to(&self, class: Class) -> Option<Mixed> {
        assert_eq!(self.shards, 1);
        // The least numbers that the two draws take there, or one less where the other half of the hash adds to it.
        let position = (u64::from(class.first.0) << 32).div_ceil(u64::from(self.buckets));
        let drawn = (u64::from(class.fingerprint.0 - 1) << 32).div_ceil(self.fingerprints);
        let mixed = [drawn, drawn.saturating_sub(1)].map(|drawn| Mixed(position << 32 | drawn));
        mixed.into_iter().find(|&mixed| self.locate(mixed) == (0, class))
    }

    /// The other candidate bucket of a fingerprint that lies in `bucket`. Its own inverse.
    ///
    /// The two candidates add up to `sum(fingerprint)` modulo the number of buckets. That number is even and the sum is
    /// odd, so the two are never the same bucket: coinciding candidates cause most refusals in small filters.
    #[inline(always)]
    pub(crate) fn alternate(&self, fingerprint: Fingerprint, bucket: Bucket) -> Bucket {
        // Below zero, the difference is the larger number.
        let difference = self.sum(fingerprint).wrapping_sub(bucket.0);
        Bucket(difference.min(difference.wrapping_add(self.buckets)))
    }

    /// An odd number below the number of buckets, from a real mix of the fingerprint: a bare multiply-shift is linear
    /// in it and costs 3.5 points of load at 4 bits and half a point at 8, in shards of 2^16 buckets. That the sums stop
    /// at a power of two saves a multiplication, and only in filters of a few buckets does it cost some load (`plan`).
    #[inline(always)]
    fn sum(&self, fingerprint: Fingerprint) -> u32 {
        // 2^32 divided by the golden ratio.
        let product = fingerprint.0.wrapping_mul(0x9e37_79b9);
        (product ^ (product >> 16)) & self.sums | 1
    }
}

/// The high half of a 128-bit product.
#[inline(always)]
fn high_product(a: u64, b: u64) -> u64 {
    ((u128::from(a) * u128::from(b)) >> 64) as u64
}

/// The same for a `b` of 32 bits, by products that vectors have.
#[inline(always)]
fn high_product_of_narrow(a: u64, b: u64) -> u64 {
    let b = b & u64::from(u32::MAX);
    ((a >> 32) * b + (((a & u64::from(u32::MAX)) * b) >> 32)) >> 32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn geometry(shards: u64, half_buckets: u32, width: u32) -> Geometry {
        let plan = Plan { shards: shards as usize, ..Plan::one_shard(width, half_buckets * 2, 4) };
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
            let (shard, key) = geometry.locate(Mixed::of(hash));
            prop_assert!((shard as u64) < shards);
            prop_assert_eq!(geometry.shard(Mixed::of(hash)), shard);
            prop_assert!(key.first.get() < half_buckets * 2);
            prop_assert!(key.second.get() < half_buckets * 2);
            prop_assert!(key.fingerprint.get() >= 1);
            prop_assert!(key.fingerprint.get() <= u32::MAX >> (32 - width));
            prop_assert!(!key.coincides());
            prop_assert_eq!(geometry.alternate(key.fingerprint, key.first), key.second);
            prop_assert_eq!(geometry.alternate(key.fingerprint, key.second), key.first);
        }
    }

    proptest! {
        /// So that hashes that are well mixed come out of it as they are.
        #[test]
        fn mixing_is_undone(hash: u64) {
            prop_assert_eq!(Mixed::unmix(Mixed::of(hash).0), hash);
            prop_assert_eq!(Mixed::of(Mixed::unmix(hash)), Mixed(hash));
        }

        #[test]
        fn each_class_has_a_hash_that_leads_to_each_of_its_buckets(
            hash: u64,
            half_buckets in 1u32..=1 << 15,
            width in 4u32..=32,
        ) {
            let geometry = geometry(1, half_buckets, width);
            let class = geometry.locate(Mixed::of(hash)).1;
            prop_assert!(geometry.leading_to(class).is_some() && geometry.leading_to(class.turned()).is_some());
            prop_assert_eq!(geometry.leading_to(Class { second: class.first, ..class }), None);
        }
    }

    proptest! {
        #[test]
        fn both_products_are_the_same(mixed: u64, total: u32) {
            prop_assert_eq!(high_product_of_narrow(mixed, total.into()), high_product(mixed, total.into()));
        }
    }

    #[test]
    fn buckets_are_numbered_by_32_bits_up_to_the_last_such_number() {
        let largest = 1 << 15;
        assert!(geometry(1, 1, 8).is_narrow() && geometry(65_535, largest, 8).is_narrow());
        assert!(!geometry(65_536, largest, 8).is_narrow() && !geometry(1 << 20, largest, 8).is_narrow());
    }

    /// In small shards, where a sum that is even would show.
    #[test]
    fn no_pair_is_one_bucket() {
        for half_buckets in 1..=16 {
            let geometry = geometry(1, half_buckets, 8);
            for (fingerprint, bucket) in
                (1..=255).flat_map(|value| geometry.all_buckets().map(move |bucket| (value, bucket)))
            {
                let fingerprint = Fingerprint::from_slot(fingerprint).unwrap();
                assert_ne!(geometry.alternate(fingerprint, bucket), bucket, "{fingerprint:?}");
            }
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
                let (shard, key) = geometry.locate(Mixed::of(hash(i)));
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
