//! A table of a growing filter.

use crate::layout::{Bucket, Class, Extent, Lanes, Plan, SLOTS, Tags};
use crate::raw::probe::BucketLayoutKind;
use crate::raw::shard::Shard;
use crate::raw::shards::Shards;
use crate::raw::slots::{Bare, Slots};
use crate::sys::directory::New;
use crate::sys::memory::{Arena, Source};
use crate::sys::sync::RelaxedCounter;

/// The fields that lookups read are in the first cache line.
#[repr(C)]
pub(in crate::raw) struct Leaf {
    pub(super) constants: LookupConstants,
    /// The table, one shard.
    pub(super) shards: Shards,
    /// The first cell that points to it. A split leaves that cell to it, a refill does not.
    pub(super) first_cell: usize,
    /// The number of doublings so far. Changed under all locks of the table, like all fields below.
    doublings: RelaxedCounter,
    /// Added to the sum of its counts (wrapping): the number of slots that came with it, less those that went to other
    /// tables.
    pub(super) moved: RelaxedCounter,
    /// The last clear that emptied it.
    cleared: RelaxedCounter,
}

/// The numbers that a lookup needs beside the memory of a table.
#[derive(Clone, Copy)]
pub(super) struct LookupConstants {
    /// The lowest and the highest bit of each slot of a run.
    pub(super) low: u64,
    pub(super) high: u64,
    /// See [`Slots::minus`](crate::raw::slots::Slots::minus).
    pub(super) minus: u64,
    /// The stored bits of a fingerprint.
    pub(super) mask: u32,
    pub(super) shape: TableShape,
}

/// The format of a table in one number, which a block of lookups reads by one load.
#[derive(Clone, Copy)]
pub(super) struct TableShape(u16);

impl TableShape {
    const BUCKET_BITS: u16 = 0xff;
    const REFILLS_AT: u32 = 8;
    const REFILLS: u16 = 0xf;
    const WIDE: u16 = 1 << 14;
    const EXTENDED: u16 = 1 << 15;

    fn of(plan: &Plan, extent: &Extent) -> Self {
        let refills_left = (plan.extension_bits - plan.level(extent)) as u16;
        let bucket_bits = SLOTS as u32 * plan.leaf(extent).slot_bits;
        let flag = |is_set, flag| if is_set { flag } else { 0 };
        let wide = flag(bucket_bits > u64::BITS, TableShape::WIDE);
        let extended = flag(extent.dropped < plan.extension_bits, TableShape::EXTENDED);
        TableShape(bucket_bits as u16 | refills_left << TableShape::REFILLS_AT | wide | extended)
    }

    #[inline(always)]
    pub(super) fn bucket_bits(self) -> u32 {
        (self.0 & TableShape::BUCKET_BITS).into()
    }

    #[inline(always)]
    pub(super) fn slot_bits(self) -> u32 {
        self.bucket_bits() / SLOTS as u32
    }

    /// The pattern of a live slot with this fingerprint, of which this table may store a part, and the largest number by which one
    /// differs from it, in the highest bits (`sys/vector`).
    #[inline(always)]
    pub(super) fn sought<T: Slots>(self, fingerprint: u32, slots: T, moment: T::Moment) -> [u32; 2] {
        let slot = slots.pattern(1, fingerprint, moment);
        let beyond = slots.minus(1).wrapping_neg();
        let [pattern, beyond] = [slot, beyond].map(|number| (number as u32) << (32 - self.slot_bits()));
        [pattern, beyond - 1]
    }

    /// The number of refills to come: bucket numbers are shorter by as many bits than those after the last refill.
    #[inline(always)]
    pub(super) fn refills_left(self) -> u32 {
        (self.0 >> TableShape::REFILLS_AT & TableShape::REFILLS).into()
    }

    /// Whether buckets are two runs.
    #[inline(always)]
    pub(super) fn is_wide(self) -> bool {
        self.0 & TableShape::WIDE != 0
    }

    /// Whether bits of an extension are stored: until the last refill, and longer in slots with tags, whose widths fall
    /// in steps.
    #[inline(always)]
    pub(super) fn stores_extension(self) -> bool {
        self.0 & TableShape::EXTENDED != 0
    }

