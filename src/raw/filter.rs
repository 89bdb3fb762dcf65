//! The whole filter as the core knows it: what its slots hold, and how a key finds its table, which is the directory.

use super::block::Next;
use super::counters::Totals;
use super::flat::Flat;
use super::growing::{Growing, Grown};
use super::lookup::Values;
use super::owner::Fixed;
use super::pair::Put;
use super::shard::Shard;
use super::shards::Shards;
use super::slots::{Bare, SlotKind, Tagging};
use super::writers::Changed;
use crate::error::InsertError;
use crate::layout::{Geometry, Mixed, Plan, Tags};
use crate::sys::memory::HugePages;
use core::panic::{RefUnwindSafe, UnwindSafe};

/// A filter without keys and hash functions. One that does not grow has a flat directory.
#[allow(clippy::large_enum_variant, reason = "a filter is one value: no lookup follows a pointer to it")]
pub(crate) enum RawFilter<K: SlotKind = Bare> {
    Flat(Flat<K>),
    Growing(Growing<K>),
}

// As `Shards`.
impl<K: SlotKind> UnwindSafe for RawFilter<K> {}
impl<K: SlotKind> RefUnwindSafe for RawFilter<K> {}

impl<K: SlotKind> RawFilter<K> {
    /// An empty filter. `None` when there is no memory.
    pub(crate) fn new(plan: &Plan, huge_pages: HugePages) -> Option<Self> {
        if plan.grows() {
            Growing::new(plan, huge_pages).map(RawFilter::Growing)
        } else {
            Flat::new(plan, huge_pages).map(RawFilter::Flat)
        }
    }

    /// Takes over the memory of a filter of fixed size, which another process may have written until it ended. Returns how many
    /// changes were under way.
    #[cfg(all(feature = "shared", target_os = "linux"))]
    pub(crate) fn take_over(shards: Shards) -> Result<(Self, usize), super::recovery::Unrecoverable> {
        Flat::take_over(shards).map(|(flat, redone)| (RawFilter::Flat(flat), redone))
    }

    /// The memory of a filter of this plan, in bytes; `None` if no address space holds it.
    pub(crate) fn bytes_of(plan: &Plan) -> Option<usize> {
        Self::bytes_at(plan, 0)
    }

    /// The same when all tables of a growing filter have doubled so often.
    pub(crate) fn bytes_at(plan: &Plan, doublings: u32) -> Option<usize> {
        if plan.grows() { Growing::<K>::bytes_of(plan, doublings) } else { Shards::bytes_of(plan) }
    }

    pub(crate) fn plan(&self) -> &Plan {
        match self {
            RawFilter::Flat(flat) => flat.shards.plan(),
            RawFilter::Growing(growing) => &growing.plan,
        }
    }

    pub(crate) fn geometry(&self) -> &Geometry {
        match self {
            RawFilter::Flat(flat) => flat.shards.geometry(),
            RawFilter::Growing(growing) => &growing.geometry,
        }
    }

    pub(super) fn kind(&self) -> &K {
        match self {
            RawFilter::Flat(flat) => &flat.kind,
            RawFilter::Growing(growing) => &growing.kind,
        }
    }

    /// Memory behind this value, in bytes.
    pub(crate) fn heap_bytes(&self) -> usize {
        match self {
            RawFilter::Flat(flat) => flat.shards.heap_bytes(),
            RawFilter::Growing(growing) => growing.heap_bytes(),
        }
    }

    /// The tables, if it grows.
    #[inline(always)]
    pub(crate) fn growing(&self) -> Option<&Growing<K>> {
        match self {
            RawFilter::Flat(_) => None,
            RawFilter::Growing(growing) => Some(growing),
        }
    }

    /// The shards of a filter of fixed size.
    #[cfg(test)]
    pub(crate) fn flat(&self) -> &Flat<K> {
        let RawFilter::Flat(flat) = self else { panic!("a filter of fixed size") };
        flat
    }

