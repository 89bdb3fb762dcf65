//! The flat directory: a number of shards that is fixed when the filter is built.

use super::block::{Next, contains_each_in};
use super::counters::Totals;
use super::lookup::{Contains, contains_in};
use super::owner::Fixed;
use super::pair::Put;
use super::shard::Shard;
use super::shards::Shards;
use super::slots::{Bare, SlotKind};
use super::writers::{Changed, Writers};
use crate::error::InsertError;
use crate::layout::{Class, Mixed, Plan};
use crate::sys::isa::Compiled;
use crate::sys::memory::HugePages;

/// Shards, and the functions that are chosen for them.
#[repr(C)]
pub(crate) struct Flat<K: SlotKind = Bare> {
    /// First in every directory: a lookup then loads it from the same offset for all of them, and needs no branch.
    contains: Compiled<Contains<Flat<K>>>,
    pub(crate) shards: Shards,
    pub(super) kind: K,
    pub(super) writers: Writers<Flat<K>>,
}

impl<K: SlotKind> Changed for Flat<K> {
    #[inline(always)]
    fn put(&self, mixed: Mixed, put: Put) -> Result<u32, InsertError> {
        let (shard, class) = self.locate(mixed);
        let Ok(result) = shard.insert(Fixed, class, put);
        result
    }

    #[inline(always)]
    fn remove(&self, mixed: Mixed, value: Option<u32>) -> u32 {
        let (shard, class) = self.locate(mixed);
        let Ok(had) = shard.remove(Fixed, class, value);
        had
    }
}

impl<K: SlotKind> Flat<K> {
    /// An empty filter. `None` when there is no memory.
    pub(crate) fn new(plan: &Plan, huge_pages: HugePages) -> Option<Self> {
        Shards::new(plan, huge_pages.into()).map(Flat::of)
    }

    /// A filter of these shards.
    pub(super) fn of(shards: Shards) -> Self {
        let plan = shards.plan();
        Flat { contains: contains_in(plan), kind: K::new(plan), shards, writers: Writers::new() }
    }

    #[inline(always)]
    pub(crate) fn at(&self, number: usize) -> Shard<'_, K::Slots<'_>> {
        self.shards.at(number, self.kind.slots())
    }

    pub(crate) fn each(&self) -> impl ExactSizeIterator<Item = Shard<'_, K::Slots<'_>>> {
        self.shards.each(self.kind.slots())
    }

    /// The shard of a key, and its place there.
    #[inline(always)]
    pub(crate) fn locate(&self, mixed: Mixed) -> (Shard<'_, K::Slots<'_>>, Class) {
        let (shard, class) = self.shards.shape.geometry.locate(mixed);
        (self.at(shard), class)
    }

    #[inline]
    pub(super) fn contains(&self, mixed: Mixed) -> bool {
        self.contains.call(self, mixed)
    }

    pub(crate) fn contains_each(&self, next: Next<'_>, found: &mut [bool]) {
        contains_each_in(self, self.shards.table_bytes(), next, found);
    }

    /// Slots in use. Each stripe is read at a moment of its own.
    pub(crate) fn len(&self) -> usize {
        // During many clears, the counts of one sum may be of different fillings.
        (self.each().map(|shard| shard.len()).sum::<u64>() as usize).min(self.shards.plan().slots())
    }

    /// Adds up what has happened in each stripe.
    pub(crate) fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        self.each().for_each(|shard| shard.stripes().add_totals_to(&mut totals));
        totals
    }

    pub(crate) fn clear(&self) {
        self.each().for_each(Shard::clear);
    }
}
