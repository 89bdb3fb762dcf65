//! Expiring filters: a deadline beside each fingerprint.

use super::ExpiringFilter;
use super::batch::assert_same_length;
use super::key::BatchKey;
use super::kind::{Expiring, sealed::Insert};
use crate::error::InsertError;
use crate::raw::{Answers, IfPresent, Put};
use crate::report::BulkReport;
use core::borrow::Borrow;
use core::hash::{BuildHasher, Hash};
use core::time::Duration;

impl<K: ?Sized, S: BuildHasher> ExpiringFilter<K, S> {
    /// Stores a copy of the key with its own life: at least `life`, and at most two ticks longer.
    ///
    /// # Errors
    /// Those of [`insert`](ExpiringFilter::insert), and [`InsertError::BeyondTimeToLive`] for a life above the
    /// [time to live](ExpiringFilter::time_to_live).
    ///
    /// ```
    /// use concurrent_cuckoo_filter::{ExpiringFilter, InsertError};
    /// use std::time::Duration;
    ///
    /// let minute = Duration::from_secs(60);
    /// let blocked = ExpiringFilter::<String>::builder().capacity(100).time_to_live(60 * minute).build()?;
    /// blocked.insert_for("192.0.2.1", 10 * minute)?;
    /// blocked.advance_to(20 * minute);
    /// assert!(!blocked.contains("192.0.2.1"));
    /// assert_eq!(blocked.insert_for("192.0.2.1", 61 * minute), Err(InsertError::BeyondTimeToLive));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn insert_for<Q: ?Sized + Hash>(&self, key: &Q, life: Duration) -> Result<(), InsertError>
    where
        K: Borrow<Q>,
    {
        let longest = self.life().filter(|longest| life <= longest.time).ok_or(InsertError::BeyondTimeToLive)?;
        let value = longest.ticks_for(life);
        self.raw.put(self.mixed(key), Put { value, if_present: IfPresent::Another }).map(|_| ())
    }

    /// Restarts the time of a live key, and returns whether it lives. A dead or absent key stays so.
    ///
    /// # Complexity
    /// Two buckets under one lock or two, and one store.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::ExpiringFilter;
    /// use std::time::Duration;
    ///
    /// let sessions = ExpiringFilter::<String>::builder().capacity(100).time_to_live(Duration::from_secs(60)).build()?;
    /// sessions.insert("session")?;
    /// sessions.advance_to(Duration::from_secs(50));
    /// assert!(sessions.renew("session"));
    /// sessions.advance_to(Duration::from_secs(100));
    /// assert!(sessions.contains("session"));
    /// assert!(!sessions.renew("another"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn renew<Q: ?Sized + Hash>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.raw.update(self.mixed(key), None, |had| had.max(self.time.whole)) != 0
    }

    /// Returns whether the key was seen within the time to live, and records it as seen now: a sliding window. One critical section,
    /// so that of several threads that see a new key at the same time one gets `false`.
    ///
    /// # Errors
    /// [`InsertError::Full`] and, in a growing filter, [`InsertError::OutOfMemory`]: the key was not seen, and there is no room to
    /// record it.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::ExpiringFilter;
    /// use std::time::Duration;
    ///
    /// let seen = ExpiringFilter::<u64>::builder().capacity(100).time_to_live(Duration::from_secs(60)).build()?;
    /// assert!(!seen.see(&7)?);
    /// seen.advance_to(Duration::from_secs(50));
    /// assert!(seen.see(&7)?);
    /// seen.advance_to(Duration::from_secs(100));
    /// assert!(seen.see(&7)?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn see<Q: ?Sized + Hash>(&self, key: &Q) -> Result<bool, InsertError>
    where
        K: Borrow<Q>,
    {
        self.raw.put(self.mixed(key), Expiring::put(&self.time, IfPresent::Raise)).map(|had| had != 0)
    }

    /// Sees each key, in order: `seen[i]` is the result of [`see`](ExpiringFilter::see) for `keys[i]`, and `false` if it is refused. The
    /// report counts new keys as inserted and the others as present.
    ///
    /// # Panics
    /// If `keys` and `seen` differ in length.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::ExpiringFilter;
    /// use std::time::Duration;
    ///
    /// let filter = ExpiringFilter::<String>::builder().capacity(100).time_to_live(Duration::from_secs(60)).build()?;
    /// let mut seen = [false; 3];
    /// let report = filter.see_batch(&["a", "b", "a"], &mut seen);
    /// assert_eq!((report.inserted, report.present), (2, 1));
    /// assert_eq!(seen, [false, false, true]);
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    #[track_caller]
    pub fn see_batch<Q: BatchKey<K, F>, F>(&self, keys: &[Q], seen: &mut [bool]) -> BulkReport {
        assert_same_length(keys.len(), seen.len());
        self.put_batch(keys, Expiring::put(&self.time, IfPresent::Raise), Answers::Present(seen))
    }
}
