//! The whole filter as the core knows it: one run of words, one run of stripes, and the numbers that find a place in
//! both. No record of a shard is read on the way.

use super::block::{ContainsEach, contains_each_in};
use super::counters::Totals;
use super::insert::Admission;
use super::lookup::{Contains, Strides, contains_in};
use super::poison::PoisonOnUnwind;
use super::probe::LayoutKind;
use super::shard::Shard;
use super::stripe::{STRIPE_BYTES, Stripe};
use crate::error::InsertError;
use crate::layout::{Class, Format, Geometry, Mixed, Plan};
use crate::sys::isa::Compiled;
use crate::sys::memory::{HugePages, Run};
use crate::sys::sync::{AtomicU64, Flag};
use core::panic::{RefUnwindSafe, UnwindSafe};
use crossbeam_utils::CachePadded;

/// Tables up to this size are fetched into the nearest cache; the lines of larger ones come from memory, most of them.
const NEAR_TABLE: usize = 8 << 20;

/// The shards of a filter, side by side. See [`Shard`].
pub(crate) struct RawFilter {
    pub(super) geometry: Geometry,
    pub(super) layout: LayoutKind,
    pub(super) contains: Compiled<Contains>,
    pub(super) contains_each: Compiled<ContainsEach>,
    pub(super) strides: Strides,
    pub(super) format: Format,
    /// Those of all shards, one after the other, and one that stays zero: lookups read the word behind a bucket, too.
    pub(super) words: Run<AtomicU64>,
    pub(super) stripes: Run<CachePadded<Stripe>>,
    /// For each shard, whether a panic interrupted a change of it.
    pub(super) interrupted: Run<Flag>,
    plan: Plan,
}

// No user code runs while a stripe is locked, so only a fault of this crate could leave a change half made. Even that
// loses no other key, and what it leaves is noted (`poison`).
impl UnwindSafe for RawFilter {}
impl RefUnwindSafe for RawFilter {}

impl RawFilter {
    /// An empty filter. `None` when there is no memory.
    pub(crate) fn new(plan: &Plan, huge_pages: HugePages) -> Option<Self> {
        let format = Format::new(plan.slot_bits);
        let layout = LayoutKind::of(&format);
        Some(RawFilter {
            geometry: Geometry::new(plan),
            layout,
            contains: contains_in(layout),
            contains_each: contains_each_in(layout, table_bytes(plan)),
            strides: Strides {
                bucket_bits: format.bucket_bits(),
                stripes: (plan.stripes * STRIPE_BYTES) as u64,
                stripe_shift: plan.stripe_shift,
            },
            format,
            words: Run::new(plan.shards.checked_mul(plan.words)?.checked_add(1)?, huge_pages)?,
            stripes: Run::new(plan.shards.checked_mul(plan.stripes)?, huge_pages)?,
            interrupted: Run::new(plan.shards, huge_pages)?,
            plan: *plan,
        })
    }

    /// The memory of a filter of this plan, in bytes; `None` if no address space holds it.
    pub(crate) fn bytes_of(plan: &Plan) -> Option<usize> {
        let words = Run::<AtomicU64>::bytes_of(plan.shards.checked_mul(plan.words)?.checked_add(1)?)?;
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
        Self::bytes_of(&self.plan).unwrap_or(usize::MAX)
    }

    /// Memory of all words, in bytes.
    #[inline]
    pub(crate) fn table_bytes(&self) -> usize {
        table_bytes(&self.plan)
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

    pub(crate) fn shards(&self) -> impl ExactSizeIterator<Item = Shard<'_>> {
        (0..self.plan.shards).map(|number| self.shard(number))
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
        let (shard, class) = self.locate(mixed);
        shard.insert(class, admission)
    }

    pub(crate) fn count(&self, mixed: Mixed) -> usize {
        let (shard, class) = self.locate(mixed);
        shard.count(class)
    }

    pub(crate) fn remove(&self, mixed: Mixed) -> bool {
        let (shard, class) = self.locate(mixed);
        shard.remove(class)
    }

    pub(crate) fn remove_all(&self, mixed: Mixed) -> usize {
        let (shard, class) = self.locate(mixed);
        shard.remove_all(class)
    }

    pub(crate) fn clear(&self) {
        self.shards().for_each(Shard::clear);
    }

    /// Stored fingerprints. Each stripe is read at a moment of its own.
    pub(crate) fn len(&self) -> usize {
        // During many clears, the counts of one sum may be of different fillings.
        (self.shards().map(|shard| shard.len()).sum::<u64>() as usize).min(self.plan.slots())
    }

    /// Adds up what has happened in each stripe.
    pub(crate) fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        self.shards().for_each(|shard| shard.stripes().add_totals_to(&mut totals));
        totals
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
