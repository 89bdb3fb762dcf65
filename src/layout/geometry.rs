//! Where a key lies: from a 64-bit hash to a shard, a fingerprint and two candidate buckets.
//!
//! ```text
//! mixed: 63 ............. 32 31 .............. 0
//!        | bucket           | fingerprint     |   up to 2^26 buckets
//!        | bucket ........................... |   above
//! ```
//!
//! Buckets are numbered through all shards, so that one draw gives both bucket and shard. Bucket and fingerprint come
//! from different ends of the hash; they begin to share bits only in a filter of more than 2^32 buckets.

use super::fingerprint::Fingerprint;
use super::growth::Extent;
use super::plan::Plan;

/// The number of a bucket inside its shard.
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

    #[inline]
    pub(crate) fn get(self) -> u64 {
        self.0
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) shard: u64,
    /// The numbers of its buckets, counted through all shards.
    pub(crate) first: u64,
    pub(crate) second: u64,
    pub(crate) class: Class,
}

/// Filters of up to this many buckets draw them from 32 bits of the hash: the chances of two buckets differ by 1 part in 64 at
/// the most. Larger ones draw from all 64.
const MOST_NARROW: u64 = 1 << 26;

/// The numbers that place a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Geometry {
    shards: u64,
    /// Buckets of all shards.
    total: u64,
    /// The same in filters of up to [`MOST_NARROW`], else 0. A field of 32 bits, and not a part of `total`, because
    /// the compiler has vectors for products of what it sees to be 32 bits. So have the shards.
    narrow_total: u32,
    narrow_shards: u32,
    /// The bits of the hash from which buckets are drawn.
    drawn: u64,
    /// Buckets in each shard: even, at most 2^16. Of 32 bits for vectors, and of 64 as one instruction loads and multiplies.
    buckets: u32,
    wide_buckets: u64,
    /// 2^f - 1, of the fingerprint or of its core; so, too, and in the upper half, where what is left of a product by it fills
    /// a number.
    fingerprints: u32,
    wide_fingerprints: u64,
    high_fingerprints: u64,
    /// 2^k - 1 for the largest 2^k that is not above the number of bases, above the extension.
    sums: u32,
    /// Bits of a fingerprint above its core, and those of the core.
    reserve_bits: u32,
    core_bits: u32,
    /// Bits of the reserve that choose a cell, below those that extend the bucket; what is left of 32 bits beside them, and of 64.
    cell_bits: u32,
    beside_cell: u32,
    cell_shift: u32,
    /// The lowest bits of a bucket's number, which a refill adds to (`growth`); 0 where all buckets are bases.
    extension_bits: u32,
    /// All these bits, and the one above them, too.
    extensions: u32,
    ones: u32,
    /// [`GOLDEN`], shifted by these bits.
    golden: u32,
}

/// 2^32 divided by the golden ratio.
const GOLDEN: u32 = 0x9e37_79b9;

/// Where a key of a growing filter lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CellPlace {
    /// The cell of the directory that names its table.
    pub(crate) cell: usize,
    /// Its buckets there. The fingerprint is the whole one, of which a table may store less.
    pub(crate) class: Class,
}

impl Geometry {
    pub(crate) fn new(plan: &Plan) -> Self {
        let bases = plan.buckets >> plan.extension_bits;
        debug_assert!(bases >= 2 && bases.is_multiple_of(2) && bases << plan.extension_bits == plan.buckets);
        let (shards, total) = (plan.shards as u64, plan.shards as u64 * u64::from(plan.buckets));
        let if_narrow = |number: u64| if total <= MOST_NARROW { number as u32 } else { 0 };
        let cell_bits = plan.reserve_bits.saturating_sub(plan.extension_bits);
        Geometry {
            shards,
            total,
            narrow_total: if_narrow(total),
            narrow_shards: if_narrow(shards),
            drawn: if total <= MOST_NARROW { u64::MAX << 32 } else { u64::MAX },
            buckets: plan.buckets,
            wide_buckets: plan.buckets.into(),
            fingerprints: u32::MAX >> (32 - plan.core_bits()),
            wide_fingerprints: u64::MAX >> (64 - plan.core_bits()),
            high_fingerprints: (u64::MAX >> (64 - plan.core_bits())) << 32,
            sums: u32::MAX >> (bases.leading_zeros() + 1) << plan.extension_bits,
            reserve_bits: plan.reserve_bits,
            core_bits: plan.core_bits(),
            cell_bits,
            beside_cell: u32::BITS - cell_bits,
            cell_shift: u64::BITS - cell_bits,
            extension_bits: plan.extension_bits,
            extensions: !(u32::MAX << plan.extension_bits),
            ones: !(u32::MAX << 1 << plan.extension_bits),
            golden: GOLDEN << plan.extension_bits,
        }
    }

