//! The place of a key: from a 64-bit hash to a shard, a fingerprint and two candidate buckets.
//!
//! ```text
//! mixed: 63 ............. 32 31 .............. 0
//!        | bucket           | fingerprint     |   up to 2^26 buckets
//!        | bucket ........................... |   above
//! ```
//!
//! Buckets are numbered through all shards, so that one draw gives both bucket and shard. Bucket and fingerprint come from
//! different ends of the hash; they share bits only in a filter of more than 2^32 buckets.

mod alternates;
mod cells;

pub(crate) use alternates::Alternates;
pub(crate) use cells::CellPlace;

use super::plan::Plan;

/// A stored value: 1 to 2^f - 1. The 0 of an empty slot is never a fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fingerprint(u32);

impl Fingerprint {
    /// Returns the lower bits of a whole fingerprint that a table stores, including the core, which is not 0.
    #[inline(always)]
    pub(crate) fn lower(self, mask: u32) -> Self {
        Fingerprint(self.0 & mask)
    }

    pub(crate) fn with(self, above: u32) -> Self {
        Fingerprint(self.0 | above)
    }

    #[inline]
    pub(crate) fn from_slot(slot: u32) -> Option<Self> {
        (slot != 0).then_some(Fingerprint(slot))
    }

    #[inline]
    pub(crate) fn get(self) -> u32 {
        self.0
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Bucket(u32);

impl Bucket {
    #[inline(always)]
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

/// A fingerprint and its two buckets: the filter cannot distinguish keys of one class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Class {
    pub(crate) fingerprint: Fingerprint,
    pub(crate) first: Bucket,
    /// The alternate of `first`. A [`Geometry`] never returns equal buckets, but shards allow them.
    pub(crate) second: Bucket,
}

impl Class {
    /// Returns whether both candidates are one bucket: the class then has 4 slots, not 8.
    #[inline]
    pub(crate) fn coincides(self) -> bool {
        self.first == self.second
    }

    #[cfg(test)]
    pub(crate) fn turned(self) -> Class {
        Class { first: self.second, second: self.first, ..self }
    }

    /// Returns the same class with its lower bucket first.
    #[cfg(test)]
    pub(crate) fn lower_first(self) -> Class {
        if self.first < self.second { self } else { self.turned() }
    }
}

/// A hash spread over the whole word, so that poor hashes (an identity hash of small integers, pointers) also give even and
/// independent places and fingerprints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mixed(u64);

impl Mixed {
    /// Mixes by "degski64", a permutation of 64 bits in use since 2018. A folded multiplication by a constant left regular keys up
    /// to six times the expected false positives (tests/it/rates.rs).
    #[inline]
    pub(crate) fn of(hash: u64) -> Self {
        let hash = (hash ^ (hash >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        let hash = (hash ^ (hash >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        Mixed(hash ^ (hash >> 32))
    }

    #[inline]
    pub(crate) fn get(self) -> u64 {
        self.0
    }

    /// Returns the inverse of [`Mixed::of`]. Compiled together, the two cancel out.
    #[inline]
    pub(crate) fn unmix(mixed: u64) -> u64 {
        // The inverse of the constant, modulo 2^64.
        let hash = (mixed ^ (mixed >> 32)).wrapping_mul(0xcfee_444d_8b59_a89b);
        let hash = (hash ^ (hash >> 32)).wrapping_mul(0xcfee_444d_8b59_a89b);
        hash ^ (hash >> 32)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) shard: u64,
    /// The numbers of its buckets through all shards.
    pub(crate) first: u64,
    pub(crate) second: u64,
    pub(crate) class: Class,
}

/// Filters of up to this many buckets draw them from 32 bits of the hash: the chances of two buckets differ by at most 1 part in
/// 64. Larger filters draw from all 64 bits.
const MOST_NARROW: u64 = 1 << 26;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Geometry {
    shards: u64,
    total: u64,
    /// The bits of the hash from which buckets are drawn.
    drawn: u64,
    alternates: Alternates,
    /// The buckets of a shard in 64 bits, for an instruction that loads and multiplies.
    wide_buckets: u64,
    /// 2^f - 1, of the fingerprint or of its core, in the upper half: the fraction of a product by it fills a number.
    high_fingerprints: u64,
    core_bits: u8,
    /// Bits of the reserve that select a cell, below those that extend the bucket: at least one, but none in
    /// a filter of fixed size. And 64 less this number.
    cell_bits: u8,
    cell_shift: u8,
}

impl Geometry {
    pub(crate) fn new(plan: &Plan) -> Self {
        let (shards, total) = (plan.shards as u64, plan.shards as u64 * u64::from(plan.buckets));
        let cell_bits = plan.reserve_bits.saturating_sub(plan.extension_bits);
        Geometry {
            shards,
            total,
            drawn: if total <= MOST_NARROW { u64::MAX << 32 } else { u64::MAX },
            alternates: Alternates::new(plan),
            wide_buckets: plan.buckets.into(),
            high_fingerprints: (u64::MAX >> (64 - plan.core_bits())) << 32,
            core_bits: plan.core_bits() as u8,
            cell_bits: cell_bits as u8,
            cell_shift: (u64::BITS - cell_bits) as u8,
        }
    }

    #[inline(always)]
    pub(crate) fn alternates(&self) -> &Alternates {
        &self.alternates
    }

    pub(crate) fn core_mask(&self) -> u32 {
        self.alternates.fingerprints
    }

    pub(crate) fn shards(&self) -> usize {
        self.shards as usize
    }

    #[inline]
    pub(crate) fn shard(&self, mixed: Mixed) -> usize {
        self.numbers(mixed).1 as usize
    }

    /// Returns a number of the class of the key, independent of its table: the number of its lower bucket in the whole filter,
    /// above 32 bits of its whole fingerprint.
    pub(crate) fn class_number(&self, mixed: Mixed) -> u128 {
        let Class { fingerprint, first, second } = self.any_place(mixed).class;
        let begin = self.numbers(mixed).1 * self.wide_buckets;
        u128::from(begin + u64::from(first.0.min(second.0))) << 32 | u128::from(fingerprint.0)
    }

    #[inline(always)]
    pub(crate) fn locate(&self, mixed: Mixed) -> (usize, Class) {
        let Place { shard, class, .. } = self.locate_flat::<false>(mixed);
        (shard as usize, class)
    }

    /// Returns the place in the whole filter, which for `ONE` is one shard.
    #[inline(always)]
    pub(crate) fn locate_flat<const ONE: bool>(&self, mixed: Mixed) -> Place {
        let (number, shard) = self.numbers(mixed);
        // The number of buckets is read above in both cases: see `other`.
        let (shard, buckets) = if ONE { (0, self.total as u32) } else { (shard, self.alternates.buckets) };
        let begin = shard * u64::from(buckets);
        // As in `locate_narrow`, with fewer instructions where there are no vectors.
        let drawn = high_product(u64::from(mixed.0 as u32), self.high_fingerprints);
        let (fingerprint, first) = (Fingerprint(drawn as u32 + 1), Bucket((number - begin) as u32));
        let second = self.alternates.other::<false>(fingerprint.0, first, buckets);
        Place { shard, first: number, second: begin + u64::from(second.0), class: Class { fingerprint, first, second } }
    }

    /// As [`Geometry::locate_flat`], for loops that the compiler vectorises; only where [`Geometry::is_narrow`]. Fingerprints are
    /// drawn evenly from 1 ..= 2^f - 1: folding 0 onto 1 would make 1 twice as common.
    #[inline(always)]
    pub(crate) fn locate_narrow(&self, mixed: Mixed) -> Place {
        let high = (mixed.0 >> 32) as u32;
        let (number, shard) = (high_half(high, self.total as u32), high_half(high, self.shards as u32));
        let begin = shard * self.alternates.buckets;
        let fingerprint = Fingerprint(high_half(mixed.0 as u32, self.alternates.fingerprints) + 1);
        let first = Bucket(number - begin);
        let class = Class { fingerprint, first, second: self.alternates.opposite::<false>(fingerprint.0, first) };
        Place { shard: shard.into(), first: number.into(), second: (begin + class.second.0).into(), class }
    }

    /// Returns whether the filter has at most [`MOST_NARROW`] buckets.
    #[inline(always)]
    pub(crate) fn is_narrow(&self) -> bool {
        self.total <= MOST_NARROW
    }

    /// Draws a bucket of the filter and its shard, which is the same draw from fewer numbers.
    #[inline(always)]
    fn numbers(&self, Mixed(mixed): Mixed) -> (u64, u64) {
        let drawn = mixed & self.drawn;
        (high_product(drawn, self.total), high_product(drawn, self.shards))
    }

    /// Returns a mixed hash of this class in a filter of one shard: the inverse of [`Geometry::locate`]. `None` if no key has these
    /// candidates.
    #[cfg(test)]
    pub(crate) fn leading_to(&self, class: Class) -> Option<Mixed> {
        assert_eq!(self.shards, 1);
        // The smallest numbers that are drawn as this bucket and as this fingerprint.
        let position = (u64::from(class.first.0) << 32).div_ceil(self.wide_buckets);
        let core = u64::from(class.fingerprint.0 & self.alternates.fingerprints);
        let cell = u64::from(class.fingerprint.0) >> self.core_bits & !(u64::MAX << self.cell_bits);
        let drawn = core.checked_sub(1)? << 32 | cell << (self.cell_shift - 32);
        let drawn = drawn.div_ceil(u64::from(self.alternates.fingerprints));
        Some(Mixed(position << 32 | drawn)).filter(|&mixed| self.any_place(mixed).class == class)
    }
}

impl Plan {
    /// Returns all buckets of a shard.
    pub(crate) fn all_buckets(&self) -> impl ExactSizeIterator<Item = Bucket> + use<> {
        self.buckets_from(0, self.buckets)
    }

    /// Returns up to `count` buckets of a shard, from this number on.
    pub(crate) fn buckets_from(&self, first: u32, count: u32) -> impl ExactSizeIterator<Item = Bucket> + use<> {
        (first..self.buckets.min(first + count)).map(Bucket)
    }
}

#[inline(always)]
fn product(a: u64, b: u64) -> (u64, u64) {
    let product = u128::from(a) * u128::from(b);
    ((product >> 64) as u64, product as u64)
}

#[inline(always)]
fn high_product(a: u64, b: u64) -> u64 {
    ((u128::from(a) * u128::from(b)) >> 64) as u64
}

#[inline(always)]
fn high_half(a: u32, b: u32) -> u32 {
    ((u64::from(a) * u64::from(b)) >> 32) as u32
}

#[cfg(all(test, not(cuckoo_model)))]
mod tests;
