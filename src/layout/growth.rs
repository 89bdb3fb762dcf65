//! Growing filters: the number of doublings, and the bits of a fingerprint reserved for them (docs/design/growth.md).
//!
//! ```text
//! whole fingerprint:   | extension | cell            | core |      a bucket, after k refills:   | base | k bits |
//!                      | reserve                     |
//! ```
//!
//! Each doubling takes the next bit of the reserve, from the top. The alternate bucket follows from the core, which every table stores.
//!
//! A *refill*, in a filter that begins small, moves all fingerprints to a table of twice the size: the bit becomes the lowest of the
//! bucket's number. A *split* is a doubling of a table that is large enough: the bit selects one of two tables of equal size, which
//! do not store it. Of the two bases of a class one is even and one odd, since their sum is odd and their number even. The extension
//! of the bucket of the even base is the uppermost part of the reserve; that of the other bucket has all bits inverted, except those
//! of a draw from the core ([`Alternates`]). So a slot keeps its number in its bucket, and is one bit narrower.

use super::geometry::{Alternates, Bucket, Class, Fingerprint};
use super::lanes::SLOTS;
use super::plan::{
    FINGERPRINT_BITS, LOAD, Plan, SHARD_BUCKETS, STRIPE_BYTES, buckets_for, expected_false_positive_rate, spread,
};
use super::tags::Tags;
use core::ops::RangeInclusive;

/// With more doublings, the directory would take more memory than the initial tables.
const MAX_DOUBLINGS: u32 = 14;

/// The widest whole fingerprint, and the widest slot with a tag of at most one bit: any two slots of this width are read in 8 bytes.
const MAX_BITS: u32 = 30;

/// Two slots of this width may span nine bytes. Slots of 32 bits begin at a byte, and those that become narrower with longer tags
/// skip this width, in which such a tag may lie in two words.
const UNGROWABLE_BITS: u32 = 31;

/// The narrowest core: with fewer classes one may overflow before the tables are full.
const MIN_CORE: u32 = 5;

/// Keys of the smallest table that splits. Of smaller tables, too many would split once more than others, and their stripes and
/// records would take more of the memory.
const LEAST_KEYS: usize = 12_000;

/// The load near which small tables are refilled in place of a refusal: 0.94 to 0.99, with 26 to 3,328 buckets.
const REFILL_LOAD: f64 = 0.97;

const LEAST_SLOTS: f64 = 64.0;

/// From the smallest table to one of [`LEAST_KEYS`] there are 9 refills.
const MAX_REFILLS: u32 = 10;

/// Stripes take at most this fraction of the narrowest table, unless there are at most two.
const STRIPE_SHARE: u64 = 50;

/// The load near which tables split, because searches become long.
const SPLIT_LOAD: f64 = 0.92;

/// The load of tables that have not doubled yet, and of those that split only in place of a refusal.
pub(crate) const LAST_LOAD: f64 = 0.96;

/// Returns the widths, as of a filter of fixed size, that may be requested for a growing filter with tags of `tag_bits`.
pub(crate) fn growing_fingerprint_bits(tag_bits: u32) -> RangeInclusive<u32> {
    let widest_slot = if tag_bits <= 1 { MAX_BITS } else { *FINGERPRINT_BITS.end() };
    MIN_CORE + 1..=widest_slot - tag_bits
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Accuracy {
    Rate(f64),
    /// Bits of a fingerprint in a filter of fixed size.
    Bits(u32),
}

/// The keys of a table of a growing filter, and the bits that it stores of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    /// The first of its cells in the directory: shard, and below it the common bits of the reserve.
    pub(crate) first_cell: usize,
    /// The number of doublings, before and after the table was created, and of common bits of the reserve.
    pub(crate) depth: u32,
    /// The number of these bits, the uppermost ones, that the table does not store: those that had selected it when it was created,
    /// or with tags fewer ([`Plan::dropped_after`]).
    pub(crate) dropped: u32,
}

