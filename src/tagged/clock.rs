//! The time of filters whose keys die: how long they live, and what has passed.

use super::Core;
use crate::error::BuildError;
use crate::sys::sync::SharedCounter;
use core::time::Duration;

/// How long keys live.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Life {
    /// At least.
    pub(crate) time: Duration,
    pub(crate) tick: Duration,
    /// Whether each addition to a count begins its time anew.
    pub(crate) renews: bool,
}

impl Life {
    /// As a builder is asked for it, with the bits of a deadline and the number of steps that these are good for.
    pub(super) fn plan(time: Duration, steps: u32, renews: bool) -> Result<(Self, u32, u32), BuildError> {
        if time.is_zero() {
            return Err(BuildError::NoTimeToLive);
        }
        if u64::try_from(time.as_nanos()).is_err() {
            return Err(BuildError::TimeToLiveTooLong { asked: time });
        }
        // Of 2^t tags one is dead, and a life that begins in the middle of a tick takes one more.
        let bits = (2..=8).find(|bits| (1..=(1 << bits) - 2).contains(&steps));
        let bits = bits.ok_or(BuildError::StepsOutOfRange { asked: steps })?;
        let steps = (1_u32 << bits) - 2;
        // Rounded up: all steps together are at least the time.
        let nanos = time.as_nanos().div_ceil(steps.into());
        let tick = Duration::new((nanos / 1_000_000_000) as u64, (nanos % 1_000_000_000) as u32);
        Ok((Life { time, tick, renews }, bits, steps))
    }

    /// The ticks of a life that is at least this long: a part of one may have passed already when it begins.
    pub(super) fn ticks_for(&self, time: Duration) -> u32 {
        time.as_nanos().div_ceil(self.tick.as_nanos()) as u32 + 1
    }

    /// The longest life, in ticks.
    pub(super) fn all_ticks(&self) -> u32 {
        self.ticks_for(self.time)
    }
}

/// The time of a filter, as far as it was told.
pub(crate) struct Clock {
    pub(crate) life: Life,
    /// The epoch from which time is counted.
    begun: u64,
    /// The nanoseconds that had passed of its tick: 0, unless the filter was loaded.
    passed: u64,
    /// Nanoseconds since the tick of `begun`.
    told: SharedCounter,
}

