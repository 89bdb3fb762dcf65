//! A shard to oneself: all its stripes locked, for one insertion that others kept spoiling, or for many changes in a
//! row. Look-ups go on.

use super::insert::too_many_copies;
use super::{Admission, Shard};
use crate::error::InsertError;
use crate::geometry::{Candidates, Geometry};
use crate::path::{Effort, Search};
use crate::stripe::LockedAll;
use crate::table::Format;
use crate::tally::Event;

/// Keys that are worked on before other writers have their turn.
pub(crate) const KEYS_UNDER_LOCKS: usize = 1 << 12;

/// The only writer of a shard, until dropped. It changes words by the same protocol as any (H7, models alone_*).
pub(crate) struct Alone<'a> {
    shard: &'a Shard,
    geometry: &'a Geometry,
    format: &'a Format,
    locked: LockedAll<'a>,
}

impl Shard {
    /// Locks the other writers out.
    pub(crate) fn alone<'a>(&'a self, geometry: &'a Geometry, format: &'a Format) -> Alone<'a> {
        Alone { shard: self, geometry, format, locked: self.stripes.lock_all() }
    }
}

impl Drop for Alone<'_> {
    /// Whoever locks all stripes can afford to ask, once, and before they are released: the next one that locks them
    /// finds the note.
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.shard.stripes.note_interrupted();
        }
    }
}

impl Alone<'_> {
    /// Inserts where nobody spoils the path. Only this may say that the shard is full.
    #[inline]
    pub(crate) fn insert(
        &self,
        search: &mut Search,
        effort: &mut Effort,
        key: Candidates,
        admission: Admission,
    ) -> Result<bool, InsertError> {
        match self.shard.place_locked(&self.locked, self.format, key, admission) {
            Some(stored) => Ok(stored),
            None => self.insert_by_path(search, effort, key).map(|()| true),
        }
    }

    /// Inserts into a full pair.
    #[inline(never)]
    fn insert_by_path(&self, search: &mut Search, effort: &mut Effort, key: Candidates) -> Result<(), InsertError> {
        let Alone { shard, geometry, format, ref locked } = *self;
        if shard.is_saturated(locked, format, key) {
            return Err(too_many_copies(locked, key));
        }
        let path = shard.find_path(search, *effort, geometry, format, key, locked);
        effort.learn(path.is_some());
        let Some(path) = path else {
            locked.note(key.first, Event::RefusedFull);
            return Err(InsertError::Full);
        };
        let (mut freed, mut length) = (None, 0);
        for hop in path {
            freed = shard.relocate(locked, format, hop);
            debug_assert!(freed.is_some(), "a path found under all locks is carried out under them");
            length += 1;
        }
        shard.fill(locked, format, freed.ok_or(InsertError::Full)?, key);
        locked.note(key.first, Event::Path { length, relocated: length });
        Ok(())
    }

    /// Removes one copy of the class and says whether there was one.
    #[inline(always)]
    pub(crate) fn remove(&self, key: Candidates) -> bool {
        self.shard.remove_locked(&self.locked, self.format, key)
    }
}

#[cfg(all(test, not(any(cuckoo_loom, cuckoo_shuttle))))]
mod tests {
    use super::*;
    use crate::fail_point::{Step, with_hook};
    use crate::geometry::Plan;
    use crate::tally::Tallies;
    use std::cell::Cell;
    use std::rc::Rc;

    #[test]
    fn relocations_and_refusals_are_counted() {
        let plan = Plan::new(1000, 16, None).unwrap();
        let (geometry, format) = (Geometry::new(&plan), Format::new(plan.width));
        let shard = Shard::new(plan.words, plan.stripes, plan.stripe_shift).unwrap();
        let alone = shard.alone(&geometry, &format);
        let (mut search, mut effort, mut expected) = (Search::new(), Effort::full(), Tallies::default());
        for hash in 0.. {
            let copied = Rc::new(Cell::new(0));
            let noted = Rc::clone(&copied);
            let hook = move |step| noted.set(noted.get() + u64::from(step == Step::Copied));
            let insert = || alone.insert(&mut search, &mut effort, geometry.locate(hash).1, Admission::Copies);
            let inserted = with_hook(hook, insert).is_ok();
            expected.relocations += copied.get();
            expected.longest_path = expected.longest_path.max(copied.get());
            if !inserted {
                expected.refused_full += 1;
                break;
            }
        }
        let mut found = Tallies::default();
        shard.add_tallies_to(&mut found);
        let numbers = |tallies: &Tallies| {
            let Tallies { relocations, longest_path, refused_full, refused_copies } = *tallies;
            (relocations, longest_path, refused_full, refused_copies)
        };
        assert_eq!(numbers(&found), numbers(&expected));
        assert!(found.longest_path >= 3, "{found:?}");
    }
}
