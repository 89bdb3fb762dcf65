//! A table of a growing filter, and what is known of it.

use crate::layout::{Bucket, Class, Extent, Lanes, Plan, SLOTS, Tags};
use crate::raw::probe::BucketLayoutKind;
use crate::raw::shard::Shard;
use crate::raw::shards::Shards;
use crate::raw::slots::Bare;
use crate::raw::stripe::VersionRef;
use crate::sys::directory::New;
use crate::sys::memory::{Arena, Buffer, Source};
use crate::sys::sync::{AtomicU64, RelaxedCounter};

/// What lookups read first is in one cache line.
#[repr(C)]
pub(super) struct Leaf {
    pub(super) constants: LookupConstants,
    /// The table: one shard.
    pub(super) shards: Shards,
    /// The first of the cells that point to it: a split leaves it that, a refill none.
    pub(super) first_cell: usize,
    /// How often it doubled, before it was made and since. Changed with all of it locked, as all below.
    doublings: RelaxedCounter,
    /// What its counts say too little: what came from the table that was split, less what went to others. Wraps.
    pub(super) moved: RelaxedCounter,
    /// The last clear that emptied it.
    cleared: RelaxedCounter,
}

/// What a lookup needs of a table besides its memory.
#[derive(Clone, Copy)]
pub(super) struct LookupConstants {
    /// The lowest and the highest bit of each slot of a run.
    pub(super) low: u64,
    pub(super) high: u64,
    /// As [`Compare::minus`](crate::raw::slots::Compare::minus).
    pub(super) minus: u64,
    /// The bits of a fingerprint that are stored.
    mask: u32,
    pub(super) shape: TableShape,
}

/// How a table is read, in one number, which a block of lookups takes by one load.
#[derive(Clone, Copy)]
pub(super) struct TableShape(u16);

impl TableShape {
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
        (self.0 & 0xff).into()
    }

    /// How often the table will be refilled: by so many bits its buckets have shorter numbers than those of the last refill.
    #[inline(always)]
    pub(super) fn refills_left(self) -> u32 {
        (self.0 >> TableShape::REFILLS_AT & TableShape::REFILLS).into()
    }

    /// Whether buckets are two runs.
    #[inline(always)]
    pub(super) fn is_wide(self) -> bool {
        self.0 & TableShape::WIDE != 0
    }

    /// Whether bits of an extension are stored: until the table is refilled no more, and of slots with a tag, of which widths fall in
    /// steps, perhaps longer.
    #[inline(always)]
    pub(super) fn stores_extension(self) -> bool {
        self.0 & TableShape::EXTENDED != 0
    }

    /// Whether a function of its own reads the table: all are such at the beginning of much growth, and few at the end.
    #[inline(always)]
    pub(super) fn is_other(self) -> bool {
        self.0 & (TableShape::WIDE | TableShape::EXTENDED) != 0
    }

    /// Wide if one of the two is, and so on.
    #[inline(always)]
    pub(super) fn or(self, other: Self) -> Self {
        TableShape(self.0 | other.0)
    }
}

/// How the widest tables of a growing filter are read. Those that are made later have narrower slots: where the widest are two
/// runs, those of up to 64 bits a bucket are read as one, as [`BucketLayout::Narrow`](crate::raw::probe::BucketLayout::Narrow).
pub(crate) fn layout_of(plan: &Plan) -> BucketLayoutKind {
    match BucketLayoutKind::of(plan.slot_bits) {
        BucketLayoutKind::Word => BucketLayoutKind::of(plan.slot_bits - 1),
        layout => layout,
    }
}

impl LookupConstants {
    /// The number that a bucket has in this table.
    #[inline(always)]
    pub(super) fn bucket(&self, bucket: Bucket) -> Bucket {
        Bucket::new(bucket.get() >> self.shape.refills_left())
    }
}

impl Leaf {
    /// An empty table of the filter of this plan. `None` when there is no memory.
    pub(super) fn new(plan: &Plan, extent: &Extent, arena: &Arena) -> Option<Self> {
        let leaf = plan.leaf(extent);
        let lanes = Lanes::new(leaf.slot_bits);
        let leaf = Leaf {
            constants: LookupConstants {
                low: lanes.low(),
                high: lanes.high(),
                minus: if plan.tag_bits() > 0 { Tags::new(plan).minus(lanes.low()) } else { lanes.minus_low() },
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
        Some(leaf)
    }

    /// A hint, unless all of it is locked.
    pub(super) fn extent(&self, plan: &Plan) -> Extent {
        let dropped = plan.reserve_bits - self.shards.plan().reserve_bits;
        Extent { first_cell: self.first_cell, depth: self.doublings(), dropped }
    }

    /// The table, as far as the content of its slots does not matter.
    #[inline(always)]
    pub(super) fn shard(&self) -> Shard<'_> {
        self.shards.at(0, Bare)
    }

    #[inline(always)]
    pub(super) fn words(&self) -> &Buffer<AtomicU64> {
        &self.shards.words
    }

    /// The version of a stripe, by where that begins.
    #[inline(always)]
    pub(super) fn version(&self, stripe_offset: u64) -> VersionRef<'_> {
        self.shards.version(stripe_offset)
    }

    #[inline(always)]
    pub(super) fn mask(&self) -> u32 {
        self.constants.mask
    }

    /// The class of a key as it is in this table.
    #[inline(always)]
    pub(super) fn class(&self, class: Class) -> Class {
        let [first, second] = [class.first, class.second].map(|bucket| self.constants.bucket(bucket));
        Class { fingerprint: class.fingerprint.lower(self.mask()), first, second }
    }

    /// A hint, unless all of it is locked.
    pub(super) fn doublings(&self) -> u32 {
        self.doublings.get() as u32
    }

    /// Stored fingerprints: exact if all of it is locked.
    pub(super) fn load(&self) -> u64 {
        self.shard().stripes().total_and(self.moved.get())
    }

    /// Notes what a doubling does to this table and to the new one.
    pub(super) fn note_doubling(&self, child: &Leaf, moved: u64) {
        self.doublings.change(|doublings| doublings + 1);
        self.moved.change(|number| number.wrapping_sub(moved));
        child.moved.change(|_| moved);
        child.cleared.change(|_| self.cleared.get());
    }

    /// Removes everything, unless this clear or a later one has done so.
    pub(super) fn clear(&self, number: u64) {
        let change = self.shard().begin_change();
        let locked = self.shard().stripes().lock_all();
        if self.cleared.get() < number {
            self.shard().clear_locked(&locked);
            self.moved.change(|_| 0);
            self.cleared.change(|_| number);
        }
        change.end();
    }
}

/// A table of a filter that is yet to be.
pub(crate) struct NewTable(pub(super) New<Leaf>);

impl NewTable {
    /// An empty one. `None` when there is no memory.
    pub(crate) fn new(plan: &Plan, extent: &Extent, arena: &Arena) -> Option<Self> {
        New::of(Leaf::new(plan, extent, arena)?).map(NewTable)
    }

    pub(crate) fn shard(&self) -> Shard<'_> {
        self.0.shard()
    }
}
