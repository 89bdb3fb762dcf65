//! Lookups of many keys in a growing filter, in blocks, as `raw/block` does for filters of fixed size.
//!
//! The cells are read when tables are asked, two blocks ahead. Whether any of them has changed since then is asked once for a
//! block, when its buckets have been read, by the turn of the directory.

use super::Growing;
use super::leaf::{Leaf, TableShape, layout_of};
use crate::layout::{Bucket, CellPlace, Geometry, Mixed, repeated};
use crate::raw::block::{BLOCK, ContainsEach, Next};
use crate::raw::lookup::Lookup;
use crate::raw::probe::{BucketLayout, Runs, with_layout};
use crate::raw::slots::{Compare, SlotKind, Slots};
use crate::raw::stripe::{STRIPE_BYTES, Watch};
use crate::sys::directory::Member;
use crate::sys::isa::{Compiled, Function};
use crate::sys::prefetch::{CacheLevel, level_for};
use crate::sys::steps::{Step, reached};
use core::array;
use core::marker::PhantomData;

/// Keys of a block that may be in tables of two runs while the block is read as if none were: of a filter that has grown to
/// its end, few of them are, one in 16 where the rate is 0.1 %.
const FEW: u32 = BLOCK.div_ceil(4) as u32;

/// The keys of a block, and where they are looked for. Numbers that are added to addresses have 32 bits, which for vectors are half as
/// much, and each array begins with a cache line: a vector that lies in two waits for what was stored to both.
#[repr(C, align(64))]
struct LookupBlock<'a> {
    mixed: [Mixed; BLOCK],
    fingerprints: [u32; BLOCK],
    buckets: [[u32; BLOCK]; 2],
    leaves: [Member<'a, Leaf>; BLOCK],
    /// Of these tables, and of any of them.
    shapes: [TableShape; BLOCK],
    begins: [[u32; BLOCK]; 2],
    addresses: [[u32; BLOCK]; 2],
    stripes: [u32; BLOCK],
    any_shape: TableShape,
    /// The keys in tables of two runs, a bit each. Where they are few, all are read as one run, and these are looked up by
    /// themselves.
    wide: u64,
    count: usize,
    /// Of the directory, before its cells were read.
    turn: u64,
}

/// An array that begins with a cache line.
#[repr(align(64))]
struct Aligned<T>(T);

struct ContainsEachAs<L>(PhantomData<L>);

/// As `raw::block::contains_each_in`.
pub(super) fn contains_each_in<K: SlotKind>(growing: &Growing<K>, next: Next<'_>, found: &mut [bool]) {
    let compiled: Compiled<ContainsEach<Growing<K>>> =
        with_layout!(layout_of(&growing.plan), L => Compiled::for_vectors::<ContainsEachAs<L>>());
    compiled.call(growing, (next, found));
}