    /// Where the class lies that has this whole fingerprint and one of its buckets in this shard; `None` if there are no such numbers.
    #[cfg(feature = "snapshot")]
    pub(crate) fn cell_place_at(&self, plan: &Plan, shard: usize, fingerprint: u32, bucket: u32) -> Option<CellPlace> {
        let whole = Fingerprint::from_slot(fingerprint).filter(|whole| whole.0 & self.fingerprints != 0)?;
        let is_short = u64::from(whole.0) >> plan.fingerprint_bits == 0;
        let reserve = (u64::from(whole.0) >> self.core_bits) as u32;
        let first = Bucket(bucket);
        let extension = self.extension_at(whole.0, self.extension_bits, first);
        if !is_short || bucket >= self.buckets || extension != (reserve >> self.cell_bits) {
            return None;
        }
        let cell = shard << self.cell_bits | (reserve & !(u32::MAX << self.cell_bits)) as usize;
        Some(CellPlace { cell, class: Class { fingerprint: whole, first, second: self.alternate(whole, first) } })
    }

    /// All buckets of a shard, in order.
    pub(crate) fn all_buckets(&self) -> impl ExactSizeIterator<Item = Bucket> + use<> {
        (0..self.buckets).map(Bucket)
    }

    /// Up to `count` buckets of a shard, from this number on.
    pub(crate) fn buckets_from(&self, first: u32, count: u32) -> impl ExactSizeIterator<Item = Bucket> + use<> {
        (first..self.buckets.min(first + count)).map(Bucket)
    }

    pub(crate) fn core_mask(&self) -> u32 {
        self.fingerprints
    }

    pub(crate) fn shards(&self) -> usize {
        self.shards as usize
    }

    /// The number of the shard alone.
    #[inline]
    pub(crate) fn shard(&self, mixed: Mixed) -> usize {
        self.numbers(mixed).1 as usize
    }

    /// A number of the class of the key, the same whichever table it lies in: the place of its lower bucket in the whole filter,
    /// above 32 bits of its whole fingerprint.
    pub(crate) fn class_number(&self, mixed: Mixed) -> u128 {
        let Class { fingerprint, first, second } =
            if self.reserve_bits > 0 { self.cell_place(mixed).class } else { self.locate(mixed).1 };
        let begin = self.numbers(mixed).1 * self.wide_buckets;
        u128::from(begin + u64::from(first.0.min(second.0))) << 32 | u128::from(fingerprint.0)
    }

    /// The number of the shard, and the place of the key in it.
    #[inline(always)]
    pub(crate) fn locate(&self, mixed: Mixed) -> (usize, Class) {
        let Place { shard, class, .. } = self.locate_flat::<false>(mixed);
        (shard as usize, class)
    }

    /// As [`Geometry::locate`], with the numbers that buckets have in the whole filter, of which one may know that it is one shard.
    #[inline(always)]
    pub(crate) fn locate_flat<const ONE: bool>(&self, mixed: Mixed) -> Place {
        let (number, shard) = self.numbers(mixed);
        // The number of buckets is read above in both cases: see `other_of_one`.
        let (shard, buckets) = if ONE { (0, self.total as u32) } else { (shard, self.buckets) };
        let begin = shard * u64::from(buckets);
        // As `class`, with fewer instructions where there are no vectors.
        let drawn = u64::from(mixed.0 as u32) * self.wide_fingerprints;
        let (fingerprint, first) = (Fingerprint((drawn >> 32) as u32 + 1), Bucket((number - begin) as u32));
        let second = self.other_of_one(fingerprint.0, first, buckets);
        Place { shard, first: number, second: begin + u64::from(second.0), class: Class { fingerprint, first, second } }
    }

