//! Writers of a growing filter. Each reads its cell again under its locks, and begins anew if the table was split.

use super::Growing;
use super::leaf::Leaf;
use crate::error::InsertError;
use crate::layout::{CellPlace, Class, Doubled, LAST_LOAD, Mixed, SearchBudget};
use crate::raw::owner::Owner;
use crate::raw::pair::Put;
use crate::raw::shard::Shard;
use crate::raw::slots::SlotKind;
use crate::raw::writers::Writes;
use crate::sys::directory::Member;
use core::cell::Cell;

/// A search of more buckets than this indicates that the table is nearly full: half of all tables meet one by
/// `growth::SPLIT_LOAD`. With 256 buckets that is a load of 0.96, and a fill takes 9 % longer, mostly for searches.
const LONG_SEARCH: usize = 64;

/// The load from which a table is split after a long search. Below, some buckets are full of few classes.
const SPLIT_FROM: f64 = 0.90;

/// The load from which a table of this number of slots or more is split in place of a refusal: few buckets, full of copies, do not make
/// it grow further and further. Small tables take little memory, and by chance refuse keys earlier.
const SPLIT_FULL_FROM: f64 = 0.5;
const SMALL: usize = 1024;

/// A table that has refused a key is not split if its load has since fallen to less than this part: keys were removed, or its dead
/// slots were cleared.
const STILL_FULL: f64 = 0.8;

/// The table in which a writer found the class.
pub(in crate::raw) struct InLeaf<'a, K: SlotKind> {
    pub(super) growing: &'a Growing<K>,
    pub(super) cell: usize,
    pub(super) leaf: Member<'a, Leaf>,
    pub(super) searched_long: &'a Cell<bool>,
    /// A table with fewer doublings is doubled in place of any refusal.
    pub(super) doubles_to: u32,
}

/// The reason for which a writer begins anew.
pub(in crate::raw) enum Again {
    /// The class is in another table.
    Moved,
    /// The table is full, after this number of doublings, and to be split if it still has this load.
    Full { doublings: u32, from: f64 },
}

impl<K: SlotKind> Clone for InLeaf<'_, K> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<K: SlotKind> Copy for InLeaf<'_, K> {}

impl<K: SlotKind> Owner for InLeaf<'_, K> {
    type Again = Again;

    #[inline(always)]
    fn check(self) -> Result<(), Again> {
        if self.growing.directory.is_at(self.cell, self.leaf) { Ok(()) } else { Err(Again::Moved) }
    }

    fn is_final(self) -> bool {
        // A split holds this lock while it changes the number of doublings and moves classes.
        let _locked = self.leaf.shard().stripes().lock_number(0);
        self.leaf.doublings() >= self.growing.plan.reserve_bits
    }

    #[inline(always)]
    fn searched(self, buckets: usize) {
        // In a table of fewer buckets, the search has read some of them twice.
        if buckets.min(self.leaf.shards.plan.buckets as usize) > LONG_SEARCH {
            self.searched_long.set(true);
        }
    }

    fn refuses(self, fits: impl FnOnce(&Doubled) -> bool) -> Result<(), Again> {
        let (growing, extent) = (self.growing, self.leaf.extent(&self.growing.plan));
        // The slots of an interrupted split take room. The next split clears them.
        let interrupted = self.leaf.shard().stripes().interrupted().is_set();
        // A refused key leaves the table as it is, so that a replica of the successful insertions is the same filter.
        let (doubles, slots) = (interrupted || extent.depth < self.doubles_to, self.leaf.shards.plan.slots());
        let from = if doubles || slots < SMALL { 0.0 } else { SPLIT_FULL_FROM };
        if growing.splits_from(self.leaf, from) && (doubles || fits(&Doubled::of(&growing.plan, &extent))) {
            let load = self.leaf.load() as f64 / slots as f64;
            Err(Again::Full { doublings: extent.depth, from: STILL_FULL * load })
        } else {
            Ok(())
        }
    }
}

