//! Keys that are forgotten by themselves: a deadline beside each fingerprint.

use super::clock::timed_methods;
use super::{Core, Life, common_methods, common_settings};
use crate::batch::assert_same_length;
use crate::builder::Builder;
use crate::error::{BuildError, InsertError, InsertForError, MergeError};
use crate::hashing::DefaultHashBuilder;
use crate::layout::Plan;
use crate::raw::{Answers, IfPresent, Put};
use crate::report::{BulkReport, MergeReport, RemoveReport};
use core::borrow::Borrow;
use core::fmt;
use core::hash::{BuildHasher, Hash};
use core::marker::PhantomData;
use core::time::Duration;

/// Steps of a filter that was not asked for any: with a tag of 3 bits, 13 are left to a fingerprint in slots of 16.
pub(super) const DEFAULT_STEPS: u32 = 6;

/// A concurrent cuckoo filter whose keys are forgotten after a time: "was it seen in the last 24 hours?".
///
/// Some bits beside each fingerprint are its deadline, counted in *ticks*: the time to live is divided into
/// [steps](ExpiringBuilder::steps), 6 by default, of one [tick](ExpiringFilter::tick) each. A key lives at least as long as
/// was asked, and at most one tick longer. All that dies at a tick dies at once, for one store; what is dead takes no room
/// and causes no false positives.
///
/// There is no clock and no thread inside. Call [`advance_to`](ExpiringFilter::advance_to) from a timer, some times a tick,
/// with the time that has passed. **Time that stands still keeps keys**: without these calls nothing is forgotten, and
/// nothing that should be there is ever missed.
///
/// ```
/// use concurrent_cuckoo_filter::ExpiringFilter;
/// use std::time::Duration;
///
/// let hour = Duration::from_secs(3600);
/// let seen = ExpiringFilter::<str>::builder().capacity(1_000_000).time_to_live(24 * hour).build()?;
/// assert_eq!(seen.tick(), 4 * hour);
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
/// What [`CuckooFilter`](crate::CuckooFilter) says of threads holds here: every method takes `&self`, lookups take no lock and
/// wait for no writer, operations on one key take effect at one moment, and a write is visible to every thread when it
/// returns. A lookup repeats once more for each tick that comes while it runs. A key is found by every lookup that begins
/// before its deadline, unless it was removed. A renewal that meets the very tick at which its key dies is the one operation that
/// takes effect at two moments: it tells that the key lived, a lookup after the tick misses it, and then it lives again.
///
/// # Classes
/// Keys of equal fingerprint and equal bucket pair are one class, here too. A copy has a deadline of its own.
/// [`insert`](ExpiringFilter::insert) stores one more each time, up to 8 live ones a class;
/// [`see`](ExpiringFilter::see), [`renew`](ExpiringFilter::renew) and [`remove`](ExpiringFilter::remove) work on the copy that
/// dies first, so that no class mate ever dies before its time. Two things are the user's to see to:
/// - Remove a key only while it lives. After its deadline a removal may, as often as a lookup is wrong, take a class mate.
/// - Where keys are renewed or seen, remove none of them: a key that was taken for present by mistake has no copy of its
///   own, and its removal takes that of a class mate.
///
/// # What may block
/// As [`CuckooFilter`](crate::CuckooFilter); `see` and `renew` are as its `insert` and `remove`.
/// [`advance`](ExpiringFilter::advance) and its kind read all the memory, a few microseconds under each lock, and wait for
/// each other: in an async server, on a thread of their own. A writer that is stopped in the middle of its work holds the next
/// tick up, and no lookup.
///
/// Its capacity is the largest number of keys that are to live at a time. With a
/// [`max_capacity`](ExpiringBuilder::max_capacity) it grows to that; it never shrinks when keys die.
pub struct ExpiringFilter<K: ?Sized, S = DefaultHashBuilder> {
    pub(crate) core: Core<S>,
    key: PhantomData<fn(&K)>,
}