impl<K: SlotKind, L: BucketLayout> Function<ContainsEach<Growing<K>>> for ContainsEachAs<L> {
    #[inline(always)]
    fn run(growing: &Growing<K>, (next, found): (Next<'_>, &mut [bool])) {
        let level = level_for(growing.table_bytes());
        // Three blocks: of one the tables are asked, the lines of another are on their way, and the third is read.
        let mut blocks: [LookupBlock<'_>; 3] = array::from_fn(|_| LookupBlock::new(growing));
        let mut left = found.len();
        growing.ask::<L>(&mut blocks[0], &mut left, next);
        growing.ask::<L>(&mut blocks[1], &mut left, next);
        let stripe_shift = growing.plan.stripe_shift;
        blocks[0].begin::<L>(&growing.geometry, stripe_shift);
        if let Some(level) = level {
            (0..BLOCK).for_each(|at| blocks[0].fetch::<L>(at, level));
        }
        let mut now = 0;
        for found in found.chunks_mut(BLOCK) {
            let next_one = (now + 1) % blocks.len();
            let last_one = (now + 2) % blocks.len();
            growing.ask::<L>(&mut blocks[last_one], &mut left, next);
            blocks[next_one].begin::<L>(&growing.geometry, stripe_shift);
            let block = &blocks[now];
            let coming = (blocks[next_one].count > 0).then_some(&blocks[next_one]).zip(level);
            match <&mut [bool; BLOCK]>::try_from(&mut *found) {
                Ok(found) if block.reads_one_run::<L>() => growing.lookup::<L, L::Narrow>(block, coming, found),
                Ok(found) => growing.lookup::<L, L>(block, coming, found),
                Err(_) if block.reads_one_run::<L>() => growing.lookup::<L, L::Narrow>(block, None, found),
                Err(_) => growing.lookup::<L, L>(block, None, found),
            }
            now = next_one;
        }
    }
}

impl<'a> LookupBlock<'a> {
    #[inline(always)]
    fn new<K: SlotKind>(growing: &'a Growing<K>) -> Self {
        let leaf = growing.directory.at(growing.cell_place(Mixed::default()).cell);
        let none = [0; BLOCK];
        LookupBlock {
            mixed: [Mixed::default(); BLOCK],
            fingerprints: none,
            buckets: [none; 2],
            leaves: [leaf; BLOCK],
            shapes: [leaf.constants.shape; BLOCK],
            begins: [none; 2],
            addresses: [none; 2],
            stripes: none,
            any_shape: leaf.constants.shape,
            wide: 0,
            count: 0,
            turn: 0,
        }
    }
}

impl LookupBlock<'_> {
    /// Notes where keys lie, and in which cells.
    #[inline(always)]
    fn cell_place(&mut self, Aligned(cells): &mut Aligned<[usize; BLOCK]>, place: impl Fn(Mixed) -> CellPlace) {
        #[expect(clippy::needless_range_loop, reason = "plain indices, which the compiler vectorizes")]
        for at in 0..BLOCK {
            let CellPlace { cell, class } = place(self.mixed[at]);
            cells[at] = cell;
            self.fingerprints[at] = class.fingerprint.get();
            self.buckets[0][at] = class.first.get();
            self.buckets[1][at] = class.second.get();
        }
    }

    #[inline(always)]
    fn reads_one_run<L: BucketLayout>(&self) -> bool {
        L::Runs::SLOTS == 4 || self.wide.count_ones() <= FEW
    }

    /// Works out what is read where.
    #[inline(always)]
    fn begin<L: BucketLayout>(&mut self, geometry: &Geometry, stripe_shift: u32) {
        if self.count == 0 {
            return;
        }
        if self.any_shape.stores_extension() {
            let geometry = *geometry;
            for at in 0..BLOCK {
                let first = Bucket::new(self.buckets[0][at]);
                self.fingerprints[at] = geometry.with_extension(self.fingerprints[at], first);
            }
        }
        self.wide = 0;
        if L::Runs::SLOTS == 2 && self.any_shape.is_wide() {
            let shapes = self.shapes;
            self.wide = (0..BLOCK).fold(0, |wide, at| wide | u64::from(shapes[at].is_wide()) << at);
        }
        if self.reads_one_run::<L>() {
            self.begin_as::<L::Narrow>(stripe_shift);
        } else {
            self.begin_as::<L>(stripe_shift);
        }
    }

    /// In one loop, that nothing is read which was just stored: a vector.
    #[inline(always)]
    fn begin_as<L: BucketLayout>(&mut self, stripe_shift: u32) {
        for at in 0..BLOCK {
            let shape = self.shapes[at];
            let [first, second] = [0, 1].map(|number| self.buckets[number][at] >> shape.refills_left());
            let begins = [first, second].map(|bucket| bucket.wrapping_mul(shape.bucket_bits()));
            (self.begins[0][at], self.begins[1][at]) = (begins[0], begins[1]);
            let addresses = begins.map(|begin| L::address(begin.into()) as u32);
            (self.addresses[0][at], self.addresses[1][at]) = (addresses[0], addresses[1]);
            self.stripes[at] = (first >> stripe_shift) * STRIPE_BYTES as u32;
        }
    }

    /// Begins to fetch the lines of a key.
    #[inline(always)]
    fn fetch<L: BucketLayout>(&self, at: usize, level: CacheLevel) {
        let fetch =
            |level| self.begins.iter().for_each(|begins| L::fetch(self.leaves[at].words(), begins[at].into(), level));
        match level {
            CacheLevel::L1 => fetch(CacheLevel::L1),
            CacheLevel::L2 => fetch(CacheLevel::L2),
        }
    }

    /// Looks for one of the keys, at this epoch. Not 0 if its version changed.
    #[inline(always)]
    fn lookup_one<L: BucketLayout, T: Slots>(&self, at: usize, slots: T, moment: T::Moment, found: &mut bool) -> u64 {
        let leaf = self.leaves[at].get();
        let (look, words) = (leaf.constants, leaf.words().view());
        let (run_bits, version) = (look.shape.bucket_bits() / 2, leaf.version(self.stripes[at].into()));
        let slot = slots.unit((self.fingerprints[at] & leaf.mask()).into()) | slots.alive(1, moment);
        let (pattern, minus) = (slot.wrapping_mul(look.low), look.minus);
        let begun = version.begin();
        let hits = [self.begins[0][at], self.begins[1][at]].map(u64::from).map(|begin| {
            let runs = L::read(&*words, L::address(begin), run_bits);
            reached(Step::BucketRead);
            L::align(runs, begin, run_bits).hits(minus, pattern)
        });
        *found = (hits[0] | hits[1]) & look.high != 0;
        version.change_since(begun)
    }
}

impl<K: SlotKind> Growing<K> {
    /// Aims at the next keys and asks their tables how wide they are: in a pass of its own, between loops that the compiler
    /// vectorises.
    #[inline(always)]
    fn ask<'a, L: BucketLayout>(&'a self, block: &mut LookupBlock<'a>, left: &mut usize, next: Next<'_>) {
        block.count = (*left).min(BLOCK);
        *left -= block.count;
        if block.count == 0 {
            return;
        }
        next(&mut block.mixed);
        // A copy: the compiler has vectors where nothing that is written may be what is read.
        let (geometry, mut cells) = (self.geometry, Aligned([0; BLOCK]));
        if self.plan.extension_bits > 0 {
            block.cell_place(&mut cells, |mixed| geometry.cell_place_narrow_extended(mixed));
        } else if geometry.shards() == 1 {
            block.cell_place(&mut cells, |mixed| geometry.cell_place_narrow::<true>(mixed));
        } else if geometry.is_narrow() {
            block.cell_place(&mut cells, |mixed| geometry.cell_place_narrow::<false>(mixed));
        } else {
            block.cell_place(&mut cells, |mixed| geometry.cell_place(mixed));
        }
        block.turn = self.directory.turn();
        let leaf_at = self.directory.reader();
        let (count, mut any_shape) = (block.count, leaf_at(cells.0[0]).constants.shape);
        let mut ask = |at: usize| {
            let leaf = leaf_at(cells.0[at]);
            any_shape = any_shape.or(leaf.constants.shape);
            (block.leaves[at], block.shapes[at]) = (leaf, leaf.constants.shape);
        };
        if count == BLOCK {
            (0..BLOCK).for_each(&mut ask);
        } else {
            (0..count).for_each(&mut ask);
        }
        block.any_shape = any_shape;
    }

