//! The content of a slot beside its fingerprint: nothing ([`Bare`]), or a tag whose meaning depends on the epoch
//! ([`Tagged`]).
//!
//! Writers and lookups are generic over [`Slots`]. For bare slots, everything that concerns time is a constant and
//! compiles to nothing.

use super::epoch::Epoch;
use super::filter::RawFilter;
use crate::layout::{Fingerprint, Lanes, Moment, Plan, Tags, hits_less};

/// The state shared by all slots of a filter.
pub(crate) trait SlotKind: Sized + Send + Sync + 'static {
    /// The epoch as tags represent it.
    type Moment: Copy;
    /// The view of this state that shards carry.
    type Slots<'a>: Slots<Moment = Self::Moment>;

    /// Whether slots have tags, and tags have epochs.
    const TIMED: bool = <Self::Slots<'static> as Slots>::TAGGED;

    /// Returns the state of a new filter, at epoch 0.
    fn new(plan: &Plan) -> Self;

    /// Brings a filter whose tables were copied at these epochs to the latest of them, without the slots that have
    /// died.
    fn catch_up(_filter: &RawFilter<Self>, _epochs: &[u64]) {}

    fn slots(&self) -> Self::Slots<'_>;

    /// The epoch of tags.
    fn epoch(&self) -> Option<&Epoch> {
        None
    }
}

/// How slots are compared by lookups, and read and written under locks. `low` is the lowest bit of each slot of a run; functions of a
/// run return the highest bit of each slot.
pub(crate) trait Slots: Copy + Send + Sync {
    /// The epoch.
    type Now: Copy;
    /// The epoch as tags represent it.
    type Moment: Copy;

    const TAGGED: bool;

    /// Reads the epoch: in a lookup before everything else, in a writer under its locks.
    fn now(self) -> Self::Now;

    /// Whether the epoch is unchanged: the last read of a lookup that missed.
    fn is_still(self, now: Self::Now) -> bool;

    fn moment(self, now: Self::Now) -> Self::Moment;

    /// The factor that copies a fingerprint into every slot of a run.
    fn unit(self, low: u64) -> u64;

    /// The tags of the pattern of a lookup, combined with its fingerprints by OR.
    fn alive(self, low: u64, moment: Self::Moment) -> u64;

    /// What [`hits_less`](crate::layout::hits_less) looks for in a run: this fingerprint, alive, in each slot.
    #[inline(always)]
    fn pattern(self, low: u64, fingerprint: u32, moment: Self::Moment) -> u64 {
        u64::from(fingerprint).wrapping_mul(self.unit(low)) | self.alive(low, moment)
    }

    /// The number that [`hits_less`](crate::layout::hits_less) adds in a lookup.
    fn minus(self, low: u64) -> u64;

    /// The number of an epoch.
    fn number(self, now: Self::Now) -> u64;

    /// The moment of the epoch with this number.
    fn moment_at(self, epoch: u64) -> Self::Moment;

    /// The slots with this fingerprint that are alive, exactly.
    fn live(self, lanes: Lanes, run: u64, fingerprint: Fingerprint, moment: Self::Moment) -> u64;

    /// The slots that are dead, exactly.
    fn dead(self, lanes: Lanes, run: u64, moment: Self::Moment) -> u64;

    /// The slots that are empty or dead, of which only the lowest is exact.
    fn lowest_room(self, lanes: Lanes, run: u64, moment: Self::Moment) -> u64;

    /// The largest value, which is the mask of a tag, too.
    fn largest(self) -> u32;

    /// The fingerprint of a slot that is alive.
    fn fingerprint(self, slot: u32, moment: Self::Moment) -> Option<Fingerprint>;

    /// The content of a slot.
    fn slot(self, fingerprint: Fingerprint, value: u32, moment: Self::Moment) -> u32;

    /// The value of a slot that is alive.
    fn value(self, slot: u32, moment: Self::Moment) -> u32;

    /// See [`Tags::count`].
    fn count(self, value: u32) -> u32;

    /// See [`Tags::sum`].
    fn sum(self, had: u32, more: u32, renews: bool) -> u32;
}

