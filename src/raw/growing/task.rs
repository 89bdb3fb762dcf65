//! Bulk tasks of a growing filter: the keys of adjacent cells, which are of one table or a few.
//!
//! A table is locked as a whole for some thousands of keys, and each key checks its cell like any writer. Keys of other
//! tables, because this one was split in the meantime, wait until it is unlocked. So do all remaining keys when it is
//! full: then it is split without a lock in hand.

use super::Growing;
use super::write::{Again, InLeaf};
use crate::error::InsertError;
use crate::layout::{CellPlace, Mixed, Search, SearchBudget};
use crate::raw::exclusive::KEYS_UNDER_LOCKS;
use crate::raw::pair::Put;
#[cfg(feature = "rayon")]
use crate::raw::shard::Shard;
use crate::raw::slots::{SlotKind, Slots};
use crate::raw::window::rolling;
use crate::sys::prefetch::CacheLevel;
use core::cell::Cell;
use core::marker::PhantomData;
use core::mem;
#[cfg(feature = "rayon")]
use rayon::prelude::*;

/// The number of keys whose buckets are prefetched ahead.
const AHEAD: usize = 16;

/// The insertions of a bulk task.
pub(crate) struct InsertTask<'a, K: SlotKind, O, N> {
    growing: &'a Growing<K>,
    search: Search,
    budget: &'a mut SearchBudget,
    put: Put,
    note: N,
    outcomes: PhantomData<fn(&mut O)>,
}

impl<K: SlotKind> Growing<K> {
    /// Clears the slots that are dead by now, table by table.
    #[cfg(feature = "rayon")]
    pub(crate) fn sweep_all(&self) {
        let slots = self.kind.slots();
        if slots.number(slots.now()) > 0 {
            let sweep = |table: Shard<'_, K::Slots<'_>>| table.change(|| table.sweep_all(&table.stripes().lock_all()));
            self.each().par_bridge().for_each(sweep);
        }
    }

    /// Splits the table of a cell until it has doubled so often or allocation fails. Returns the table that the cell
    /// then names.
    #[cfg(feature = "rayon")]
    pub(crate) fn split_ahead(&self, cell: usize, doublings: u32) -> Shard<'_> {
        loop {
            let leaf = self.directory.at(cell);
            let now = leaf.doublings();
            if now >= doublings || self.split(leaf, now, 0.0).is_err() {
                return leaf.get().shard();
            }
        }
    }

    /// A task that calls `note` with the result for each key.
    pub(crate) fn insert_task<'a, O, N: FnMut(&mut O, Result<u32, InsertError>)>(
        &'a self,
        budget: &'a mut SearchBudget,
        put: Put,
        note: N,
    ) -> InsertTask<'a, K, O, N> {
        InsertTask { growing: self, search: Search::new(), budget, put, note, outcomes: PhantomData }
    }
}

/// A key that is not yet stored, and its outcome.
type Waiting<'o, O> = (CellPlace, &'o mut O);

impl<'o, K: SlotKind, O: 'o, N: FnMut(&mut O, Result<u32, InsertError>)> InsertTask<'_, K, O, N> {
    /// Stores keys one by one: too few for the locks of a whole table.
    pub(crate) fn run_for_few(&mut self, keys: impl Iterator<Item = (Mixed, &'o mut O)>) {
        keys.for_each(|(mixed, outcome)| self.insert_one(self.growing.cell_place(mixed), outcome));
    }

    /// Stores keys, the faster the fewer tables they are of.
    pub(crate) fn run(&mut self, keys: impl Iterator<Item = (Mixed, &'o mut O)>) {
        let growing = self.growing;
        let mut keys = keys.map(|(mixed, outcome)| (growing.cell_place(mixed), outcome)).peekable();
        let (mut now, mut waiting) = (Vec::new(), Vec::new());
        if now.try_reserve_exact(KEYS_UNDER_LOCKS).and(waiting.try_reserve_exact(KEYS_UNDER_LOCKS)).is_err() {
            return keys.for_each(|(place, outcome)| self.insert_one(place, outcome));
        }
        while let Some(&(place, _)) = keys.peek() {
            self.insert_locked(place.cell, keys.by_ref().take(KEYS_UNDER_LOCKS), &mut waiting);
            while let Some(&(place, _)) = waiting.first() {
                mem::swap(&mut now, &mut waiting);
                self.insert_locked(place.cell, now.drain(..), &mut waiting);
            }
        }
    }

    /// Stores the keys in the table of this cell until it is full, and appends the others to `waiting`: not all, if the
    /// first key is of this cell.
    fn insert_locked(
        &mut self,
        cell: usize,
        keys: impl Iterator<Item = Waiting<'o, O>>,
        waiting: &mut Vec<Waiting<'o, O>>,
    ) {
        let InsertTask { growing, ref mut search, ref mut budget, put, ref mut note, .. } = *self;
        let (leaf, searched_long) = (growing.directory.at(cell), Cell::new(false));
        let (mut refused, mut ends) = (None, false);
        let exclusive = growing.shard(leaf).exclusive();
        let keys = keys.inspect(|(place, _)| leaf.shard().fetch(leaf.class(place.class), CacheLevel::L1));
        rolling::<AHEAD, _>(
            keys,
            |_| {},
            |(place, outcome)| {
                if ends {
                    return waiting.push((place, outcome));
                }
                let owner = InLeaf { growing, cell: place.cell, leaf, searched_long: &searched_long, doubles_to: 0 };
                match exclusive.insert(owner, search, budget, leaf.class(place.class), put) {
                    Ok(result) => {
                        note(outcome, result);
                        ends = searched_long.take() && growing.is_nearly_full(leaf);
                    }
                    Err(Again::Moved) => waiting.push((place, outcome)),
                    Err(Again::Full { .. }) => (refused, ends) = (Some((place, outcome)), true),
                }
            },
        );
        // The split locks the table itself.
        drop(exclusive);
        if ends {
            growing.split_if_nearly_full(leaf);
        }
        if let Some((place, outcome)) = refused {
            self.insert_one(place, outcome);
        }
    }

    /// Stores one key, and splits its table if that is full.
    fn insert_one(&mut self, place: CellPlace, outcome: &mut O) {
        let result = self.growing.insert_fetched(place, self.put, self.budget);
        (self.note)(outcome, result);
    }
}
