//! Exclusive writing: all stripes of a shard locked, for one insertion that others kept spoiling, for many changes in a
//! row, or for one of the whole shard. Lookups go on.

use super::counters::Event;
use super::intent::Intent;
use super::locks::{AllOfShard, Held, LockedAll};
use super::owner::{Inserted, Owner};
use super::pair::{Put, too_many_copies};
use super::shard::Shard;
use super::slots::{Bare, Slots};
use crate::error::InsertError;
use crate::layout::{Class, Hop, Search, SearchBudget};

/// Keys that are worked on before other writers have their turn.
pub(crate) const KEYS_UNDER_LOCKS: usize = 1 << 12;

/// The only writer of a shard, until dropped. It changes words by the same protocol as any (H7, models exclusive_*).
pub(crate) struct Exclusive<'a, T: Slots = Bare> {
    shard: Shard<'a, T>,
    held: Held<'a, AllOfShard<'a>, T::Moment>,
}

impl<'a, T: Slots> Shard<'a, T> {
    /// Locks the other writers out. Lookups go on.
    pub(crate) fn exclusive(self) -> Exclusive<'a, T> {
        Exclusive { shard: self, held: self.hold(self.stripes().lock_all()) }
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
        if locked.is_noted() {
            self.geometry().buckets_from(0, 1).for_each(|first| locked.intend(first, Intent::Clear));
        }
        locked.bump_all();
        self.bucket_array().clear_all(locked);
        locked.set_total(0);
        if locked.is_noted() {
            self.geometry().buckets_from(0, 1).for_each(|first| locked.fulfil(first));
        }
    }
}

impl<T: Slots> Drop for Exclusive<'_, T> {
    /// With all stripes locked there is time to ask, once, and before they are released: the next writer that locks them
    /// finds the note.
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.shard.stripes().note_interrupted();
        }
    }
}

impl<T: Slots> Exclusive<'_, T> {
    /// Inserts where no other writer spoils the path. That the shard is full is decided here, or by `refusal`.
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
        if let Some(path) = shard.find_short_path(class, held.moment, locked) {
            budget.learn(true);
            owner.searched(path.buckets);
            return Ok(self.apply_path(path.hops.iter().copied(), class, value));
        }
        if shard.is_saturated(held, class) {
            return Ok(Err(too_many_copies(locked, class)));
        }
        let path = shard.find_path(search, *budget, class, held.moment, locked);
        budget.learn(path.is_some());
        let Some(path) = path else {
            owner.refuses(|doubled| shard.fits(doubled, search, *budget, class, held))?;
            locked.note(class.first, Event::RefusedFull);
            return Ok(Err(InsertError::Full));
        };
        let result = self.apply_path(path, class, value);
        owner.searched(search.buckets());
        Ok(result)
    }

    /// Relocates along the path, which no other writer spoils, and puts the class into the slot that becomes free.
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

    /// As [`Shard::remove`].
    #[inline(always)]
    pub(crate) fn remove(&self, class: Class, value: Option<u32>) -> u32 {
        self.shard.remove_locked(&self.held, class, value)
    }
}