impl<K: ?Sized> ExpiringFilter<K> {
    /// Begins a filter. It needs a [capacity](ExpiringBuilder::capacity) and a
    /// [time to live](ExpiringBuilder::time_to_live).
    ///
    /// ```
    /// use concurrent_cuckoo_filter::ExpiringFilter;
    /// use std::time::Duration;
    ///
    /// let filter = ExpiringFilter::<u64>::builder().capacity(1_000).time_to_live(Duration::from_secs(60)).build()?;
    /// assert_eq!(filter.tick(), Duration::from_secs(10));
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    pub fn builder() -> ExpiringBuilder<K> {
        ExpiringBuilder { inner: Builder::new(), time_to_live: Duration::ZERO, steps: DEFAULT_STEPS }
    }
}

impl<K: ?Sized, S> ExpiringFilter<K, S> {
    fn life(&self) -> &Life {
        self.core.life().expect("keys expire")
    }

    /// The time between two ticks: the time to live by the steps that fit its bits.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::ExpiringFilter;
    /// use std::time::Duration;
    ///
    /// let filter = ExpiringFilter::<u64>::builder().capacity(100).time_to_live(Duration::from_secs(60)).steps(10).build()?;
    /// assert_eq!(filter.tick(), Duration::from_secs(60).div_f64(14.0)); // 4 bits are good for 14
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    #[must_use]
    pub fn tick(&self) -> Duration {
        self.life().tick
    }

    /// The time that a key lives at least.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::ExpiringFilter;
    /// use std::time::Duration;
    ///
    /// let filter = ExpiringFilter::<u64>::builder().capacity(100).time_to_live(Duration::from_secs(60)).build()?;
    /// assert_eq!(filter.time_to_live(), Duration::from_secs(60));
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    #[must_use]
    pub fn time_to_live(&self) -> Duration {
        self.life().time
    }
}

common_methods!(
    ExpiringFilter,
    "ExpiringFilter::<u64>::builder().capacity(100).time_to_live(std::time::Duration::from_secs(60)).build()?",
    "insert(&1)",
    "Counts the slots in use: live copies, and those that have died but were neither swept nor overwritten yet.",
    "Says whether the key is present and alive: \"no\" is certain, \"yes\" is wrong at the rate that was asked for, or for a \
     key that died a moment ago. It waits for no tick either, and reads the line of the epoch, which changes once a tick.",
    shown: time_to_live, tick, epoch
);

timed_methods!(
    ExpiringFilter,
    "ExpiringFilter::<u64>::builder().capacity(100).time_to_live(std::time::Duration::from_secs(60)).build()?",
    "insert(&1)"
);

