//! Writing with all stripes of a shard locked: one insertion whose paths other writers keep spoiling, many changes in a
//! row, or a clear. Lookups proceed concurrently.

use super::counters::Event;
use super::intent::Intent;
use super::locks::{AllOfShard, Held, LockedAll};
use super::owner::{Inserted, Owner};
use super::pair::{Put, too_many_copies};
use super::shard::Shard;
use super::slots::{Bare, Slots};
use crate::error::InsertError;
use crate::layout::{Class, Hop, Search, SearchBudget};

/// The number of keys that are changed before other writers have their turn.
pub(crate) const KEYS_UNDER_LOCKS: usize = 1 << 12;

/// The only writer of a shard, until dropped. It changes words by the protocol of all writers (H7, models exclusive_*).
pub(crate) struct Exclusive<'a, T: Slots = Bare> {
    shard: Shard<'a, T>,
    held: Held<'a, AllOfShard<'a>, T::Moment>,
}

impl<'a, T: Slots> Shard<'a, T> {
    /// Locks all stripes.
    pub(crate) fn exclusive(self) -> Exclusive<'a, T> {
        Exclusive { shard: self, held: self.hold(self.stripes().lock_all()) }
    }

    /// Removes everything. All stripes are locked and bumped first: for each class that a lookup misses, there was a
    /// moment without any copy of it (H7, models clear_*).
    pub(crate) fn clear(self) {
        self.change(|| self.clear_locked(&self.stripes().lock_all()));
    }

    /// Like [`clear`](Self::clear), under locks that the caller holds.
    pub(super) fn clear_locked(self, locked: &LockedAll<'_>) {
        if locked.is_noted() {
            self.plan().buckets_from(0, 1).for_each(|first| locked.intend(first, Intent::Clear));
        }
        locked.bump_all();
        self.bucket_array().clear_all(locked);
        locked.set_total(0);
        if locked.is_noted() {
            self.plan().buckets_from(0, 1).for_each(|first| locked.fulfil(first));
        }
    }
}

impl<T: Slots> Drop for Exclusive<'_, T> {
    /// Asks once per critical section, before the locks are released, so that the next holder of all locks finds the
    /// flag.
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.shard.stripes().interrupted().set(true);
        }
    }
}

impl<T: Slots> Exclusive<'_, T> {
    /// Inserts along a path that no other writer spoils. Refuses if the search finds none, as only `refusal` does
    /// without all locks.
    #[inline]
    pub(crate) fn insert<H: Owner>(
        &self,
        owner: H,
        search: &mut Search,
        budget: &mut SearchBudget,
        class: Class,
        put: Put,
    ) -> Inserted<H> {
        owner.check()?;
        match self.shard.place(&self.held, class, put) {
            Some(had) => Ok(Ok(had)),
            None => self.insert_along_path(owner, search, budget, class, put.value),
        }
    }

    /// Inserts into a full pair.
    #[inline(never)]
    fn insert_along_path<H: Owner>(
        &self,
        owner: H,
        search: &mut Search,
        budget: &mut SearchBudget,
        class: Class,
        value: u32,
    ) -> Inserted<H> {
        let Exclusive { shard, ref held } = *self;
        let locked = &held.locked;
        if let Some(path) = shard.find_short_path(class, held.moment, locked.into()) {
            budget.learn(true);
            owner.searched(path.buckets);
            return Ok(self.apply_path(path.hops.iter().copied(), class, value));
        }
        if shard.is_saturated(held, class) {
            return Ok(Err(too_many_copies(locked, class)));
        }
        let path = shard.find_path(search, *budget, class, held.moment, locked.into());
        budget.learn(path.is_some());
        let Some(path) = path else {
            owner.refuses(|doubled| shard.fits(doubled, *budget, class, held))?;
            locked.note(class.first, Event::RefusedFull);
            return Ok(Err(InsertError::Full));
        };
        let result = self.apply_path(path, class, value);
        owner.searched(search.buckets());
        Ok(result)
    }

    /// Relocates along the path, and stores the class in the vacated slot.
    #[inline(always)]
    fn apply_path(&self, path: impl Iterator<Item = Hop>, class: Class, value: u32) -> Result<u32, InsertError> {
        let Exclusive { shard, ref held } = *self;
        let (mut freed, mut length) = (None, 0);
        for hop in path {
            freed = shard.relocate(held, hop);
            debug_assert!(freed.is_some(), "a path found under all locks is carried out under them");
            length += 1;
        }
        let Some(freed) = freed else { return Err(InsertError::Full) };
        shard.fill(held, freed, class, value);
        held.locked.note(class.first, Event::Path { length, relocated: length });
        Ok(0)
    }

    /// Like [`Shard::remove`].
    #[inline(always)]
    pub(crate) fn remove(&self, class: Class, value: Option<u32>) -> u32 {
        self.shard.remove_locked(&self.held, class, value)
    }
}
