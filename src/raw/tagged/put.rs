//! Storing a key: where its pair has room, else by a path, and by one under all locks of the shard. As without tags
//! (`raw/insert`, `raw/relocate`, `raw/exclusive`), but that a dead slot is room, and that every decision takes the pair.

use super::super::counters::Event;
use super::super::pair::too_many_copies;
use super::super::table::{Optimistic, Reading};
use super::filter::{Held, TaggedShard};
use super::pair::Put;
use crate::error::InsertError;
use crate::layout::{Bucket, Class, Hop, Moment, Path, SLOTS, Search, SearchBudget, ShortPath, find_short};
use crate::sys::prefetch::CacheLevel;
use crate::sys::sync::MutexGuard;

/// Paths that other writers may spoil before an insertion takes the whole shard for itself.
const ATTEMPTS: usize = 4;

impl<'a> TaggedShard<'a> {
    /// Stores the class, or does what is to be done where it is present. Returns the value that it had, 0 if it was
    /// absent.
    #[inline]
    pub(crate) fn put(self, put: Put) -> Result<u32, InsertError> {
        self.shard.fetch(put.class, CacheLevel::L1);
        let change = self.shard.begin_change();
        let result = self.put_fetched(put, &mut SearchBudget::full());
        change.end();
        result
    }

    /// The same for a key whose buckets are on their way: one of many.
    #[inline]
    pub(crate) fn put_fetched(self, put: Put, budget: &mut SearchBudget) -> Result<u32, InsertError> {
        match self.put_into_pair(put) {
            Some(result) => result,
            None => self.put_by_path(put, budget),
        }
    }

    /// The same if that takes no relocation; `None` if the pair is full.
    #[inline]
    pub(crate) fn put_into_pair(self, put: Put) -> Option<Result<u32, InsertError>> {
        let held = self.hold(self.shard.stripes().lock_pair(put.class.first, put.class.second));
        match self.put_in_pair(&held, put) {
            Some(had) => Some(Ok(had)),
            None => self.is_saturated(&held, put.class).then(|| Err(too_many_copies(&held.locked, put.class))),
        }
    }

    /// Searches without locks and carries the path out hop by hop. Only a search under all locks refuses.
    #[inline(never)]
    fn put_by_path(self, put: Put, budget: &mut SearchBudget) -> Result<u32, InsertError> {
        if let Some(path) = self.find_short_path(put.class)
            && let Some(result) = self.carry_out(path.hops(), put)
        {
            budget.learn(true);
            return result;
        }
        let mut search = Search::new();
        for _ in 0..ATTEMPTS {
            let moment = self.filter.moment();
            let Some(path) = self.find_path(&mut search, *budget, put.class, moment, Optimistic) else { break };
            if let Some(result) = self.carry_out(path, put) {
                budget.learn(true);
                return result;
            }
        }
        self.exclusive().put(&mut search, budget, put)
    }

    /// What a slot means to a search: nothing if it is empty or dead.
    #[inline(always)]
    fn fingerprints(self, slots: [u32; SLOTS], moment: Moment) -> [u32; SLOTS] {
        slots.map(|slot| self.tags().fingerprint(slot, moment).map_or(0, |fingerprint| fingerprint.get()))
    }

    /// A path of one or two hops.
    #[inline]
    fn find_short_path(self, class: Class) -> Option<ShortPath> {
        let (moment, tags) = (self.filter.moment(), self.tags());
        find_short(
            [class.first, class.second],
            |bucket| self.table().runs(self.format(), bucket, Optimistic),
            |runs| self.fingerprints(self.format().slots(runs), moment),
            |[low, high]| tags.room(low, moment) != 0 || self.format().has_two_runs() && tags.room(high, moment) != 0,
            |fingerprint, bucket| self.shard.geometry().alternate(fingerprint, bucket),
        )
    }

