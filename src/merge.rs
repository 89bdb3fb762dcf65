//! All that one filter holds, stored in another one that was built alike.

use crate::error::{InsertError, MergeError};
use crate::filter::CuckooFilter;
use crate::hashing::probe;
use crate::layout::{Search, SearchBudget};
use crate::raw::{Admission, Fixed, Growing, KEYS_UNDER_LOCKS, Shard, Shards};
use crate::report::MergeReport;
use crate::sys::memory::HugePages;
use core::hash::BuildHasher;

impl<K: ?Sized, S: BuildHasher> CuckooFilter<K, S> {
    /// Stores a copy of all that the other filter holds, while both serve. What is refused for lack of room is counted;
    /// nothing else is lost.
    ///
    /// Both must have been built with the same capacity and rate or width, and the same hasher with the same keys: two filters
    /// with default hashers have seeds of their own, and cannot be merged. Give both a clone of one hasher
    /// ([`Builder::hasher`](crate::Builder::hasher)), or begin the second as a [clone](CuckooFilter::try_clone) of the first.
    /// Every key that the other one holds from the beginning of the call to its end is merged; one that is inserted or
    /// removed there meanwhile may be or not. Keys that both hold are held twice afterwards, and take two removals. A
    /// filter may be merged with itself, which doubles its copies, and two with each other at the same time.
    ///
    /// # Errors
    /// [`MergeError`] if the two were built differently or there is no memory; nothing has changed then.
    ///
    /// # Complexity
    /// A shard at a time is copied under the locks of the other filter, and stored under those of this one: never are
    /// both held. Lookups go on in both. Memory: two copies of one shard.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::{CuckooFilter, StableHashBuilder};
    ///
    /// let build = || CuckooFilter::<str, _>::with_capacity_and_hasher(100, StableHashBuilder::with_keys(1, 2));
    /// let (one, other) = (build(), build());
    /// one.insert("a.com")?;
    /// other.insert("b.com")?;
    /// let report = one.merge_from(&other)?;
    /// assert_eq!((report.inserted, report.refused), (1, 0));
    /// assert!(one.contains("a.com") && one.contains("b.com"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn merge_from(&self, other: &Self) -> Result<MergeReport, MergeError> {
        if !self.plan().places_alike(other.plan()) {
            return Err(MergeError::SizesDiffer);
        }
        if probe(self.hasher()) != probe(other.hasher()) {
            return Err(MergeError::HashersDiffer);
        }
        if let (Some(to), Some(from)) = (self.raw.growing(), other.raw.growing()) {
            return merge_growing(to, from, self.plan().words);
        }
        let mut plan = *self.plan();
        (plan.shards, plan.stripes, plan.stripe_shift) = (1, 1, u32::BITS - 1);
        let bytes = plan.words * size_of::<u64>();
        let mut words = room_for(plan.words)?;
        let copy = Shards::new(&plan, HugePages::Unadvised.into()).ok_or(MergeError::OutOfMemory { bytes })?;
        let mut report = MergeReport::default();
        for (shard, from) in self.raw.shards.each().zip(other.raw.shards.each()) {
            let count = from.copy_to(&mut words);
            copy.at(0).fill_with(words.iter().copied(), count);
            store_all(shard, copy.at(0), &mut report);
        }
        Ok(report)
    }
}

/// The same for filters that grow, whose tables may have doubled differently.
fn merge_growing(to: &Growing, from: &Growing, words: usize) -> Result<MergeReport, MergeError> {
    let mut words = room_for(words)?;
    let (mut report, mut budget) = (MergeReport::default(), SearchBudget::full());
    from.copy_each(0..from.shards(), &mut words, |copy, words| {
        for aim in from.aims(copy, words) {
            report.note(to.insert_fetched(aim, Admission::Copies, &mut budget));
        }
        Ok(())
    })?;
    Ok(report)
}

fn room_for(words: usize) -> Result<Vec<u64>, MergeError> {
    let bytes = words * size_of::<u64>();
    let mut room = Vec::new();
    room.try_reserve_exact(words).map_err(|_| MergeError::OutOfMemory { bytes })?;
    room.resize(words, 0);
    Ok(room)
}

impl MergeReport {
    fn note(&mut self, result: Result<bool, InsertError>) {
        match result {
            Ok(_) => self.inserted += 1,
            Err(_) => self.refused += 1,
        }
    }
}

/// Stores all that the copy holds.
fn store_all(shard: Shard<'_>, copy: Shard<'_>, report: &mut MergeReport) {
    let (mut search, mut budget) = (Search::new(), SearchBudget::full());
    let mut classes = copy.classes().peekable();
    while classes.peek().is_some() {
        let exclusive = shard.exclusive();
        for class in classes.by_ref().take(KEYS_UNDER_LOCKS) {
            let Ok(result) = exclusive.insert(Fixed, &mut search, &mut budget, class, Admission::Copies);
            report.note(result);
        }
    }
}
