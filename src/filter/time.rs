//! The time of filters whose keys or counts die: their life, and the elapsed time.

use super::Filter;
use super::kind::{Kind, Timed};
use crate::builder::Builder;
use crate::error::BuildError;
use crate::raw::{Bare, IfPresent, Put, RawFilter, SlotKind, Tagging};
use crate::sys::sync::RelaxedCounter;
use core::time::Duration;

/// The life of keys or counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Life {
    /// At least.
    pub(crate) time: Duration,
    pub(crate) tick: Duration,
    /// Whether each addition to a count begins its time anew.
    pub(crate) renews: bool,
}

impl Life {
    /// Returns the requested life and the bits of a deadline. The life is divided into as many steps as these bits can express.
    pub(crate) fn plan(time: Duration, steps: u32, renews: bool) -> Result<(Self, u32), BuildError> {
        if time.is_zero() {
            return Err(BuildError::NoTimeToLive);
        }
        if u64::try_from(time.as_nanos()).is_err() {
            return Err(BuildError::TimeToLiveTooLong { requested: time });
        }
        // Of 2^t tags one is dead, and a life that begins in the middle of a tick takes one more.
        let bits = (2..=8).find(|bits| (1..=(1 << bits) - 2).contains(&steps));
        let out_of_range =
            || BuildError::OutOfRange { what: "steps of the time to live", requested: steps, possible: 1..=254 };
        let bits = bits.ok_or_else(out_of_range)?;
        let steps = (1_u32 << bits) - 2;
        // Rounded up: all steps together are at least the time.
        let nanos = time.as_nanos().div_ceil(steps.into());
        let tick = Duration::new((nanos / 1_000_000_000) as u64, (nanos % 1_000_000_000) as u32);
        Ok((Life { time, tick, renews }, bits))
    }

    /// The ticks of a life that is at least this long: a part of one may have passed already when it begins.
    pub(super) fn ticks_for(&self, time: Duration) -> u32 {
        time.as_nanos().div_ceil(self.tick.as_nanos()) as u32 + 1
    }

    /// Returns the number of slots that this many keys take: some keys live up to a tick longer than requested.
    pub(crate) fn slots_for(&self, keys: usize) -> usize {
        let steps = self.all_ticks() - 1;
        keys.saturating_add((keys as f64 / f64::from(steps)).ceil() as usize)
    }

    /// The longest life, in ticks.
    pub(super) fn all_ticks(&self) -> u32 {
        self.ticks_for(self.time)
    }
}

/// The time of a filter, up to the last `advance_to`.
pub(crate) struct Clock {
    pub(crate) life: Life,
    /// The epoch from which time is counted.
    begun: u64,
    /// The nanoseconds that had passed of its tick: 0, unless the filter was loaded.
    passed: u64,
    /// Nanoseconds since the tick of `begun`.
    told: RelaxedCounter,
}

impl Clock {
    pub(crate) fn new(life: Life, begun: u64, passed: u64) -> Self {
        let clock = Clock { life, begun, passed, told: RelaxedCounter::default() };
        clock.told.raise(passed);
        clock
    }

    fn tick(&self) -> u64 {
        nanos(self.life.tick)
    }

    /// The epoch when this much time has passed.
    fn tell(&self, elapsed: Duration) -> u64 {
        let elapsed = Duration::from_nanos(self.passed).saturating_add(elapsed);
        self.told.raise(nanos(elapsed));
        let due = elapsed.as_nanos() / self.life.tick.as_nanos();
        self.begun.saturating_add(u64::try_from(due).unwrap_or(u64::MAX))
    }

    /// Returns the elapsed part of the tick in this epoch, in units of 2^-32, up to the last `advance_to`. It is never more than the true
    /// one, so a later reader knows the minimum age of a key.
    pub(crate) fn passed_in(&self, epoch: u64) -> u32 {
        let before = epoch.saturating_sub(self.begun).saturating_mul(self.tick());
        let passed = self.told.get().saturating_sub(before).min(self.tick() - 1);
        ((u128::from(passed) << 32) / u128::from(self.tick())) as u32
    }
}