    /// Whether lookups use the function for unusual tables. All tables are such early in much growth, and few at its
    /// end. In all others, the number is that of the bits of a bucket: a table with refills to come stores an extension.
    #[inline(always)]
    pub(super) fn is_other(self) -> bool {
        self.0 > TableShape::BUCKET_BITS
    }

    /// The union of the flags of two shapes.
    #[inline(always)]
    pub(super) fn or(self, other: Self) -> Self {
        TableShape(self.0 | other.0)
    }
}

/// The layout of the widest tables of a growing filter. Later ones have narrower slots: buckets of up to 64 bits are
/// read as [`BucketLayout::Narrow`](crate::raw::probe::BucketLayout::Narrow).
pub(crate) fn layout_of(plan: &Plan) -> BucketLayoutKind {
    match BucketLayoutKind::of(plan.slot_bits) {
        BucketLayoutKind::Word => BucketLayoutKind::of(plan.slot_bits - 1),
        layout => layout,
    }
}

impl LookupConstants {
    /// The number of a bucket in this table.
    #[inline(always)]
    pub(super) fn bucket(&self, bucket: Bucket) -> Bucket {
        Bucket::new(bucket.get() >> self.shape.refills_left())
    }
}

impl Leaf {
    /// Returns an empty table of the filter of this plan, or `None` if allocation fails.
    pub(in crate::raw) fn new(plan: &Plan, extent: &Extent, arena: &Arena) -> Option<New<Self>> {
        let leaf = plan.leaf(extent);
        let lanes = Lanes::new(leaf.slot_bits);
        let leaf = Leaf {
            constants: LookupConstants {
                low: lanes.low,
                high: lanes.high,
                minus: if plan.tag_bits > 0 { Tags::new(plan).minus(lanes.low) } else { lanes.minus_low },
                mask: u32::MAX >> (u32::BITS - leaf.fingerprint_bits),
                shape: TableShape::of(plan, extent),
            },
            shards: Shards::new(&leaf, Source::Arena(arena))?,
            first_cell: extent.first_cell,
            doublings: RelaxedCounter::default(),
            moved: RelaxedCounter::default(),
            cleared: RelaxedCounter::default(),
        };
        leaf.doublings.change(|_| extent.depth.into());
        New::of(leaf)
    }

    /// A hint, unless the whole table is locked.
    pub(super) fn extent(&self, plan: &Plan) -> Extent {
        let dropped = plan.reserve_bits - self.shards.plan.reserve_bits;
        Extent { first_cell: self.first_cell, depth: self.doublings(), dropped }
    }

    /// The table, for operations that do not depend on the content of its slots.
    #[inline(always)]
    pub(in crate::raw) fn shard(&self) -> Shard<'_> {
        self.shards.at(0, Bare)
    }

    /// The class of a key in this table.
    #[inline(always)]
    pub(super) fn class(&self, class: Class) -> Class {
        let [first, second] = [class.first, class.second].map(|bucket| self.constants.bucket(bucket));
        Class { fingerprint: class.fingerprint.lower(self.constants.mask), first, second }
    }

    /// A hint, unless the whole table is locked.
    pub(super) fn doublings(&self) -> u32 {
        self.doublings.get() as u32
    }

    /// The number of fingerprints, which is exact while the whole table is locked.
    pub(super) fn load(&self) -> u64 {
        self.shard().stripes().total_and(self.moved.get())
    }

    /// Notes a doubling in this table and the new one.
    pub(super) fn note_doubling(&self, child: &Leaf, moved: u64) {
        self.doublings.change(|doublings| doublings + 1);
        self.moved.change(|number| number.wrapping_sub(moved));
        child.moved.change(|_| moved);
        child.cleared.change(|_| self.cleared.get());
    }

    /// Removes everything, unless this clear or a later one has done so.
    pub(super) fn clear(&self, number: u64) {
        self.shard().change(|| {
            let locked = self.shard().stripes().lock_all();
            if self.cleared.get() < number {
                self.shard().clear_locked(&locked);
                self.moved.change(|_| 0);
                self.cleared.change(|_| number);
            }
        });
    }
}
