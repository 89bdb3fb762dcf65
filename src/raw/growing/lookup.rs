//! The lookup in a growing filter, without locks.

use super::Growing;
use super::leaf::layout_of;
use crate::layout::{Mixed, Plan};
use crate::raw::filter::RawFilter;
use crate::raw::lookup::Contains;
use crate::raw::probe::{Layout, Runs, with_layout};
use crate::sys::isa::{Compiled, Function};
use crate::sys::steps::{Step, reached};
use core::marker::PhantomData;

/// A lookup, compiled for one layout.
struct ContainsAs<L>(PhantomData<L>);

/// The lookup of growing filters of this plan, for this processor.
pub(in crate::raw) fn contains_in(plan: &Plan) -> Compiled<Contains<RawFilter>> {
    with_layout!(layout_of(plan), L => Compiled::for_scalars::<ContainsAs<L>>())
}

impl<L: Layout> Function<Contains<RawFilter>> for ContainsAs<L> {
    #[inline(always)]
    fn run(filter: &RawFilter, mixed: Mixed) -> bool {
        let growing = filter.growing.as_deref().expect("the lookup of a growing filter");
        growing.look::<L>(mixed).unwrap_or_else(|| growing.look_again(mixed))
    }
}

impl Growing {
    /// Looks until neither a relocation nor a split comes between.
    #[cold]
    #[inline(never)]
    pub(super) fn look_again(&self, mixed: Mixed) -> bool {
        loop {
            reached(Step::Repeated);
            if let Some(found) = with_layout!(layout_of(&self.plan), L => self.look::<L>(mixed)) {
                return found;
            }
        }
    }

    /// Whether the class is present; `None` if a relocation or a split came between.
    ///
    /// As in a filter of fixed size, but that the cell is the first thing that is read, and the last one for a miss: a slot
    /// that a split clears is cleared after the cell has changed, so that who sees it cleared sees the other cell (models
    /// lookup_during_a_split_*).
    #[inline(always)]
    fn look<L: Layout>(&self, mixed: Mixed) -> Option<bool> {
        let aim = self.aim(mixed);
        let (leaf, class) = self.home(aim);
        let look = leaf.look;
        let pattern = u64::from(class.fingerprint.get()).wrapping_mul(look.low);
        let [first, second] =
            [class.first, class.second].map(|bucket| u64::from(bucket.get()) * u64::from(look.bucket_bits));
        let (version, words) = (leaf.version(class), leaf.words());
        let begun = version.begin();
        let first = L::align(L::read(words, L::address(first), look.run_bits), first, look.run_bits);
        reached(Step::BucketRead);
        let second = L::align(L::read(words, L::address(second), look.run_bits), second, look.run_bits);
        reached(Step::BucketRead);
        if (first.hits(look.low, pattern) | second.hits(look.low, pattern)) & look.high != 0 {
            return Some(true);
        }
        (version.is_still(begun) & self.directory.is_at(aim.cell, leaf)).then_some(false)
    }
}
