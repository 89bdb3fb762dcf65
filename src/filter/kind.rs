//! The kinds of filters: the contents of a slot beside a fingerprint, and the values of insertions.

use super::time::{Clock, Life, Timing};
use crate::error::{BuildError, InsertError};
use crate::layout::Mixed;
use crate::raw::{Bare, IfPresent, Put, RawFilter, SlotKind, Tagging};
use core::fmt;
use core::time::Duration;

/// A kind of [`Filter`](crate::Filter): [`Plain`], [`Expiring`], [`Counting`] or [`Tagged`]. Sealed.
#[expect(private_bounds, reason = "sealed")]
pub trait Kind: sealed::Sealed {}

/// A kind that needs no time to live: [`Plain`], [`Counting`] and [`Tagged`]. Sealed.
pub trait Timeless: Kind {}

/// A kind whose keys or counts can die: [`Expiring`] and [`Counting`]. Sealed.
#[expect(private_bounds, reason = "sealed")]
pub trait Timed: Kind + sealed::Timed {}

/// A kind whose insertions take a key alone: [`Plain`] and [`Expiring`]. Sealed.
#[expect(private_bounds, reason = "sealed")]
pub trait Insert: Kind + sealed::Insert {}

/// A kind whose removals take a key alone: [`Plain`], [`Expiring`] and [`Counting`]. Sealed.
pub trait Remove: Kind {}

/// The kind of a [`CuckooFilter`](crate::CuckooFilter): fingerprints alone.
#[derive(Clone, Copy, Debug)]
pub enum Plain {}

/// The kind of an [`ExpiringFilter`](crate::ExpiringFilter): a deadline beside each fingerprint.
#[derive(Clone, Copy, Debug)]
pub enum Expiring {}

/// The kind of a [`CountingFilter`](crate::CountingFilter): a counter beside each fingerprint, and a deadline if counts die.
#[derive(Clone, Copy, Debug)]
pub enum Counting {}

/// The kind of a [`TaggedFilter`](crate::TaggedFilter): a tag of the caller's beside each fingerprint.
#[derive(Clone, Copy, Debug)]
pub enum Tagged {}

/// The bits beside a fingerprint, as requested by a builder.
pub(crate) struct Beside {
    /// All of them.
    pub(crate) bits: u32,
    /// Those of a counter beside a deadline.
    pub(crate) count_bits: u32,
    /// The slots beyond the capacity, as a fraction of it: those of keys that live longer than requested.
    pub(crate) spare: f64,
    pub(crate) life: Option<Life>,
}

pub(crate) mod sealed {
    use super::{
        Beside, BuildError, Clock, IfPresent, InsertError, Life, Mixed, Put, RawFilter, SlotKind, Timing, fmt,
    };

    pub(crate) trait Sealed: Sized + 'static {
        /// The contents of a slot.
        type Slots: SlotKind;
        /// The options of a builder that other kinds do not have.
        type Options: Copy + fmt::Debug;
        /// The time of a filter.
        type Time: Clone + Send + Sync + 'static;

        /// The name in snapshots.
        const NAME: &'static str;
        /// The name of the type, for `Debug`.
        const TYPE: &'static str;
        const OPTIONS: Self::Options;

        /// The bits beside a fingerprint; `None` if there are none.
        fn beside(options: &Self::Options) -> Result<Option<Beside>, BuildError>;

        /// The time of a filter, of which this part of a tick has passed, in parts of 2^32: 0, unless it was read.
        fn time(raw: &RawFilter<Self::Slots>, life: Option<Life>, part: u32) -> Self::Time;

        fn clock(time: &Self::Time) -> Option<&Clock>;

        /// Returns the number of ticks.
        fn epoch(_raw: &RawFilter<Self::Slots>) -> u64 {
            0
        }

        /// Returns the number of copies of the key, or its count.
        fn count(raw: &RawFilter<Self::Slots>, mixed: Mixed) -> u32 {
            raw.count(mixed) as u32
        }

        /// Adds the numbers of this kind to the output of `Debug`.
        fn show(_raw: &RawFilter<Self::Slots>, _shown: &mut fmt::DebugStruct<'_, '_>) {}