/// A table after its next doubling, as seen by one of its classes: whether the doubling will make room for it.
#[derive(Clone, Copy)]
pub(crate) struct Doubled {
    alternates: Alternates,
    bit: u32,
    refills: bool,
}

impl Doubled {
    pub(crate) fn of(plan: &Plan, extent: &Extent) -> Self {
        let refills = extent.depth < plan.extension_bits;
        let after = Extent { depth: extent.depth + 1, ..*extent };
        Doubled {
            alternates: Alternates::new(&plan.leaf(if refills { &after } else { extent })),
            bit: plan.fingerprint_bits - extent.depth - 1,
            refills,
        }
    }

    /// Returns whether a fingerprint in this bucket moves to the upper of two buckets, or to the new one of two tables.
    fn goes(&self, fingerprint: u32, bucket: Bucket) -> bool {
        let apart = self.refills && self.alternates.is_apart_in_last(fingerprint, bucket);
        (fingerprint >> self.bit & 1 == 1) ^ apart
    }

    pub(crate) fn buckets(&self, class: Class) -> [Bucket; 2] {
        [class.first, class.second].map(|bucket| match self.refills {
            true => Bucket::new(bucket.get() << 1 | u32::from(self.goes(class.fingerprint.get(), bucket))),
            false => bucket,
        })
    }

    /// Returns the future contents of a bucket in the table of this class. `now` returns the present contents of a bucket.
    pub(crate) fn contents(
        &self,
        class: Class,
        bucket: Bucket,
        now: impl FnOnce(Bucket) -> [u32; SLOTS],
    ) -> [u32; SLOTS] {
        let (from, goes) = match self.refills {
            true => (Bucket::new(bucket.get() >> 1), bucket.get() & 1 == 1),
            false => (bucket, self.goes(class.fingerprint.get(), bucket)),
        };
        now(from).map(|fingerprint| if self.goes(fingerprint, from) == goes { fingerprint } else { 0 })
    }