impl Clock {
    pub(crate) fn new(life: Life, begun: u64, passed: u64) -> Self {
        let clock = Clock { life, begun, passed, told: SharedCounter::default() };
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

    /// What has passed of the tick in this epoch, as far as was told, in parts of 2^32. Never more than has: a later reader
    /// knows that a key has lived at least so long.
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

/// As a number and as a file has it: the longest is some 584 years.
pub(crate) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Time stands still where keys do not die.
impl<S> Core<S> {
    pub(crate) fn life(&self) -> Option<&Life> {
        self.clock.as_ref().map(|clock| &clock.life)
    }

    /// A filter that was written when this part of a tick had passed, in parts of 2^32, and has aged since then.
    pub(crate) fn aged(mut self, part: u32, since: Duration) -> Self {
        if let Some(clock) = &mut self.clock {
            let tick = clock.life.tick.as_nanos();
            let nanos = ((tick * u128::from(part)) >> 32) + since.as_nanos();
            let (due, passed) = (nanos / tick, (nanos % tick) as u64);
            // So many that everything dies, if it does, and no more: epochs are not used up.
            let cycle = u128::from(self.raw.tags().cycle());
            let due = if due > cycle { cycle + due % cycle } else { due };
            self.raw.advance_to(self.raw.epoch() + due as u64);
            *clock = Clock::new(clock.life, self.raw.epoch(), passed);
        }
        self
    }

    pub(super) fn advance(&self) -> usize {
        if self.clock.is_some() { self.raw.advance() } else { 0 }
    }

    pub(super) fn advance_to(&self, elapsed: Duration) -> u64 {
        self.clock.as_ref().map_or(0, |clock| self.raw.advance_to(clock.tell(elapsed)))
    }

    pub(super) fn sweep(&self, buckets: usize) -> bool {
        self.clock.is_some() && self.raw.sweep(buckets)
    }
}

/// How time passes in filters whose keys die. `$build` builds a filter with a time to live of 60 seconds in an example, `$store` stores
/// a key in it.
macro_rules! timed_methods {
    ($filter:ident, $build:literal, $store:literal) => {
        impl<K: ?Sized, S> $filter<K, S> {
            /// Makes one tick: what has one tick left to live is dead when this returns. Returns how many slots were cleared.
            ///
            /// For tests, and for those who count their own time; [`advance_to`](Self::advance_to) goes by the clock.
            ///
            /// # Complexity
            /// Reads all the memory but what was [swept](Self::sweep) ahead, up to 512 buckets under one lock, and clears
            /// what is dead: some milliseconds for each million slots.
            ///
            /// ```
            #[doc = concat!("use concurrent_cuckoo_filter::", stringify!($filter), ";")]
            ///
            #[doc = concat!("let filter = ", $build, ";")]
            #[doc = concat!("filter.", $store, "?;")]
            /// let cleared: Vec<usize> = (0..7).map(|_| filter.advance()).collect();
            /// assert_eq!(cleared, [0; 7]); // dead after the seventh tick, and still there
            /// assert!(!filter.contains(&1));
            /// assert_eq!(filter.advance(), 1);
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            pub fn advance(&self) -> usize {
                self.core.advance()
            }

            /// Makes the ticks that are due when this much time has passed since the filter was built or loaded, and
            /// returns how many they were. Where fewer are due than were made, it does nothing.
            ///
            /// Call it from a timer, some four times a tick. A key that is stored while a tick is due has its time counted from the
            /// tick before: it lives as long as was asked, less the time by which this call is late. More than one tick at a time
            /// says that it was late by a tick. After more than the time to live without a call everything is dead, and cleared.
            ///
            /// # Complexity
            /// As [`advance`](Self::advance) for each tick, and never more than twice the steps of them.
            ///
            /// ```
            #[doc = concat!("use concurrent_cuckoo_filter::", stringify!($filter), ";")]
            /// use std::time::Duration;
            ///
            #[doc = concat!("let filter = ", $build, ";")]
            /// assert_eq!(filter.advance_to(Duration::from_secs(9)), 0);
            /// assert_eq!(filter.advance_to(Duration::from_secs(30)), 3);
            /// assert_eq!(filter.advance_to(Duration::from_secs(30)), 0);
            /// assert_eq!(filter.epoch(), 3);
            /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
            /// ```
            pub fn advance_to(&self, elapsed: Duration) -> u64 {
                self.core.advance_to(elapsed)
            }

            /// Does a part of the next tick's work ahead of it: sweeps about this many buckets of 4 slots. Says whether any are
            /// left. A tick is then as short as what is left.
            ///
            /// ```
            #[doc = concat!("use concurrent_cuckoo_filter::", stringify!($filter), ";")]
            ///
            #[doc = concat!("let filter = ", $build, ";")]
            /// while filter.sweep(1024) {} // a millisecond of other work in between
            /// filter.advance(); // at once
            /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
            /// ```
            pub fn sweep(&self, buckets: usize) -> bool {
                self.core.sweep(buckets)
            }

            /// The number of ticks that were made.
            ///
            /// ```
            #[doc = concat!("use concurrent_cuckoo_filter::", stringify!($filter), ";")]
            ///
            #[doc = concat!("let filter = ", $build, ";")]
            /// filter.advance();
            /// assert_eq!(filter.epoch(), 1);
            /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
            /// ```
            #[must_use]
            pub fn epoch(&self) -> u64 {
                self.core.raw.epoch()
            }
        }
    };
}
pub(super) use timed_methods;

#[cfg(test)]
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