    /// As [`Geometry::locate_flat`], for loops that the compiler vectorises; only where [`Geometry::is_narrow`].
    #[inline(always)]
    pub(crate) fn locate_narrow(&self, mixed: Mixed) -> Place {
        let high = (mixed.0 >> 32) as u32;
        let (number, shard) = (high_half(high, self.narrow_total), high_half(high, self.narrow_shards));
        let begin = shard * self.buckets;
        let class = self.class(mixed, number - begin);
        Place { shard: shard.into(), first: number.into(), second: (begin + class.second.0).into(), class }
    }

    /// Whether there are no more than [`MOST_NARROW`] buckets.
    #[inline(always)]
    pub(crate) fn is_narrow(&self) -> bool {
        self.narrow_total != 0
    }

    /// Draws a bucket of the filter, of which the whole part of its quotient by the buckets of a shard is the shard: the
    /// same draw from fewer numbers.
    #[inline(always)]
    fn numbers(&self, Mixed(mixed): Mixed) -> (u64, u64) {
        let drawn = mixed & self.drawn;
        (high_product(drawn, self.total), high_product(drawn, self.shards))
    }

    /// The class of a fingerprint drawn from the other end of the hash, evenly from 1 ..= 2^f - 1: folding 0 onto 1 would
    /// make 1 twice as common.
    #[inline(always)]
    fn class(&self, Mixed(mixed): Mixed, first: u32) -> Class {
        let (fingerprint, first) = (Fingerprint(high_half(mixed as u32, self.fingerprints) + 1), Bucket(first));
        Class { fingerprint, first, second: self.opposite(self.sum(fingerprint.0), first) }
    }

    /// Where a key lies in a growing filter.
    #[inline(always)]
    pub(crate) fn cell_place(&self, mixed: Mixed) -> CellPlace {
        if self.extension_bits == 0 {
            return self.cell_place_in_many(mixed);
        }
        let CellPlace { cell, class } = self.cell_place_extended(mixed);
        CellPlace { cell, class: self.whole(class) }
    }

    #[inline(always)]
    fn whole(&self, class: Class) -> Class {
        Class { fingerprint: Fingerprint(self.with_extension(class.fingerprint.0, class.first)), ..class }
    }

    /// The same where no bucket is extended.
    ///
    /// The draws of `numbers`, with fewer instructions: what a product leaves below its point is the place in the shard.
    #[inline(always)]
    pub(crate) fn cell_place_in_many(&self, Mixed(mixed): Mixed) -> CellPlace {
        let (shard, rest) = product(mixed & self.drawn, self.shards);
        self.cell_place_in::<false>(shard, rest, mixed)
    }

    /// The same in a filter of one shard.
    #[inline(always)]
    pub(crate) fn cell_place_in_one(&self, Mixed(mixed): Mixed) -> CellPlace {
        self.cell_place_in::<false>(0, mixed & self.drawn, mixed)
    }

    /// As [`Geometry::cell_place`] in a filter of one shard, but for the extension, which is not in the fingerprint: most tables that are
    /// refilled no more do not store it.
    #[inline(always)]
    pub(crate) fn cell_place_extended(&self, Mixed(mixed): Mixed) -> CellPlace {
        self.cell_place_in::<true>(0, mixed & self.drawn, mixed)
    }

    /// The same in any growing filter.
    #[inline(always)]
    pub(crate) fn cell_place_in_any(&self, Mixed(mixed): Mixed) -> CellPlace {
        let (shard, rest) = product(mixed & self.drawn, self.shards);
        self.cell_place_in::<true>(shard, rest, mixed)
    }

    /// The core is drawn as fingerprints are. What is left of that draw, below its point, does not depend on it: the part of the
    /// reserve that chooses the table.
    #[inline(always)]
    fn cell_place_in<const EXTENDED: bool>(&self, shard: u64, drawn: u64, mixed: u64) -> CellPlace {
        let first = Bucket(high_product(drawn, self.wide_buckets) as u32);
        let (drawn, rest) = product(u64::from(mixed as u32), self.high_fingerprints);
        let (core, reserve) = (drawn as u32 + 1, rest >> self.cell_shift);
        let fingerprint = Fingerprint((reserve as u32) << self.core_bits | core);
        let other = if EXTENDED { Self::other_extended } else { Self::other_of_one };
        let second = other(self, core, first, self.wide_buckets as u32);
        CellPlace { cell: (shard << self.cell_bits | reserve) as usize, class: Class { fingerprint, first, second } }
    }

