//! A table of a growing filter, and what is known of it.

use crate::layout::{Class, Extent, Format, Lanes, Plan};
use crate::raw::filter::RawFilter;
use crate::raw::probe::LayoutKind;
use crate::raw::shard::Shard;
use crate::raw::stripe::{LockedAll, VersionRef};
use crate::sys::memory::{HugePages, Run};
use crate::sys::sync::{AtomicU64, RelaxedCounter};

pub(super) struct Leaf {
    pub(super) look: Look,
    /// The table: a filter of one shard.
    pub(super) raw: RawFilter,
    /// The first of the cells that point to it. A split leaves it that.
    pub(super) first_cell: usize,
    /// How often it doubled, before it was made and since. Changed with all of it locked, as all below.
    doublings: RelaxedCounter,
    /// What its counts say too little: what came from the table that was split, less what went to others. Wraps.
    moved: RelaxedCounter,
    /// The last clear that emptied it.
    cleared: RelaxedCounter,
}

/// What a lookup needs of a table besides its memory.
#[derive(Clone, Copy)]
pub(super) struct Look {
    /// The lowest and the highest bit of each slot of a run.
    pub(super) low: u64,
    pub(super) high: u64,
    /// Bits of a bucket, and of a run.
    pub(super) bucket_bits: u32,
    pub(super) run_bits: u32,
    stripe_shift: u32,
    /// The bits of a fingerprint that are stored.
    mask: u32,
}

/// How the tables of a growing filter are read: all of them in one way, for which table a key is in cannot be predicted.
pub(super) fn layout_of(plan: &Plan) -> LayoutKind {
    let format = Format::new(plan.slot_bits);
    match LayoutKind::of(&format) {
        LayoutKind::Word => LayoutKind::of(&Format::new(plan.slot_bits - 1)),
        layout => layout,
    }
}

impl Leaf {
    /// An empty table of the filter of this plan. `None` when there is no memory.
    pub(super) fn new(plan: &Plan, extent: &Extent, huge_pages: HugePages) -> Option<Self> {
        let leaf = plan.leaf(extent.made);
        // Where buckets are read as two runs, those of narrow slots are, too.
        let two_runs = matches!(layout_of(plan), LayoutKind::TwoBytes | LayoutKind::ThreeWords);
        let lanes = if two_runs { Lanes::of_two(leaf.slot_bits) } else { Lanes::new(leaf.slot_bits) };
        let leaf = Leaf {
            look: Look {
                low: lanes.low(),
                high: lanes.high(),
                bucket_bits: 4 * leaf.slot_bits,
                run_bits: 2 * leaf.slot_bits,
                stripe_shift: leaf.stripe_shift,
                mask: u32::MAX >> (u32::BITS - leaf.fingerprint_bits),
            },
            raw: RawFilter::new_table(&leaf, huge_pages)?,
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
        let made = plan.reserve_bits - self.raw.plan().reserve_bits;
        Extent { first_cell: self.first_cell, depth: self.doublings(), made }
    }

    #[inline(always)]
    pub(super) fn shard(&self) -> Shard<'_> {
        self.raw.shard(0)
    }

    #[inline(always)]
    pub(super) fn words(&self) -> &Run<AtomicU64> {
        &self.raw.words
    }

    /// The version that lookups of a class watch.
    #[inline(always)]
    pub(super) fn version(&self, class: Class) -> VersionRef<'_> {
        self.raw.stripes.at(class.first.index() >> self.look.stripe_shift).version()
    }

    #[inline(always)]
    pub(super) fn mask(&self) -> u32 {
        self.look.mask
    }

    /// A hint, unless all of it is locked.
    pub(super) fn doublings(&self) -> u32 {
        self.doublings.get() as u32
    }

    /// Stored fingerprints: exact if all of it is locked.
    pub(super) fn load(&self) -> u64 {
        self.shard().stripes().total_and(self.moved.get())
    }

    /// Notes what a split does to this table and to the one that is split off.
    pub(super) fn note_split(&self, child: &Leaf, moved: u64) {
        self.doublings.change(|doublings| doublings + 1);
        self.moved.change(|number| number.wrapping_sub(moved));
        child.moved.change(|_| moved);
        child.cleared.change(|_| self.cleared.get());
    }

    /// Makes the counts what there is, if a change was interrupted.
    pub(super) fn mend(&self, locked: &LockedAll<'_>, plan: &Plan) {
        if self.shard().stripes().interrupted().is_set() {
            self.clear_strangers(locked, plan);
        }
        locked.mend_counts(|| self.shard().occupied().map(|taken| taken.wrapping_sub(self.moved.get())));
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
