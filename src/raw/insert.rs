//! Insertion. A writer takes one or two locks to use a free slot. If both buckets are full, it relocates keys along a
//! path (`relocate`); as a last resort it takes all locks of the shard (`exclusive`).

use super::bucket_array::Optimistic;
use super::counters::Event;
use super::owner::{Inserted, Owner};
use super::pair::{IfPresent, Put};
use super::shard::Shard;
use super::slots::Slots;
use crate::error::InsertError;
use crate::layout::{Bucket, Class, SLOTS, Search, SearchBudget};
use crate::sys::prefetch::CacheLevel;
use crate::sys::steps::{Step, reached};

/// The number of searches whose result other writers may invalidate before an insertion locks the whole shard.
const ATTEMPTS: usize = 4;

/// The state of the two buckets of a class, read without locks.
struct PairState {
    /// The emptier of the two buckets, if one has room.
    with_room: Option<Bucket>,
    /// Whether all slots of both buckets hold copies of the class.
    saturated: bool,
}

impl<T: Slots> Shard<'_, T> {
    /// Stores a copy of the class or updates one, as [`Put`] specifies.
    #[inline]
    pub(crate) fn insert<H: Owner>(self, owner: H, class: Class, put: Put) -> Inserted<H> {
        self.fetch(class, CacheLevel::L1);
        let change = self.begin_change();
        let result = self.insert_fetched(owner, class, put, &mut SearchBudget::full());
        change.end();
        result
    }

    /// Like [`insert`](Self::insert), for a key of a batch: the caller has prefetched its buckets, and `budget` limits
    /// the search for a path.
    #[inline(always)]
    pub(crate) fn insert_fetched<H: Owner>(
        self,
        owner: H,
        class: Class,
        put: Put,
        budget: &mut SearchBudget,
    ) -> Inserted<H> {
        if put.if_present == IfPresent::Another {
            let look = self.look_for_room(class);
            if let Some(bucket) = look.with_room
                && self.insert_into(owner, bucket, class, put.value)?
            {
                return Ok(Ok(0));
            }
            if look.with_room.is_none() && !look.saturated {
                return self.insert_by_relocation(owner, class, put, budget);
            }
        }
        match self.insert_into_pair(owner, class, put)? {
            Some(result) => Ok(result),
            None => self.insert_by_relocation(owner, class, put, budget),
        }
    }

    /// Reads both buckets without locks. The result may be out of date, so it only selects the next step.
    #[inline(always)]
    fn look_for_room(self, class: Class) -> PairState {
        let moment = self.moment();
        if let Some(slot) = self.bucket_array().lower([class.first, class.second], Optimistic, self.room(moment)) {
            return PairState { with_room: Some(slot.bucket), saturated: false };
        }
        let live = self.live(class.fingerprint, moment);
        let copies = |bucket| self.bucket_array().matching(bucket, Optimistic, live);
        let (first, second) = (copies(class.first), copies(class.second));
        PairState { with_room: None, saturated: first.count(second, self.format()) as usize == 2 * SLOTS }
    }

    /// Stores a copy in this bucket, under only the lock of its stripe. Returns whether there was room.
    ///
    /// One lock is enough, because storing another copy does not depend on the contents of the other bucket. Every
    /// writer that changes this bucket, or that decides by the contents of both buckets, takes this lock, and lookups
    /// cannot distinguish this store from one under both locks. The lock is released before the locks of the pair are
    /// taken (lock order: H3; models one_lock_*).
    #[inline(always)]
    pub(crate) fn insert_into<H: Owner>(
        self,
        owner: H,
        bucket: Bucket,
        class: Class,
        value: u32,
    ) -> Result<bool, H::Again> {
        let held = self.hold(self.stripes().lock_one(bucket));
        owner.check()?;
        let Some(slot) = self.room_in(&held, bucket) else { return Ok(false) };
        self.fill(&held, slot, class, value);
        Ok(true)
    }

    /// Inserts a class whose two buckets are full: searches for a path without locks, and relocates keys along it.
    /// Refuses the class only if there was a moment at which no path existed (`refusal`), or if a search under all
    /// locks of the shard finds no path.
    #[inline(never)]
    fn insert_by_relocation<H: Owner>(
        self,
        owner: H,
        class: Class,
        put: Put,
        budget: &mut SearchBudget,
    ) -> Inserted<H> {
        let found = self.find_short_path(class, self.moment(), Optimistic);
        if let Some(path) = &found
            && let Some(result) = self.relocate_along(owner, path.hops.iter().copied(), class, put)?
        {
            owner.searched(path.buckets);
            budget.learn(true);
            return Ok(result);
        }
        self.insert_by_long_path(owner, class, put, budget)
    }

    #[cold]
    #[inline(never)]
    fn insert_by_long_path<H: Owner>(self, owner: H, class: Class, put: Put, budget: &mut SearchBudget) -> Inserted<H> {
        let mut search = Search::new();
        for _ in 0..ATTEMPTS {
            let now = self.slots.now();
            let path = self.find_path(&mut search, *budget, class, self.slots.moment(now), Optimistic);
            reached(Step::Searched);
            let Some(path) = path else {
                match self.was_full(owner, &search, class, put, now)? {
                    Some(true) => {}
                    Some(false) => continue,
                    None => break,
                }
                budget.learn(false);
                self.stripes().of(class.first).counters.note(Event::RefusedFull);
                return Ok(Err(InsertError::Full));
            };
            let result = self.relocate_along(owner, path, class, put)?;
            owner.searched(search.buckets());
            if let Some(result) = result {
                budget.learn(true);
                return Ok(result);
            }
        }
        self.exclusive().insert(owner, &mut search, budget, class, put)
    }
}
