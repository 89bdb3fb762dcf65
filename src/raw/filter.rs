//! A filter without keys and hash functions: a flat directory of shards, or a growing one of tables.

use super::block::Next;
use super::counters::Totals;
use super::flat::Flat;
use super::growing::Growing;
use super::pair::{IfPresent, Put};
use super::shard::Shard;
use super::shards::Shards;
use super::slots::{Bare, SlotKind, Tagging};
use super::writers::{self, Writes};
use crate::error::InsertError;
use crate::layout::{Geometry, Mixed, Plan, Tags};
use crate::sys::memory::HugePages;
use crate::sys::prefetch::CacheLevel;
use core::panic::{RefUnwindSafe, UnwindSafe};

#[allow(clippy::large_enum_variant, reason = "a filter is one value: no lookup follows a pointer to it")]
pub(crate) enum RawFilter<K: SlotKind = Bare> {
    Flat(Flat<K>),
    Growing(Growing<K>),
}

/// Evaluates `$body` with `$directory` bound to the directory of the filter, of either type.
macro_rules! with_directory {
    ($filter:expr, $directory:ident => $body:expr) => {
        match $filter {
            $crate::raw::RawFilter::Flat($directory) => $body,
            $crate::raw::RawFilter::Growing($directory) => $body,
        }
    };
}
pub(super) use with_directory;

// See `Shards`.
impl<K: SlotKind> UnwindSafe for RawFilter<K> {}
impl<K: SlotKind> RefUnwindSafe for RawFilter<K> {}

impl<K: SlotKind> RawFilter<K> {
    /// Returns an empty filter, or `None` if allocation fails.
    pub(crate) fn new(plan: &Plan, huge_pages: HugePages) -> Option<Self> {
        if plan.grows() {
            Growing::new(plan, huge_pages).map(RawFilter::Growing)
        } else {
            Flat::new(plan, huge_pages).map(RawFilter::Flat)
        }
    }

    /// The memory in bytes of a filter after this number of doublings of all tables, or `None` if it exceeds the address
    /// space.
    pub(crate) fn bytes_at(plan: &Plan, doublings: u32) -> Option<usize> {
        if plan.grows() { Growing::<K>::bytes_of(plan, doublings) } else { Shards::bytes_of(plan) }
    }

    pub(crate) fn plan(&self) -> &Plan {
        match self {
            RawFilter::Flat(flat) => flat.plan(),
            RawFilter::Growing(growing) => &growing.plan,
        }
    }

    pub(crate) fn geometry(&self) -> &Geometry {
        with_directory!(self, directory => &directory.geometry)
    }

    pub(super) fn kind(&self) -> &K {
        with_directory!(self, directory => &directory.kind)
    }

    /// The number of ticks, the skipped ones included; 0 where slots are bare.
    pub(crate) fn epoch(&self) -> u64 {
        self.kind().epoch().map_or(0, |epoch| epoch.now() + epoch.skipped())
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        with_directory!(self, directory => directory.heap_bytes())
    }

    #[inline(always)]
    pub(crate) fn growing(&self) -> Option<&Growing<K>> {
        match self {
            RawFilter::Flat(_) => None,
            RawFilter::Growing(growing) => Some(growing),
        }
    }

    #[cfg(test)]
    pub(crate) fn flat(&self) -> &Flat<K> {
        let RawFilter::Flat(flat) = self else { panic!("a filter of fixed size") };
        flat
    }

    /// Calls `work` with all shards or tables, the oldest first, including tables added during the call.
    pub(crate) fn with_tables<'a, R>(
        &'a self,
        work: impl FnOnce(&mut dyn Iterator<Item = Shard<'a, K::Slots<'a>>>) -> R,
    ) -> R {
        with_directory!(self, directory => work(&mut directory.each()))
    }

    /// The present number of slots.
    pub(crate) fn slots(&self) -> usize {
        with_directory!(self, directory => directory.slots())
    }

    /// Whether the class of the key is present.
    #[inline]
    pub(crate) fn contains(&self, mixed: Mixed) -> bool {
        with_directory!(self, directory => directory.contains.call(directory, mixed))
    }

    /// Prefetches everything that a lookup of this class reads, except for the cell and the record of a table.
    #[inline]
    pub(crate) fn prefetch(&self, mixed: Mixed) {
        let (shard, class) = with_directory!(self, directory => directory.locate(mixed));
        shard.fetch(class, CacheLevel::L1);
        shard.stripes().of(class.first).version().fetch();
    }

    /// Stores for each key whether its class is present.
    pub(crate) fn contains_each(&self, next: Next<'_>, found: &mut [bool]) {
        with_directory!(self, directory => directory.contains_each(next, found));
    }

    /// Stores the class or updates a copy of it ([`Put`]). Returns the previous value, or 0.
    #[inline]
    pub(crate) fn put(&self, mixed: Mixed, put: Put) -> Result<u32, InsertError> {
        with_directory!(self, directory => match put.if_present {
            _ if K::TIMED => Writes::put(directory, mixed, put),
            // Bare slots have two insertions, and no values.
            IfPresent::Another => writers::insert::<_, false>(directory, mixed),
            _ => writers::insert::<_, true>(directory, mixed),
        })
    }

    /// The number of copies of the class.
    pub(crate) fn count(&self, mixed: Mixed) -> usize {
        with_directory!(self, directory => directory.at_owner(mixed, |shard, owner, class| shard.count(owner, class)))
    }

    /// Removes a copy of the class, and returns whether there was one.
    #[inline]
    pub(crate) fn remove(&self, mixed: Mixed) -> bool {
        with_directory!(self, directory => writers::remove(directory, mixed))
    }

    /// Removes all copies of the class, and returns their number.
    pub(crate) fn remove_all(&self, mixed: Mixed) -> usize {
        with_directory!(self, directory => {
            directory.at_owner(mixed, |shard, owner, class| shard.remove_all(owner, class))
        })
    }

    pub(crate) fn clear(&self) {
        with_directory!(self, directory => directory.clear());
    }

    /// The number of occupied slots. Stripes are read one after the other.
    pub(crate) fn len(&self) -> usize {
        with_directory!(self, directory => directory.len())
    }

    /// The sums of the counters of all stripes.
    pub(crate) fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        self.with_tables(|tables| tables.for_each(|table| table.stripes().add_totals_to(&mut totals)));
        totals
    }
}

impl RawFilter<Tagging> {
    pub(crate) fn tags(&self) -> Tags {
        self.kind().tags()
    }

    /// Changes the value of a copy to `becomes(value)`, or removes it if that is 0. The copy is one with this value, or
    /// the one that dies first. Returns the previous value, or 0 if there is no such copy.
    pub(crate) fn update(&self, mixed: Mixed, value: Option<u32>, becomes: impl Fn(u32) -> u32) -> u32 {
        with_directory!(self, directory => {
            directory.at_owner(mixed, |shard, owner, class| shard.update(owner, class, value, &becomes))
        })
    }

    /// Removes a copy with this value, or the one that dies first. Returns its value, or 0 if there is no such copy.
    pub(crate) fn remove_value(&self, mixed: Mixed, value: Option<u32>) -> u32 {
        with_directory!(self, directory => Writes::remove(directory, mixed, value))
    }
}
