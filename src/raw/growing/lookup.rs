//! The lookup in a growing filter, without locks.

use super::Growing;
use super::leaf::{Leaf, layout_of};
use crate::layout::{Aim, Bucket, Class, Mixed, Place, Plan, hits_less};
use crate::raw::lookup::{Contains, Values, values_in};
use crate::raw::probe::{Layout, Runs, with_layout};
use crate::raw::slots::{Compare, SlotKind, Tagging};
use crate::raw::stripe::Watch;
use crate::sys::directory::Member;
use crate::sys::isa::{Compiled, Function};
use crate::sys::steps::{Step, reached};
use core::marker::PhantomData;

/// A lookup, compiled for one layout, and for one way to find the table.
struct ContainsAs<L, const AIM: u8>(PhantomData<L>);

/// In any filter.
const ANY: u8 = 0;
/// In one of one shard at the beginning, as most are up to 250,000 keys, or of several, of which no table is refilled.
const ONE: u8 = 1;
const MANY: u8 = 2;

/// The lookup of growing filters of this plan, for this processor.
pub(super) fn contains_in<K: SlotKind>(plan: &Plan) -> Compiled<Contains<Growing<K>>> {
    with_layout!(layout_of(plan), L => match plan.shards {
        _ if plan.extension_bits > 0 || !K::SPECIALIZED => Compiled::for_scalars::<ContainsAs<L, ANY>>(),
        1 => Compiled::for_scalars::<ContainsAs<L, ONE>>(),
        _ => Compiled::for_scalars::<ContainsAs<L, MANY>>(),
    })
}

impl<K: SlotKind, L: Layout, const AIM: u8> Function<Contains<Growing<K>>> for ContainsAs<L, AIM> {
    #[inline(always)]
    fn run(growing: &Growing<K>, mixed: Mixed) -> bool {
        let aim = match AIM {
            ONE => growing.geometry.aim_in_one(mixed),
            MANY => growing.geometry.aim_in_many(mixed),
            _ => growing.aim(mixed),
        };
        let (leaf, class) = growing.home_as::<AIM>(aim);
        let pattern = growing.pattern(leaf, class);
        // Nearly all tables are of the one kind or of the other, but during one doubling. Both in one function would leave each
        // too few registers.
        if L::Runs::SLOTS == 2 && !leaf.look.is_narrow() {
            let buckets = u64::from(class.first.get()) << 32 | u64::from(class.second.get());
            growing.contains_in_wide::<L>(mixed, aim.cell, leaf, pattern, buckets)
        } else {
            let buckets = [class.first, class.second];
            growing.look_in::<L::Narrow>(aim.cell, leaf, pattern, buckets).unwrap_or_else(|| growing.look_again(mixed))
        }
    }
}

impl<K: SlotKind> Growing<K> {
    /// As `home`.
    #[inline(always)]
    fn home_as<const AIM: u8>(&self, aim: Aim) -> (Member<'_, Leaf>, Class) {
        let (leaf, class) = self.home(aim);
        if AIM == ANY {
            return (leaf, class);
        }
        (leaf, Class { fingerprint: class.fingerprint, ..aim.class })
    }

    /// The fingerprint of a class, as this table stores it, in every slot of a run.
    #[inline(always)]
    fn pattern(&self, leaf: Member<'_, Leaf>, class: Class) -> u64 {
        u64::from(class.fingerprint.get()).wrapping_mul(self.kind.slots().unit(leaf.look.low))
    }

    /// Looks until neither a relocation nor a split nor a tick comes between.
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
        pattern: u64,
        buckets: u64,
    ) -> bool {
        let buckets = [(buckets >> 32) as u32, buckets as u32].map(Bucket::new);
        self.look_in::<L>(cell, leaf, pattern, buckets).unwrap_or_else(|| self.look_again(mixed))
    }

    /// Whether the class is present; `None` if a relocation, a split or a tick came between.
    ///
    /// As in a filter of fixed size, but that the cell is the first thing that is read, and the last one for a miss: a slot
    /// that a split clears is cleared after the cell has changed, so that who sees it cleared sees the other cell (models
    /// lookup_during_a_split_*).
    #[inline(always)]
    fn look<L: Layout>(&self, mixed: Mixed) -> Option<bool> {
        let aim = self.aim(mixed);
        let (leaf, class) = self.home(aim);
        let (pattern, buckets) = (self.pattern(leaf, class), [class.first, class.second]);
        if L::Runs::SLOTS == 2 && !leaf.look.is_narrow() {
            self.look_in::<L>(aim.cell, leaf, pattern, buckets)
        } else {
            self.look_in::<L::Narrow>(aim.cell, leaf, pattern, buckets)
        }
    }

    #[inline(always)]
    fn look_in<L: Layout>(
        &self,
        cell: usize,
        leaf: Member<'_, Leaf>,
        pattern: u64,
        buckets: [Bucket; 2],
    ) -> Option<bool> {
        let (look, slots) = (&leaf.get().look, self.kind.slots());
        let minus = if <K::Slots<'_> as Compare>::TAGGED { slots.minus(look.low) } else { look.minus_low };
        let [first, second] = buckets.map(|bucket| u64::from(bucket.get() * look.bucket_bits()));
        let run_bits = look.bucket_bits() / 2;
        let (version, words) = (leaf.version(self.stripe_offset(buckets[0])), &*leaf.words().view());
        let now = slots.now();
        let begun = version.begin();
        let first = L::align(L::read(words, L::address(first), run_bits), first, run_bits);
        reached(Step::BucketRead);
        let second = L::align(L::read(words, L::address(second), run_bits), second, run_bits);
        reached(Step::BucketRead);
        let pattern = pattern | slots.alive(look.low, slots.moment(now));
        let hits = |run| hits_less(run, pattern, minus);
        if (first.any_of(hits) | second.any_of(hits)) & look.high != 0 {
            return Some(true);
        }
        (version.is_still(begun) & slots.is_still(now) & self.directory.is_at(cell, leaf)).then_some(false)
    }
}

impl Growing<Tagging> {
    /// The value of each live copy of the class. A copy that is there throughout is among them.
    pub(in crate::raw) fn values(&self, mixed: Mixed) -> Values {
        loop {
            let (aim, slots) = (self.aim(mixed), self.kind.slots());
            let ((leaf, class), now) = (self.home(aim), slots.now());
            let [first, second] = [class.first, class.second].map(|bucket| u64::from(bucket.get()));
            let values = values_in(&leaf.get().shards, slots, Place { shard: 0, first, second, class }, now);
            if let Some(values) = values.filter(|_| slots.is_still(now) && self.directory.is_at(aim.cell, leaf)) {
                return values;
            }
            reached(Step::Repeated);
        }
    }
}
