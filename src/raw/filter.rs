//! The whole filter as the core knows it: shards, or tables that split, and the functions that are chosen for the one or the
//! other.

use super::block::{ContainsEach, Next, contains_each_in};
use super::counters::Totals;
use super::growing::{self, Growing, Grown, NewTable};
use super::home::Fixed;
use super::lookup::{Contains, contains_in};
use super::pair::Admission;
use super::probe::LayoutKind;
use super::shards::Shards;
use super::writers::{InFixed, InGrowing, Insert, Remove};
use crate::error::InsertError;
use crate::layout::{Geometry, Mixed, Plan};
use crate::sys::isa::Compiled;
use crate::sys::memory::{Arena, HugePages};
use crate::sys::prefetch::level_for;
use core::panic::{RefUnwindSafe, UnwindSafe};

/// Tables up to this size are fetched into the nearest cache; the lines of larger ones come from memory, most of them.
const NEAR_TABLE: usize = 8 << 20;

#[repr(C)]
pub(crate) struct RawFilter {
    /// Those of a filter of fixed size; one that grows has tables, and none of these. First, so that a reference to the one is
    /// a reference to the other.
    pub(crate) shards: Shards,
    contains: Compiled<Contains<RawFilter>>,
    pub(super) contains_each: Compiled<ContainsEach<RawFilter>>,
    insert: Compiled<Insert<RawFilter>>,
    insert_unique: Compiled<Insert<RawFilter>>,
    remove: Compiled<Remove<RawFilter>>,
    growing: Option<Box<Growing>>,
}

// As `Shards`.
impl UnwindSafe for RawFilter {}
impl RefUnwindSafe for RawFilter {}

impl AsRef<Shards> for RawFilter {
    #[inline(always)]
    fn as_ref(&self) -> &Shards {
        &self.shards
    }
}

impl AsRef<Option<Box<Growing>>> for RawFilter {
    #[inline(always)]
    fn as_ref(&self) -> &Option<Box<Growing>> {
        &self.growing
    }
}

impl RawFilter {
    /// An empty filter. `None` when there is no memory.
    pub(crate) fn new(plan: &Plan, huge_pages: HugePages) -> Option<Self> {
        if plan.grows() {
            return Self::with(Growing::new(plan, huge_pages)?, plan);
        }
        let shards = Shards::new(plan, huge_pages.into())?;
        Some(RawFilter {
            contains: contains_in::<_, Shards>(plan),
            contains_each: contains_each_in::<_, Shards>(
                LayoutKind::of(plan.slot_bits),
                level_for(shards.table_bytes()),
            ),
            shards,
            insert: Compiled::for_scalars::<InFixed>(),
            insert_unique: Compiled::for_scalars::<InFixed<true>>(),
            remove: Compiled::for_scalars::<InFixed>(),
            growing: None,
        })
    }

    /// A filter that grows, of tables of which each holds what no other one does. `None` when there is no memory.
    pub(crate) fn of_tables(plan: &Plan, tables: Vec<NewTable>, arena: Arena) -> Option<Self> {
        Self::with(Growing::of_tables(plan, tables, arena)?, plan)
    }

    fn with(growing: Growing, plan: &Plan) -> Option<Self> {
        let mut none = *plan;
        none.shards = 0;
        Some(RawFilter {
            contains: growing::contains_in(plan),
            contains_each: growing::contains_each_in(plan),
            shards: Shards::new(&none, HugePages::Unadvised.into())?,
            insert: Compiled::for_scalars::<InGrowing>(),
            insert_unique: Compiled::for_scalars::<InGrowing<true>>(),
            remove: Compiled::for_scalars::<InGrowing>(),
            growing: Some(Box::new(growing)),
        })
    }

    /// The memory of a filter of this plan, in bytes; `None` if no address space holds it.
    pub(crate) fn bytes_of(plan: &Plan) -> Option<usize> {
        Self::bytes_at(plan, 0)
    }

