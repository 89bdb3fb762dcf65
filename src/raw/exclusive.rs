//! Exclusive writing: all stripes of a shard locked, for one insertion that others kept spoiling, for many changes in a
//! row, or for one of the whole shard. Lookups go on.

use super::counters::Event;
use super::home::{Home, Inserted};
use super::locks::LockedAll;
use super::pair::{Admission, too_many_copies};
use super::shard::Shard;
use super::shards::Shards;
use crate::error::InsertError;
use crate::layout::{Class, Hop, Search, SearchBudget};

/// Keys that are worked on before other writers have their turn.
pub(crate) const KEYS_UNDER_LOCKS: usize = 1 << 12;

/// The only writer of a shard, until dropped. It changes words by the same protocol as any (H7, models exclusive_*).
pub(crate) struct Exclusive<'a> {
    shard: Shard<'a>,
    locked: LockedAll<'a>,
}

impl Shards {
    pub(crate) fn clear(&self) {
        self.each().for_each(Shard::clear);
    }
}

impl<'a> Shard<'a> {
    /// Locks the other writers out. Lookups go on.
    pub(crate) fn exclusive(self) -> Exclusive<'a> {
        Exclusive { shard: self, locked: self.stripes().lock_all() }
    }

    /// Removes everything. All stripes are locked and bumped first: a lookup that misses a class had a moment at which
    /// no copy of it was left (H7, models clear_*).
    pub(crate) fn clear(self) {
        let change = self.begin_change();
        self.clear_locked(&self.stripes().lock_all());
        change.end();
    }

    /// The same under locks.
    pub(super) fn clear_locked(self, locked: &LockedAll<'_>) {
        locked.bump_all();
        self.table().clear_all(locked);
        locked.set_total(0);
    }
}

impl Drop for Exclusive<'_> {
    /// With all stripes locked there is time to ask, once, and before they are released: the next writer that locks them
    /// finds the note.
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.shard.stripes().note_interrupted();
        }
    }
}

impl Exclusive<'_> {
    /// Inserts where no other writer spoils the path. Only this may say that the shard is full.
    #[inline]
    pub(crate) fn insert<H: Home>(
        &self,
        home: H,
        search: &mut Search,
        budget: &mut SearchBudget,
        class: Class,
        admission: Admission,
    ) -> Inserted<H> {
        home.check()?;
        match self.shard.place(&self.locked, class, admission) {
            Some(stored) => Ok(Ok(stored)),
            None => self.insert_by_path(home, search, budget, class),
        }
    }

    /// Inserts into a full pair.
    #[inline(never)]
    fn insert_by_path<H: Home>(
        &self,
        home: H,
        search: &mut Search,
        budget: &mut SearchBudget,
        class: Class,
    ) -> Inserted<H> {
        let Exclusive { shard, ref locked } = *self;
        if let Some(path) = shard.find_short_path(class, locked) {
            budget.learn(true);
            return Ok(self.carry_out(path.hops(), class));
        }
        if shard.is_saturated(locked, class) {
            return Ok(Err(too_many_copies(locked, class)));
        }
        let path = shard.find_path(search, *budget, class, locked);
        budget.learn(path.is_some());
        let Some(path) = path else {
            home.refuses()?;
            locked.note(class.first, Event::RefusedFull);
            return Ok(Err(InsertError::Full));
        };
        let result = self.carry_out(path, class);
        home.searched(search.buckets());
        Ok(result)
    }

    /// Relocates along the path, which no other writer spoils, and puts the class into the slot that becomes free.
    #[inline(always)]
    fn carry_out(&self, path: impl Iterator<Item = Hop>, class: Class) -> Result<bool, InsertError> {
        let Exclusive { shard, ref locked } = *self;
        let (mut freed, mut length) = (None, 0);
        for hop in path {
            freed = shard.relocate(locked, hop);
            debug_assert!(freed.is_some(), "a path found under all locks is carried out under them");
            length += 1;
        }
        let Some(freed) = freed else { return Err(InsertError::Full) };
        shard.fill(locked, freed, class);
        locked.note(class.first, Event::Path { length, relocated: length });
        Ok(true)
    }

    /// Removes one copy of the class and says whether there was one.
    #[inline(always)]
    pub(crate) fn remove(&self, class: Class) -> bool {
        self.shard.remove_locked(&self.locked, class)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{Mixed, Plan};
    use crate::raw::counters::Totals;
    use crate::raw::home::Fixed;
    use crate::sys::memory::HugePages;
    use crate::sys::steps::{Step, with_hook};
    use std::cell::Cell;
    use std::rc::Rc;

    #[test]
    fn relocations_and_refusals_are_counted() {
        let plan = Plan::new(1000, 16, None).unwrap();
        let shards = Shards::new(&plan, HugePages::Unadvised.into()).unwrap();
        let exclusive = shards.at(0).exclusive();
        let (mut search, mut budget, mut expected) = (Search::new(), SearchBudget::full(), Totals::default());
        for hash in 0.. {
            let copied = Rc::new(Cell::new(0));
            let noted = Rc::clone(&copied);
            let hook = move |step| noted.set(noted.get() + u64::from(step == Step::Copied));
            let class = shards.locate(Mixed::of(hash)).1;
            let insert = || exclusive.insert(Fixed, &mut search, &mut budget, class, Admission::Copies);
            let Ok(result) = with_hook(hook, insert);
            let inserted = result.is_ok();
            expected.relocations += copied.get();
            expected.longest_path = expected.longest_path.max(copied.get());
            if !inserted {
                expected.refused_full += 1;
                break;
            }
        }
        let found = shards.totals();
        let numbers = |totals: &Totals| {
            let Totals { relocations, longest_path, refused_full, refused_copies } = *totals;
            (relocations, longest_path, refused_full, refused_copies)
        };
        assert_eq!(numbers(&found), numbers(&expected));
        assert!(found.longest_path >= 3, "{found:?}");
    }
}
