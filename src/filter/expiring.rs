//! Expiring filters: a deadline beside each fingerprint.

use super::Filter;
use super::batch::assert_same_length;
use super::key::BatchKey;
use super::kind::Expiring;
use crate::error::InsertError;
use crate::hashing::DefaultHashBuilder;
use crate::raw::{Answers, IfPresent, Put};
use crate::report::BulkReport;
use core::borrow::Borrow;
use core::hash::{BuildHasher, Hash};
use core::time::Duration;

/// A [`Filter`] whose keys are forgotten after a time: "was it seen in the last 24 hours?".
///
/// The low bits of each slot are a deadline, counted in *ticks*: the time to live is divided into
/// [steps](crate::Builder::steps), 6 by default, of one [tick](crate::Config::tick) each. A key lives at least its time to live and at most one
/// tick longer. There is no clock and no thread inside: a timer calls [`advance_to`](Filter::advance_to). A filter that is never
/// advanced forgets nothing, so that a stopped timer never makes a lookup miss a key.
///
/// ```
/// use concurrent_cuckoo_filter::ExpiringFilter;
/// use std::time::Duration;
///
/// let hour = Duration::from_secs(3600);
/// let seen = ExpiringFilter::<String>::builder().capacity(1_000_000).time_to_live(24 * hour).build()?;
/// assert_eq!(seen.config().tick, Some(4 * hour));
/// assert!(!seen.see("a.com")?); // not seen before
/// assert!(seen.see("a.com")?); // seen now, and for 24 hours from now on
/// seen.advance_to(25 * hour); // from a timer: `start.elapsed()`
/// assert!(seen.contains("a.com")); // at most one tick of 4 hours longer
/// seen.advance_to(28 * hour);
/// assert!(!seen.contains("a.com"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Consistency
/// A lookup repeats once more per tick that comes while it runs. A key is found by every lookup that begins before its deadline, unless it
/// was removed. A renewal concurrent with the very tick at which its key dies is the one operation that takes effect at two moments:
/// it returns that the key lived, a lookup after the tick misses the key, and then the key lives again.
///
/// # Classes
/// Each copy has a deadline of its own. [`insert`](Filter::insert) stores one more on each call, up to 8 live copies per class;
/// [`see`](Filter::see), [`renew`](Filter::renew) and [`remove`](Filter::remove) work on the copy that dies first, so that no key of the
/// same class dies before its time. Two rules are left to the caller:
/// - Remove a key only while it lives. After its deadline, a removal may remove another key of its class, with the probability of a
///   false positive.
/// - Where keys are renewed or seen, remove none of them: a key that was taken for present by mistake has no copy of its own, and
///   removing it removes the copy of another key.
///
/// The capacity is the largest number of keys alive at the same time. With a [`max_capacity`](crate::Builder::max_capacity) the filter
/// grows to that; it never shrinks when keys die.
pub type ExpiringFilter<K, S = DefaultHashBuilder> = Filter<K, S, Expiring>;

impl<K: ?Sized, S: BuildHasher> ExpiringFilter<K, S> {
    /// Stores a copy of the key with its own life: at least `life`, and at most two ticks longer.
    ///
    /// # Errors
    /// Those of [`insert`](ExpiringFilter::insert), and [`InsertError::BeyondTimeToLive`] for a life above the
    /// [time to live](crate::Config::time_to_live).
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
    #[inline]
    pub fn see<Q: ?Sized + Hash>(&self, key: &Q) -> Result<bool, InsertError>
    where
        K: Borrow<Q>,
    {
        self.raw.put(self.mixed(key), self.put(IfPresent::Raise)).map(|had| had != 0)
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
        self.put_batch(keys, self.put(IfPresent::Raise), Answers::Present(seen))
    }
}