impl<K: ?Sized + Hash, S: BuildHasher> ExpiringFilter<K, S> {
    /// Stores a copy of the key with a deadline of its own, whether it is present or not. For a set, which takes one slot a
    /// key, use [`see`](ExpiringFilter::see) or [`insert_unique`](ExpiringFilter::insert_unique).
    ///
    /// # Errors
    /// [`InsertError::Full`] and [`InsertError::TooManyCopies`] leave the filter as it was.
    ///
    /// # Complexity
    /// Two buckets under one lock or two; where both are full, relocations as of
    /// [`CuckooFilter::insert`](crate::CuckooFilter::insert).
    ///
    /// ```
    /// use concurrent_cuckoo_filter::ExpiringFilter;
    /// use std::time::Duration;
    ///
    /// let filter = ExpiringFilter::<str>::builder().capacity(100).time_to_live(Duration::from_secs(60)).build()?;
    /// filter.insert("key")?;
    /// assert!(filter.contains("key"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn insert(&self, key: &K) -> Result<(), InsertError> {
        self.put(key, self.core.whole, IfPresent::Another).map(|_| ())
    }

    /// The same for a life of its own: at least this long, at most two ticks longer.
    ///
    /// # Errors
    /// [`InsertForError::Refused`] as [`insert`](ExpiringFilter::insert), and [`InsertForError::BeyondTimeToLive`] for more
    /// than the [time to live](ExpiringFilter::time_to_live).
    ///
    /// ```
    /// use concurrent_cuckoo_filter::ExpiringFilter;
    /// use std::time::Duration;
    ///
    /// let minute = Duration::from_secs(60);
    /// let blocked = ExpiringFilter::<str>::builder().capacity(100).time_to_live(60 * minute).build()?;
    /// blocked.insert_for("192.0.2.1", 10 * minute)?;
    /// blocked.advance_to(20 * minute);
    /// assert!(!blocked.contains("192.0.2.1"));
    /// assert!(blocked.insert_for("192.0.2.1", 61 * minute).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn insert_for(&self, key: &K, life: Duration) -> Result<(), InsertForError> {
        let time_to_live = self.time_to_live();
        if life > time_to_live {
            return Err(InsertForError::BeyondTimeToLive { asked: life, time_to_live });
        }
        self.put(key, self.life().ticks_for(life), IfPresent::Another)?;
        Ok(())
    }

    /// Stores the key if it is absent or dead, and says whether it was: `true` once a window, counted from the first sight.
    /// Of several threads that do this with one key at the same time, one at the most is told `true`.
    ///
    /// # Errors
    /// [`InsertError::Full`] leaves the filter as it was.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::ExpiringFilter;
    /// use std::time::Duration;
    ///
    /// let alarms = ExpiringFilter::<str>::builder().capacity(100).time_to_live(Duration::from_secs(60)).build()?;
    /// assert!(alarms.insert_unique("disk full")?);
    /// assert!(!alarms.insert_unique("disk full")?);
    /// alarms.advance_to(Duration::from_secs(70));
    /// assert!(alarms.insert_unique("disk full")?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn insert_unique(&self, key: &K) -> Result<bool, InsertError> {
        self.put(key, self.core.whole, IfPresent::Keep).map(|had| had == 0)
    }

    /// Lets a key that lives begin its time anew, and says whether it lives. A dead or absent one stays so.
    ///
    /// # Complexity
    /// Two buckets under one lock or two, and one store.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::ExpiringFilter;
    /// use std::time::Duration;
    ///
    /// let sessions = ExpiringFilter::<str>::builder().capacity(100).time_to_live(Duration::from_secs(60)).build()?;
    /// sessions.insert("session")?;
    /// sessions.advance_to(Duration::from_secs(50));
    /// assert!(sessions.renew("session"));
    /// sessions.advance_to(Duration::from_secs(100));
    /// assert!(sessions.contains("session"));
    /// assert!(!sessions.renew("another"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn renew(&self, key: &K) -> bool {
        self.core.raw.update(self.core.mixed(key), None, |had| had.max(self.core.whole)) != 0
    }

    /// Says whether the key was seen within the time to live, and notes it as seen now: a sliding window. One critical
    /// section, so that of several threads that see a new key at the same time one is told `false`.
    ///
    /// # Errors
    /// [`InsertError::Full`]: the key was not seen, and there is no room to note it.
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
    pub fn see(&self, key: &K) -> Result<bool, InsertError> {
        self.put(key, self.core.whole, IfPresent::Raise).map(|had| had != 0)
    }

    /// Removes the live copy of the key that dies first, and says whether there was one. Remove only what lives: see
    /// [the type](ExpiringFilter#classes).
    ///
    /// ```
    /// use concurrent_cuckoo_filter::ExpiringFilter;
    /// use std::time::Duration;
    ///
    /// let filter = ExpiringFilter::<u64>::builder().capacity(100).time_to_live(Duration::from_secs(60)).build()?;
    /// filter.insert(&1)?;
    /// assert!(filter.remove(&1));
    /// assert!(!filter.contains(&1) && !filter.remove(&1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn remove(&self, key: &K) -> bool {
        self.core.raw.remove(self.core.mixed(key))
    }

    /// Removes each key, as a loop of [`remove`](ExpiringFilter::remove) would, and lists those that were missing.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::ExpiringFilter;
    ///
    /// let filter = ExpiringFilter::<str>::builder().capacity(100).time_to_live(std::time::Duration::from_secs(60)).build()?;
    /// assert_eq!(filter.insert_batch(&["a", "b"]).inserted, 2);
    /// let report = filter.remove_batch(&["a", "c"]);
    /// assert_eq!((report.removed, report.missing), (1, vec![1]));
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    pub fn remove_batch<T: Borrow<K>>(&self, keys: &[T]) -> RemoveReport {
        self.core.remove_batch::<K, T>(keys, None)
    }

    /// Stores a copy of each key, as a loop of [`insert`](ExpiringFilter::insert) would, and lists those that were refused.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::ExpiringFilter;
    /// use std::time::Duration;
    ///
    /// let filter = ExpiringFilter::<str>::builder().capacity(100).time_to_live(Duration::from_secs(60)).build()?;
    /// assert_eq!(filter.insert_batch(&["a", "b"]).inserted, 2);
    /// assert!(filter.contains("a"));
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    pub fn insert_batch<T: Borrow<K>>(&self, keys: &[T]) -> BulkReport {
        self.core.put_batch::<K, T>(keys, self.for_long(IfPresent::Another), Answers::Nothing)
    }

    /// Sees each key, in order: `seen[i]` is what [`see`](ExpiringFilter::see) answers for `keys[i]`, and false where it is
    /// refused. The report counts new keys as inserted and the others as present.
    ///
    /// # Panics
    /// If `keys` and `seen` differ in length.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::ExpiringFilter;
    /// use std::time::Duration;
    ///
    /// let filter = ExpiringFilter::<str>::builder().capacity(100).time_to_live(Duration::from_secs(60)).build()?;
    /// let mut seen = [false; 3];
    /// let report = filter.see_batch(&["a", "b", "a"], &mut seen);
    /// assert_eq!((report.inserted, report.present), (2, 1));
    /// assert_eq!(seen, [false, false, true]);
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    #[track_caller]
    pub fn see_batch<T: Borrow<K>>(&self, keys: &[T], seen: &mut [bool]) -> BulkReport {
        assert_same_length(keys.len(), seen.len());
        self.core.put_batch::<K, T>(keys, self.for_long(IfPresent::Raise), Answers::Present(seen))
    }

    /// Stores a copy of each key, as [`insert_batch`](ExpiringFilter::insert_batch), on all threads of the rayon pool that the
    /// caller is in, or of the global one. Writers meet in stripes only, and lookups go on.
    ///
    /// # Panics
    /// As [`CuckooFilter::par_insert`](crate::CuckooFilter::par_insert), if the system refuses rayon its threads.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::ExpiringFilter;
    /// use std::time::Duration;
    ///
    /// let filter = ExpiringFilter::<u64>::builder().capacity(10_000).time_to_live(Duration::from_secs(60)).build()?;
    /// let keys: Vec<u64> = (0..10_000).collect();
    /// assert_eq!(filter.par_insert(&keys).inserted, 10_000);
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    #[cfg(feature = "rayon")]
    #[cfg_attr(docsrs, doc(cfg(feature = "rayon")))]
    pub fn par_insert<T: Borrow<K> + Sync>(&self, keys: &[T]) -> BulkReport
    where
        S: Sync,
    {
        self.core.par_put::<K, T>(keys, self.for_long(IfPresent::Another))
    }

    /// Stores all that lives in the other filter, with the time that it has left, while both serve. As
    /// [`CuckooFilter::merge_from`](crate::CuckooFilter::merge_from); the ticks of two filters do not come at one moment, so
    /// what is merged may live one tick longer, and as many more as are made while its shard is merged. Both must have been built with the same steps and time to live, too.
    ///
    /// # Errors
    /// [`MergeError`] if the two were built differently or there is no memory; nothing has changed then.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::{ExpiringFilter, StableHashBuilder};
    /// use std::time::Duration;
    ///
    /// let time = Duration::from_secs(60);
    /// let builder = ExpiringFilter::<u64>::builder().capacity(100).time_to_live(time).hasher(StableHashBuilder::new());
    /// let (one, other) = (builder.clone().build()?, builder.build()?);
    /// other.insert(&1)?;
    /// assert_eq!(one.merge_from(&other)?.inserted, 1);
    /// assert!(one.contains(&1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn merge_from(&self, other: &Self) -> Result<MergeReport, MergeError> {
        self.core.merge_from(&other.core, IfPresent::Another)
    }

    #[inline]
    fn put(&self, key: &K, value: u32, if_present: IfPresent) -> Result<u32, InsertError> {
        self.core.raw.put(self.core.mixed(key), Put { value, if_present })
    }

    /// An insertion for the whole time to live.
    fn for_long(&self, if_present: IfPresent) -> Put {
        Put { value: self.core.whole, if_present }
    }
}

