//! The content of a slot beside its fingerprint: nothing ([`Bare`]), or a tag whose meaning depends on the epoch ([`Tagged`]).
//!
//! Writers and lookups are written once, over [`Slots`]. For bare slots every answer that concerns time is a constant, and
//! the questions compile to nothing.

use super::epoch::Epoch;
use super::filter::RawFilter;
use crate::layout::{Fingerprint, Lanes, Moment, Plan, Tags, hits};

/// What a filter keeps for all its slots.
pub(crate) trait SlotKind: Send + Sync + 'static {
    /// The epoch.
    type Now: Copy;
    /// The epoch as far as tags know it.
    type Moment: Copy;
    /// The view of it that shards carry.
    type Slots<'a>: Slots<Now = Self::Now, Moment = Self::Moment>;

    /// Whether lookups are compiled once more for filters of one shard and for instruction sets beyond the portable one.
    const SPECIALIZED: bool;

    /// Whether tags have epochs.
    const TIMED: bool;

    /// At epoch 0.
    fn new(plan: &Plan) -> Self;

    /// Drops what has died in a filter since copies of its tables were made at these epochs, and goes on at the latest of them.
    fn catch_up(filter: &RawFilter<Self>, epochs: &[u64])
    where
        Self: Sized;

    fn slots(&self) -> Self::Slots<'_>;
}

/// How lookups compare the slots of a table. `low` is the lowest bit of each slot of a run.
pub(crate) trait Compare: Copy + Send + Sync {
    /// The epoch.
    type Now: Copy;
    /// The epoch as far as tags know it.
    type Moment: Copy;

    /// Whether there is anything beside fingerprints.
    const TAGGED: bool;

    /// Reads the epoch: first in a lookup, and under the locks in a writer.
    fn now(self) -> Self::Now;

    /// Whether the epoch is still this one: last in a lookup that missed.
    fn is_still(self, now: Self::Now) -> bool;

    fn moment(self, now: Self::Now) -> Self::Moment;

    /// The factor that brings a fingerprint into every slot of a run.
    fn unit(self, low: u64) -> u64;

    /// Added to the pattern of a lookup by OR.
    fn alive(self, low: u64, moment: Self::Moment) -> u64;

    /// What [`hits_less`](crate::layout::hits_less) adds in a lookup.
    fn minus(self, low: u64) -> u64;
}

/// How the slots of a table are compared and written.
pub(crate) trait Slots: Compare {
    /// The epoch as a number.
    fn number(now: Self::Now) -> u64;

    /// The moment at the epoch with this number.
    fn moment_at(self, epoch: u64) -> Self::Moment;

    /// The slots that hold the fingerprint and count, exactly: the highest bit of each.
    fn live(self, lanes: Lanes, run: u64, fingerprint: Fingerprint, moment: Self::Moment) -> u64;

    /// The slots that may be written over, exactly.
    fn room(self, lanes: Lanes, run: u64, moment: Self::Moment) -> u64;

    /// The slots that are dead, exactly.
    fn dead(self, lanes: Lanes, run: u64, moment: Self::Moment) -> u64;

    /// As [`Slots::room`]; only the lowest of them is exact.
    fn lowest_room(self, lanes: Lanes, run: u64, moment: Self::Moment) -> u64;

    /// The largest value, which is the mask of a tag, too.
    fn largest(self) -> u32;

    /// The fingerprint of a slot that counts.
    fn fingerprint(self, slot: u32, moment: Self::Moment) -> Option<Fingerprint>;

    /// The content of a slot.
    fn slot(self, fingerprint: Fingerprint, value: u32, moment: Self::Moment) -> u32;

    /// The value of a slot that counts.
    fn value(self, slot: u32, moment: Self::Moment) -> u32;

    /// As [`Tags::count`].
    fn count(self, value: u32) -> u32;

    /// As [`Tags::sum`].
    fn sum(self, had: u32, more: u32, renews: bool) -> u32;
}

/// Slots that hold a fingerprint and nothing else.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bare;

impl SlotKind for Bare {
    type Now = ();
    type Moment = ();
    type Slots<'a> = Bare;

    const SPECIALIZED: bool = true;
    const TIMED: bool = false;

    fn new(_: &Plan) -> Self {
        Bare
    }

    fn catch_up(_: &RawFilter, _: &[u64]) {}

    #[inline(always)]
    fn slots(&self) -> Bare {
        Bare
    }
}

impl Compare for Bare {
    type Now = ();
    type Moment = ();

    const TAGGED: bool = false;

    #[inline(always)]
    fn now(self) {}

    #[inline(always)]
    fn is_still(self, (): ()) -> bool {
        true
    }

    #[inline(always)]
    fn moment(self, (): ()) {}

    #[inline(always)]
    fn unit(self, low: u64) -> u64 {
        low
    }

    #[inline(always)]
    fn alive(self, _: u64, (): ()) -> u64 {
        0
    }

    #[inline(always)]
    fn minus(self, low: u64) -> u64 {
        low.wrapping_neg()
    }
}

impl Slots for Bare {
    fn number((): ()) -> u64 {
        0
    }

    fn moment_at(self, _: u64) {}

    #[inline(always)]
    fn live(self, lanes: Lanes, run: u64, fingerprint: Fingerprint, (): ()) -> u64 {
        lanes.equal(run, lanes.repeat(fingerprint.get()))
    }

    #[inline(always)]
    fn room(self, lanes: Lanes, run: u64, (): ()) -> u64 {
        lanes.equal(run, 0)
    }

    #[inline(always)]
    fn dead(self, _: Lanes, _: u64, (): ()) -> u64 {
        0
    }