    fn find_path<'s, R: Reading>(
        self,
        search: &'s mut Search,
        budget: SearchBudget,
        class: Class,
        moment: Moment,
        reading: R,
    ) -> Option<Path<'s>> {
        let slots = |bucket| self.fingerprints(self.table().slots(bucket, reading), moment);
        search.find(
            budget,
            [class.first, class.second],
            slots,
            |bucket| self.room(bucket, moment, reading).any(),
            |fingerprint, bucket| self.shard.geometry().alternate(fingerprint, bucket),
            |_: Bucket| {},
        )
    }

    /// Moves the hole from the free end of the path to the pair of the key and fills it, each hop under its own locks.
    /// `None` if another writer, or a tick, spoiled the path: what was moved by then has moved rightly (H5).
    pub(crate) fn carry_out(self, path: impl IntoIterator<Item = Hop>, put: Put) -> Option<Result<u32, InsertError>> {
        let mut hops = path.into_iter().zip(1..).peekable();
        while let Some((hop, length)) = hops.next() {
            if hops.peek().is_none() {
                return self.last_hop(hop, length, put).map(Ok);
            }
            if !self.hop(hop) {
                return None;
            }
        }
        // Room appeared in the pair itself while it was searched.
        self.put_into_pair(put)
    }

    /// A hop within the path, under the locks of its own pair.
    pub(crate) fn hop(self, hop: Hop) -> bool {
        let held = self.hold(self.shard.stripes().lock_pair(hop.from, hop.to));
        let moved = self.relocate(&held, hop).is_some();
        if moved {
            held.locked.note(hop.from, Event::Relocated);
        }
        moved
    }

    /// The hop out of the pair of the key and its insertion, in one critical section. The key is looked for, and so is
    /// room, as if there had been no search (H4).
    fn last_hop(self, hop: Hop, length: u64, put: Put) -> Option<u32> {
        let Put { class, value, .. } = put;
        let held = self.hold(self.shard.stripes().lock_three([class.first, class.second, hop.to]));
        if let Some(had) = self.put_in_pair(&held, put) {
            return Some(had);
        }
        let freed = self.relocate(&held, hop)?;
        self.fill(&held, freed, class, value);
        held.locked.note(hop.from, Event::Path { length, relocated: 1 });
        Some(0)
    }
}

/// The only writer of a shard, until dropped.
pub(crate) struct Exclusive<'a> {
    shard: TaggedShard<'a>,
    held: Held<'a, Vec<MutexGuard<'a>>>,
}

impl<'a> TaggedShard<'a> {
    /// Locks the other writers out.
    pub(crate) fn exclusive(self) -> Exclusive<'a> {
        Exclusive { shard: self, held: self.hold(self.shard.stripes().lock_all()) }
    }
}

impl Drop for Exclusive<'_> {
    /// As without tags: the next writer that locks the shard finds the note.
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.shard.shard.stripes().note_interrupted();
        }
    }
}

impl Exclusive<'_> {
    /// Stores the class where no other writer spoils the path. Only this may say that the shard is full.
    pub(crate) fn put(&self, search: &mut Search, budget: &mut SearchBudget, put: Put) -> Result<u32, InsertError> {
        let Exclusive { shard, ref held } = *self;
        let Put { class, value, .. } = put;
        if let Some(had) = shard.put_in_pair(held, put) {
            return Ok(had);
        }
        if shard.is_saturated(held, class) {
            return Err(too_many_copies(&held.locked, class));
        }
        let path = shard.find_path(search, *budget, class, held.moment, &held.locked);
        budget.learn(path.is_some());
        let Some(path) = path else {
            held.locked.note(class.first, Event::RefusedFull);
            return Err(InsertError::Full);
        };
        let (mut freed, mut length) = (None, 0);
        for hop in path {
            freed = shard.relocate(held, hop);
            debug_assert!(freed.is_some(), "a path found under all locks is carried out under them");
            length += 1;
        }
        shard.fill(held, freed.ok_or(InsertError::Full)?, class, value);
        held.locked.note(class.first, Event::Path { length, relocated: length });
        Ok(0)
    }
}