    /// A fingerprint, of a class with this bucket, with the extension in its reserve.
    #[inline(always)]
    pub(crate) fn with_extension(&self, fingerprint: u32, bucket: Bucket) -> u32 {
        let extension = self.extension_at(fingerprint, self.extension_bits, bucket);
        // Where there is none, the shift may be by all bits.
        fingerprint | (u64::from(extension) << (self.core_bits + self.cell_bits)) as u32
    }

    /// The first bits of the extension, as many as the level, of a class of this core with this bucket in a table of that level.
    ///
    /// It is in the number of the bucket of an even base, and each class has one. In that of the odd base all bits are turned, but
    /// those of a draw from the core.
    #[inline(always)]
    fn extension_at(&self, fingerprint: u32, level: u32, bucket: Bucket) -> u32 {
        let is_odd = 0_u32.wrapping_sub(bucket.0 >> level & 1);
        let apart =
            (!self.drawn_from(fingerprint & self.fingerprints) & self.extensions) >> (self.extension_bits - level);
        bucket.0 & (self.extensions >> (self.extension_bits - level)) ^ is_odd & apart
    }

    /// Whether the next bit of the extension of this bucket differs from that of the reserve, for the core of this fingerprint.
    pub(crate) fn is_apart(&self, fingerprint: u32, bucket: Bucket, level: u32) -> bool {
        self.extension_at(fingerprint, level + 1, Bucket(bucket.0 << 1)) & 1 == 1
    }

    /// The same for the last bit of the extensions of these buckets, of a bucket before its last refill.
    pub(crate) fn is_apart_in_last(&self, fingerprint: u32, bucket: Bucket) -> bool {
        self.is_apart(fingerprint, bucket, self.extension_bits - 1)
    }

    /// As [`Geometry::cell_place`], or where `ONE` is true [`Geometry::cell_place_in_one`], for loops that the compiler vectorises; only where
    /// [`Geometry::is_narrow`].
    #[inline(always)]
    pub(crate) fn cell_place_narrow<const ONE: bool>(&self, Mixed(mixed): Mixed) -> CellPlace {
        let high = (mixed >> 32) as u32;
        let number = high_half(high, self.narrow_total);
        let shard = if ONE { 0 } else { high_half(high, self.narrow_shards) };
        let (core, reserve) = self.core_and_reserve(mixed);
        let first = Bucket(number - shard * self.buckets);
        let fingerprint = Fingerprint(reserve << self.core_bits | core);
        let second = self.opposite(self.sum(core), first);
        CellPlace { cell: (shard << self.reserve_bits | reserve) as usize, class: Class { fingerprint, first, second } }
    }

    /// As [`Geometry::cell_place_extended`], for loops that the compiler vectorises.
    #[inline(always)]
    pub(crate) fn cell_place_narrow_extended(&self, Mixed(mixed): Mixed) -> CellPlace {
        let first = Bucket(high_half((mixed >> 32) as u32, self.narrow_total));
        let (core, reserve) = self.core_and_reserve(mixed);
        let fingerprint = Fingerprint(reserve << self.core_bits | core);
        CellPlace {
            cell: reserve as usize,
            class: Class { fingerprint, first, second: self.opposite_extended(core, first) },
        }
    }

    #[inline(always)]
    fn core_and_reserve(&self, mixed: u64) -> (u32, u32) {
        let drawn = u64::from(mixed as u32) * u64::from(self.fingerprints);
        ((drawn >> 32) as u32 + 1, (drawn as u32) >> self.beside_cell)
    }