    pub(crate) fn alternate(&self, fingerprint: Fingerprint, bucket: Bucket) -> Bucket {
        self.alternates.alternate(fingerprint, bucket)
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Ungrowable {
    RateTooLow { lowest: f64 },
    TooLarge { fingerprint_bits: u32 },
}

impl Plan {
    /// Plans a filter with room for `capacity` keys and with tags of `tag_bits`, which doubles until it holds `most` keys. One more
    /// doubling is reserved for the tables that are fuller than others by chance.
    pub(crate) fn growing(
        capacity: usize,
        most: usize,
        ask: Accuracy,
        stripes: Option<usize>,
        tag_bits: u32,
    ) -> Result<Self, Ungrowable> {
        let mut possible = growing_fingerprint_bits(tag_bits);
        let widest = *possible.end();
        let unbounded = Size::new(capacity, most, u32::MAX);
        let size_for =
            |bits: u32| unbounded.within(widest - bits).unwrap_or_else(|| Size::new(capacity, most, widest - bits));
        let bits = match ask {
            Accuracy::Bits(bits) => bits,
            Accuracy::Rate(rate) => {
                let rate_of = |bits: u32| expected_false_positive_rate(size_for(bits).last_load, bits - 1);
                let bits = possible.find(|&bits| rate_of(bits) <= rate);
                bits.ok_or(Ungrowable::RateTooLow { lowest: rate_of(widest) })?
            }
        };
        let too_large = Ungrowable::TooLarge { fingerprint_bits: bits };
        Plan::new(most, bits, None).ok_or(too_large)?;
        let size = size_for(bits);
        let reserve_bits = size.refills + size.splits + 1;
        let fingerprint_bits = bits - 1 + reserve_bits;
        let slot_bits = Plan::slot_bits_for(fingerprint_bits, tag_bits).ok_or(too_large)?;
        let plan = Plan::with_buckets(size.shards, size.buckets, slot_bits, stripes, at_last_load(size.keys));
        let plan = plan.ok_or(too_large)?;
        let plan = Plan { fingerprint_bits, tag_bits, reserve_bits, extension_bits: size.refills, ..plan };
        let narrowest = u64::from(plan.leaf(&plan.extent_after(plan.reserve_bits, 0)).words) * size_of::<u64>() as u64;
        let affordable = (narrowest / STRIPE_SHARE / STRIPE_BYTES).max(2) as u32;
        Ok(if stripes.is_none() && plan.stripes > affordable { plan.with_stripes(affordable) } else { plan })
    }

    pub(crate) fn core_bits(&self) -> u32 {
        self.fingerprint_bits - self.reserve_bits
    }

    /// Returns the bits of a fingerprint that users see: in a growing filter, those of a filter of its largest size.
    pub(crate) fn told_bits(&self) -> u32 {
        self.core_bits() + u32::from(self.grows())
    }

    pub(crate) fn grows(&self) -> bool {
        self.reserve_bits > 0
    }

    /// Returns the plan of a growing filter with this reserve, whose uppermost bits extend buckets, or the field that prevents it.
    pub(crate) fn with_reserve(self, bits: u32, extension_bits: u32) -> Result<Self, (&'static str, u32)> {
        let core = self.fingerprint_bits.saturating_sub(bits);
        let cell_bits = bits.saturating_sub(extension_bits);
        let is_reserve = core >= MIN_CORE && (1..=MAX_DOUBLINGS + 1).contains(&cell_bits);
        let checks = [
            (self.fingerprint_bits <= MAX_BITS, "bits of a fingerprint", self.fingerprint_bits),
            (self.slot_bits != UNGROWABLE_BITS, "bits of a slot", self.slot_bits),
            (self.extends(extension_bits), "bits that extend buckets", extension_bits),
            (is_reserve, "bits of the reserve", bits),
        ];
        match checks.into_iter().find(|&(is_possible, ..)| !is_possible) {
            Some((_, field, found)) => Err((field, found)),
            None => Ok(Plan { reserve_bits: bits, extension_bits, ..self }),
        }
    }

    /// Returns whether the numbers of buckets may contain this many bits of an extension.
    fn extends(&self, extension_bits: u32) -> bool {
        let bases = self.buckets.checked_shr(extension_bits).unwrap_or(0);
        let are_whole = bases >= 2 && bases.is_multiple_of(2) && bases << extension_bits == self.buckets;
        extension_bits == 0 || self.shards == 1 && are_whole
    }

    /// Returns the number of cells of a table after this many doublings.
    pub(crate) fn cells_at(&self, depth: u32) -> usize {
        1 << (self.reserve_bits - depth.max(self.extension_bits))
    }

    pub(crate) fn level(&self, extent: &Extent) -> u32 {
        extent.depth.min(self.extension_bits)
    }

    /// Returns the number of tables after this many doublings of all of them.
    pub(crate) fn tables_at(&self, doublings: u32) -> usize {
        self.shards << doublings.saturating_sub(self.extension_bits)
    }

    /// Returns the bits that the whole fingerprints of a table have in common, independent of their buckets: the stored bits, and
    /// those that are not stored.
    pub(crate) fn known(&self, extent: &Extent) -> [u32; 2] {
        let reserve = extent.first_cell & (self.cells_at(0) - 1);
        let known = (reserve as u64) << self.core_bits();
        let (known, stored) = (known as u32, mask(self.fingerprint_bits - extent.dropped));
        [known & stored, known & !stored]
    }

    /// Returns the mask of the bits of a slot, without its tag, that all fingerprints of a table have in common: stored bits, and bits
    /// above them that are 0.
    pub(crate) fn known_mask(&self, extent: &Extent) -> u32 {
        let after_refills = mask(self.fingerprint_bits - self.extension_bits);
        let stored = mask(self.fingerprint_bits - extent.dropped);
        let above = mask(self.leaf(extent).slot_bits - self.tag_bits) & !stored;
        above | stored & after_refills & !mask(self.fingerprint_bits - extent.depth)
    }

    /// Returns the mask of the stored bits that the extension of a bucket determines.
    pub(crate) fn extension_mask(&self, extent: &Extent) -> u32 {
        mask(self.fingerprint_bits - extent.dropped) & !mask(self.fingerprint_bits - self.level(extent))
    }

    /// Returns the number of bits of the reserve that a table created after this many doublings does not store: as many as leave
    /// each tag in one word of slots without unused bits, or none.
    pub(crate) fn dropped_after(&self, doublings: u32) -> u32 {
        let fits = |dropped: &u32| self.tag_bits <= Tags::most_bits(self.fingerprint_bits + self.tag_bits - dropped);
        (0..=doublings).rev().find(fits).unwrap_or(0)
    }

    pub(crate) fn leaf(&self, extent: &Extent) -> Plan {
        let (level, Plan { tag_bits, count_bits, .. }) = (self.level(extent), *self);
        let buckets = self.buckets >> (self.extension_bits - level);
        let fingerprint_bits = self.fingerprint_bits - extent.dropped;
        let slot_bits = if extent.dropped == 0 { self.slot_bits } else { fingerprint_bits + tag_bits };
        let leaf = Plan::of(1, buckets, fingerprint_bits, slot_bits, self.stripe_shift);
        Plan { tag_bits, count_bits, reserve_bits: self.reserve_bits - extent.dropped, extension_bits: level, ..leaf }
    }

    /// Whether the slots of every table have a width that is a multiple of 4 bits, because a tag of 3 bits or more lies in one word
    /// ([`Tags::most_bits`]).
    pub(crate) fn has_slots_of_fours(&self) -> bool {
        self.tag_bits > 2
    }

    pub(crate) fn extent_after(&self, doublings: u32, first_cell: usize) -> Extent {
        Extent { first_cell, depth: doublings, dropped: self.dropped_after(doublings) }
    }

    /// Returns the number of keys beyond which most tables have more doublings than these.
    pub(crate) fn keys_at(&self, doublings: u32) -> f64 {
        let slots = self.first_slots() as f64 * 2f64.powi(doublings as i32);
        if doublings < self.extension_bits {
            return slots * REFILL_LOAD;
        }
        let load =
            if (self.extension_bits + 1..self.reserve_bits - 1).contains(&doublings) { SPLIT_LOAD } else { LAST_LOAD };
        slots * load
    }

    pub(crate) fn doublings_for(&self, keys: usize) -> u32 {
        (0..self.reserve_bits).find(|&doublings| keys as f64 <= self.keys_at(doublings)).unwrap_or(self.reserve_bits)
    }
}

fn mask(bits: u32) -> u32 {
    u32::MAX >> (u32::BITS - bits)
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Size {
    /// Keys of all tables after the last refill.
    keys: usize,
    shards: u64,
    /// Buckets of a shard after the last refill.
    buckets: u64,
    refills: u32,
    splits: u32,
    /// The load of the largest number of keys after all doublings, the reserved one included.
    last_load: f64,
}

impl Size {
    /// Computes backwards from the requested end, so the initial size is up to twice the requested one. Doublings of tables of
    /// [`LEAST_KEYS`] and more are splits.
    fn new(capacity: usize, most: usize, spare_bits: u32) -> Size {
        let possible = MAX_DOUBLINGS.min(spare_bits).min(most.max(1).ilog2());
        let least = capacity.max(LEAST_KEYS.min(most));
        let begins_with = |doublings: u32| most.div_ceil(1 << doublings);
        let splits = (0..=possible).rev().find(|&doublings| begins_with(doublings) >= least).unwrap_or(0);
        let keys = least.max(begins_with(splits));
        let (shards, buckets) = buckets_for(at_last_load(keys));
        // Slots for the initial capacity before the first refill.
        let slots = (capacity as f64 / REFILL_LOAD).max(LEAST_SLOTS);
        let after = |refills: u32| (buckets * SLOTS as u64) as f64 / 2f64.powi(refills as i32);
        let refilled = |refills: u32| {
            let bases = (after(refills).max(slots) / SLOTS as f64).ceil() as u64;
            let buckets = bases.next_multiple_of(2) << refills;
            (shards == 1 && after(refills) >= 0.95 * slots && buckets <= SHARD_BUCKETS).then_some((refills, buckets))
        };
        let (refills, buckets) =
            (1..=MAX_REFILLS.min(spare_bits - splits)).rev().find_map(refilled).unwrap_or((0, buckets));
        let last_slots = shards as f64 * buckets as f64 * SLOTS as f64 * 2f64.powi(splits as i32 + 1);
        Size { keys, shards, buckets, refills, splits, last_load: most as f64 / last_slots }
    }

    /// Returns the size if its doublings take at most this many bits: then it is that of [`Size::new`] for these bits.
    fn within(self, spare_bits: u32) -> Option<Size> {
        (self.splits + self.refills <= spare_bits).then_some(self)
    }
}

/// Returns the capacity of a filter of fixed size whose table has this many keys at [`LAST_LOAD`]. Tables that get more keys than
/// others have a doubling in reserve.
fn at_last_load(keys: usize) -> usize {
    (LOAD * (keys as f64 / LAST_LOAD - spread(keys))).max(0.0) as usize
}

#[cfg(all(test, not(cuckoo_model)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_largest_size_holds_the_requested_keys(
            capacity in prop_oneof![0usize..100_000, 0usize..100_000_000],
            times in 1f64..20_000.0,
            exponent in 1f64..7.0,
        ) {
            let most = (capacity.max(1) as f64 * times) as usize;
            let rate = 10f64.powf(-exponent);
            let plan = Plan::growing(capacity, most, Accuracy::Rate(rate), None, 0).unwrap();
            prop_assert!(plan.fingerprint_bits <= MAX_BITS && plan.core_bits() >= MIN_CORE);
            // Before the reserved doubling.
            let load = most as f64 / (plan.first_slots() as f64 * 2f64.powi(plan.reserve_bits as i32 - 1));
            prop_assert!(load <= 0.965, "{load}");
            prop_assert!(expected_false_positive_rate(load / 2.0, plan.core_bits()) <= rate);
            prop_assert!(plan.first_slots() >= capacity);
            for doublings in 0..=plan.reserve_bits {
                let leaf = plan.leaf(&plan.extent_after(doublings, 0));
                prop_assert_eq!(leaf.core_bits(), plan.core_bits());
                prop_assert_eq!(leaf.fingerprint_bits, plan.fingerprint_bits - doublings);
                let refills_left = plan.extension_bits.saturating_sub(doublings);
                prop_assert_eq!(leaf.buckets << refills_left, plan.buckets);
                prop_assert!(leaf.stripes << leaf.stripe_shift >= leaf.buckets);
            }
        }

        /// A loader accepts each plan of the builder, and lookups read its tables at every level by the layout of the widest one.
        #[test]
        fn a_plan_with_any_tag_is_read_back_and_has_readable_widths(
            capacity in prop_oneof![1usize..10_000, 126_000usize..134_000],
            times in 1f64..20_000.0,
            spare_bits in 0u32..20,
            tag_bits in prop_oneof![0u32..4, 0u32..17],
        ) {
            let (possible, most) = (growing_fingerprint_bits(tag_bits), (capacity as f64 * times) as usize);
            let within = Size::new(capacity, most, u32::MAX).within(spare_bits);
            prop_assert!(within.is_none_or(|size| size == Size::new(capacity, most, spare_bits)), "{within:?}");
            let bits = possible.end() - spare_bits.min(possible.end() - possible.start());
            let plan = Plan::growing(capacity, most, Accuracy::Bits(bits), None, tag_bits);
            let Ok(plan) = plan else { return Ok(()) };
            let Plan { shards, buckets, fingerprint_bits, slot_bits, stripe_shift, .. } = plan;
            let read = Plan::from_parts(shards as u64, buckets, fingerprint_bits, slot_bits, stripe_shift).unwrap();
            let read = Plan { tag_bits, ..read };
            prop_assert_eq!(read.with_reserve(plan.reserve_bits, plan.extension_bits), Ok(plan));
            for doublings in 0..=plan.reserve_bits {
                let table = plan.leaf(&plan.extent_after(doublings, 0));
                prop_assert_ne!(table.slot_bits, UNGROWABLE_BITS);
                prop_assert_eq!(Plan::slot_bits_for(table.fingerprint_bits, tag_bits), Some(table.slot_bits));
                prop_assert_eq!(table.core_bits(), plan.core_bits());
            }
        }

        #[test]
        fn fingerprints_are_no_wider_than_those_of_a_filter_of_fixed_size(most in 30_000usize..100_000_000, exponent in 2f64..6.0) {
            let rate = 10f64.powf(-exponent);
            let plan = Plan::growing(0, most, Accuracy::Rate(rate), None, 0).unwrap();
            let fixed = Plan::new(most, super::super::plan::fingerprint_bits_for(most, rate).unwrap(), None).unwrap();
            prop_assert!(plan.core_bits() <= fixed.fingerprint_bits, "{plan:?} {fixed:?}");
        }
    }