/// Plans an [`ExpiringFilter`] and builds it.
///
/// ```
/// use concurrent_cuckoo_filter::ExpiringFilter;
/// use std::time::Duration;
///
/// let day = Duration::from_secs(24 * 3600);
/// let builder = ExpiringFilter::<str>::builder().capacity(100_000).false_positive_rate(0.001).time_to_live(day).steps(14);
/// let bytes = builder.memory_usage()?;
/// let filter = builder.build()?;
/// assert_eq!((filter.tick(), filter.memory_usage()), (day.div_f64(14.0), bytes));
/// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
/// ```
#[must_use = "a builder does nothing until `build` is called"]
pub struct ExpiringBuilder<K: ?Sized, S = DefaultHashBuilder> {
    inner: Builder<K, S>,
    time_to_live: Duration,
    steps: u32,
}

impl<K: ?Sized, S> ExpiringBuilder<K, S> {
    /// Sets the number of distinct keys that are to be remembered at a time: as many as come within the time to live.
    /// Required. The filter has room for those, too, that live a tick longer.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::ExpiringFilter;
    /// use std::time::Duration;
    ///
    /// let filter = ExpiringFilter::<u64>::builder().capacity(1000).time_to_live(Duration::from_secs(6)).build()?;
    /// for second in 0..60 {
    ///     filter.advance_to(Duration::from_secs(second));
    ///     for key in 0..1000 / 6 {
    ///         assert!(filter.insert(&(second << 32 | key)).is_ok());
    ///     }
    /// }
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    pub fn capacity(self, keys: usize) -> Self {
        ExpiringBuilder { inner: self.inner.capacity(keys), ..self }
    }