impl Clone for Clock {
    /// Goes on from the same moment.
    fn clone(&self) -> Self {
        let clock = Clock::new(self.life, self.begun, self.passed);
        clock.told.raise(self.told.get());
        clock
    }
}

/// Returns the time in nanoseconds, as in files: at most some 584 years.
pub(crate) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The time of a filter with these slots. A clone goes on from the same moment.
pub(crate) trait Time<K: SlotKind>: Clone + Send + Sync + 'static {
    /// Time is counted from now. This part of a tick has passed already, in parts of 2^32: 0, unless the filter was read.
    fn new(raw: &RawFilter<K>, life: Option<Life>, part: u32) -> Self;

    /// Returns the clock; `None` if nothing dies.
    fn clock(&self) -> Option<&Clock> {
        None
    }

    /// Returns the value of an insertion for the whole time to live.
    #[inline(always)]
    fn whole(&self) -> u32 {
        1
    }

    /// Returns the value of a merged copy, whose ticks do not come at the moments of the ticks of this filter: it lives a tick
    /// longer, or for the whole time.
    fn one_tick_later(&self, value: u32) -> u32 {
        value
    }
}

impl Time<Bare> for () {
    fn new(_: &RawFilter, _: Option<Life>, _: u32) {}
}

#[derive(Clone)]
pub(crate) struct Timing {
    pub(super) clock: Option<Clock>,
    pub(super) whole: u32,
    /// The value of one tick; 0 if nothing dies.
    tick: u32,
}

impl Time<Tagging> for Timing {
    fn new(raw: &RawFilter<Tagging>, life: Option<Life>, part: u32) -> Self {
        let Some(life) = life else { return Timing { clock: None, whole: 1, tick: 0 } };
        let passed = ((life.tick.as_nanos() * u128::from(part)) >> 32) as u64;
        let [whole, tick] = [life.all_ticks(), 1].map(|ticks| raw.tags().value_for(ticks));
        Timing { clock: Some(Clock::new(life, raw.epoch(), passed)), whole, tick }
    }

    fn clock(&self) -> Option<&Clock> {
        self.clock.as_ref()
    }

    #[inline(always)]
    fn whole(&self) -> u32 {
        self.whole
    }

    fn one_tick_later(&self, value: u32) -> u32 {
        if value < self.whole { value + self.tick } else { value }
    }
}

impl<K: ?Sized, S, T: Kind> Filter<K, S, T> {
    pub(crate) fn life(&self) -> Option<&Life> {
        self.time.clock().map(|clock| &clock.life)
    }

    /// An insertion for the whole time to live.
    #[inline(always)]
    pub(crate) fn put(&self, if_present: IfPresent) -> Put {
        Put { value: self.time.whole(), if_present }
    }
}

impl<K: ?Sized, S, T: Timed> Builder<K, S, T> {
    /// Sets the time that a key lives at least, counted from its insertion or renewal, or a count, counted from the first addition of its
    /// window. Required for an expiring filter. In a counting filter it replaces a [`time_to_idle`](Builder::time_to_idle);
    /// [`CountingFilter`](crate::CountingFilter#counts-within-a-window) lists the resulting promises.
    pub fn time_to_live(mut self, time: Duration) -> Self {
        self.options.life = Some((time, false));
        self
    }

    /// Sets the least number of steps that the time to live or to idle is divided into, 1 to 254: a key or count lives at most one step
    /// longer than requested. 6 unless set. The number is raised to the largest one of as many bits. It has no effect where counts do not
    /// die.
    ///
    /// | steps | bits | room for keys that live longer |
    /// |---:|---:|---:|
    /// | 2 | 2 | 50 % |
    /// | 6 | 3 | 17 % |
    /// | 14 | 4 | 7 % |
    /// | 30, 62 | 5, 6 | 3 %, 2 % |
    /// | 126, 254 | 7, 8 | under 1 % |
    ///
    /// The bits of a step, of a counter and of a fingerprint share a slot, whose width is a multiple of 4 with 3 or 4 bits beside the
    /// fingerprint, and of 8 with more: 13 and 3 fill 16, which is fastest.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::ExpiringFilter;
    /// use std::time::Duration;
    ///
    /// let day = Duration::from_secs(24 * 3600);
    /// let filter = ExpiringFilter::<String>::builder().capacity(100_000).time_to_live(day).steps(14).build()?;
    /// assert_eq!(filter.config().tick, Some(day.div_f64(14.0)));
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    pub fn steps(mut self, steps: u32) -> Self {
        self.options.steps = steps;
        self
    }
}

