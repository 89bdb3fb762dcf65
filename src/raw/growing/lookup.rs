//! The lookup in a growing filter, without locks.

use super::Growing;
use super::leaf::{Leaf, layout_of};
use crate::layout::{Bucket, Class, Fingerprint, Mixed, Plan, hits_less};
use crate::raw::filter::RawFilter;
use crate::raw::lookup::Contains;
use crate::raw::probe::{Layout, Runs, with_layout};
use crate::sys::directory::Member;
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
        let aim = growing.aim(mixed);
        let (leaf, class) = growing.home(aim);
        // Nearly all tables are of the one kind or of the other, but during one doubling. Both in one function would leave each
        // too few registers.
        if L::Runs::SLOTS == 2 && !leaf.look.is_narrow() {
            let buckets = u64::from(class.first.get()) << 32 | u64::from(class.second.get());
            growing.contains_in_wide::<L>(mixed, aim.cell, leaf, class.fingerprint, buckets)
        } else {
            growing.look_in::<L::Narrow>(aim.cell, leaf, class).unwrap_or_else(|| growing.look_again(mixed))
        }
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

    /// Both buckets are given in one number: all that is given is in registers then.
    #[inline(never)]
    fn contains_in_wide<L: Layout>(
        &self,
        mixed: Mixed,
        cell: usize,
        leaf: Member<'_, Leaf>,
        fingerprint: Fingerprint,
        buckets: u64,
    ) -> bool {
        let (first, second) = (Bucket::new((buckets >> 32) as u32), Bucket::new(buckets as u32));
        let class = Class { fingerprint, first, second };
        self.look_in::<L>(cell, leaf, class).unwrap_or_else(|| self.look_again(mixed))
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
        if L::Runs::SLOTS == 2 && !leaf.look.is_narrow() {
            self.look_in::<L>(aim.cell, leaf, class)
        } else {
            self.look_in::<L::Narrow>(aim.cell, leaf, class)
        }
    }

    #[inline(always)]
    fn look_in<L: Layout>(&self, cell: usize, leaf: Member<'_, Leaf>, class: Class) -> Option<bool> {
        let look = &leaf.get().look;
        let pattern = u64::from(class.fingerprint.get()).wrapping_mul(look.low);
        let [first, second] =
            [class.first, class.second].map(|bucket| u64::from(bucket.get()) * u64::from(look.bucket_bits));
        let run_bits = look.bucket_bits / 2;
        let (version, words) = (leaf.version(self.stripe_offset(class.first)), leaf.words());
        let begun = version.begin();
        let first = L::align(L::read(words, L::address(first), run_bits), first, run_bits);
        reached(Step::BucketRead);
        let second = L::align(L::read(words, L::address(second), run_bits), second, run_bits);
        reached(Step::BucketRead);
        let hits = |run| hits_less(run, pattern, look.minus_low);
        if (first.any_of(hits) | second.any_of(hits)) & look.high != 0 {
            return Some(true);
        }
        (version.is_still(begun) & self.directory.is_at(cell, leaf)).then_some(false)
    }
}
