//! A filter that grows: tables of one shard each, and a directory whose cells point to them. A full table is split:
//! half of its classes move to a new one, one bit narrower per doubling. A small table is refilled: all of its classes
//! move to one of twice the size, and no cell points to it any longer (`layout/growth`).
//!
//! | operation                 | locks                                                          | file          |
//! |---------------------------|----------------------------------------------------------------|---------------|
//! | lookup, of one or a block | none                                                           | lookup, block |
//! | writers                   | as in a filter of fixed size; then the cell is read again      | write         |
//! | split, refill             | all of the table, then all of the new one                      | split         |
//! | bulk task                 | all of a table; then the cell of each key is read again        | task          |
//! | clear, copy               | all of a table, one table after the other                      | here          |
//!
//! No table is moved or freed while the filter lives, so a reader may follow a pointer of any age.
//! docs/design/growth.md proves case by case that this is enough.

mod block;
mod leaf;
mod lookup;
#[cfg(all(test, cuckoo_loom))]
#[path = "../../../loom-tests/single_steps.rs"]
mod single_steps;
mod split;
#[cfg(any(feature = "rayon", test))]
mod task;
mod write;

pub(in crate::raw) use leaf::Leaf;
#[cfg(feature = "snapshot")]
pub(crate) use leaf::layout_of;

use super::block::Next;
use super::copy::TableCopy;
use super::lookup::Contains;
use super::shard::Shard;
use super::shards::Shards;
use super::slots::{Bare, SlotKind, Slots};
use super::stripe::STRIPE_BYTES;
use crate::layout::{Bucket, CellPlace, Class, Extent, Geometry, Mixed, Plan};
use crate::sys::directory::{Directory, Member, New};
use crate::sys::memory::{Arena, Buffer, HugePages};
use crate::sys::prefetch::CacheLevel;
use crate::sys::sync::{AtomicU64, RelaxedCounter};
use core::ops::Range;

#[repr(C)]
pub(crate) struct Growing<K: SlotKind = Bare> {
    /// The first field, like in `Flat`.
    pub(super) contains: Contains<Growing<K>>,
    pub(super) geometry: Geometry,
    directory: Directory<Leaf>,
    pub(super) kind: K,
    pub(crate) plan: Plan,
    /// The number of tables when the filter was built or loaded.
    begun_with: usize,
    /// The memory of tables.
    arena: Arena,
    clears: RelaxedCounter,
    pub(crate) splits: RelaxedCounter,
    pub(crate) nanos_in_splits: RelaxedCounter,
}

/// From this number of bytes on, the initial memory is allocated at once as a trial.
const LARGE: usize = 1 << 30;

impl<K: SlotKind> Growing<K> {
    /// Returns an empty filter, or `None` if allocation fails.
    pub(super) fn new(plan: &Plan, huge_pages: HugePages) -> Option<Self> {
        // A size that the system refuses as a whole fails before the records of tables take memory.
        let bytes = Self::bytes_of(plan, 0)?;
        if bytes >= LARGE {
            drop(Buffer::<AtomicU64>::new(bytes / size_of::<u64>(), HugePages::Unadvised)?);
        }
        let (arena, mut tables) = (Arena::new(huge_pages), Vec::new());
        tables.try_reserve_exact(plan.shards).ok()?;
        for shard in 0..plan.shards {
            tables.push(Leaf::new(plan, &plan.extent_after(0, shard * plan.cells_at(0)), &arena)?);
        }
        Self::of_tables(plan, tables, arena)
    }

    /// A filter of tables that together hold every cell once, in this arena. Returns `None` if allocation fails.
    pub(super) fn of_tables(plan: &Plan, mut tables: Vec<New<Leaf>>, arena: Arena) -> Option<Self> {
        tables.sort_unstable_by_key(|leaf| leaf.first_cell);
        // Cells are read without a check that they are there.
        let cells = tables.iter().fold(0, |cell, leaf| {
            assert_eq!(leaf.first_cell, cell, "tables side by side");
            cell + plan.cells_at(leaf.doublings())
        });
        assert_eq!(cells, plan.shards * plan.cells_at(0), "tables for every cell");
        let begun_with = tables.len();
        Some(Growing {
            geometry: Geometry::new(plan),
            directory: Directory::new(tables, |leaf| plan.cells_at(leaf.doublings()))?,
            kind: K::new(plan),
            contains: lookup::contains_in(plan),
            plan: *plan,
            begun_with,
            arena,
            clears: RelaxedCounter::default(),
            splits: RelaxedCounter::default(),
            nanos_in_splits: RelaxedCounter::default(),
        })
    }

    /// The memory of a filter after this number of doublings of all tables, in bytes.
    pub(super) fn bytes_of(plan: &Plan, doublings: u32) -> Option<usize> {
        let table = |doublings| {
            Shards::bytes_of(&plan.leaf(&plan.extent_after(doublings, 0)))?.checked_add(Directory::<Leaf>::ENTRY_BYTES)
        };
        let mut bytes = Directory::<Leaf>::bytes_of(plan.shards.checked_mul(plan.cells_at(0))?)?;
        bytes = bytes.checked_add(plan.shards.checked_mul(table(0)?)?)?;
        for doublings in 1..=doublings {
            // A refill makes one table from one, a split two.
            let made = plan.tables_at(doublings - 1);
            bytes = bytes.checked_add(made.checked_mul(table(doublings)?)?)?;
        }
        isize::try_from(bytes).is_ok().then_some(bytes)
    }

    pub(super) fn heap_bytes(&self) -> usize {
        let tables: usize =
            self.directory.each().map(|leaf| leaf.shards.heap_bytes() + Directory::<Leaf>::ENTRY_BYTES).sum();
        let cells = Directory::<Leaf>::bytes_of(self.cells()).unwrap_or(usize::MAX);
        tables + cells
    }