        /// How a merge stores a copy with this value.
        fn merged(raw: &RawFilter<Self::Slots>, time: &Self::Time, value: u32) -> Put;
    }

    pub(crate) trait Timed:
        Sealed<Time = Timing, Slots = super::Tagging, Options = super::TimedOptions>
    {
    }

    pub(crate) trait Insert: Sealed {
        fn insert(raw: &RawFilter<Self::Slots>, time: &Self::Time, mixed: Mixed) -> Result<(), InsertError>;

        fn insert_unique(raw: &RawFilter<Self::Slots>, time: &Self::Time, mixed: Mixed) -> Result<bool, InsertError>;

        /// An insertion as of a batch.
        fn put(time: &Self::Time, if_present: IfPresent) -> Put;
    }
}

impl Kind for Plain {}
impl Timeless for Plain {}
impl Insert for Plain {}
impl Remove for Plain {}

impl sealed::Sealed for Plain {
    type Slots = Bare;
    type Options = ();
    type Time = ();

    const NAME: &'static str = "plain";
    const TYPE: &'static str = "CuckooFilter";
    const OPTIONS: () = ();

    fn beside((): &()) -> Result<Option<Beside>, BuildError> {
        Ok(None)
    }

    fn time(_: &RawFilter, _: Option<Life>, _: u32) {}

    fn clock((): &()) -> Option<&Clock> {
        None
    }

    fn merged(_: &RawFilter, (): &(), _: u32) -> Put {
        Put::COPY
    }
}

impl sealed::Insert for Plain {
    #[inline(always)]
    fn insert(raw: &RawFilter, (): &(), mixed: Mixed) -> Result<(), InsertError> {
        raw.insert(mixed)
    }

    #[inline(always)]
    fn insert_unique(raw: &RawFilter, (): &(), mixed: Mixed) -> Result<bool, InsertError> {
        raw.insert_unique(mixed)
    }

    #[inline(always)]
    fn put((): &(), if_present: IfPresent) -> Put {
        Put { value: 1, if_present }
    }
}

/// The time of the three kinds with tags.
macro_rules! timing {
    () => {
        type Slots = Tagging;
        type Time = Timing;

        fn time(raw: &RawFilter<Tagging>, life: Option<Life>, part: u32) -> Timing {
            Timing::new(raw, life, part)
        }

        fn clock(time: &Timing) -> Option<&Clock> {
            time.clock.as_ref()
        }

        fn epoch(raw: &RawFilter<Tagging>) -> u64 {
            raw.epoch()
        }
    };
}

/// The options of a builder of expiring or counting filters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimedOptions {
    /// The time to live, or the time to idle if additions restart it.
    pub(crate) life: Option<(Duration, bool)>,
    pub(crate) steps: u32,
    /// Without effect in an expiring filter.
    pub(crate) counter_bits: u32,
}

impl TimedOptions {
    /// 6 steps have tags of 3 bits, which leaves 13 to a fingerprint in slots of 16.
    const DEFAULT: Self = TimedOptions { life: None, steps: 6, counter_bits: 4 };
}

impl Kind for Expiring {}
impl Timed for Expiring {}
impl Insert for Expiring {}
impl Remove for Expiring {}
impl sealed::Timed for Expiring {}

impl sealed::Sealed for Expiring {
    timing! {}
    type Options = TimedOptions;

    const NAME: &'static str = "expiring";
    const TYPE: &'static str = "ExpiringFilter";
    const OPTIONS: TimedOptions = TimedOptions::DEFAULT;

    fn beside(options: &TimedOptions) -> Result<Option<Beside>, BuildError> {
        let (time, renews) = options.life.ok_or(BuildError::NoTimeToLive)?;
        let (life, bits, steps) = Life::plan(time, options.steps, renews)?;
        Ok(Some(Beside { bits, count_bits: 0, spare: 1.0 / f64::from(steps), life: Some(life) }))
    }

    fn merged(raw: &RawFilter<Tagging>, time: &Timing, value: u32) -> Put {
        Put { value: time.one_tick_later(raw, value), if_present: IfPresent::Another }
    }
}

