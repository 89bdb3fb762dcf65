//! The lookup in a growing filter, without locks.

use super::Growing;
use super::leaf::{Leaf, layout_of};
use crate::layout::{Bucket, CellPlace, Mixed, Place, Plan, hits_less};
use crate::raw::lookup::{Contains, Lookup, Values, values_in};
use crate::raw::probe::{BucketLayout, Runs, with_layout};
use crate::raw::slots::{SlotKind, Slots, Tagging};
use crate::raw::stripe::Watch;
use crate::sys::directory::Member;
use crate::sys::isa::{Avx2, Avx2Function, Compiled, Function};
use crate::sys::memory::Buffer;
use crate::sys::steps::{Step, reached};
use crate::sys::sync::AtomicU64;
use crate::sys::unaligned;
use crate::sys::vector::{Spread, any_within};
use core::marker::PhantomData;

/// A lookup, compiled per layout: for filters that begin with one shard (`ONE`, most of up to 250,000 keys) or with any
/// number, and for filters without refills, or (`EXTENDED`) with or without them.
struct ContainsAs<L, const ONE: bool, const EXTENDED: bool>(PhantomData<L>);

/// The lookup for growing filters of this plan on this processor.
pub(super) fn contains_in<K: SlotKind>(plan: &Plan) -> Contains<Growing<K>> {
    let in_vectors = || match plan.shards {
        1 if plan.extension_bits > 0 => Compiled::for_avx2::<ContainsInVectors<true, true>>(),
        1 => Compiled::for_avx2::<ContainsInVectors<true, false>>(),
        _ => Compiled::for_avx2::<ContainsInVectors<false, false>>(),
    };
    let compiled = if K::TIMED && plan.has_slots_of_fours() { in_vectors() } else { None };
    compiled.unwrap_or_else(|| contains_in_registers(plan))
}

fn contains_in_registers<K: SlotKind>(plan: &Plan) -> Contains<Growing<K>> {
    with_layout!(layout_of(plan), L => match plan.shards {
        1 if plan.extension_bits > 0 || K::TIMED => Compiled::for_scalars::<ContainsAs<L, true, true>>(),
        1 => Compiled::for_scalars::<ContainsAs<L, true, false>>(),
        _ if !K::TIMED => Compiled::for_scalars::<ContainsAs<L, false, false>>(),
        _ => Compiled::for_scalars::<ContainsAs<L, false, true>>(),
    })
}

impl<K: SlotKind, L: BucketLayout, const ONE: bool, const EXTENDED: bool> Function<Growing<K>, Mixed, bool>
    for ContainsAs<L, ONE, EXTENDED>
{
    #[inline(always)]
    fn run(growing: &Growing<K>, mixed: Mixed) -> bool {
        let CellPlace { cell, class } = growing.geometry.cell_place_as::<ONE, EXTENDED>(mixed);
        let leaf = growing.directory.at(cell);
        // This branch is predictable, except during one of many doublings. One function for both would leave each too
        // few registers.
        let is_one_kind = L::Runs::SLOTS == 4 && !EXTENDED;
        if !is_one_kind && leaf.constants.shape.is_other() {
            let buckets = u64::from(class.first.get()) << 32 | u64::from(class.second.get());
            return growing.contains_in_other::<L>(mixed, cell, leaf, class.fingerprint.get(), buckets);
        }
        let found = growing.look_in::<L::Narrow>(cell, leaf, class.fingerprint.get(), [class.first, class.second]);
        found.unwrap_or_else(|| growing.retry(mixed))
    }
}

/// A lookup in a filter with tags, which compares the slots of any width in vectors: their widths fall by 4 bits at a time, so half of
/// the tables of one depth may have buckets of more than 8 bytes, and a branch on that is not predictable.
struct ContainsInVectors<const ONE: bool, const EXTENDED: bool>;