/// Methods of one line, always inlined.
macro_rules! inlined {
    ($(fn $name:ident($self:ident $(, $argument:tt: $type:ty)*) $(-> $result:ty)? = $body:expr;)*) => {
        $(#[inline(always)] fn $name($self $(, $argument: $type)*) $(-> $result)? { $body })*
    };
}

/// Slots that hold a fingerprint and nothing else.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bare;

impl SlotKind for Bare {
    type Moment = ();
    type Slots<'a> = Bare;

    fn new(_: &Plan) -> Self {
        Bare
    }

    #[inline(always)]
    fn slots(&self) -> Bare {
        Bare
    }
}

impl Slots for Bare {
    type Now = ();
    type Moment = ();

    const TAGGED: bool = false;

    inlined! {
        fn now(self) = ();
        fn is_still(self, _: ()) -> bool = true;
        fn moment(self, _: ()) = ();
        fn number(self, _: ()) -> u64 = 0;
        fn alive(self, _: u64, _: ()) -> u64 = 0;
        fn unit(self, low: u64) -> u64 = low;
        fn minus(self, low: u64) -> u64 = low.wrapping_neg();
        fn moment_at(self, _: u64) = ();
        fn live(self, lanes: Lanes, run: u64, fingerprint: Fingerprint, _: ()) -> u64 =
            lanes.equal(run, lanes.repeat(fingerprint.get()));
        fn dead(self, _: Lanes, _: u64, _: ()) -> u64 = 0;
        fn lowest_room(self, lanes: Lanes, run: u64, _: ()) -> u64 =
            hits_less(run, 0, lanes.minus_low) & lanes.high;
        fn largest(self) -> u32 = 1;
        fn fingerprint(self, slot: u32, _: ()) -> Option<Fingerprint> = Fingerprint::from_slot(slot);
        fn slot(self, fingerprint: Fingerprint, _: u32, _: ()) -> u32 = fingerprint.get();
        fn value(self, _: u32, _: ()) -> u32 = 1;
        fn count(self, value: u32) -> u32 = value;
        fn sum(self, had: u32, _: u32, _: bool) -> u32 = had;
    }
}

/// The tags of a filter, and its epoch.
pub(crate) struct Tagging {
    pub(super) epoch: Epoch,
    tags: Tags,
}

/// Slots with a tag below the fingerprint.
#[derive(Clone, Copy)]
pub(crate) struct Tagged<'a>(&'a Tagging);

impl Tagging {
    pub(super) fn tags(&self) -> Tags {
        self.tags
    }
}

impl SlotKind for Tagging {
    type Moment = Moment;
    type Slots<'a> = Tagged<'a>;

    fn new(plan: &Plan) -> Self {
        Tagging { epoch: Epoch::default(), tags: Tags::new(plan) }
    }

    fn catch_up(filter: &RawFilter<Self>, epochs: &[u64]) {
        filter.catch_up(epochs);
    }

    #[inline(always)]
    fn slots(&self) -> Tagged<'_> {
        Tagged(self)
    }

    fn epoch(&self) -> Option<&Epoch> {
        Some(&self.epoch)
    }
}

impl Tagged<'_> {
    #[inline(always)]
    pub(super) fn tags(self) -> Tags {
        self.0.tags
    }
}

impl Slots for Tagged<'_> {
    type Now = u64;
    type Moment = Moment;

    const TAGGED: bool = true;

    inlined! {
        fn now(self) -> u64 = self.0.epoch.now();
        fn is_still(self, now: u64) -> bool = self.0.epoch.is_still(now);
        fn moment(self, now: u64) -> Moment = self.tags().moment(now);
        fn number(self, now: u64) -> u64 = now;
        fn unit(self, low: u64) -> u64 = self.tags().unit(low);
        fn alive(self, low: u64, moment: Moment) -> u64 = self.tags().alive(low, moment);
        fn minus(self, low: u64) -> u64 = self.tags().minus(low);
        fn moment_at(self, epoch: u64) -> Moment = self.tags().moment(epoch);
        fn live(self, lanes: Lanes, run: u64, fingerprint: Fingerprint, moment: Moment) -> u64 =
            self.tags().live(lanes, run, fingerprint, moment);
        fn dead(self, lanes: Lanes, run: u64, moment: Moment) -> u64 = self.tags().dead(lanes, run, moment);
        fn lowest_room(self, lanes: Lanes, run: u64, moment: Moment) -> u64 = self.tags().lowest_room(lanes, run, moment);
        fn largest(self) -> u32 = self.tags().most;
        fn fingerprint(self, slot: u32, moment: Moment) -> Option<Fingerprint> = self.tags().fingerprint(slot, moment);
        fn slot(self, fingerprint: Fingerprint, value: u32, moment: Moment) -> u32 =
            self.tags().slot(fingerprint, value, moment);
        fn value(self, slot: u32, moment: Moment) -> u32 = self.tags().value(slot, moment);
        fn count(self, value: u32) -> u32 = self.tags().count(value);
        fn sum(self, had: u32, more: u32, renews: bool) -> u32 = self.tags().sum(had, more, renews);
    }
}