impl<K: SlotKind> Writes for Growing<K> {
    #[inline(always)]
    fn put(&self, mixed: Mixed, put: Put) -> Result<u32, InsertError> {
        let place = self.cell_place(mixed);
        self.fetch(place);
        self.insert_fetched(place, put, &mut SearchBudget::full())
    }

    fn remove(&self, mixed: Mixed, value: Option<u32>) -> u32 {
        let place = self.cell_place(mixed);
        self.fetch(place);
        self.remove_fetched(place, value)
    }
}

impl<K: SlotKind> Growing<K> {
    /// Inserts a key whose buckets are prefetched.
    #[inline(always)]
    pub(crate) fn insert_fetched(
        &self,
        place: CellPlace,
        put: Put,
        budget: &mut SearchBudget,
    ) -> Result<u32, InsertError> {
        self.insert_doubling(place, put, 0, budget)
    }

    /// Inserts a key. In place of a refusal, doubles the table at any load until it has doubled `doubles_to` times: another filter had
    /// room for the key then.
    #[inline(always)]
    pub(crate) fn insert_doubling(
        &self,
        place: CellPlace,
        put: Put,
        doubles_to: u32,
        budget: &mut SearchBudget,
    ) -> Result<u32, InsertError> {
        let searched_long = Cell::new(false);
        loop {
            let (leaf, class) = self.owner(place);
            let owner = InLeaf { growing: self, cell: place.cell, leaf, searched_long: &searched_long, doubles_to };
            let change = leaf.shard().begin_change();
            let result = self.shard(leaf).insert_fetched(owner, class, put, budget);
            change.end();
            match result {
                Ok(result) => {
                    if searched_long.get() {
                        self.split_if_nearly_full(leaf);
                    }
                    return result;
                }
                Err(Again::Moved) => {}
                Err(Again::Full { doublings, from }) => {
                    self.split(leaf, doublings, from)?;
                    *budget = SearchBudget::full();
                }
            }
        }
    }

    /// Splits a table that is nearly full, before a search in vain.
    #[cold]
    #[inline(never)]
    pub(super) fn split_if_nearly_full(&self, leaf: Member<'_, Leaf>) {
        let doublings = leaf.doublings();
        if self.is_nearly_full(leaf) {
            // If allocation fails, the insertion that finds no room returns the error.
            let _ = self.split(leaf, doublings, self.nearly_full_from(doublings));
        }
    }

    fn nearly_full_from(&self, doublings: u32) -> f64 {
        if doublings == self.plan.extension_bits { LAST_LOAD } else { SPLIT_FROM }
    }

    /// Whether the table is nearly full and may be split for that: not for its first doubling below the load of the
    /// initial capacity, nor for the last, which is for full tables. Small tables are refilled in place of a refusal
    /// only, because no search in them is long.
    pub(super) fn is_nearly_full(&self, leaf: Member<'_, Leaf>) -> bool {
        let doublings = leaf.doublings();
        let possible = self.plan.extension_bits..self.plan.reserve_bits - 1;
        possible.contains(&doublings) && self.splits_from(leaf, self.nearly_full_from(doublings))
    }

    /// Splits tables until there is room for this number of keys in all.
    pub(crate) fn reserve(&self, keys: usize) -> Result<(), InsertError> {
        // Tables differ in their number of keys. The last doubling is for those with more, at the maximum capacity.
        let wanted = self.plan.doublings_for(keys.saturating_add(keys / 50)).min(self.plan.reserve_bits - 1);
        for leaf in self.directory.each() {
            // The walk meets tables split off later. The number is read once: with a later one, a table that another
            // thread has just split would be split again.
            loop {
                let doublings = leaf.doublings();
                if doublings >= wanted || !self.is_named(leaf) {
                    break;
                }
                self.split(leaf, doublings, 0.0)?;
            }
        }
        Ok(())
    }

