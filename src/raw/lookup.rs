//! The lookup, without locks.

use super::probe::{Layout, LayoutKind, Positions, Probed, Runs, with_layout};
use super::stripe::Watch;
use crate::layout::{Mixed, Plan, hits_less};
use crate::sys::isa::{Compiled, Function, Of};
use crate::sys::steps::{Step, reached};
use core::marker::PhantomData;

/// Below this many bits, absent keys are found by chance too often for a processor to foresee it.
const NARROW: u32 = 8;

/// What lookups look through.
pub(crate) trait Look: Sized {
    fn slot_bits(&self) -> u32;

    /// Whether the class was seen, and what asks whether nothing came between: if something did, a miss is none, and the
    /// lookup has to begin again. Of a filter of one shard, `ONE` may be true.
    fn look<L: Layout, const ONE: bool>(&self, mixed: Mixed) -> (bool, impl FnOnce() -> bool);

    /// Looks until nothing comes between. It is given the hash alone, so that a lookup that meets nothing need not keep its
    /// place in memory.
    #[cold]
    #[inline(never)]
    fn look_again(&self, mixed: Mixed) -> bool {
        loop {
            reached(Step::Repeated);
            let said = with_layout!(LayoutKind::of(self.slot_bits()), L => {
                let (found, is_still) = self.look::<L, false>(mixed);
                (found || is_still()).then_some(found)
            });
            if let Some(found) = said {
                return found;
            }
        }
    }
}

/// A lookup, compiled for one layout: where all are in one function, each has too few registers. Also for filters of one
/// shard, where it takes a tenth less time; and for narrow fingerprints, where no branch depends on what was found: at 4 bits
/// it takes half the time, at 13 bits 6 % more.
struct ContainsAs<S, L, const ONE: bool, const BRANCHES: bool>(PhantomData<(S, L)>);

/// The signature of a lookup, in a filter that has what it looks through.
pub(crate) type Contains<F> = Of<F, Mixed, bool>;

/// The lookup of filters of this plan, for this processor.
pub(crate) fn contains_in<F: AsRef<S>, S: Look>(plan: &Plan) -> Compiled<Contains<F>> {
    with_layout!(LayoutKind::of(plan.slot_bits), L => match (plan.shards, plan.fingerprint_bits) {
        (1, ..NARROW) => Compiled::for_scalars::<ContainsAs<S, L, true, false>>(),
        (1, _) => Compiled::for_scalars::<ContainsAs<S, L, true, true>>(),
        (_, ..NARROW) => Compiled::for_scalars::<ContainsAs<S, L, false, false>>(),
        _ => Compiled::for_scalars::<ContainsAs<S, L, false, true>>(),
    })
}

impl<F: AsRef<S>, S: Look, L: Layout, const ONE: bool, const BRANCHES: bool> Function<Contains<F>>
    for ContainsAs<S, L, ONE, BRANCHES>
{
    #[inline(always)]
    fn run(filter: &F, mixed: Mixed) -> bool {
        let filter = filter.as_ref();
        let (found, is_still) = filter.look::<L, ONE>(mixed);
        // What was found needs no answer, but where branches cost more than the answer.
        let counts = if BRANCHES { found || is_still() } else { found | is_still() };
        if counts { found } else { filter.look_again(mixed) }
    }
}

impl<P: Probed> Look for P {
    fn slot_bits(&self) -> u32 {
        self.format().slot_bits()
    }

    /// A hit needs no check: the fingerprint was seen in one of its two buckets. A miss counts only if no relocation of
    /// the class came between; if one did, a writer has finished a move (H1, H2).
    ///
    /// Both buckets are read whatever the first one says: their lines are fetched at the same time, and which of the
    /// two holds a key cannot be predicted. All that is known beforehand is in locals before the version is read: the
    /// compiler may not carry over an Acquire what it has read of `self`.
    #[inline(always)]
    fn look<L: Layout, const ONE: bool>(&self, mixed: Mixed) -> (bool, impl FnOnce() -> bool) {
        let place = self.geometry().locate_flat::<ONE>(mixed);
        let (lanes, run_bits) = (&self.format().lanes, 2 * self.format().slot_bits());
        let pattern = u64::from(place.class.fingerprint.get()).wrapping_mul(lanes.low());
        let [first, second] = self.positions().begins::<L>(place);
        let version = self.version(self.positions().stripe_offset(place));
        let words = self.source();
        let begun = version.begin();
        let first = L::align(L::read(words, L::address(first), run_bits), first, run_bits);
        reached(Step::BucketRead);
        let second = L::align(L::read(words, L::address(second), run_bits), second, run_bits);
        reached(Step::BucketRead);
        let hits = |run| hits_less(run, pattern, lanes.minus_low());
        let found = (first.any_of(hits) | second.any_of(hits)) & lanes.high() != 0;
        (found, move || version.is_still(begun))
    }
}
