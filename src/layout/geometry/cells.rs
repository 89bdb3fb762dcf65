//! The places of keys in growing filters: a cell of the directory, and two buckets whose numbers refills may have extended.

use super::{Bucket, Class, Fingerprint, Geometry, Mixed, high_half, high_product, product};
use crate::layout::growth::Extent;
use crate::layout::plan::Plan;

/// The place of a key in a growing filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CellPlace {
    pub(crate) cell: usize,
    /// The class, with the whole fingerprint. A table may store less of it.
    pub(crate) class: Class,
}

impl Geometry {
    /// Returns the place in any filter: in a filter of fixed size, the shard in place of the cell.
    #[inline(always)]
    pub(crate) fn any_place(&self, mixed: Mixed) -> CellPlace {
        if self.cell_bits > 0 {
            return self.cell_place(mixed);
        }
        let (cell, class) = self.locate(mixed);
        CellPlace { cell, class }
    }

    #[inline(always)]
    pub(crate) fn cell_place(&self, mixed: Mixed) -> CellPlace {
        if self.alternates.extension_bits == 0 {
            return self.cell_place_as::<false, false>(mixed);
        }
        let CellPlace { cell, class } = self.cell_place_as::<true, true>(mixed);
        CellPlace { cell, class: self.whole(class) }
    }

    #[inline(always)]
    pub(crate) fn whole(&self, class: Class) -> Class {
        Class { fingerprint: Fingerprint(self.with_extension(class.fingerprint.0, class.first)), ..class }
    }

    /// Returns the place of a key. `ONE`: the filter has one shard. `EXTENDED`: buckets may be extended, and the fingerprint lacks
    /// the extension, because most tables that are no longer refilled do not store it.
    ///
    /// Draws as `numbers` does, with fewer instructions: the fraction of a product is the place in the shard. The core
    /// is drawn like a fingerprint. The fraction of that draw is independent of it: the part of the reserve that
    /// selects the table.
    #[inline(always)]
    pub(crate) fn cell_place_as<const ONE: bool, const EXTENDED: bool>(&self, Mixed(mixed): Mixed) -> CellPlace {
        let drawn = mixed & self.drawn;
        let (shard, drawn) = if ONE { (0, drawn) } else { product(drawn, self.shards) };
        let first = Bucket(high_product(drawn, self.wide_buckets) as u32);
        let (drawn, rest) = product(u64::from(mixed as u32), self.high_fingerprints);
        let (core, reserve) = (drawn as u32 + 1, rest >> self.cell_shift);
        let fingerprint = Fingerprint((reserve as u32) << self.core_bits | core);
        let second = self.alternates.other::<EXTENDED>(core, first, self.wide_buckets as u32);
        CellPlace { cell: (shard << self.cell_bits | reserve) as usize, class: Class { fingerprint, first, second } }
    }

    /// As [`Geometry::cell_place_as`], for loops that the compiler vectorises; only where [`Geometry::is_narrow`].
    #[inline(always)]
    pub(crate) fn cell_place_narrow<const ONE: bool, const EXTENDED: bool>(&self, Mixed(mixed): Mixed) -> CellPlace {
        let high = (mixed >> 32) as u32;
        let number = high_half(high, self.total as u32);
        let shard = if ONE { 0 } else { high_half(high, self.shards as u32) };
        let drawn = u64::from(mixed as u32) * u64::from(self.alternates.fingerprints);
        let (core, reserve) = ((drawn >> 32) as u32 + 1, (drawn as u32) >> (self.cell_shift - 32));
        let first = Bucket(number - shard * self.alternates.buckets);
        let fingerprint = Fingerprint(reserve << self.core_bits | core);
        let second = self.alternates.opposite::<EXTENDED>(core, first);
        CellPlace { cell: (shard << self.cell_bits | reserve) as usize, class: Class { fingerprint, first, second } }
    }

    /// Returns the fingerprint of a class with this bucket, with the extension in its reserve.
    #[inline(always)]
    pub(crate) fn with_extension(&self, fingerprint: u32, bucket: Bucket) -> u32 {
        let extension = self.alternates.extension_at(fingerprint, self.alternates.extension_bits, bucket);
        // Without an extension, the shift may be by 32 bits.
        fingerprint | (u64::from(extension) << (self.core_bits + self.cell_bits)) as u32
    }

    /// Returns the place of the class for which the table of this extent stores this fingerprint in this bucket.
    pub(crate) fn cell_place_of(&self, plan: &Plan, extent: &Extent, stored: Fingerprint, bucket: Bucket) -> CellPlace {
        let [_, above] = plan.known(extent);
        let whole = stored.with(above | self.known_by_bucket(plan, extent, stored, bucket));
        let reserve = (u64::from(whole.0) >> self.core_bits) as u32;
        // As for an even base, and then with the inverted bits of an odd one.
        let extended =
            Bucket(bucket.0 >> plan.level(extent) << self.alternates.extension_bits | reserve >> self.cell_bits);
        let inverted = self.alternates.extension_at(whole.0, self.alternates.extension_bits, extended);
        let first = Bucket(extended.0 & !self.alternates.extensions | inverted);
        self.place_of_whole(extent.first_cell >> self.cell_bits, whole, first)
    }

    /// Returns the place of a whole fingerprint in one of its buckets in this shard.
    fn place_of_whole(&self, shard: usize, whole: Fingerprint, first: Bucket) -> CellPlace {
        let cell = (u64::from(whole.0) >> self.core_bits) as u32 & !(u32::MAX << self.cell_bits);
        let class = Class { fingerprint: whole, first, second: self.alternates.alternate(whole, first) };
        CellPlace { cell: shard << self.cell_bits | cell as usize, class }
    }

    /// Returns the bits of a whole fingerprint that its bucket determines in the table of this extent.
    pub(crate) fn known_by_bucket(&self, plan: &Plan, extent: &Extent, stored: Fingerprint, bucket: Bucket) -> u32 {
        let level = plan.level(extent);
        (u64::from(self.alternates.extension_at(stored.0, level, bucket)) << (plan.fingerprint_bits - level)) as u32
    }

    /// Returns the place of the class with this whole fingerprint and this bucket in this shard; `None` if no class has them.
    #[cfg(feature = "snapshot")]
    pub(crate) fn cell_place_at(&self, plan: &Plan, shard: usize, fingerprint: u32, bucket: u32) -> Option<CellPlace> {
        let whole = Fingerprint::from_slot(fingerprint).filter(|whole| whole.0 & self.alternates.fingerprints != 0)?;
        let is_short = u64::from(whole.0) >> plan.fingerprint_bits == 0;
        let reserve = (u64::from(whole.0) >> self.core_bits) as u32;
        let first = Bucket(bucket);
        let extension = self.alternates.extension_at(whole.0, self.alternates.extension_bits, first);
        let is_possible = is_short && bucket < self.alternates.buckets && extension == reserve >> self.cell_bits;
        is_possible.then(|| self.place_of_whole(shard, whole, first))
    }
}