    /// The key of which a table stores this fingerprint in this bucket: the table of these cells, of which it is known what
    /// it does not store beside the extension.
    pub(crate) fn cell_place_of(&self, plan: &Plan, extent: &Extent, stored: Fingerprint, bucket: Bucket) -> CellPlace {
        let [_, above] = plan.known(extent);
        let whole = stored.with(above | self.known_by_bucket(plan, extent, stored, bucket));
        let reserve = (u64::from(whole.0) >> self.core_bits) as u32;
        // As if it were that of an even base, and then what is turned in an odd one.
        let extended = Bucket(bucket.0 >> plan.level(extent) << self.extension_bits | reserve >> self.cell_bits);
        let turned = self.extension_at(whole.0, self.extension_bits, extended);
        let first = Bucket(extended.0 & !self.extensions | turned);
        let class = Class { fingerprint: whole, first, second: self.alternate(whole, first) };
        let (shard, cells) = (extent.first_cell >> self.cell_bits, !(u32::MAX << self.cell_bits));
        CellPlace { cell: shard << self.cell_bits | (reserve & cells) as usize, class }
    }

    /// The bits of a whole fingerprint that say in which extension of its base it lies, as far as such a table has extended it.
    pub(crate) fn known_by_bucket(&self, plan: &Plan, extent: &Extent, stored: Fingerprint, bucket: Bucket) -> u32 {
        let level = plan.level(extent);
        (u64::from(self.extension_at(stored.0, level, bucket)) << (plan.fingerprint_bits - level)) as u32
    }

    /// A hash, mixed, that leads to this class in a filter of one shard and finds it by its first candidate: the inverse
    /// of [`Geometry::locate`]. `None` if the candidates are not those of any key.
    #[cfg(test)]
    pub(crate) fn leading_to(&self, class: Class) -> Option<Mixed> {
        assert_eq!(self.shards, 1);
        // The least numbers that the two draws take there.
        let position = (u64::from(class.first.0) << 32).div_ceil(self.wide_buckets);
        let core = u64::from(class.fingerprint.0 & self.fingerprints);
        let cell = u64::from(class.fingerprint.0) >> self.core_bits & !(u64::MAX << self.cell_bits);
        let drawn = core.checked_sub(1)? << 32 | cell << self.beside_cell;
        let drawn = drawn.div_ceil(u64::from(self.fingerprints));
        let leads_there =
            |&mixed: &Mixed| if self.reserve_bits > 0 { self.cell_place(mixed).class } else { self.locate(mixed).1 } == class;
        Some(Mixed(position << 32 | drawn)).filter(leads_there)
    }

    /// The other candidate bucket of a fingerprint that lies in `bucket`. Its own inverse.
    ///
    /// The two candidates add up to `sum(fingerprint)` modulo the number of buckets. That number is even and the sum is
    /// odd, so the two are never the same bucket: coinciding candidates cause most refusals in small filters. In a growing
    /// filter the sum is that of the core, which every table has.
    #[inline(always)]
    pub(crate) fn alternate(&self, fingerprint: Fingerprint, bucket: Bucket) -> Bucket {
        let core = fingerprint.0 & self.fingerprints;
        if self.extension_bits == 0 {
            self.opposite(self.sum(core), bucket)
        } else {
            self.opposite_extended(core, bucket)
        }
    }

    #[inline(always)]
    fn opposite(&self, sum: u32, bucket: Bucket) -> Bucket {
        // Below zero, the difference is the larger number.
        let difference = sum.wrapping_sub(bucket.0);
        Bucket(difference.min(difference.wrapping_add(self.buckets)))
    }

    /// The same of extended buckets, and of others, too. The sum is that of the bases, and below it all bits are 1, from which the
    /// extension is taken without a carry into the base.
    #[inline(always)]
    fn opposite_extended(&self, core: u32, bucket: Bucket) -> Bucket {
        let drawn = self.drawn_from(core);
        Bucket(self.opposite(drawn & self.sums | self.ones, bucket).0 ^ drawn & self.extensions)
    }

    /// As `sum` draws, above the bits of an extension. Among these stands another draw, without which the extensions of both buckets
    /// would say the same, and tables refuse keys at a load of 0.71.
    #[inline(always)]
    fn drawn_from(&self, core: u32) -> u32 {
        let product = core.wrapping_mul(self.golden);
        product ^ (product >> 16)
    }

    /// The same of a core with fewer instructions, where there are no vectors. The number of buckets is one that the caller has
    /// read already: where it is read here alone, the compiler chooses by a branch that cannot be predicted (1.4 times a lookup).
    #[inline(always)]
    fn other_of_one(&self, core: u32, bucket: Bucket, buckets: u32) -> Bucket {
        // As `sum`, whose lower half is the same: a turn has an instruction that copies.
        let product = core.wrapping_mul(GOLDEN);
        let sum = (product ^ product.rotate_right(16)) & self.sums | 1;
        let (difference, is_below_zero) = sum.overflowing_sub(bucket.0);
        Bucket(if is_below_zero { difference.wrapping_add(buckets) } else { difference })
    }

