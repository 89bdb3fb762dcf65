//! The whole filter as the core knows it: one run of words, one run of stripes, and the numbers that find a place in
//! both. No record of a shard is read on the way.

use super::block::{ContainsEach, contains_each_in};
use super::counters::Totals;
use super::growing::{self, Growing, Grown, NewTable};
use super::home::Fixed;
use super::insert::Admission;
use super::lookup::{Contains, Strides, contains_in};
use super::poison::PoisonOnUnwind;
use super::probe::LayoutKind;
use super::shard::Shard;
use super::stripe::{STRIPE_BYTES, Stripe};
use super::writers::Writers;
use crate::error::InsertError;
use crate::layout::{Class, Format, Geometry, Mixed, Plan};
use crate::sys::isa::Compiled;
use crate::sys::memory::{Arena, HugePages, Run, Source};
use crate::sys::prefetch::level_for;
use crate::sys::sync::{AtomicU64, Flag};
use crate::sys::unaligned;
use core::panic::{RefUnwindSafe, UnwindSafe};
use crossbeam_utils::CachePadded;

/// Tables up to this size are fetched into the nearest cache; the lines of larger ones come from memory, most of them.
const NEAR_TABLE: usize = 8 << 20;

/// Words behind the last bucket, as many as a lookup may read there.
const SPARE: usize = if unaligned::AVAILABLE { 1 } else { 2 };

/// The shards of a filter, side by side. See [`Shard`]. Of a table of a growing filter, lookups read the first fields alone.
#[repr(C)]
pub(crate) struct RawFilter {
    /// Those of all shards, one after the other, and [`SPARE`] that stay zero: lookups read the word behind a bucket, too.
    pub(super) words: Run<AtomicU64>,
    pub(super) stripes: Run<CachePadded<Stripe>>,
    pub(super) geometry: Geometry,
    pub(super) layout: LayoutKind,
    pub(super) contains: Compiled<Contains<RawFilter>>,
    pub(super) contains_each: Compiled<ContainsEach>,
    writers: Writers,
    pub(super) strides: Strides,
    pub(super) format: Format,
    /// For each shard, whether a panic interrupted a change of it.
    pub(super) interrupted: Run<Flag>,
    /// The tables of a filter that grows, which has no words and stripes of its own.
    pub(super) growing: Option<Box<Growing>>,
    plan: Plan,
}

// No user code runs while a stripe is locked, so only a fault of this crate could leave a change half made. Even that
// loses no other key, and what it leaves is noted (`poison`).
impl UnwindSafe for RawFilter {}
impl RefUnwindSafe for RawFilter {}

impl RawFilter {
    /// What lookups may read behind the last bucket; all the words that a filter that grows has of its own.
    pub(super) const SPARE_BYTES: usize = SPARE * size_of::<u64>();

    /// An empty filter. `None` when there is no memory.
    pub(crate) fn new(plan: &Plan, huge_pages: HugePages) -> Option<Self> {
        if !plan.grows() {
            return Self::new_table(plan, huge_pages.into());
        }
        Self::with(Growing::new(plan, huge_pages)?, plan)
    }

    /// A filter that grows, of tables of which each holds what no other one does. `None` when there is no memory.
    pub(crate) fn of_tables(plan: &Plan, tables: Vec<NewTable>, arena: Arena) -> Option<Self> {
        Self::with(Growing::of_tables(plan, tables, arena)?, plan)
    }

    fn with(growing: Growing, plan: &Plan) -> Option<Self> {
        let mut none = *plan;
        none.shards = 0;
        let mut filter = Self::new_table(&none, HugePages::Unadvised.into())?;
        filter.contains = growing::contains_in(plan);
        filter.contains_each = growing::contains_each_in(plan);
        filter.writers = Writers::of_growing();
        filter.growing = Some(Box::new(growing));
        filter.geometry = Geometry::new(plan);
        filter.plan = *plan;
        Some(filter)
    }

    /// The words and stripes of this plan, whether or not they are those of a filter that grows.
    pub(super) fn new_table(plan: &Plan, source: Source<'_>) -> Option<Self> {
        let format = Format::new(plan.slot_bits);
        let layout = LayoutKind::of(&format);
        Some(RawFilter {
            geometry: Geometry::new(plan),
            layout,
            contains: contains_in(layout),
            contains_each: contains_each_in(layout, level_for(table_bytes(plan))),
            writers: Writers::of_fixed(),
            strides: Strides {
                bucket_bits: format.bucket_bits(),
                stripes: (plan.stripes * STRIPE_BYTES) as u64,
                stripe_shift: plan.stripe_shift,
            },
            format,
            words: Run::new(plan.shards.checked_mul(plan.words)?.checked_add(SPARE)?, source)?,
            stripes: Run::new(plan.shards.checked_mul(plan.stripes)?, source)?,
            interrupted: Run::new(plan.shards, source)?,
            growing: None,
            plan: *plan,
        })
    }

    /// The memory of a filter of this plan, in bytes; `None` if no address space holds it.
    pub(crate) fn bytes_of(plan: &Plan) -> Option<usize> {
        if plan.grows() {
            return Growing::bytes_of(plan, 0);
        }
        Self::bytes_of_table(plan)
    }