    #[inline(always)]
    fn lowest_room(self, lanes: Lanes, run: u64, (): ()) -> u64 {
        hits(run, 0, lanes.low()) & lanes.high()
    }

    #[inline(always)]
    fn largest(self) -> u32 {
        1
    }

    #[inline(always)]
    fn fingerprint(self, slot: u32, (): ()) -> Option<Fingerprint> {
        Fingerprint::from_slot(slot)
    }

    #[inline(always)]
    fn slot(self, fingerprint: Fingerprint, _: u32, (): ()) -> u32 {
        fingerprint.get()
    }

    #[inline(always)]
    fn value(self, _: u32, (): ()) -> u32 {
        1
    }

    #[inline(always)]
    fn count(self, value: u32) -> u32 {
        value
    }

    #[inline(always)]
    fn sum(self, had: u32, _: u32, _: bool) -> u32 {
        had
    }
}

/// Slots with a tag of a snapshot, of which the fingerprints alone are compared, whatever their tags: a lookup of those finds what is dead, too.
#[cfg(feature = "snapshot")]
#[derive(Clone, Copy)]
pub(crate) struct Fingerprints {
    pub(crate) tag_bits: u32,
}

#[cfg(feature = "snapshot")]
impl Compare for Fingerprints {
    type Now = ();
    type Moment = ();

    const TAGGED: bool = true;

    #[inline(always)]
    fn now(self) {}

    #[inline(always)]
    fn is_still(self, (): ()) -> bool {
        true
    }

    #[inline(always)]
    fn moment(self, (): ()) {}

    #[inline(always)]
    fn unit(self, low: u64) -> u64 {
        low << self.tag_bits
    }

    #[inline(always)]
    fn alive(self, _: u64, (): ()) -> u64 {
        0
    }

    #[inline(always)]
    fn minus(self, low: u64) -> u64 {
        self.unit(low).wrapping_neg()
    }
}

/// The tags of a filter, and the time by which they are read.
pub(crate) struct Tagging {
    pub(super) epoch: Epoch,
    tags: Tags,
}

/// Slots with a tag under the fingerprint.
#[derive(Clone, Copy)]
pub(crate) struct Tagged<'a>(&'a Tagging);

impl Tagging {
    pub(super) fn tags(&self) -> Tags {
        self.tags
    }
}

impl SlotKind for Tagging {
    type Now = u64;
    type Moment = Moment;
    type Slots<'a> = Tagged<'a>;

    const SPECIALIZED: bool = false;
    const TIMED: bool = true;

    fn new(plan: &Plan) -> Self {
        Tagging { epoch: Epoch::new(0), tags: Tags::new(plan) }
    }

    fn catch_up(filter: &RawFilter<Self>, epochs: &[u64]) {
        filter.catch_up(epochs);
    }

    #[inline(always)]
    fn slots(&self) -> Tagged<'_> {
        Tagged(self)
    }
}

impl Tagged<'_> {
    #[inline(always)]
    pub(super) fn tags(self) -> Tags {
        self.0.tags
    }
}

impl Compare for Tagged<'_> {
    type Now = u64;
    type Moment = Moment;

    const TAGGED: bool = true;

    #[inline(always)]
    fn now(self) -> u64 {
        self.0.epoch.now()
    }

    #[inline(always)]
    fn is_still(self, now: u64) -> bool {
        self.0.epoch.is_still(now)
    }

    #[inline(always)]
    fn moment(self, now: u64) -> Moment {
        self.tags().moment(now)
    }

    #[inline(always)]
    fn unit(self, low: u64) -> u64 {
        self.tags().unit(low)
    }

    #[inline(always)]
    fn alive(self, low: u64, moment: Moment) -> u64 {
        self.tags().alive(low, moment)
    }

    #[inline(always)]
    fn minus(self, low: u64) -> u64 {
        self.tags().minus(low)
    }
}

impl Slots for Tagged<'_> {
    fn number(now: u64) -> u64 {
        now
    }

    fn moment_at(self, epoch: u64) -> Moment {
        self.tags().moment(epoch)
    }

    #[inline(always)]
    fn live(self, lanes: Lanes, run: u64, fingerprint: Fingerprint, moment: Moment) -> u64 {
        self.tags().live(lanes, run, fingerprint, moment)
    }

    #[inline(always)]
    fn room(self, lanes: Lanes, run: u64, moment: Moment) -> u64 {
        self.tags().room(lanes, run, moment)
    }

    #[inline(always)]
    fn dead(self, lanes: Lanes, run: u64, moment: Moment) -> u64 {
        self.tags().dead(lanes, run, moment)
    }

    #[inline(always)]
    fn lowest_room(self, lanes: Lanes, run: u64, moment: Moment) -> u64 {
        self.room(lanes, run, moment)
    }

    #[inline(always)]
    fn largest(self) -> u32 {
        self.tags().most()
    }

    #[inline(always)]
    fn fingerprint(self, slot: u32, moment: Moment) -> Option<Fingerprint> {
        self.tags().fingerprint(slot, moment)
    }

    #[inline(always)]
    fn slot(self, fingerprint: Fingerprint, value: u32, moment: Moment) -> u32 {
        self.tags().slot(fingerprint, value, moment)
    }

    #[inline(always)]
    fn value(self, slot: u32, moment: Moment) -> u32 {
        self.tags().value(slot, moment)
    }

    #[inline(always)]
    fn count(self, value: u32) -> u32 {
        self.tags().count(value)
    }

    #[inline(always)]
    fn sum(self, had: u32, more: u32, renews: bool) -> u32 {
        self.tags().sum(had, more, renews)
    }
}