    /// The same when all tables of a growing filter have doubled so often.
    pub(crate) fn bytes_at(plan: &Plan, doublings: u32) -> Option<usize> {
        if plan.grows() { Growing::bytes_of(plan, doublings) } else { Shards::bytes_of(plan) }
    }

    pub(crate) fn plan(&self) -> &Plan {
        self.growing().map_or(self.shards.plan(), |growing| &growing.plan)
    }

    pub(crate) fn geometry(&self) -> &Geometry {
        self.growing().map_or(self.shards.geometry(), |growing| &growing.geometry)
    }

    /// Memory behind this value, in bytes.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.growing().map_or_else(|| self.shards.heap_bytes(), Growing::heap_bytes)
    }

    /// The tables, if it grows.
    #[inline(always)]
    pub(crate) fn growing(&self) -> Option<&Growing> {
        self.growing.as_deref()
    }

    /// Does this in a filter that grows, away from where the others have their way.
    #[cold]
    #[inline(never)]
    fn in_growing<T>(&self, work: impl FnOnce(&Growing) -> T) -> T {
        work(self.growing().expect("asked before"))
    }

    /// Slots of today.
    pub(crate) fn slots(&self) -> usize {
        self.growing().map_or_else(|| self.plan().slots(), Growing::slots)
    }

    /// Memory of all words, in bytes.
    #[inline]
    pub(crate) fn table_bytes(&self) -> usize {
        self.growing().map_or_else(|| self.shards.table_bytes(), Growing::table_bytes)
    }

    /// Whether most of the table is in a core's own caches.
    #[inline]
    pub(crate) fn is_near(&self) -> bool {
        self.table_bytes() <= NEAR_TABLE
    }

    /// Whether the class of the key is present.
    #[inline]
    pub(crate) fn contains(&self, mixed: Mixed) -> bool {
        self.contains.call(self, mixed)
    }

    /// Says of each key whether its class is present.
    pub(crate) fn contains_each(&self, next: Next<'_>, found: &mut [bool]) {
        self.contains_each.call(self, (next, found));
    }

    /// Stores a copy of the class: `Ok(true)`. `Ok(false)` if it was to be unique and is present.
    #[inline]
    pub(crate) fn insert(&self, mixed: Mixed, admission: Admission) -> Result<bool, InsertError> {
        match admission {
            Admission::Copies => self.insert.call(self, mixed),
            Admission::Unique => self.insert_unique.call(self, mixed),
        }
    }

    pub(crate) fn count(&self, mixed: Mixed) -> usize {
        if self.growing.is_some() {
            return self.in_growing(|growing| growing.count(mixed));
        }
        let (shard, class) = self.shards.locate(mixed);
        let Ok(copies) = shard.count(Fixed, class);
        copies
    }

    pub(crate) fn remove(&self, mixed: Mixed) -> bool {
        self.remove.call(self, mixed)
    }

    pub(crate) fn remove_all(&self, mixed: Mixed) -> usize {
        if self.growing.is_some() {
            return self.in_growing(|growing| growing.remove_all(mixed));
        }
        let (shard, class) = self.shards.locate(mixed);
        let Ok(copies) = shard.remove_all(Fixed, class);
        copies
    }

    pub(crate) fn clear(&self) {
        self.growing().map_or_else(|| self.shards.clear(), Growing::clear);
    }

    /// Stored fingerprints. Each stripe is read at a moment of its own.
    pub(crate) fn len(&self) -> usize {
        self.growing().map_or_else(|| self.shards.len(), Growing::len)
    }

    /// Adds up what has happened in each stripe.
    pub(crate) fn totals(&self) -> Totals {
        self.growing().map_or_else(|| self.shards.totals(), Growing::totals)
    }

    /// How far it has grown.
    pub(crate) fn grown(&self) -> Grown {
        let fixed = || Grown { tables: self.plan().shards, doublings: 0, splits: 0, nanos_in_splits: 0 };
        self.growing().map_or_else(fixed, Growing::grown)
    }
}