    /// Removes a key whose buckets are prefetched.
    #[inline(always)]
    pub(crate) fn remove_fetched(&self, place: CellPlace, value: Option<u32>) -> u32 {
        self.at_owner_of(place, |shard, owner, class| {
            let change = shard.begin_change();
            let removed = shard.remove_fetched(owner, class, value);
            change.end();
            removed
        })
    }

    /// Calls `work` with the class of a key in its table, and again if that was split before `work` locked it.
    #[inline(always)]
    pub(in crate::raw) fn at_owner<'a, T>(
        &'a self,
        mixed: Mixed,
        work: impl Fn(Shard<'a, K::Slots<'a>>, InLeaf<'_, K>, Class) -> Result<T, Again>,
    ) -> T {
        self.at_owner_of(self.cell_place(mixed), work)
    }

    #[inline(always)]
    fn at_owner_of<'a, T>(
        &'a self,
        place: CellPlace,
        work: impl Fn(Shard<'a, K::Slots<'a>>, InLeaf<'_, K>, Class) -> Result<T, Again>,
    ) -> T {
        let searched_long = Cell::new(false);
        loop {
            let (leaf, class) = self.owner(place);
            let owner = InLeaf { growing: self, cell: place.cell, leaf, searched_long: &searched_long, doubles_to: 0 };
            if let Ok(done) = work(self.shard(leaf), owner, class) {
                return done;
            }
        }
    }
}

#[cfg(all(test, not(cuckoo_model)))]
mod tests {
    use super::*;
    use crate::layout::Plan;
    use crate::raw::{Bare, RawFilter};
    use crate::sys::memory::HugePages;
    use crate::sys::steps::{Step, with_hook};
    use std::sync::Arc;

    /// A key whose pair is full of classes that stay with it for two doublings.
    #[test]
    fn a_key_that_another_filter_had_room_for_is_stored_after_as_many_doublings() {
        let plan = Plan { reserve_bits: 3, ..Plan::one_shard(16, 64, 4) };
        let raw = RawFilter::<Bare>::new(&plan, HugePages::Unadvised).unwrap();
        let growing = raw.growing().unwrap();
        let pair_and_bits = |place: &CellPlace| {
            let Class { first, second, .. } = place.class.lower_first();
            [first.get(), second.get(), place.cell as u32 >> 1]
        };
        let places = (0..).map(|hash| growing.cell_place(Mixed::of(hash)));
        let mut places =
            places.filter(|place| pair_and_bits(place) == pair_and_bits(&growing.cell_place(Mixed::of(0))));
        let mut budget = SearchBudget::full();
        for place in places.by_ref().take(8) {
            assert_eq!(growing.insert_fetched(place, Put::COPY, &mut budget), Ok(0));
        }
        let place = places.next().unwrap();
        for doublings in 0..2 {
            assert_eq!(growing.insert_doubling(place, Put::COPY, doublings, &mut budget), Err(InsertError::Full));
            assert_eq!((growing.doublings(), growing.len()), (doublings, 8));
        }
        assert_eq!(growing.insert_doubling(place, Put::COPY, 2, &mut budget), Ok(0));
        assert_eq!((growing.doublings(), growing.len()), (3, 9));
    }

    /// A clear resets the counts of a table before its `moved`.
    #[test]
    fn a_table_that_is_being_emptied_is_not_full() {
        let plan = Plan { reserve_bits: 3, ..Plan::one_shard(16, 64, 4) };
        let raw = Arc::new(RawFilter::<Bare>::new(&plan, HugePages::Unadvised).unwrap());
        (0..128).for_each(|key| assert_eq!(raw.put(Mixed::of(key), Put::COPY), Ok(0)));
        raw.growing().unwrap().reserve(256).unwrap();
        let during = Arc::clone(&raw);
        let hook = move |step| {
            let stored = during.growing().unwrap().stored_in(0..1);
            assert!(step != Step::Counted || stored < 128, "{stored} keys of 128 amid a clear");
        };
        with_hook(hook, || raw.clear());
    }
}