    /// Does this with the tables, from the oldest on. Those that are added while the last one is worked on come, too.
    pub(crate) fn with_tables<'a, R>(
        &'a self,
        work: impl FnOnce(&mut dyn Iterator<Item = Shard<'a, K::Slots<'a>>>) -> R,
    ) -> R {
        match self {
            RawFilter::Flat(flat) => work(&mut flat.each()),
            RawFilter::Growing(growing) => work(&mut growing.each()),
        }
    }

    /// Slots of today.
    pub(crate) fn slots(&self) -> usize {
        match self {
            RawFilter::Flat(flat) => flat.shards.plan().slots(),
            RawFilter::Growing(growing) => growing.slots(),
        }
    }

    /// Whether the class of the key is present.
    #[inline]
    pub(crate) fn contains(&self, mixed: Mixed) -> bool {
        match self {
            RawFilter::Flat(flat) => flat.contains(mixed),
            RawFilter::Growing(growing) => growing.contains(mixed),
        }
    }

    /// Says of each key whether its class is present.
    pub(crate) fn contains_each(&self, next: Next<'_>, found: &mut [bool]) {
        match self {
            RawFilter::Flat(flat) => flat.contains_each(next, found),
            RawFilter::Growing(growing) => growing.contains_each(next, found),
        }
    }

    /// Stores a copy of the class.
    #[inline]
    pub(crate) fn insert(&self, mixed: Mixed) -> Result<(), InsertError> {
        match self {
            RawFilter::Flat(flat) => flat.writers.insert(flat, mixed),
            RawFilter::Growing(growing) => growing.writers.insert(growing, mixed),
        }
        .map(|_| ())
    }

    /// Stores the class if it is absent: `Ok(true)`.
    #[inline]
    pub(crate) fn insert_unique(&self, mixed: Mixed) -> Result<bool, InsertError> {
        match self {
            RawFilter::Flat(flat) => flat.writers.insert_unique(flat, mixed),
            RawFilter::Growing(growing) => growing.writers.insert_unique(growing, mixed),
        }
        .map(|had| had == 0)
    }

    /// Stores the class, or updates the copy that is there; returns the value that it had.
    #[inline]
    pub(crate) fn put(&self, mixed: Mixed, put: Put) -> Result<u32, InsertError> {
        match self {
            RawFilter::Flat(flat) => flat.put(mixed, put),
            RawFilter::Growing(growing) => growing.put(mixed, put),
        }
    }

    pub(crate) fn count(&self, mixed: Mixed) -> usize {
        match self {
            RawFilter::Flat(flat) => {
                let (shard, class) = flat.locate(mixed);
                let Ok(copies) = shard.count(Fixed, class);
                copies
            }
            RawFilter::Growing(growing) => growing.count(mixed),
        }
    }

    #[inline]
    pub(crate) fn remove(&self, mixed: Mixed) -> bool {
        let had = match self {
            RawFilter::Flat(flat) => flat.writers.remove(flat, mixed),
            RawFilter::Growing(growing) => growing.writers.remove(growing, mixed),
        };
        had != 0
    }

    pub(crate) fn remove_all(&self, mixed: Mixed) -> usize {
        match self {
            RawFilter::Flat(flat) => {
                let (shard, class) = flat.locate(mixed);
                let Ok(copies) = shard.remove_all(Fixed, class);
                copies
            }
            RawFilter::Growing(growing) => growing.remove_all(mixed),
        }
    }

    pub(crate) fn clear(&self) {
        match self {
            RawFilter::Flat(flat) => flat.clear(),
            RawFilter::Growing(growing) => growing.clear(),
        }
    }

    /// Slots in use. Each stripe is read at a moment of its own.
    pub(crate) fn len(&self) -> usize {
        match self {
            RawFilter::Flat(flat) => flat.len(),
            RawFilter::Growing(growing) => growing.len(),
        }
    }

    /// Adds up what has happened in each stripe.
    pub(crate) fn totals(&self) -> Totals {
        match self {
            RawFilter::Flat(flat) => flat.totals(),
            RawFilter::Growing(growing) => growing.totals(),
        }
    }

    /// How far it has grown.
    pub(crate) fn grown(&self) -> Grown {
        match self {
            RawFilter::Flat(flat) => {
                Grown { tables: flat.shards.plan().shards, doublings: 0, splits: 0, nanos_in_splits: 0 }
            }
            RawFilter::Growing(growing) => growing.grown(),
        }
    }
}

impl RawFilter<Tagging> {
    pub(crate) fn tags(&self) -> Tags {
        self.kind().tags()
    }

    /// The value of each live copy of the class. A copy that is there throughout is among them.
    pub(crate) fn values(&self, mixed: Mixed) -> Values {
        match self {
            RawFilter::Flat(flat) => flat.values(mixed),
            RawFilter::Growing(growing) => growing.values(mixed),
        }
    }

    /// Gives the copy with this value, or the one that dies first, what `becomes` of its value, or removes it if that is 0. Returns
    /// the value that it had; 0 if there is none.
    pub(crate) fn update(&self, mixed: Mixed, value: Option<u32>, becomes: impl Fn(u32) -> u32) -> u32 {
        match self {
            RawFilter::Flat(flat) => {
                let (shard, class) = flat.locate(mixed);
                let Ok(had) = shard.update(Fixed, class, value, becomes);
                had
            }
            RawFilter::Growing(growing) => growing
                .at_owner(growing.cell_place(mixed), |shard, owner, class| shard.update(owner, class, value, &becomes)),
        }
    }

    /// Removes a copy with this value, or the one that dies first, and returns the value that it had; 0 if there is none.
    pub(crate) fn remove_value(&self, mixed: Mixed, value: Option<u32>) -> u32 {
        match self {
            RawFilter::Flat(flat) => Changed::remove(flat, mixed, value),
            RawFilter::Growing(growing) => Changed::remove(growing, mixed, value),
        }
    }
}
