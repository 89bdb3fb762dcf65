//! The lookup, without locks.

use super::filter::RawFilter;
use super::probe::{BucketLayout, BucketLayoutKind, Positions, Probed, Runs, Shape, with_layout};
use super::shards::Shards;
use super::slots::{SlotKind, Slots, Tagging};
use super::stripe::Watch;
use crate::layout::{Mixed, Place, Plan, SLOTS, hits_less};
use crate::sys::isa::{Compiled, Function};
use crate::sys::steps::{Step, reached};
use arrayvec::ArrayVec;
use core::marker::PhantomData;

/// At fewer bits than this, hits of absent keys are too frequent for branch prediction.
const NARROW: u32 = 8;

/// The slow path of lookups.
pub(crate) trait Lookup {
    /// The number of attempts before a lookup gives up and returns `true`: finite for memory that another process
    /// writes.
    const REPEATS: Option<u32> = None;

    /// Looks up a class once. Returns `None` if it was not seen and a relocation, split or tick may have hidden it.
    fn attempt_once(&self, mixed: Mixed) -> Option<bool>;

    /// Repeats a lookup until an attempt succeeds, or [`REPEATS`](Self::REPEATS) have failed: then the class counts as present.
    /// Takes the hash alone, so that the fast path need not keep the place of the class in memory.
    #[cold]
    #[inline(never)]
    fn retry(&self, mixed: Mixed) -> bool {
        self.try_retry(mixed).unwrap_or(true)
    }

    /// Like [`retry`](Self::retry), but returns `None` if all attempts failed.
    fn try_retry(&self, mixed: Mixed) -> Option<bool> {
        let mut pauses = Pauses::default();
        while Self::REPEATS.is_none_or(|most| pauses.taken < most) {
            reached(Step::Repeated);
            if let Some(found) = self.attempt_once(mixed) {
                return Some(found);
            }
            pauses.pause();
        }
        None
    }

    /// Looks up the keys of a block one by one.
    #[cold]
    #[inline(never)]
    fn retry_each(&self, mixed: &[Mixed], found: &mut [bool]) {
        for (found, &mixed) in found.iter_mut().zip(mixed) {
            *found = self.retry(mixed);
        }
    }
}

/// Pauses between the attempts of a lookup, each longer than the one before, up to a microsecond or two.
///
/// Without them, a writer that advances one version without end met tens of thousands of attempts in a row: each fetched the line
/// of the version from the writer, which was about to take it back (`contention`).
#[derive(Default)]
struct Pauses {
    taken: u32,
}

impl Pauses {
    const LONGEST: u32 = 32;

    fn pause(&mut self) {
        (0..self.taken.min(Pauses::LONGEST)).for_each(|_| core::hint::spin_loop());
        self.taken = self.taken.saturating_add(1);
    }
}

/// The values of the copies of a class.
pub(crate) type Values = ArrayVec<u32, { 2 * SLOTS }>;

/// A lookup, compiled per layout because one function for all has too few registers. It is also compiled for filters of
/// one shard (`ONE`), where it takes a tenth less time, and without branches on the result, which halves the time at 4
/// bits and costs 6 % at 13.
struct ContainsAs<L, const ONE: bool, const BRANCHES: bool>(PhantomData<L>);

/// The lookup of a filter of this type.
pub(crate) type Contains<F> = Compiled<F, Mixed, bool>;

/// The lookup for filters of this plan on this processor.
pub(crate) fn contains_in<P: Probed>(plan: &Plan) -> Contains<P> {
    with_layout!(BucketLayoutKind::of(plan.slot_bits), L => match (plan.shards, plan.fingerprint_bits) {
        (1, ..NARROW) if !P::Kind::TIMED => Compiled::for_scalars::<ContainsAs<L, true, false>>(),
        (1, _) => Compiled::for_scalars::<ContainsAs<L, true, true>>(),
        (_, ..NARROW) if !P::Kind::TIMED => Compiled::for_scalars::<ContainsAs<L, false, false>>(),
        _ => Compiled::for_scalars::<ContainsAs<L, false, true>>(),
    })
}

impl<P: Probed, L: BucketLayout, const ONE: bool, const BRANCHES: bool> Function<P, Mixed, bool>
    for ContainsAs<L, ONE, BRANCHES>
{
    #[inline(always)]
    fn run(filter: &P, mixed: Mixed) -> bool {
        let (found, is_still) = attempt::<P, L, ONE>(filter, mixed);
        let counts = if BRANCHES { found || is_still() } else { found | is_still() };
        if counts { found } else { filter.retry(mixed) }
    }
}

impl<P: Probed> Lookup for P {
    const REPEATS: Option<u32> = P::REPEATS;