    /// The same of extended buckets, and of others, too.
    #[inline(always)]
    fn other_extended(&self, core: u32, bucket: Bucket, buckets: u32) -> Bucket {
        let product = core.wrapping_mul(self.golden);
        let drawn = product ^ product.rotate_right(16);
        let (difference, is_below_zero) = (drawn & self.sums | self.ones).overflowing_sub(bucket.0);
        let other = if is_below_zero { difference.wrapping_add(buckets) } else { difference };
        Bucket(other ^ drawn & self.extensions)
    }

    /// An odd number below the number of buckets, from a real mix of the fingerprint: a bare multiply-shift is linear
    /// in it and costs 3.5 points of load at 4 bits and half a point at 8, in shards of 2^16 buckets. That the sums stop
    /// at a power of two saves a multiplication, and only in filters of a few buckets does it cost some load (`plan`).
    #[inline(always)]
    fn sum(&self, fingerprint: u32) -> u32 {
        let product = fingerprint.wrapping_mul(GOLDEN);
        (product ^ (product >> 16)) & self.sums | 1
    }
}

impl Plan {
    /// All buckets of a shard, in order.
    pub(crate) fn all_buckets(&self) -> impl ExactSizeIterator<Item = Bucket> + use<> {
        (0..self.buckets).map(Bucket)
    }
}

/// The halves of a product of 128 bits, the high one first.
#[inline(always)]
fn product(a: u64, b: u64) -> (u64, u64) {
    let product = u128::from(a) * u128::from(b);
    ((product >> 64) as u64, product as u64)
}

/// The high half of a product of 128 bits.
#[inline(always)]
fn high_product(a: u64, b: u64) -> u64 {
    ((u128::from(a) * u128::from(b)) >> 64) as u64
}