impl<K: ?Sized, S, T: Timed> Filter<K, S, T> {
    /// Makes one tick, and returns how many slots were cleared: a key or count with one tick left to live is dead when this returns.
    ///
    /// For tests, and for callers that count time themselves; [`advance_to`](Filter::advance_to) goes by a clock. In a counting filter
    /// whose counts do not die, it does nothing.
    ///
    /// # Complexity
    /// Reads all memory except buckets [swept](Filter::sweep) in advance, up to 512 buckets under one lock, and clears dead slots: some
    /// milliseconds per million slots.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::ExpiringFilter;
    ///
    /// let filter = ExpiringFilter::<u64>::builder().capacity(100).time_to_live(std::time::Duration::from_secs(60)).build()?;
    /// filter.insert(&1)?;
    /// let cleared: Vec<usize> = (0..7).map(|_| filter.advance()).collect();
    /// assert_eq!(cleared, [0; 7]); // dead after the seventh tick, and still in its slot
    /// assert!(!filter.contains(&1));
    /// assert_eq!(filter.advance(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn advance(&self) -> usize {
        if self.time.clock.is_some() { self.raw.advance() } else { 0 }
    }

    /// Makes the ticks that are due when this much time has passed since the filter was built or loaded, and returns how many were made. If
    /// fewer are due than were made before, it does nothing. In a loaded filter, the time continues from the last `advance_to` before the
    /// snapshot was written, and no part of a tick is lost: if the caller knows how long ago that was, it adds that time.
    ///
    /// Call it from a timer, some four times per tick. The time of a key that is stored while a tick is due is counted from the tick
    /// before: the key lives as long as requested, less the lateness of this call. A result above 1 means that the call was late by a
    /// tick. If the whole time to live passes without a call, everything is dead, and cleared. **A clock that jumps ahead kills
    /// keys, and time then stands still until the clock gets there again**: use a monotonic clock, such as `Instant`.
    ///
    /// # Complexity
    /// That of [`advance`](Filter::advance) per tick, for at most twice the number of steps.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CountingFilter;
    /// use std::time::Duration;
    ///
    /// let filter = CountingFilter::<u64>::builder().capacity(100).time_to_live(Duration::from_secs(60)).build()?;
    /// assert_eq!(filter.advance_to(Duration::from_secs(9)), 0);
    /// assert_eq!(filter.advance_to(Duration::from_secs(30)), 3);
    /// assert_eq!(filter.advance_to(Duration::from_secs(30)), 0);
    /// assert_eq!(filter.stats().epoch, 3);
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    pub fn advance_to(&self, elapsed: Duration) -> u64 {
        self.time.clock.as_ref().map_or(0, |clock| self.raw.advance_to(clock.tell(elapsed)))
    }

    /// Does a part of the next tick's work in advance, by sweeping about this many buckets of 4 slots, and returns whether any are left.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::ExpiringFilter;
    ///
    /// let filter = ExpiringFilter::<u64>::builder().capacity(100).time_to_live(std::time::Duration::from_secs(60)).build()?;
    /// while filter.sweep(1024) {} // with other work in between
    /// filter.advance(); // returns at once
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    pub fn sweep(&self, buckets: usize) -> bool {
        self.time.clock.is_some() && self.raw.sweep(buckets)
    }
}

#[cfg(all(test, not(cuckoo_model)))]
mod tests {
    use super::*;

    /// A shard may be copied at an epoch that is past when the time of its copy is read.
    #[test]
    fn of_an_epoch_that_is_past_all_but_nothing_has_passed() {
        let (life, ..) = Life::plan(Duration::from_secs(60), 6, false).unwrap();
        let clock = Clock::new(life, 0, 0);
        assert_eq!(clock.tell(Duration::from_secs(25)), 2);
        assert_eq!([0, 1, 2, 3].map(|epoch| clock.passed_in(epoch) >> 28), [15, 15, 8, 0]);
    }
}
