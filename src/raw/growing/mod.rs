//! A filter that grows: tables of one shard each, and a directory that says which of them holds a key. A table that is
//! full is split: half of what it holds goes to a new one, which is one bit narrower for each doubling. A small one is
//! refilled: all of it goes to a new one of twice the size, and no cell names it any more (`layout/growth`).
//!
//! | operation                | locks                                 | file   |
//! |--------------------------|---------------------------------------|--------|
//! | lookup, of one or a block | none                                  | lookup, block |
//! | every writer             | as in a filter of fixed size, then it looks at the cell once more | write |
//! | split, refill            | all of the table, then all of the new one | split |
//! | bulk task                | all of a table, then it looks at the cell of each key once more | task |
//! | clear, copy              | all of a table, one after the other   | here, copy |
//!
//! A table is never moved, emptied for good or freed while the filter lives, so that a reader may follow what it has found
//! in the directory, however old that is. Why this is enough is argued case by case in docs/design/growth.md.

mod block;
mod copy;
#[cfg(all(test, cuckoo_loom))]
mod in_models;
mod leaf;
mod lookup;
mod split;
#[cfg(any(feature = "rayon", test))]
mod task;
mod write;

pub(crate) use leaf::NewTable;
#[cfg(feature = "snapshot")]
pub(crate) use leaf::layout_of;

use super::block::Next;
use super::lookup::Contains;
use super::shard::Shard;
use super::shards::Shards;
use super::slots::{Bare, SlotKind};
use super::stripe::STRIPE_BYTES;
use super::writers::Writers;
use crate::layout::{Bucket, CellPlace, Class, Geometry, Mixed, Plan};
use crate::sys::directory::{Directory, Member};
use crate::sys::isa::Compiled;
use crate::sys::memory::{Arena, Buffer, HugePages};
use crate::sys::prefetch::CacheLevel;
use crate::sys::sync::{AtomicU64, SharedCounter};
use leaf::Leaf;

#[repr(C)]
pub(crate) struct Growing<K: SlotKind = Bare> {
    /// First, as in `Flat`.
    contains: Compiled<Contains<Growing<K>>>,
    pub(super) geometry: Geometry,
    directory: Directory<Leaf>,
    pub(super) kind: K,
    pub(super) writers: Writers<Growing<K>>,
    pub(super) plan: Plan,
    /// Tables that there were when it was built, or loaded, and how often they had been refilled.
    begun_with: usize,
    begun_at: u32,
    /// Where tables have their memory.
    arena: Arena,
    clears: SharedCounter,
    refills: SharedCounter,
    splits: SharedCounter,
    nanos_in_splits: SharedCounter,
}

/// From this many bytes on, all memory that a filter begins with is tried at once.
const LARGE: usize = 1 << 30;

/// How far a filter has grown.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Grown {
    pub(crate) tables: usize,
    /// How often the tables that doubled most have doubled.
    pub(crate) doublings: u32,
    pub(crate) splits: u64,
    pub(crate) nanos_in_splits: u64,
}

impl<K: SlotKind> Growing<K> {
    /// An empty filter. `None` when there is no memory.
    pub(super) fn new(plan: &Plan, huge_pages: HugePages) -> Option<Self> {
        // A size that the system refuses as a whole is refused before the records of its tables take memory.
        let bytes = Self::bytes_of(plan, 0)?;
        if bytes >= LARGE {
            drop(Buffer::<AtomicU64>::new(bytes / size_of::<u64>(), HugePages::Unadvised)?);
        }
        let (arena, mut tables) = (Arena::new(huge_pages), Vec::new());
        tables.try_reserve_exact(plan.shards).ok()?;
        for shard in 0..plan.shards {
            tables.push(NewTable::new(plan, &plan.extent_after(0, shard * plan.cells_at(0)), &arena)?);
        }
        Self::of_tables(plan, tables, arena)
    }

    /// Of tables of which each holds what no other one does, and all together everything, and the arena that they are in.
    /// `None` when there is no memory.
    pub(super) fn of_tables(plan: &Plan, mut tables: Vec<NewTable>, arena: Arena) -> Option<Self> {
        tables.sort_unstable_by_key(|table| table.0.first_cell);
        // Cells are read without asking whether they are there.
        let cells = tables.iter().fold(0, |cell, NewTable(leaf)| {
            assert_eq!(leaf.first_cell, cell, "tables side by side");
            cell + plan.cells_at(leaf.doublings())
        });
        assert_eq!(cells, plan.shards * plan.cells_at(0), "tables for every cell");
        let begun_with = tables.len();
        let begun_at = tables.first().map_or(0, |NewTable(leaf)| leaf.doublings().min(plan.extension_bits));
        let leaves = tables.into_iter().map(|table| table.0).collect();
        Some(Growing {
            geometry: Geometry::new(plan),
            directory: Directory::new(leaves, |leaf| plan.cells_at(leaf.doublings()))?,
            kind: K::new(plan),
            contains: lookup::contains_in(plan),
            writers: Writers::new(),
            plan: *plan,
            begun_with,
            begun_at,
            arena,
            clears: SharedCounter::default(),
            refills: SharedCounter::default(),
            splits: SharedCounter::default(),
            nanos_in_splits: SharedCounter::default(),
        })
    }