    pub(super) fn slots(&self) -> usize {
        (self.plan.slots() >> self.refills_left()) / self.plan.shards * self.tables()
    }

    /// The memory of all words in bytes, up to a few words.
    pub(crate) fn word_bytes(&self) -> usize {
        self.tables() * (self.plan.words as usize >> self.refills_left()) * size_of::<u64>()
    }

    /// The number of refills to come. Until the last one, the newest table is the only one that cells point to.
    fn refills_left(&self) -> u32 {
        let newest = self.directory.each_from_newest().next();
        self.plan.extension_bits.saturating_sub(newest.map_or(0, |leaf| leaf.doublings()))
    }

    pub(crate) fn tables(&self) -> usize {
        self.begun_with + self.splits.get() as usize
    }

    pub(crate) fn cells(&self) -> usize {
        self.plan.shards * self.plan.cells_at(0)
    }

    #[inline(always)]
    pub(crate) fn cell_place(&self, mixed: Mixed) -> CellPlace {
        self.geometry.cell_place(mixed)
    }

    /// The table of a key, and its class there. Since the table may be split at any time, the result is checked under
    /// its locks or behind the reads of a lookup.
    #[inline(always)]
    fn owner(&self, place: CellPlace) -> (Member<'_, Leaf>, Class) {
        let leaf = self.directory.at(place.cell);
        (leaf, leaf.class(place.class))
    }

    /// The present table of a key, and its class there.
    #[inline(always)]
    pub(super) fn locate(&self, mixed: Mixed) -> (Shard<'_, K::Slots<'_>>, Class) {
        let (leaf, class) = self.owner(self.cell_place(mixed));
        (self.shard(leaf), class)
    }

    #[inline(always)]
    fn shard<'a>(&'a self, leaf: Member<'a, Leaf>) -> Shard<'a, K::Slots<'a>> {
        leaf.get().shards.at(0, self.kind.slots())
    }

    /// All tables, the oldest first, including those added in the meantime.
    pub(super) fn each(&self) -> impl Iterator<Item = Shard<'_, K::Slots<'_>>> {
        self.directory.each().map(|leaf| self.shard(leaf))
    }

    /// Hints, unless there are no writers.
    pub(super) fn extents(&self) -> impl Iterator<Item = Extent> {
        self.directory.each().map(|leaf| leaf.extent(&self.plan))
    }

    pub(super) fn contains_each(&self, next: Next<'_>, found: &mut [bool]) {
        block::contains_each_in(self, next, found);
    }

    /// The byte at which the stripe of a bucket begins, in any table.
    #[inline(always)]
    fn stripe_offset(&self, bucket: Bucket) -> u64 {
        u64::from(bucket.get() >> self.plan.stripe_shift) * STRIPE_BYTES as u64
    }

    /// Prefetches the buckets of a key.
    #[inline(always)]
    pub(crate) fn fetch(&self, place: CellPlace) {
        let (leaf, class) = self.owner(place);
        leaf.shard().fetch(class, CacheLevel::L1);
    }

    /// The number of fingerprints. Stripes are read one after the other.
    ///
    /// A split does not change the sum of the counts. They are added from the newest table on: a key subtracted there
    /// was added in an older one before (model len_during_an_insertion_a_split_*).
    pub(crate) fn len(&self) -> usize {
        let sum = self.directory.each_from_newest().map(|leaf| leaf.shard().stripes().sum()).fold(0, u64::wrapping_add);
        i64::try_from(sum).map_or(0, |sum| sum as usize).min(self.slots())
    }

    /// Returns the largest number of doublings of a table.
    pub(crate) fn doublings(&self) -> u32 {
        self.directory.each().map(|leaf| leaf.doublings()).max().unwrap_or_default()
    }

    /// The number of fingerprints in these shards. Tables are counted one after the other.
    pub(crate) fn stored_in(&self, shards: Range<usize>) -> u64 {
        let leaves = self.directory.each_from_newest();
        let leaves = leaves.filter(|leaf| shards.contains(&(leaf.first_cell / self.plan.cells_at(0))));
        leaves.map(|leaf| leaf.load().min(leaf.shards.plan.slots() as u64)).sum()
    }

    /// Copies the table whose first cell is this one.
    ///
    /// A split leaves that cell to the table that is split, and a refill before the lock to the new table, which is
    /// copied instead. So of adjacent tables, each cell is copied once, while its table is locked as a whole (models
    /// copy_during_a_*). The number of its cells is read under these locks, like the rest of a [`TableCopy`].
    pub(in crate::raw) fn copy_table(&self, cell: usize, words: &mut [u64]) -> TableCopy {
        loop {
            let leaf = self.directory.at(cell);
            debug_assert_eq!(leaf.first_cell, cell);
            let locked = leaf.shard().stripes().lock_all();
            if !self.is_named(leaf) {
                continue;
            }
            let slots = self.kind.slots();
            let epoch = slots.number(slots.now());
            leaf.mend(&locked, &self.plan);
            let copied = leaf.shards.plan.words as usize;
            leaf.shard().bucket_array().copy_to(&locked, &mut words[..copied]);
            return TableCopy { extent: leaf.extent(&self.plan), count: leaf.load(), epoch };
        }
    }

    /// Removes everything that is present when the call begins.
    ///
    /// Each table keeps the largest number of the clears that emptied it, and a new table begins with that of its
    /// parent. So a clear empties each class once, wherever it moves in the meantime (models clear_during_a_split_*).
    pub(super) fn clear(&self) {
        let number = self.clears.add(1) + 1;
        self.directory.each().for_each(|leaf| leaf.clear(number));
    }
}
