//! A filter assembled from copies of its tables: a clone, or a loaded filter.

use super::filter::RawFilter;
use super::flat::Flat;
use super::growing::{Growing, Leaf};
use super::shard::Shard;
use super::shards::Shards;
use super::slots::{Bare, SlotKind};
use crate::layout::{Extent, Fingerprint, Geometry, Plan};
use crate::sys::directory::New;
use crate::sys::memory::{Arena, HugePages};
use std::sync::{Mutex, PoisonError};

/// The tables filled so far, by any number of threads.
pub(crate) struct Assembly<K: SlotKind> {
    plan: Plan,
    tables: Tables<K>,
    /// Per table, its first cell and the epoch to which its tags refer.
    epochs: Mutex<Vec<(usize, u64)>>,
}

enum Tables<K: SlotKind> {
    Flat(Box<Flat<K>>),
    Growing(Arena, Mutex<Vec<New<Leaf>>>),
}

/// The reason for which a table cannot be filled.
pub(crate) enum Unfilled<E> {
    OutOfMemory,
    /// The fingerprint of an occupied slot that does not belong into this table.
    Stranger(u32),
    Other(E),
}

impl<K: SlotKind> Assembly<K> {
    /// Returns `None` if the allocation of a filter of fixed size fails.
    pub(crate) fn new(plan: &Plan, huge_pages: HugePages) -> Option<Self> {
        let tables = if plan.grows() {
            Tables::Growing(Arena::new(HugePages::Advised), Mutex::default())
        } else {
            Tables::Flat(Box::new(Flat::new(plan, huge_pages)?))
        };
        Some(Assembly { plan: *plan, tables, epochs: Mutex::default() })
    }

    /// Adds a table with the epoch of its tags.
    pub(crate) fn add<E>(
        &self,
        extent: &Extent,
        epoch: u64,
        fill: impl FnOnce(Shard<'_>) -> Result<(), E>,
    ) -> Result<(), Unfilled<E>> {
        match &self.tables {
            Tables::Flat(flat) => {
                fill_checked(flat.shards.at(extent.first_cell, Bare), &self.plan, extent, fill)?;
            }
            Tables::Growing(arena, tables) => {
                let table = Leaf::new(&self.plan, extent, arena).ok_or(Unfilled::OutOfMemory)?;
                fill_checked(table.shard(), &self.plan, extent, fill)?;
                push(tables, table)?;
            }
        }
        if K::TIMED {
            push(&self.epochs, (extent.first_cell, epoch))?;
        }
        Ok(())
    }

    /// Returns the filter, at the latest epoch of its tables, or `None` if allocation fails.
    pub(crate) fn finish(self) -> Option<RawFilter<K>> {
        let raw = match self.tables {
            Tables::Flat(flat) => RawFilter::Flat(*flat),
            Tables::Growing(arena, tables) => {
                let tables = tables.into_inner().unwrap_or_else(PoisonError::into_inner);
                RawFilter::Growing(Growing::of_tables(&self.plan, tables, arena)?)
            }
        };
        let mut epochs = self.epochs.into_inner().unwrap_or_else(PoisonError::into_inner);
        epochs.sort_unstable();
        K::catch_up(&raw, &epochs.into_iter().map(|(_, epoch)| epoch).collect::<Vec<_>>());
        Some(raw)
    }
}

fn push<T, E>(list: &Mutex<Vec<T>>, item: T) -> Result<(), Unfilled<E>> {
    let mut list = list.lock().unwrap_or_else(PoisonError::into_inner);
    list.try_reserve(1).map_err(|_| Unfilled::OutOfMemory)?;
    list.push(item);
    Ok(())
}

/// Fills a table of a filter of this plan, and checks that it holds only fingerprints that belong there, in buckets of
/// theirs. Bare slots of a filter of fixed size may hold any.
fn fill_checked<E>(
    shard: Shard<'_>,
    plan: &Plan,
    extent: &Extent,
    fill: impl FnOnce(Shard<'_>) -> Result<(), E>,
) -> Result<(), Unfilled<E>> {
    fill(shard).map_err(Unfilled::Other)?;
    if !plan.grows() && plan.tag_bits == 0 {
        return Ok(());
    }
    let ([known, _], mask) = (plan.known(extent), plan.known_mask(extent));
    let (geometry, extended) = (Geometry::new(plan), plan.extension_mask(extent));
    let is_stranger = |bucket, slot: u32| {
        let stored = slot >> plan.tag_bits;
        let Some(fingerprint) = Fingerprint::from_slot(stored & geometry.core_mask()) else { return true };
        let by_bucket = geometry.known_by_bucket(plan, extent, fingerprint, bucket);
        stored & mask != known & mask || (stored ^ by_bucket) & extended != 0
    };
    let mut stored = shard.contents().filter(|&(bucket, slot)| is_stranger(bucket, slot));
    stored.next().map_or(Ok(()), |(_, slot)| Err(Unfilled::Stranger(slot >> plan.tag_bits)))
}

/// Fills a copy of one table of a filter of this plan, which is only checked.
pub(crate) fn fill_alone<E>(
    plan: &Plan,
    extent: &Extent,
    fill: impl FnOnce(Shard<'_>) -> Result<(), E>,
) -> Result<(), Unfilled<E>> {
    if plan.grows() {
        let table = Leaf::new(plan, extent, &Arena::new(HugePages::Unadvised)).ok_or(Unfilled::OutOfMemory)?;
        return fill_checked(table.shard(), plan, extent, fill);
    }
    let (plan, extent) = (Plan { shards: 1, ..*plan }, Extent { first_cell: 0, ..*extent });
    let shards = Shards::new(&plan, HugePages::Unadvised.into()).ok_or(Unfilled::OutOfMemory)?;
    fill_checked(shards.at(0, Bare), &plan, &extent, fill)
}