    /// The memory behind a filter of which all tables have doubled so often, in bytes.
    pub(super) fn bytes_of(plan: &Plan, doublings: u32) -> Option<usize> {
        let table = |doublings| {
            Shards::bytes_of(&plan.leaf(&plan.extent_after(doublings, 0)))?.checked_add(Directory::<Leaf>::ENTRY_BYTES)
        };
        let mut bytes = Directory::<Leaf>::bytes_of(plan.shards.checked_mul(plan.cells_at(0))?)?;
        bytes = bytes.checked_add(plan.shards.checked_mul(table(0)?)?)?;
        for doublings in 1..=doublings {
            // A refill makes one table of one, a split two of one.
            let made = plan.tables_at(doublings - 1);
            bytes = bytes.checked_add(made.checked_mul(table(doublings)?)?)?;
        }
        isize::try_from(bytes).is_ok().then_some(bytes)
    }

    /// Memory behind this value, in bytes.
    pub(super) fn heap_bytes(&self) -> usize {
        let tables: usize =
            self.directory.each().map(|leaf| leaf.shards.heap_bytes() + Directory::<Leaf>::ENTRY_BYTES).sum();
        let cells = Directory::<Leaf>::bytes_of(self.cells()).unwrap_or(usize::MAX);
        tables + cells
    }

    /// Slots of today.
    pub(super) fn slots(&self) -> usize {
        (self.plan.slots() >> self.refills_left()) / self.plan.shards * self.tables()
    }

    /// Memory of all words, in bytes, within a few of them.
    pub(crate) fn table_bytes(&self) -> usize {
        self.tables() * (self.plan.words >> self.refills_left()) * size_of::<u64>()
    }

    fn refills_left(&self) -> u32 {
        self.plan.extension_bits.saturating_sub(self.begun_at + self.refills.get() as u32)
    }

    pub(crate) fn tables(&self) -> usize {
        self.begun_with + self.splits.get() as usize
    }

    pub(crate) fn plan(&self) -> &Plan {
        &self.plan
    }

    pub(super) fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    pub(crate) fn cells(&self) -> usize {
        self.plan.shards * self.plan.cells_at(0)
    }

    #[inline(always)]
    pub(crate) fn cell_place(&self, mixed: Mixed) -> CellPlace {
        self.geometry.cell_place(mixed)
    }

    /// The table of a key, and the class that it is there. A table may be split at any time: what follows is checked under
    /// its locks, or behind the reads of a lookup.
    #[inline(always)]
    fn owner(&self, place: CellPlace) -> (Member<'_, Leaf>, Class) {
        let leaf = self.directory.at(place.cell);
        (leaf, leaf.class(place.class))
    }

    /// A table, as a shard with slots of this kind.
    #[inline(always)]
    fn shard<'a>(&'a self, leaf: Member<'a, Leaf>) -> Shard<'a, K::Slots<'a>> {
        leaf.get().shards.at(0, self.kind.slots())
    }

    /// The tables, from the oldest on; those that are added while the last one is worked on come, too.
    pub(super) fn each(&self) -> impl Iterator<Item = Shard<'_, K::Slots<'_>>> {
        self.directory.each().map(|leaf| self.shard(leaf))
    }

    #[inline]
    pub(super) fn contains(&self, mixed: Mixed) -> bool {
        self.contains.call(self, mixed)
    }

    pub(super) fn contains_each(&self, next: Next<'_>, found: &mut [bool]) {
        block::contains_each_in(self, next, found);
    }

    /// The oldest table, which is the only one before the first split.
    #[cfg(test)]
    pub(crate) fn first_table(&self) -> Shard<'_> {
        self.directory.each().next().expect("a table").get().shard()
    }

    /// Where the stripe of a bucket begins in any table, in bytes.
    #[inline(always)]
    fn stripe_offset(&self, bucket: Bucket) -> u64 {
        u64::from(bucket.get() >> self.plan.stripe_shift) * STRIPE_BYTES as u64
    }

    /// Begins to fetch all that a lookup reads, after the cell and the record of the table.
    #[inline]
    pub(crate) fn prefetch(&self, mixed: Mixed) {
        let (leaf, class) = self.owner(self.cell_place(mixed));
        self.shard(leaf).fetch_for_lookup(class);
    }

    /// Begins to fetch the buckets of a key.
    #[inline(always)]
    pub(crate) fn fetch(&self, place: CellPlace, level: CacheLevel) {
        let (leaf, class) = self.owner(place);
        leaf.shard().fetch(class, level);
    }

    /// Stored fingerprints. Each stripe is read at a moment of its own.
    ///
    /// A split changes none of the counts that are added up, so that none goes on while this adds changes the sum. From the
    /// newest table on: what a writer took away there had been added in an older one before (model
    /// len_during_an_insertion_a_split_*).
    pub(crate) fn len(&self) -> usize {
        let sum = self.directory.each_from_newest().map(|leaf| leaf.shard().stripes().sum()).fold(0, u64::wrapping_add);
        i64::try_from(sum).map_or(0, |sum| sum as usize).min(self.slots())
    }

    pub(crate) fn grown(&self) -> Grown {
        Grown {
            tables: self.tables(),
            doublings: self.directory.each().map(|leaf| leaf.doublings()).max().unwrap_or_default(),
            splits: self.splits.get(),
            nanos_in_splits: self.nanos_in_splits.get(),
        }
    }

    /// Removes everything that is there when the call begins.
    ///
    /// Each table keeps the largest number of the clears that emptied it, and one that is made by a split begins with that of
    /// the table that was split. So a clear empties what a class is stored in once, wherever it went meanwhile (models
    /// clear_during_a_split_*).
    pub(super) fn clear(&self) {
        let number = self.clears.add(1) + 1;
        self.directory.each().for_each(|leaf| leaf.clear(number));
    }
}