impl sealed::Insert for Expiring {
    #[inline(always)]
    fn insert(raw: &RawFilter<Tagging>, time: &Timing, mixed: Mixed) -> Result<(), InsertError> {
        raw.put(mixed, Self::put(time, IfPresent::Another)).map(|_| ())
    }

    #[inline(always)]
    fn insert_unique(raw: &RawFilter<Tagging>, time: &Timing, mixed: Mixed) -> Result<bool, InsertError> {
        raw.put(mixed, Self::put(time, IfPresent::Keep)).map(|had| had == 0)
    }

    #[inline(always)]
    fn put(time: &Timing, if_present: IfPresent) -> Put {
        Put { value: time.whole, if_present }
    }
}

impl Kind for Counting {}
impl Timeless for Counting {}
impl Timed for Counting {}
impl Remove for Counting {}
impl sealed::Timed for Counting {}

impl sealed::Sealed for Counting {
    timing! {}
    type Options = TimedOptions;

    const NAME: &'static str = "counting";
    const TYPE: &'static str = "CountingFilter";
    const OPTIONS: TimedOptions = TimedOptions::DEFAULT;

    fn beside(options: &TimedOptions) -> Result<Option<Beside>, BuildError> {
        let counter_bits = options.counter_bits;
        if !(1..=16).contains(&counter_bits) {
            return Err(BuildError::OutOfRange { what: "bits per counter", requested: counter_bits, possible: 1..=16 });
        }
        let Some((time, renews)) = options.life else {
            return Ok(Some(Beside { bits: counter_bits, count_bits: 0, spare: 0.0, life: None }));
        };
        let (life, bits, steps) = Life::plan(time, options.steps, renews)?;
        let (bits, spare) = (bits + counter_bits, 1.0 / f64::from(steps));
        Ok(Some(Beside { bits, count_bits: counter_bits, spare, life: Some(life) }))
    }

    fn show(raw: &RawFilter<Tagging>, shown: &mut fmt::DebugStruct<'_, '_>) {
        shown.field("max_count", &raw.tags().max_count());
    }

    fn count(raw: &RawFilter<Tagging>, mixed: Mixed) -> u32 {
        // One copy, or the two of a relocation.
        raw.values(mixed).into_iter().map(|value| raw.tags().count(value)).max().unwrap_or(0)
    }

    fn merged(raw: &RawFilter<Tagging>, time: &Timing, value: u32) -> Put {
        Put { value: time.one_tick_later(raw, value), if_present: IfPresent::Add { renews: true } }
    }
}

/// The options of a builder of tagged filters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TaggedOptions {
    pub(crate) tags: u32,
}

/// Tags unless requested otherwise: 3 bits leave 13 to a fingerprint in slots of 16.
const DEFAULT_TAGS: u32 = 7;

impl Kind for Tagged {}
impl Timeless for Tagged {}

impl sealed::Sealed for Tagged {
    timing! {}
    type Options = TaggedOptions;

    const NAME: &'static str = "tagged";
    const TYPE: &'static str = "TaggedFilter";
    const OPTIONS: TaggedOptions = TaggedOptions { tags: DEFAULT_TAGS };

    fn beside(options: &TaggedOptions) -> Result<Option<Beside>, BuildError> {
        if !(1..1 << 16).contains(&options.tags) {
            return Err(BuildError::OutOfRange {
                what: "different tags",
                requested: options.tags,
                possible: 1..=65_535,
            });
        }
        // One value more than tags: that of a dead slot.
        let bits = u32::BITS - options.tags.leading_zeros();
        Ok(Some(Beside { bits, count_bits: 0, spare: 0.0, life: None }))
    }

    fn show(raw: &RawFilter<Tagging>, shown: &mut fmt::DebugStruct<'_, '_>) {
        shown.field("max_tag", &(raw.tags().most - 1));
    }

    fn merged(_: &RawFilter<Tagging>, _: &Timing, value: u32) -> Put {
        Put { value, if_present: IfPresent::Another }
    }
}
