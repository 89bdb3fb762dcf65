//! The lookup, without locks.

use super::flat::Flat;
use super::probe::{BucketLayout, BucketLayoutKind, Positions, Probed, Runs, with_layout};
use super::slots::{Compare, Slots, Tagging};
use super::stripe::Watch;
use crate::layout::{Mixed, Place, Plan, SLOTS, hits_less};
use crate::sys::isa::{Compiled, Function, Of};
use crate::sys::steps::{Step, reached};
use arrayvec::ArrayVec;
use core::marker::PhantomData;

/// Below this many bits, absent keys are found by chance too often for a processor to foresee it.
const NARROW: u32 = 8;

/// What lookups look through.
pub(crate) trait Lookup: Sized {
    /// How often a lookup repeats before it gives up: where anyone may change what it reads. `None` is without end.
    const REPEATS: Option<u32> = None;

    fn slot_bits(&self) -> u32;

    /// Whether the class was seen, and what asks whether nothing came between: if something did, a miss is none, and the
    /// lookup has to begin again. Of a filter of one shard, `ONE` may be true.
    fn attempt<L: BucketLayout, const ONE: bool>(&self, mixed: Mixed) -> (bool, impl FnOnce() -> bool);

    /// Looks once, whatever the layout; `None` if something came between.
    #[inline(always)]
    fn attempt_once(&self, mixed: Mixed) -> Option<bool> {
        with_layout!(BucketLayoutKind::of(self.slot_bits()), L => {
            let (found, is_still) = self.attempt::<L, false>(mixed);
            (found || is_still()).then_some(found)
        })
    }

    /// Looks until nothing comes between, or as often as it may: a key that is not seen then is taken for present. It is given
    /// the hash alone, so that a lookup that meets nothing need not keep its place in memory.
    #[cold]
    #[inline(never)]
    fn retry(&self, mixed: Mixed) -> bool {
        let mut repeats = 0;
        loop {
            reached(Step::Repeated);
            if let Some(found) = self.attempt_once(mixed) {
                return found;
            }
            if let Some(most) = Self::REPEATS {
                repeats += 1;
                if repeats >= most {
                    return true;
                }
            }
        }
    }
}

/// The values of the copies of a class.
pub(crate) type Values = ArrayVec<u32, { 2 * SLOTS }>;

/// A lookup, compiled for one layout: where all are in one function, each has too few registers. Also for filters of one
/// shard, where it takes a tenth less time; and for narrow fingerprints, where no branch depends on what was found: at 4 bits
/// it takes half the time, at 13 bits 6 % more.
struct ContainsAs<L, const ONE: bool, const BRANCHES: bool>(PhantomData<L>);

/// The signature of a lookup.
pub(crate) type Contains<F> = Of<F, Mixed, bool>;

/// The lookup of filters of this plan, for this processor.
pub(crate) fn contains_in<P: Probed>(plan: &Plan) -> Compiled<Contains<P>> {
    with_layout!(BucketLayoutKind::of(plan.slot_bits), L => match (plan.shards, plan.fingerprint_bits) {
        _ if !P::SPECIALIZED => Compiled::for_scalars::<ContainsAs<L, false, true>>(),
        (1, ..NARROW) => Compiled::for_scalars::<ContainsAs<L, true, false>>(),
        (1, _) => Compiled::for_scalars::<ContainsAs<L, true, true>>(),
        (_, ..NARROW) => Compiled::for_scalars::<ContainsAs<L, false, false>>(),
        _ => Compiled::for_scalars::<ContainsAs<L, false, true>>(),
    })
}

impl<P: Probed, L: BucketLayout, const ONE: bool, const BRANCHES: bool> Function<Contains<P>>
    for ContainsAs<L, ONE, BRANCHES>
{
    #[inline(always)]
    fn run(filter: &P, mixed: Mixed) -> bool {
        let (found, is_still) = filter.attempt::<L, ONE>(mixed);
        // What was found needs no answer, but where branches cost more than the answer.
        let counts = if BRANCHES { found || is_still() } else { found | is_still() };
        if counts { found } else { filter.retry(mixed) }
    }
}

impl<P: Probed> Lookup for P {
    const REPEATS: Option<u32> = P::REPEATS;

    fn slot_bits(&self) -> u32 {
        self.format().slot_bits()
    }

