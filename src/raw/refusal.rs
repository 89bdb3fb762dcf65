//! Refusals without locks. A search without locks proves nothing by itself, since it may miss a moving hole in both
//! places. But if no slot that it read changed between two looks at each stripe, all of them stood there at one moment:
//!
//! 1. The state of each stripe is read, one after the other, at a moment when no writer holds its lock.
//! 2. The slots that the search read are read again in each stripe whose state has changed since the last round, at
//!    first in all of them.
//! 3. Both steps repeat until no state has changed. Between the last state of one round and the first of the next lies
//!    a moment at which the shard held the slots as read, because every section that changes a stripe changes its state
//!    under its lock. At that moment, a search under all locks would have found no path either.

use super::bucket_array::Optimistic;
use super::owner::Owner;
use super::pair::{IfPresent, Put};
use super::shard::Shard;
use super::slots::Slots;
use crate::layout::{Class, SLOTS, Search};
use arrayvec::ArrayVec;

/// The largest number of stripes for which this is tried.
const MAX_STRIPES: usize = 1024;

/// The number of rounds. Each is shorter than the time in which a writer at full speed changes many stripes.
const ROUNDS: usize = 8;

impl<T: Slots> Shard<'_, T> {
    /// Whether the shard had no room for the class at some moment since the call: whether all that the last search
    /// read, in vain and by the epoch `now`, stood there at one moment (models refused_*). Returns `None` if that cannot be
    /// decided here, so that a search under all locks must decide.
    #[cold]
    #[inline(never)]
    pub(crate) fn was_full<H: Owner>(
        self,
        owner: H,
        search: &Search,
        class: Class,
        put: Put,
        now: T::Now,
    ) -> Result<Option<bool>, H::Again> {
        let (stripes, moment) = (self.stripes(), self.slots.moment(now));
        let slots_of = |runs| self.fingerprints(self.format().slots(runs), moment);
        let copies = search.looked_at().take(2).filter(|&(bucket, _)| bucket == class.first || bucket == class.second);
        let copies =
            copies.filter_map(|(_, held)| held).flat_map(slots_of).filter(|&held| held == class.fingerprint.get());
        let most = if put.if_present == IfPresent::Another { SLOTS } else { 1 };
        if !owner.is_final() || stripes.count() > MAX_STRIPES || copies.count() >= most {
            return Ok(None);
        }
        // The table is never split again, so the class stays in it.
        owner.check()?;
        // The state of each stripe, and whether it differs from that of the round before.
        let mut states: ArrayVec<_, MAX_STRIPES> = (0..stripes.count()).map(|_| (None, true)).collect();
        for _ in 0..ROUNDS {
            for (number, (state, changed)) in states.iter_mut().enumerate() {
                let found = Some(stripes.state(number));
                *changed = *state != found;
                *state = found;
            }
            if states.iter().all(|&(_, changed)| !changed) {
                return Ok(Some(self.slots.is_still(now)));
            }
            // A search under locks looks for a short path first. After many refusals, that reads more buckets than the
            // rest of the search.
            let stands = |(bucket, held): (_, Option<[u64; 2]>)| match held.map(slots_of) {
                Some(held) => {
                    !held.contains(&0) && slots_of(self.bucket_array().runs(self.format(), bucket, Optimistic)) == held
                }
                None => !self.bucket_array().matching(bucket, Optimistic, self.room(moment)).any(),
            };
            let mut changed = search.looked_at().filter(|&(bucket, _)| states[stripes.number(bucket)].1);
            if !changed.all(stands) || self.find_short_path(class, moment, Optimistic).is_some() {
                return Ok(Some(false));
            }
        }
        Ok(Some(false))
    }
}

#[cfg(all(test, cuckoo_loom))]
impl<T: Slots> Shard<'_, T> {
    /// A search in vain in a full shard.
    pub(crate) fn searched(self, class: Class) -> Box<Search> {
        let mut search = Box::new(Search::new());
        let budget = crate::layout::SearchBudget::full();
        assert!(self.find_path(&mut search, budget, class, self.moment(), Optimistic).is_none());
        search
    }

    /// Corrects the counts, as after a panic.
    pub(crate) fn mend(self) {
        self.stripes().interrupted().set(true);
        self.stripes().lock_all().mend_counts(|| self.occupied());
    }
}

#[cfg(all(test, not(cuckoo_model)))]
mod tests {
    use super::*;
    use crate::error::InsertError;
    use crate::layout::{Mixed, Plan, SearchBudget};
    use crate::raw::flat::Flat;
    use crate::raw::owner::Fixed;
    use crate::raw::slots::Bare;
    use crate::sys::memory::HugePages;
    use crate::sys::steps::{Step, number_of};

    /// Inserts keys into a shard until 1000 of them are refused, and passes each refused class and the number of these
    /// steps to `refused`.
    fn refusals(flat: &Flat, step: Step, mut refused: impl FnMut(Class, usize)) {
        let (shard, mut hash, mut refusals) = (flat.at(0), 0, 0);
        while refusals < 1000 {
            hash += 1;
            let class = flat.locate(Mixed::of(hash)).1;
            let (steps, Ok(result)) = number_of(step, || shard.insert(Fixed, class, Put::COPY));
            if result == Err(InsertError::Full) {
                refusals += 1;
                refused(class, steps);
            }
        }
    }

    #[test]
    fn a_refusal_is_one_under_all_locks_too() {
        let flat = Flat::<Bare>::new(&Plan::one_shard(13, 256, 4), HugePages::Unadvised).unwrap();
        let shard = flat.at(0);
        refusals(&flat, Step::Locked, |class, locked| {
            assert_eq!(locked, 0, "no stripe is locked where no other thread holds one");
            let (mut search, mut budget) = (Search::new(), SearchBudget::full());
            let again = shard.exclusive().insert(Fixed, &mut search, &mut budget, class, Put::COPY);
            assert_eq!(again, Ok(Err(InsertError::Full)));
        });
        assert_eq!(shard.len(), 1024, "no slot is left");
    }

    /// Where a search without locks proves nothing, the one under all locks follows at once.
    #[test]
    fn a_shard_of_many_stripes_is_searched_once_before_all_locks() {
        let flat = Flat::<Bare>::new(&Plan::one_shard(13, 2048, 0), HugePages::Unadvised).unwrap();
        assert!(flat.at(0).stripes().count() > MAX_STRIPES);
        refusals(&flat, Step::Searched, |_, searched| assert_eq!(searched, 1));
    }
}