    /// Sets the part of absent keys for which a lookup may say "yes" when the filter holds all of its capacity. 0.1 %
    /// without it. As [`Builder::false_positive_rate`](crate::Builder::false_positive_rate); bits that are left over in a
    /// slot make it lower.
    pub fn false_positive_rate(self, rate: f64) -> Self {
        ExpiringBuilder { inner: self.inner.false_positive_rate(rate), ..self }
    }

    /// Sets the time that a key lives at least, counted from its insertion or renewal. Required.
    pub fn time_to_live(self, time: Duration) -> Self {
        ExpiringBuilder { time_to_live: time, ..self }
    }

    /// Sets the least number of steps that the time to live is divided into, 1 to 254: a key lives at most one step longer
    /// than was asked. 6 without it. The number is raised to what fits the bits that it takes.
    ///
    /// | steps | bits | room that keys take which live longer |
    /// |---:|---:|---:|
    /// | 2 | 2 | 50 % |
    /// | 6 | 3 | 17 % |
    /// | 14 | 4 | 7 % |
    /// | 30, 62 | 5, 6 | 3 %, 2 % |
    /// | 126, 254 | 7, 8 | under 1 % |
    ///
    /// The bits of a step and of a fingerprint share a slot, whose width is a multiple of 4 with 3 or 4 bits, and of 8 with
    /// more: 13 and 3 fill 16, which is fastest.
    pub fn steps(self, steps: u32) -> Self {
        ExpiringBuilder { steps, ..self }
    }

    /// Builds the filter, empty, at epoch 0.
    ///
    /// # Errors
    /// [`BuildError`] for each wish that cannot be met, and when the system refuses the memory.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::{BuildError, ExpiringFilter};
    ///
    /// let builder = ExpiringFilter::<u64>::builder().capacity(100);
    /// assert_eq!(builder.build().unwrap_err(), BuildError::NoTimeToLive);
    /// ```
    pub fn build(self) -> Result<ExpiringFilter<K, S>, BuildError> {
        let (plan, bytes, life) = self.plan()?;
        Ok(ExpiringFilter::from_core(self.inner.build_tagged(&plan, bytes, Some(life))?))
    }

    fn plan(&self) -> Result<(Plan, usize, Life), BuildError> {
        let (life, bits, steps) = Life::plan(self.time_to_live, self.steps, false)?;
        let (plan, bytes) = self.inner.tagged_plan(bits, 1.0 / f64::from(steps), size_of::<ExpiringFilter<K, S>>())?;
        Ok((plan, bytes, life))
    }
}

common_settings!(ExpiringBuilder, time_to_live, steps);