impl<K: SlotKind, const ONE: bool, const EXTENDED: bool> Avx2Function<Growing<K>, Mixed, bool>
    for ContainsInVectors<ONE, EXTENDED>
{
    #[inline(always)]
    fn run(growing: &Growing<K>, mixed: Mixed, avx2: Avx2) -> bool {
        let CellPlace { cell, class } = growing.geometry.cell_place_as::<ONE, EXTENDED>(mixed);
        let class = if EXTENDED { growing.geometry.whole(class) } else { class };
        let leaf = growing.directory.at(cell);
        let buckets = [class.first, class.second].map(|bucket| leaf.constants.bucket(bucket));
        let slots = growing.kind.slots();
        let now = slots.now();
        let (stripe, shape) = (growing.stripe_offset(buckets[0]), leaf.constants.shape);
        let bytes = buckets.map(|bucket| bucket.get() * shape.bucket_bits() / 8);
        let sought = shape.sought(class.fingerprint.get(), slots, slots.moment(now));
        let (found, change) = leaf.get().look_in_vectors(avx2, stripe, bytes, sought);
        growing.outcome(cell, leaf, now, found, change).unwrap_or_else(|| growing.retry(mixed))
    }
}

impl<K: SlotKind> Lookup for Growing<K> {
    #[inline(always)]
    fn attempt_once(&self, mixed: Mixed) -> Option<bool> {
        let CellPlace { cell, class } = self.cell_place(mixed);
        let leaf = self.directory.at(cell);
        let buckets = [class.first, class.second].map(|bucket| leaf.constants.bucket(bucket));
        with_layout!(layout_of(&self.plan), L => {
            self.attempt_in_any::<L>(cell, leaf, class.fingerprint.get(), buckets)
        })
    }
}

impl<K: SlotKind> Growing<K> {
    /// Looks up a class that [`Geometry::cell_place_as`](crate::layout::Geometry::cell_place_as) located.
    /// Takes both buckets in one number, so that all arguments are in registers.
    #[inline(never)]
    fn contains_in_other<L: BucketLayout>(
        &self,
        mixed: Mixed,
        cell: usize,
        leaf: Member<'_, Leaf>,
        fingerprint: u32,
        buckets: u64,
    ) -> bool {
        let [first, second] = [(buckets >> 32) as u32, buckets as u32].map(Bucket::new);
        let found = if leaf.constants.shape.stores_extension() {
            let fingerprint = self.geometry.with_extension(fingerprint, first);
            let buckets = [first, second].map(|bucket| leaf.constants.bucket(bucket));
            self.attempt_in_any::<L>(cell, leaf, fingerprint, buckets)
        } else {
            self.look_in::<L>(cell, leaf, fingerprint, [first, second])
        };
        found.unwrap_or_else(|| self.retry(mixed))
    }

    /// Looks up a class in a table of either number of runs.
    #[inline(always)]
    fn attempt_in_any<L: BucketLayout>(
        &self,
        cell: usize,
        leaf: Member<'_, Leaf>,
        fingerprint: u32,
        buckets: [Bucket; 2],
    ) -> Option<bool> {
        if L::Runs::SLOTS == 4 || !leaf.constants.shape.is_wide() {
            self.look_in::<L::Narrow>(cell, leaf, fingerprint, buckets)
        } else {
            self.look_in::<L>(cell, leaf, fingerprint, buckets)
        }
    }

    /// Looks up a class in a table with this layout, where its buckets have these numbers.
    ///
    /// Unlike in a filter of fixed size, the cell is read first, and for a miss again at the end: a split clears a slot
    /// after it has changed the cell, so a lookup that reads the cleared slot reads the changed cell, too (models
    /// lookup_during_a_split_*).
    #[inline(always)]
    fn look_in<L: BucketLayout>(
        &self,
        cell: usize,
        leaf: Member<'_, Leaf>,
        fingerprint: u32,
        buckets: [Bucket; 2],
    ) -> Option<bool> {
        let (slots, bucket_bits) = (self.kind.slots(), leaf.constants.shape.bucket_bits());
        let begins = buckets.map(|bucket| u64::from(bucket.get() * bucket_bits));
        let (stripe, now) = (self.stripe_offset(buckets[0]), slots.now());
        let (found, change) = leaf.get().look::<L, _>(stripe, begins, fingerprint, slots, || slots.moment(now));
        self.outcome(cell, leaf, now, found, change)
    }