    /// As a lookup of each key, in tables that are read as `L` or, all but a few, as `N`. Where a version, a cell or the epoch changed, the
    /// block is looked at again key by key.
    ///
    /// As each key is read, the lines of one that is coming begin to be fetched: side by side, so that there are always some
    /// on their way, and never more than the processor keeps track of.
    #[inline(always)]
    fn lookup<L: BucketLayout, N: BucketLayout>(
        &self,
        block: &LookupBlock<'_>,
        coming: Option<(&LookupBlock<'_>, CacheLevel)>,
        found: &mut [bool],
    ) {
        let slots = self.kind.slots();
        let now = slots.now();
        let [mut first, mut second] = [(); 2].map(|()| Aligned([N::Runs::default(); BLOCK]));
        let mut changed = 0;
        let mut read = |at: usize| {
            let (leaf, run_bits) = (block.leaves[at], block.shapes[at].bucket_bits() / 2);
            let (version, words) = (leaf.version(block.stripes[at].into()), leaf.words().view());
            let begun = version.begin();
            first.0[at] = N::read(&*words, block.addresses[0][at].into(), run_bits);
            reached(Step::BucketRead);
            second.0[at] = N::read(&*words, block.addresses[1][at].into(), run_bits);
            reached(Step::BucketRead);
            changed |= version.change_since(begun);
        };
        match (coming, found.len()) {
            (Some((coming, level)), BLOCK) => (0..BLOCK).for_each(|at| {
                read(at);
                coming.fetch::<L>(at, level);
            }),
            // Unrolled by the compiler.
            (_, BLOCK) => (0..BLOCK).step_by(2).for_each(|at| [at, at + 1].into_iter().for_each(&mut read)),
            (_, count) => (0..count).for_each(read),
        }
        let (moment, mut hits) = (slots.moment(now), [0; BLOCK]);
        #[expect(clippy::needless_range_loop, reason = "plain indices, which the compiler vectorizes")]
        for at in 0..BLOCK {
            let bits = block.shapes[at].bucket_bits();
            let width = u64::from(bits / 4);
            // The fingerprint as the table stores it, above the tag of a slot that is alive.
            let slot = slots.unit(block.fingerprints[at].into()) & ((1 << width) - 1) | slots.alive(1, moment);
            let [low, pattern] = [1, slot].map(|value| repeated(value, N::Runs::SLOTS, width));
            let minus = slots.minus(low);
            let align = |runs, begin: u32| N::align(runs, begin.into(), bits / 2).hits(minus, pattern);
            let hit = align(first.0[at], block.begins[0][at]) | align(second.0[at], block.begins[1][at]);
            hits[at] = hit & low << (width - 1);
        }
        for (found, hits) in found.iter_mut().zip(hits) {
            *found = hits != 0;
        }
        if N::Runs::SLOTS != L::Runs::SLOTS {
            let mut wide = block.wide;
            while wide != 0 {
                let at = wide.trailing_zeros() as usize;
                if let Some(found) = found.get_mut(at) {
                    changed |= block.lookup_one::<L, _>(at, slots, moment, found);
                }
                wide &= wide - 1;
            }
        }
        if changed | self.directory.change_since(block.turn) != 0 || !slots.is_still(now) {
            self.retry_each(&block.mixed, found);
        }
    }
}
