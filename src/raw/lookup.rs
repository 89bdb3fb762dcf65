//! The lookup, without locks.

use super::probe::{Layout, LayoutKind, Runs, with_layout};
use super::shards::{Shards, Strides};
use super::stripe::STRIPE_BYTES;
use crate::layout::{Mixed, Place, hits_less};
use crate::sys::isa::{Compiled, Function, Of};
use crate::sys::steps::{Step, reached};
use core::marker::PhantomData;

/// What lookups look through.
pub(super) trait Look: Sized {
    fn layout(&self) -> LayoutKind;

    /// Whether the class is present; `None` if something came between, and the lookup has to begin again.
    fn look<L: Layout>(&self, mixed: Mixed) -> Option<bool>;

    /// Looks until nothing comes between. It is given the hash alone, so that a lookup that meets nothing need not keep its
    /// place in memory.
    #[cold]
    #[inline(never)]
    fn look_again(&self, mixed: Mixed) -> bool {
        loop {
            reached(Step::Repeated);
            if let Some(found) = with_layout!(self.layout(), L => self.look::<L>(mixed)) {
                return found;
            }
        }
    }
}

/// A lookup, compiled for one layout: where all are in one function, each has too few registers.
struct ContainsAs<S, L>(PhantomData<(S, L)>);

/// The signature of a lookup, in a filter that has what it looks through.
pub(super) type Contains<F> = Of<F, Mixed, bool>;

/// The lookup of filters with this layout, for this processor.
pub(super) fn contains_in<F: AsRef<S>, S: Look>(layout: LayoutKind) -> Compiled<Contains<F>> {
    with_layout!(layout, L => Compiled::for_scalars::<ContainsAs<S, L>>())
}

impl<F: AsRef<S>, S: Look, L: Layout> Function<Contains<F>> for ContainsAs<S, L> {
    #[inline(always)]
    fn run(filter: &F, mixed: Mixed) -> bool {
        let filter = filter.as_ref();
        filter.look::<L>(mixed).unwrap_or_else(|| filter.look_again(mixed))
    }
}

impl Look for Shards {
    #[inline(always)]
    fn layout(&self) -> LayoutKind {
        LayoutKind::of(&self.format)
    }

    /// Whether the class is present; `None` if a relocation came between, and the lookup has to begin again.
    ///
    /// A hit needs no check: the fingerprint was seen in one of its two buckets. A miss counts only if no relocation of
    /// the class came between; if one did, a writer has finished a move (H1, H2).
    ///
    /// Both buckets are read whatever the first one says: their lines are fetched at the same time, and which of the
    /// two holds a key cannot be predicted. All that is known beforehand is in locals before the version is read: the
    /// compiler may not carry over an Acquire what it has read of `self`.
    #[inline(always)]
    fn look<L: Layout>(&self, mixed: Mixed) -> Option<bool> {
        let place = self.geometry.locate_flat(mixed);
        let (lanes, run_bits) = (&self.format.lanes, self.run_bits());
        let pattern = u64::from(place.class.fingerprint.get()).wrapping_mul(lanes.low());
        let [first, second] = self.strides.begins::<L>(place);
        let version = self.version(self.strides.stripe_offset(place));
        let words = &self.words;
        let begun = version.begin();
        let first = L::align(L::read(words, L::address(first), run_bits), first, run_bits);
        reached(Step::BucketRead);
        let second = L::align(L::read(words, L::address(second), run_bits), second, run_bits);
        reached(Step::BucketRead);
        let hits = |run| hits_less(run, pattern, lanes.minus_low());
        if (first.any_of(hits) | second.any_of(hits)) & lanes.high() != 0 {
            return Some(true);
        }
        version.is_still(begun).then_some(false)
    }
}

impl Strides {
    /// The same, of which the compiler sees that they are numbers of 32 bits: it has vectors for their products.
    #[inline(always)]
    pub(super) fn narrow(self) -> Self {
        let narrow = |number: u64| number & u64::from(u32::MAX);
        let Strides { bucket_bits, stripes, stripe_shift } = self;
        Strides { bucket_bits: narrow(bucket_bits), stripes: narrow(stripes), stripe_shift }
    }

    /// Where the buckets of a class begin, as [`Layout::address`] takes it.
    #[inline(always)]
    pub(super) fn begins<L: Layout>(self, place: Place) -> [u64; 2] {
        [place.first, place.second].map(|number| if L::UNIT { number } else { number * self.bucket_bits })
    }

    /// Where the stripe begins, in bytes, whose version lookups of a class watch: that of its first bucket, which is known
    /// soonest. The mover of a class bumps the stripes of both its buckets, so either would do.
    #[inline(always)]
    pub(super) fn stripe_offset(self, place: Place) -> u64 {
        let stripe = u64::from(place.class.first.get() >> self.stripe_shift);
        place.shard * self.stripes + stripe * STRIPE_BYTES as u64
    }
}