    /// The same when all tables of a growing filter have doubled so often.
    pub(crate) fn bytes_at(plan: &Plan, doublings: u32) -> Option<usize> {
        if plan.grows() { Growing::bytes_of(plan, doublings) } else { Self::bytes_of_table(plan) }
    }

    pub(super) fn bytes_of_table(plan: &Plan) -> Option<usize> {
        let words = Run::<AtomicU64>::bytes_of(plan.shards.checked_mul(plan.words)?.checked_add(SPARE)?)?;
        let stripes = Run::<CachePadded<Stripe>>::bytes_of(plan.shards.checked_mul(plan.stripes)?)?;
        let bytes = words.checked_add(stripes)?.checked_add(plan.shards * size_of::<Flag>())?;
        isize::try_from(bytes).is_ok().then_some(bytes)
    }

    pub(crate) fn plan(&self) -> &Plan {
        &self.plan
    }

    pub(crate) fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Memory behind this value, in bytes.
    pub(crate) fn heap_bytes(&self) -> usize {
        match &self.growing {
            Some(growing) => growing.heap_bytes(),
            None => Self::bytes_of_table(&self.plan).unwrap_or(usize::MAX),
        }
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

    /// The same, asked by what is chosen for such filters.
    #[inline(always)]
    pub(super) fn growing_tables(&self) -> &Growing {
        self.growing().expect("a filter that grows")
    }

    /// Slots of today.
    pub(crate) fn slots(&self) -> usize {
        self.growing().map_or(self.plan.slots(), |growing| self.plan.slots() / self.plan.shards * growing.tables())
    }

    /// Memory of all words, in bytes.
    #[inline]
    pub(crate) fn table_bytes(&self) -> usize {
        self.growing().map_or(table_bytes(&self.plan), Growing::table_bytes)
    }

    /// Whether most of the table is in a core's own caches.
    #[inline]
    pub(crate) fn is_near(&self) -> bool {
        self.table_bytes() <= NEAR_TABLE
    }

    /// A view of the shard with this number.
    #[inline(always)]
    pub(crate) fn shard(&self, number: usize) -> Shard<'_> {
        Shard::new(self, number)
    }

    /// Those of a filter of fixed size; one that grows has tables, and none of these.
    pub(crate) fn shards(&self) -> impl ExactSizeIterator<Item = Shard<'_>> {
        let shards = if self.growing.is_some() { 0 } else { self.plan.shards };
        (0..shards).map(|number| self.shard(number))
    }

    /// The shard of a key, and its place there.
    #[inline(always)]
    pub(crate) fn locate(&self, mixed: Mixed) -> (Shard<'_>, Class) {
        let (shard, class) = self.geometry.locate(mixed);
        (self.shard(shard), class)
    }

    /// Stores a copy of the class: `Ok(true)`. `Ok(false)` if it was to be unique and is present.
    #[inline]
    pub(crate) fn insert(&self, mixed: Mixed, admission: Admission) -> Result<bool, InsertError> {
        match admission {
            Admission::Copies => self.writers.insert.call(self, mixed),
            Admission::Unique => self.writers.insert_unique.call(self, mixed),
        }
    }

    pub(crate) fn count(&self, mixed: Mixed) -> usize {
        if self.growing.is_some() {
            return self.in_growing(|growing| growing.count(mixed));
        }
        let (shard, class) = self.locate(mixed);
        let Ok(copies) = shard.count(Fixed, class);
        copies
    }

    pub(crate) fn remove(&self, mixed: Mixed) -> bool {
        self.writers.remove.call(self, mixed)
    }

    pub(crate) fn remove_all(&self, mixed: Mixed) -> usize {
        if self.growing.is_some() {
            return self.in_growing(|growing| growing.remove_all(mixed));
        }
        let (shard, class) = self.locate(mixed);
        let Ok(copies) = shard.remove_all(Fixed, class);
        copies
    }

    pub(crate) fn clear(&self) {
        match self.growing() {
            Some(growing) => growing.clear(),
            None => self.shards().for_each(Shard::clear),
        }
    }

    /// Stored fingerprints. Each stripe is read at a moment of its own.
    pub(crate) fn len(&self) -> usize {
        if let Some(growing) = self.growing() {
            return growing.len();
        }
        // During many clears, the counts of one sum may be of different fillings.
        (self.shards().map(|shard| shard.len()).sum::<u64>() as usize).min(self.plan.slots())
    }

    /// Adds up what has happened in each stripe.
    pub(crate) fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        match self.growing() {
            Some(growing) => growing.add_totals_to(&mut totals),
            None => self.shards().for_each(|shard| shard.stripes().add_totals_to(&mut totals)),
        }
        totals
    }

    /// How far it has grown.
    pub(crate) fn grown(&self) -> Grown {
        let fixed = || Grown { tables: self.plan.shards, doublings: 0, splits: 0, nanos_in_splits: 0 };
        self.growing().map_or_else(fixed, Growing::grown)
    }

    /// Begins a change of any of the shards.
    #[inline(always)]
    pub(crate) fn begin_change(&self) -> PoisonOnUnwind<'_> {
        PoisonOnUnwind::new(self.interrupted.part(0, self.plan.shards))
    }
}

/// Memory of all words, in bytes.
#[inline]
fn table_bytes(plan: &Plan) -> usize {
    plan.shards * plan.words * size_of::<u64>()
}