    /// A hit needs no check: the fingerprint was seen in one of its two buckets, and counted at the epoch that was read
    /// first, or was stored after it. A miss counts only if no relocation of the class came between; if one did, a writer has
    /// finished a move (H1, H2). Nor may a tick have come: a slot stored for many ticks after a tick has the tag that was dead
    /// before it, and one that has died may have made room already. A writer that stores has read the later epoch, so the
    /// second look sees it.
    ///
    /// Both buckets are read whatever the first one says: their lines are fetched at the same time, and which of the
    /// two holds a key cannot be predicted. All that is known beforehand is in locals before the version is read: the
    /// compiler may not carry over an Acquire what it has read of `self`.
    #[inline(always)]
    fn attempt<L: BucketLayout, const ONE: bool>(&self, mixed: Mixed) -> (bool, impl FnOnce() -> bool) {
        let place = self.geometry().locate_flat::<ONE>(mixed);
        let (lanes, run_bits) = (&self.format().lanes, 2 * self.format().slot_bits());
        let slots = self.slots();
        let pattern = u64::from(place.class.fingerprint.get()).wrapping_mul(slots.unit(lanes.low()));
        let minus = if <P::Slots<'_> as Compare>::TAGGED { slots.minus(lanes.low()) } else { lanes.minus_low() };
        let [first, second] = self.positions().begins::<L>(place);
        let version = self.version(self.positions().stripe_offset(place));
        let words = self.source();
        let now = slots.now();
        let begun = version.begin();
        let first = L::align(L::read(words, L::address(first), run_bits), first, run_bits);
        reached(Step::BucketRead);
        let second = L::align(L::read(words, L::address(second), run_bits), second, run_bits);
        reached(Step::BucketRead);
        let pattern = pattern | slots.alive(lanes.low(), slots.moment(now));
        let hits = |run| hits_less(run, pattern, minus);
        let found = (first.any_of(hits) | second.any_of(hits)) & lanes.high() != 0;
        (found, move || version.is_still(begun) & slots.is_still(now))
    }
}

impl Flat<Tagging> {
    /// The value of each live copy of the class. A copy that is there throughout is among them.
    pub(super) fn values(&self, mixed: Mixed) -> Values {
        loop {
            let (place, slots) = (self.shards.shape.geometry.locate_flat::<false>(mixed), self.slots());
            let now = slots.now();
            if let Some(values) = values_in(&self.shards, slots, place, now).filter(|_| slots.is_still(now)) {
                return values;
            }
            reached(Step::Repeated);
        }
    }
}

/// The values of the copies of a class that count at this epoch; `None` if a relocation came between. All copies count, so
/// that what was found needs the check too.
pub(super) fn values_in<P: Probed, T: Slots>(shards: &P, slots: T, place: Place, now: T::Now) -> Option<Values> {
    with_layout!(BucketLayoutKind::of(shards.format().slot_bits()), L => values_as::<L, P, T>(shards, slots, place, now))
}

#[inline(always)]
fn values_as<L: BucketLayout, P: Probed, T: Slots>(shards: &P, slots: T, place: Place, now: T::Now) -> Option<Values> {
    let (version, format) = (shards.version(shards.positions().stripe_offset(place)), shards.format());
    let (begins, moment) = (shards.positions().begins::<L>(place), slots.moment(now));
    let run_bits = 2 * format.slot_bits();
    let begun = version.begin();
    let mut values = ArrayVec::new();
    for begin in if place.class.coincides() { &begins[..1] } else { &begins } {
        let read = || L::align(L::read(shards.source(), L::address(*begin), run_bits), *begin, run_bits);
        let runs = read();
        reached(Step::BucketRead);
        if runs.any_of(|run| slots.live(format.lanes, run, place.class.fingerprint, moment)) != 0 {
            let found = format.slots(runs.both());
            // Of a slot in two words, the tag may be that of a key that has left it, and the fingerprint that of one
            // that came by a relocation which has not ended (model values_in_two_words_are_of_one_key).
            if 64 % format.slot_bits() != 0 && format.slots(read().both()) != found {
                return None;
            }
            let is_copy = |slot: &u32| slots.fingerprint(*slot, moment) == Some(place.class.fingerprint);
            values.extend(found.into_iter().filter(is_copy).map(|slot| slots.value(slot, moment)));
        }
    }
    version.is_still(begun).then_some(values)
}
