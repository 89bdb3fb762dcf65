//! Many keys: the buckets of some are fetched from memory while those before them are worked on.

use super::Core;
use crate::batch::assert_same_length;
use crate::error::InsertError;
use crate::layout::{Mixed, SearchBudget};
use crate::raw::{IfPresent, Put, TaggedShard, rolling};
use crate::report::BulkReport;
use crate::sys::prefetch::CacheLevel;
use core::borrow::Borrow;
use core::hash::{BuildHasher, Hash};
#[cfg(feature = "rayon")]
use rayon::prelude::*;

/// Keys whose lines are on their way.
const AHEAD: usize = 16;

/// Keys that a thread works on at a time.
#[cfg(feature = "rayon")]
const KEYS_OF_A_JOB: usize = 1 << 12;

impl<S: BuildHasher> Core<S> {
    /// Looks the keys up.
    ///
    /// # Panics
    /// If there is not one answer for each key.
    #[track_caller]
    pub(super) fn contains_batch<K: ?Sized + Hash, T: Borrow<K>>(&self, keys: &[T], found: &mut [bool]) {
        assert_same_length(keys.len(), found.len());
        self.look_at_each(keys, found, |mixed| self.raw.contains(mixed));
    }

    /// Asks something of each key, in a window.
    pub(super) fn look_at_each<K: ?Sized + Hash, T: Borrow<K>, A>(
        &self,
        keys: &[T],
        answers: &mut [A],
        ask: impl Fn(Mixed) -> A,
    ) {
        let keys = keys.iter().zip(answers).map(|(key, answer)| {
            let mixed = self.mixed::<K>(key.borrow());
            let (shard, class) = self.raw.locate(mixed);
            shard.fetch(class, CacheLevel::L1);
            (mixed, answer)
        });
        rolling::<AHEAD, _>(keys, |_| {}, |(mixed, answer)| *answer = ask(mixed));
    }

    /// Does with each key what is to be done, tells what value it had, and reports which were new and which were refused.
    pub(super) fn put_batch<K: ?Sized + Hash, T: Borrow<K>>(
        &self,
        keys: &[T],
        value: u32,
        if_present: IfPresent,
        mut tell: impl FnMut(usize, Result<u32, InsertError>),
    ) -> BulkReport {
        let (mut report, mut budget) = (BulkReport::default(), SearchBudget::full());
        let change = self.raw.shards.begin_change();
        let keys = keys.iter().enumerate().map(|(index, key)| {
            let (shard, class) = self.locate::<K>(key.borrow());
            shard.fetch(class, CacheLevel::L1);
            (index, shard, class)
        });
        let work = |(index, shard, class): (usize, TaggedShard<'_>, _)| {
            let had = shard.put_fetched(Put { class, value, if_present }, &mut budget);
            report.note(index, had.map(|had| had == 0), usize::MAX);
            tell(index, had);
        };
        rolling::<AHEAD, _>(keys, |_| {}, work);
        change.end();
        report
    }

    /// The same on the threads of the caller's rayon pool, in jobs of some thousand keys.
    #[cfg(feature = "rayon")]
    pub(super) fn par_put<K: ?Sized + Hash, T: Borrow<K> + Sync>(
        &self,
        keys: &[T],
        value: u32,
        if_present: IfPresent,
    ) -> BulkReport
    where
        S: Sync,
    {
        let jobs =
            keys.par_chunks(KEYS_OF_A_JOB).map(|keys| self.put_batch::<K, T>(keys, value, if_present, |_, _| {}));
        let mut all = BulkReport::default();
        for (job, report) in jobs.collect::<Vec<_>>().into_iter().enumerate() {
            all.append(job * KEYS_OF_A_JOB, report, usize::MAX);
        }
        all
    }
}