    /// The answer of a lookup that began at this epoch, or `None` if anything changed since.
    #[inline(always)]
    fn outcome<'a>(
        &'a self,
        cell: usize,
        leaf: Member<'_, Leaf>,
        now: <K::Slots<'a> as Slots>::Now,
        found: bool,
        change: impl FnOnce() -> u64,
    ) -> Option<bool> {
        if found {
            return Some(true);
        }
        ((change() == 0) & self.kind.slots().is_still(now) & self.directory.is_at(cell, leaf)).then_some(false)
    }
}

impl Leaf {
    /// Reads the buckets that begin at these bits. Returns whether one holds the fingerprint, alive at this moment, and the function
    /// of [`Leaf::read`].
    ///
    /// The pattern is computed behind the reads: before them, there are too few registers.
    #[inline(always)]
    pub(super) fn look<L: BucketLayout, T: Slots>(
        &self,
        stripe: u64,
        begins: [u64; 2],
        fingerprint: u32,
        slots: T,
        moment: impl FnOnce() -> T::Moment,
    ) -> (bool, impl FnOnce() -> u64) {
        let (look, run_bits) = (&self.constants, self.constants.shape.bucket_bits() / 2);
        let ([first, second], change) =
            self.read(stripe, begins, move |words, begin| L::read_aligned(words, begin, run_bits));
        // One slot, then all slots of a run.
        let pattern = slots.pattern(1, fingerprint & look.mask, moment()).wrapping_mul(look.low);
        let hits = |run| hits_less(run, pattern, look.minus);
        let found = (first.any_of(hits) | second.any_of(hits)) & look.high != 0;
        (found, change)
    }

    /// As [`Leaf::look`], of buckets that begin at these bytes, for what [`TableShape::sought`] returned.
    #[inline(always)]
    pub(super) fn look_in_vectors(
        &self,
        avx2: Avx2,
        stripe: u64,
        bytes: [u32; 2],
        [pattern, most]: [u32; 2],
    ) -> (bool, impl FnOnce() -> u64) {
        let (fields, change) =
            self.read(stripe, bytes, move |words, byte| unaligned::load_sixteen(avx2, words, byte as usize));
        (any_within(avx2, fields, Spread::of(self.constants.shape.slot_bits()), pattern, most), change)
    }

    /// Reads two buckets by a function of their addresses. Returns them, and a function that returns nonzero if the version has
    /// changed since.
    #[inline(always)]
    pub(super) fn read<A, R>(
        &self,
        stripe: u64,
        addresses: [A; 2],
        read: impl Fn(&Buffer<AtomicU64>, A) -> R,
    ) -> ([R; 2], impl FnOnce() -> u64) {
        let (version, words) = (self.shards.version(stripe), &*self.shards.words.view());
        let begun = version.begin();
        let [first, second] = addresses;
        let first = read(words, first);
        reached(Step::BucketRead);
        let second = read(words, second);
        reached(Step::BucketRead);
        ([first, second], move || version.change_since(begun))
    }
}

impl Growing<Tagging> {
    /// The values of the copies of a class, as [`values_in`], or `None` if its table was split.
    pub(in crate::raw) fn values_once(&self, mixed: Mixed, now: u64) -> Option<Values> {
        let place = self.cell_place(mixed);
        let (leaf, class) = self.owner(place);
        let [first, second] = [class.first, class.second].map(|bucket| u64::from(bucket.get()));
        let values = values_in(&leaf.shards, self.kind.slots(), Place { shard: 0, first, second, class }, now);
        values.filter(|_| self.directory.is_at(place.cell, leaf))
    }
}