    #[test]
    fn plans_of_known_sizes() {
        // Initial and largest capacity; bits of the core, splits, refills, shards, initial slots.
        for ((capacity, most), expected) in [
            ((1_000, 1_000), (12, 0, 0, 1, 1_056)),
            ((100, 100_000), (12, 3, 7, 1, 104)),
            ((1_000, 30_000), (12, 1, 3, 1, 1_960)),
            ((1_000, 1_000_000), (12, 6, 4, 1, 1_032)),
            ((1_000, 1_000_000_000), (12, 14, 3, 1, 7_952)),
            ((10_000, 10_000_000), (12, 9, 1, 1, 10_312)),
            // A refill would end above 2^16 buckets.
            ((130_000, 1_000_000), (12, 2, 0, 1, 260_432)),
            ((1_000_000, 16_000_000), (12, 4, 0, 4, 1_041_920)),
        ] {
            let plan = Plan::growing(capacity, most, Accuracy::Rate(0.001), None, 0).unwrap();
            let splits = plan.reserve_bits - plan.extension_bits - 1;
            let found = (plan.core_bits(), splits, plan.extension_bits, plan.shards, plan.first_slots());
            assert_eq!(found, expected, "{capacity} to {most}: {plan:?}");
        }
        // No doubling for a growth by at most one key.
        for (capacity, most) in [(0, 0), (0, 1), (1, 1), (2, 2)] {
            let plan = Plan::growing(capacity, most, Accuracy::Rate(0.001), None, 0).unwrap();
            assert_eq!((plan.reserve_bits, plan.shards), (1, 1), "{capacity} to {most}: {plan:?}");
        }
        let lowest = Plan::growing(1000, 1000, Accuracy::Rate(1e-12), None, 0).unwrap_err();
        assert!(matches!(lowest, Ungrowable::RateTooLow { lowest } if (5e-9..2e-8).contains(&lowest)), "{lowest:?}");
        assert!(matches!(Plan::growing(1, usize::MAX, Accuracy::Bits(8), None, 0), Err(Ungrowable::TooLarge { .. })));
    }

    #[test]
    fn doublings_follow_from_the_keys() {
        let plan = Plan::growing(1_000_000, 16_000_000, Accuracy::Rate(0.001), None, 0).unwrap();
        let slots = plan.slots() as f64;
        for (keys, doublings) in [(0.0, 0), (0.95, 0), (0.97, 1), (1.8, 1), (1.9, 2), (15.2, 4), (15.5, 5), (99.0, 5)] {
            assert_eq!(plan.doublings_for((keys * slots) as usize), doublings, "{keys} times the slots");
        }
    }
}
