//! The flat directory: a fixed number of shards.

use super::block::{Next, contains_each_in};
use super::lookup::{Contains, contains_in};
use super::owner::Fixed;
use super::pair::Put;
use super::shard::Shard;
use super::shards::Shards;
use super::slots::{Bare, SlotKind};
use super::writers::Writes;
use crate::error::InsertError;
use crate::layout::{Class, Geometry, Mixed, Plan};
use crate::sys::memory::HugePages;
use core::convert::Infallible;

#[repr(C)]
pub(crate) struct Flat<K: SlotKind = Bare> {
    /// The first field of both directories: a lookup loads it from one offset without a branch.
    pub(super) contains: Contains<Flat<K>>,
    pub(crate) geometry: Geometry,
    pub(crate) shards: Shards,
    pub(super) kind: K,
}

impl<K: SlotKind> Writes for Flat<K> {
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
    /// Returns an empty filter, or `None` if allocation fails.
    pub(crate) fn new(plan: &Plan, huge_pages: HugePages) -> Option<Self> {
        Shards::new(plan, huge_pages.into()).map(Flat::of)
    }

    pub(super) fn of(shards: Shards) -> Self {
        let plan = &shards.plan;
        Flat { contains: contains_in(plan), geometry: Geometry::new(plan), kind: K::new(plan), shards }
    }

    pub(super) fn plan(&self) -> &Plan {
        &self.shards.plan
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.shards.heap_bytes()
    }

    pub(super) fn slots(&self) -> usize {
        self.plan().slots()
    }

    #[inline(always)]
    pub(crate) fn at(&self, number: usize) -> Shard<'_, K::Slots<'_>> {
        self.shards.at(number, self.kind.slots())
    }

    pub(crate) fn each(&self) -> impl ExactSizeIterator<Item = Shard<'_, K::Slots<'_>>> {
        (0..self.plan().shards).map(|number| self.at(number))
    }

    /// The shard of a key, and its class there.
    #[inline(always)]
    pub(crate) fn locate(&self, mixed: Mixed) -> (Shard<'_, K::Slots<'_>>, Class) {
        let (shard, class) = self.geometry.locate(mixed);
        (self.at(shard), class)
    }

    /// Calls `work` with the class of a key in its shard.
    #[inline(always)]
    pub(super) fn at_owner<'a, T>(
        &'a self,
        mixed: Mixed,
        work: impl FnOnce(Shard<'a, K::Slots<'a>>, Fixed, Class) -> Result<T, Infallible>,
    ) -> T {
        let (shard, class) = self.locate(mixed);
        let Ok(done) = work(shard, Fixed, class);
        done
    }

    pub(crate) fn contains_each(&self, next: Next<'_>, found: &mut [bool]) {
        contains_each_in(self, self.shards.word_bytes(), next, found);
    }

    pub(super) fn len(&self) -> usize {
        // Beside several clears, the counts of one sum may be of different fillings.
        (self.each().map(|shard| shard.len()).sum::<u64>() as usize).min(self.slots())
    }

    pub(super) fn clear(&self) {
        self.each().for_each(Shard::clear);
    }
}
