//! The kinds of filters: the contents of a slot beside a fingerprint, and the values of insertions.

use super::time::{Life, Time, Timing};
use crate::error::BuildError;
use crate::layout::Mixed;
use crate::raw::{Bare, IfPresent, RawFilter, SlotKind, Tagging};
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
pub trait Insert: Kind {}

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

/// The options of a builder that not every kind has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    /// The time to live, or the time to idle if additions restart it.
    pub(crate) life: Option<(Duration, bool)>,
    pub(crate) steps: u32,
    pub(crate) counter_bits: u32,
    pub(crate) tags: u32,
}

impl Options {
    /// 6 steps or 7 tags take 3 bits, which leaves 13 to a fingerprint in slots of 16.
    pub(crate) const DEFAULT: Self = Options { life: None, steps: 6, counter_bits: 4, tags: 7 };
}

/// The bits beside a fingerprint, as requested by a builder.
#[derive(Default)]
pub(crate) struct Beside {
    /// All of them.
    pub(crate) bits: u32,
    /// Those of a counter beside a deadline.
    pub(crate) count_bits: u32,
    pub(crate) life: Option<Life>,
}

pub(crate) mod sealed {
    use super::{Beside, BuildError, IfPresent, Mixed, Options, RawFilter, SlotKind, Tagging, Time, Timing};

    pub(crate) trait Sealed: Sized + 'static {
        /// The contents of a slot.
        type Slots: SlotKind;
        type Time: Time<Self::Slots>;

        /// The name in snapshots.
        const NAME: &'static str;
        /// The name of the type, for `Debug`.
        const TYPE: &'static str;
        /// How a merge stores a copy.
        const MERGED: IfPresent = IfPresent::Another;

        fn beside(options: &Options) -> Result<Beside, BuildError>;

        /// Returns the number of copies of the key, or its count.
        fn count(raw: &RawFilter<Self::Slots>, mixed: Mixed) -> u32 {
            raw.count(mixed) as u32
        }
    }

    pub(crate) trait Timed: Sealed<Slots = Tagging, Time = Timing> {}
}

impl Kind for Plain {}
impl Timeless for Plain {}
impl Insert for Plain {}
impl Remove for Plain {}

impl sealed::Sealed for Plain {
    type Slots = Bare;
    type Time = ();

    const NAME: &'static str = "plain";
    const TYPE: &'static str = "CuckooFilter";

    fn beside(_: &Options) -> Result<Beside, BuildError> {
        Ok(Beside::default())
    }
}

impl Kind for Expiring {}
impl Timed for Expiring {}
impl Insert for Expiring {}
impl Remove for Expiring {}
impl sealed::Timed for Expiring {}

impl sealed::Sealed for Expiring {
    type Slots = Tagging;
    type Time = Timing;

    const NAME: &'static str = "expiring";
    const TYPE: &'static str = "ExpiringFilter";

    fn beside(options: &Options) -> Result<Beside, BuildError> {
        let (time, renews) = options.life.ok_or(BuildError::NoTimeToLive)?;
        let (life, bits) = Life::plan(time, options.steps, renews)?;
        Ok(Beside { bits, count_bits: 0, life: Some(life) })
    }
}

impl Kind for Counting {}
impl Timeless for Counting {}
impl Timed for Counting {}
impl Remove for Counting {}
impl sealed::Timed for Counting {}

impl sealed::Sealed for Counting {
    type Slots = Tagging;
    type Time = Timing;

    const NAME: &'static str = "counting";
    const TYPE: &'static str = "CountingFilter";
    const MERGED: IfPresent = IfPresent::Add { renews: true };

    fn beside(options: &Options) -> Result<Beside, BuildError> {
        let (count_bits, possible) = (options.counter_bits, 1..=16);
        if !possible.contains(&count_bits) {
            return Err(BuildError::OutOfRange { what: "bits per counter", requested: count_bits, possible });
        }
        if options.life.is_none() {
            return Ok(Beside { bits: count_bits, ..Beside::default() });
        }
        let deadline = Expiring::beside(options)?;
        Ok(Beside { bits: deadline.bits + count_bits, count_bits, ..deadline })
    }

    fn count(raw: &RawFilter<Tagging>, mixed: Mixed) -> u32 {
        // One copy, or the two of a relocation.
        raw.values(mixed).into_iter().map(|value| raw.tags().count(value)).max().unwrap_or(0)
    }
}

impl Kind for Tagged {}
impl Timeless for Tagged {}

impl sealed::Sealed for Tagged {
    type Slots = Tagging;
    type Time = Timing;

    const NAME: &'static str = "tagged";
    const TYPE: &'static str = "TaggedFilter";

    fn beside(options: &Options) -> Result<Beside, BuildError> {
        let (requested, possible) = (options.tags, 1..=65_535);
        if !possible.contains(&requested) {
            return Err(BuildError::OutOfRange { what: "different tags", requested, possible });
        }
        // One value more than tags: that of a dead slot.
        Ok(Beside { bits: u32::BITS - requested.leading_zeros(), ..Beside::default() })
    }
}
