//! Many keys: batches on the calling thread, and on all threads of a rayon pool.

use super::Core;
use crate::batch::{assert_same_length, lookup_batch};
use crate::layout::Mixed;
use crate::raw::{Answers, Put};
use crate::report::{BulkReport, RemoveReport};
use core::borrow::Borrow;
use core::hash::{BuildHasher, Hash};

impl<S: BuildHasher> Core<S> {
    /// Looks the keys up.
    ///
    /// # Panics
    /// If there is not one answer for each key.
    #[track_caller]
    pub(super) fn contains_batch<K: ?Sized + Hash, T: Borrow<K>>(&self, keys: &[T], found: &mut [bool]) {
        lookup_batch(&self.raw, keys, |key| self.mixed::<K>(key.borrow()), found);
    }

    /// Asks something of each key.
    ///
    /// # Panics
    /// If there is not one answer for each key.
    #[track_caller]
    pub(super) fn look_at_each<K: ?Sized + Hash, T: Borrow<K>, A>(
        &self,
        keys: &[T],
        answers: &mut [A],
        ask: impl Fn(Mixed) -> A,
    ) {
        assert_same_length(keys.len(), answers.len());
        let hashes = keys.iter().map(|key| self.mixed::<K>(key.borrow()));
        self.raw.fetch_each(hashes.zip(answers), |mixed, answer| *answer = ask(mixed));
    }

    /// Does with each key what is to be done, and reports which were new and which were refused.
    pub(super) fn put_batch<K: ?Sized + Hash, T: Borrow<K>>(
        &self,
        keys: &[T],
        put: Put,
        answers: Answers<'_>,
    ) -> BulkReport {
        let hashes = &mut keys.iter().map(|key| self.mixed::<K>(key.borrow()));
        self.raw.insert_each(hashes, put, usize::MAX, answers)
    }

    /// Removes of each key the copy with this value, or the one that dies first, and reports which were missing.
    pub(super) fn remove_batch<K: ?Sized + Hash, T: Borrow<K>>(&self, keys: &[T], value: Option<u32>) -> RemoveReport {
        let hashes = &mut keys.iter().map(|key| self.mixed::<K>(key.borrow()));
        self.raw.remove_each(hashes, value, usize::MAX)
    }

    /// The same as [`Core::put_batch`] on the threads of the caller's rayon pool.
    #[cfg(feature = "rayon")]
    pub(super) fn par_put<K: ?Sized + Hash, T: Borrow<K> + Sync>(&self, keys: &[T], put: Put) -> BulkReport
    where
        S: Sync,
    {
        crate::bulk::par_put(&self.raw, keys, |key| self.mixed::<K>(key.borrow()), put)
    }

    /// # Panics
    /// If there is not one answer for each key.
    #[cfg(feature = "rayon")]
    #[track_caller]
    pub(super) fn par_contains<K: ?Sized + Hash, T: Borrow<K> + Sync>(&self, keys: &[T], found: &mut [bool])
    where
        S: Sync,
    {
        crate::bulk::par_contains(&self.raw, keys, |key| self.mixed::<K>(key.borrow()), found);
    }
}