    #[inline(always)]
    fn attempt_once(&self, mixed: Mixed) -> Option<bool> {
        with_layout!(BucketLayoutKind::of(self.shape().format.slot_bits), L => {
            let (found, is_still) = attempt::<P, L, false>(self, mixed);
            (found || is_still()).then_some(found)
        })
    }
}

/// Returns whether the class was seen, and a function that returns whether its version and the epoch are unchanged.
///
/// A hit needs no such check: the fingerprint was alive at the epoch read first, or was stored since. A miss is valid
/// only if no relocation of the class (H1, H2) and no tick completed in between: a slot stored after a tick may have
/// the tag that was dead before it, and a slot that died may have been overwritten. Its writer has read the later
/// epoch, so the second read here returns it too.
///
/// Both buckets are always read: their cache lines arrive in parallel, and the bucket of a key cannot be predicted.
/// Fields of `probed` are copied to locals before the version is read, since the compiler must reload them after an
/// Acquire.
#[inline(always)]
fn attempt<P: Probed, L: BucketLayout, const ONE: bool>(probed: &P, mixed: Mixed) -> (bool, impl FnOnce() -> bool) {
    let Shape { source: words, geometry, positions, format, slots } = probed.shape();
    let place = geometry.locate_flat::<ONE>(mixed);
    let (lanes, run_bits) = (&format.lanes, 2 * format.slot_bits);
    let (low, fingerprint) = (lanes.low, place.class.fingerprint.get());
    let minus = if P::Kind::TIMED { slots.minus(low) } else { lanes.minus_low };
    let [first, second] = positions.begins::<L>(place);
    let version = probed.version(positions.stripe_offset(place));
    let now = slots.now();
    let begun = version.begin();
    let first = L::read_aligned(words, first, run_bits);
    reached(Step::BucketRead);
    let second = L::read_aligned(words, second, run_bits);
    reached(Step::BucketRead);
    let pattern = slots.pattern(low, fingerprint, slots.moment(now));
    let hits = |run| hits_less(run, pattern, minus);
    let found = (first.any_of(hits) | second.any_of(hits)) & lanes.high != 0;
    (found, move || version.is_still(begun) & slots.is_still(now))
}

impl RawFilter<Tagging> {
    /// The values of the live copies of the class. A copy that is present during the whole call is among them.
    pub(crate) fn values(&self, mixed: Mixed) -> Values {
        let (slots, mut pauses) = (self.kind().slots(), Pauses::default());
        loop {
            let now = slots.now();
            let values = match self {
                RawFilter::Flat(flat) => values_in(&flat.shards, slots, flat.geometry.locate_flat::<false>(mixed), now),
                RawFilter::Growing(growing) => growing.values_once(mixed, now),
            };
            if let Some(values) = values.filter(|_| slots.is_still(now)) {
                return values;
            }
            pauses.pause();
            reached(Step::Repeated);
        }
    }
}

/// The values of the copies of a class that are alive at this epoch, or `None` if a relocation intervened. Unlike a
/// lookup, it needs the second read of the version for hits, too: it returns all copies.
pub(super) fn values_in<T: Slots>(shards: &Shards, slots: T, place: Place, now: T::Now) -> Option<Values> {
    with_layout!(BucketLayoutKind::of(shards.format.slot_bits), L => values_as::<L, T>(shards, slots, place, now))
}

#[inline(always)]
fn values_as<L: BucketLayout, T: Slots>(shards: &Shards, slots: T, place: Place, now: T::Now) -> Option<Values> {
    let (positions, format) = (shards.positions(), &shards.format);
    let version = shards.version(positions.stripe_offset(place));
    let (begins, moment) = (positions.begins::<L>(place), slots.moment(now));
    let run_bits = 2 * format.slot_bits;
    let begun = version.begin();
    let mut values = ArrayVec::new();
    for begin in if place.class.coincides() { &begins[..1] } else { &begins } {
        let read = || L::read_aligned(&shards.words, *begin, run_bits);
        let runs = read();
        reached(Step::BucketRead);
        if runs.any_of(|run| slots.live(format.lanes, run, place.class.fingerprint, moment)) != 0 {
            let found = format.slots(runs.both());
            // A slot in two words may combine the tag of a key that has left it with the fingerprint of a key whose
            // relocation has not ended (model values_in_two_words_are_of_one_key).
            if 64 % format.slot_bits != 0 && format.slots(read().both()) != found {
                return None;
            }
            let is_copy = |slot: &u32| slots.fingerprint(*slot, moment) == Some(place.class.fingerprint);
            values.extend(found.into_iter().filter(is_copy).map(|slot| slots.value(slot, moment)));
        }
    }
    version.is_still(begun).then_some(values)
}