/// The high half of a product of 64 bits.
#[inline(always)]
fn high_half(a: u32, b: u32) -> u32 {
    ((u64::from(a) * u64::from(b)) >> 32) as u32
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
        fn all_ways_place_keys_alike(hash: u64, shards in 1u64..=1024, half_buckets in 1u32..=1 << 15) {
            let geometry = geometry(shards, half_buckets, 13);
            let mixed = Mixed::of(hash);
            prop_assert_eq!(geometry.locate_narrow(mixed), geometry.locate_flat::<false>(mixed));
            let geometry = self::geometry(1, half_buckets, 13);
            prop_assert_eq!(geometry.locate_flat::<true>(mixed), geometry.locate_flat::<false>(mixed));
        }
    }

    #[test]
    fn buckets_are_drawn_from_32_bits_as_long_as_that_is_even() {
        let largest = 1 << 15;
        assert!(geometry(1, 1, 8).is_narrow() && geometry(1024, largest, 8).is_narrow());
        assert!(!geometry(1025, largest, 8).is_narrow() && !geometry(1 << 20, largest, 8).is_narrow());
        let lower_bits_draw = |geometry: Geometry| {
            let first = |mixed| geometry.locate_flat::<false>(Mixed(mixed)).first;
            let low = u64::from(u32::MAX);
            (0..1 << 10).map(Mixed::of).any(|Mixed(mixed)| first(mixed & !low) != first(mixed | low))
        };
        assert!(!lower_bits_draw(geometry(1024, largest, 8)) && lower_bits_draw(geometry(1025, largest, 8)));
    }

    proptest! {
        #[test]
        fn a_key_of_a_growing_filter_has_buckets_in_every_table_that_lead_to_each_other(
            hash: u64,
            shards in 1u64..2000,
            half_bases in 1u32..=1 << 12,
            core in 4u32..=15,
            cell_bits in 1u32..=12,
            extension_bits in 0u32..=3,
        ) {
            let (reserve_bits, shards) = (cell_bits + extension_bits, if extension_bits > 0 { 1 } else { shards });
            let buckets = (half_bases * 2) << extension_bits;
            let shape = Plan::one_shard(core + reserve_bits, buckets, 4);
            let plan = Plan { shards: shards as usize, reserve_bits, extension_bits, ..shape };
            let (geometry, mixed) = (Geometry::new(&plan), Mixed::of(hash));
            let place = geometry.cell_place(mixed);
            let CellPlace { cell, class } = place;
            prop_assert_eq!(cell >> cell_bits, geometry.shard(mixed));
            prop_assert_eq!(cell & ((1 << cell_bits) - 1), (class.fingerprint.get() >> core) as usize & ((1 << cell_bits) - 1));
            let whole = |place: CellPlace| CellPlace { class: geometry.whole(place.class), ..place };
            prop_assert_eq!(whole(geometry.cell_place_in_any(mixed)), place);
            prop_assert!(shards > 1 || whole(geometry.cell_place_extended(mixed)) == place);
            prop_assert!(shards > 1 || whole(geometry.cell_place_narrow_extended(mixed)) == place);
            prop_assert_eq!(geometry.locate(mixed).1.first, class.first);
            if extension_bits == 0 {
                prop_assert!(!geometry.is_narrow() || geometry.cell_place_narrow::<false>(mixed) == place);
                prop_assert!(shards > 1 || geometry.cell_place_in_one(mixed) == place);
                prop_assert!(shards > 1 || geometry.cell_place_narrow::<true>(mixed) == place);
            }
            prop_assert!(class.first.get() < buckets && class.second.get() < buckets && !class.coincides());
            prop_assert!(shards > 1 || geometry.leading_to(class).is_some_and(|mixed| geometry.cell_place(mixed).class == class));
            for depth in 0..=reserve_bits {
                for dropped in 0..=depth {
                    let extent = Extent { first_cell: cell / plan.cells_at(depth) * plan.cells_at(depth), depth, dropped };
                    let leaf = plan.leaf(&extent);
                    let (table, mask) = (Geometry::new(&leaf), u32::MAX >> (32 - core - reserve_bits + dropped));
                    let stored = class.fingerprint.lower(mask);
                    let shift = extension_bits - plan.level(&extent);
                    let [first, second] = [class.first, class.second].map(|bucket| Bucket(bucket.0 >> shift));
                    prop_assert!(stored.get() > 0 && first.get() < leaf.buckets && first != second);
                    prop_assert_eq!(table.alternate(stored, first), second);
                    prop_assert_eq!(table.alternate(stored, second), first);
                    prop_assert_eq!(geometry.cell_place_of(&plan, &extent, stored, first), place);
                    let turned = CellPlace { cell, class: class.turned() };
                    prop_assert_eq!(geometry.cell_place_of(&plan, &extent, stored, second), turned);
                    let implied = [first, second].map(|at| geometry.known_by_bucket(&plan, &extent, stored, at));
                    let known = class.fingerprint.get() & !(u32::MAX >> (32 - core - reserve_bits + plan.level(&extent)));
                    prop_assert_eq!(implied, [known; 2]);
                    if depth < extension_bits {
                        // Where a refill moves it.
                        let bit = stored.get() >> (core + reserve_bits - depth - 1) & 1;
                        for (bucket, next) in [(first, class.first), (second, class.second)] {
                            let goes = bit ^ u32::from(geometry.is_apart(stored.get(), bucket, depth));
                            prop_assert_eq!(next.0 >> (shift - 1), bucket.0 << 1 | goes);
                        }
                    }
                }
            }
        }
    }

    /// Each core with each reserve, as often as all others.
    #[test]
    fn the_reserve_does_not_depend_on_the_core() {
        let plan = Plan { reserve_bits: 4, ..Plan::one_shard(8, 16, 4) };
        let (geometry, mut counts) = (Geometry::new(&plan), [0_u32; 256]);
        for hash in 0..480_000 {
            counts[geometry.cell_place(Mixed::of(hash)).class.fingerprint.get() as usize] += 1;
        }
        for (fingerprint, count) in counts.into_iter().enumerate() {
            let expected = if fingerprint % 16 == 0 { 0.0 } else { 2000.0 };
            // 8 standard deviations of a fair draw.
            assert!((f64::from(count) - expected).abs() <= 8.0 * expected.sqrt(), "{count} of {fingerprint}");
        }
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
