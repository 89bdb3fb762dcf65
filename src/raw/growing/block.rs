//! Lookups of many keys in a growing filter, in blocks like those of `raw/block`.
//!
//! The cells of a block are read two blocks ahead. After its buckets are read, the turn of the directory shows whether
//! any cell has changed since.

use super::Growing;
use super::leaf::{Leaf, TableShape, layout_of};
use crate::layout::{Bucket, CellPlace, Geometry, Mixed, repeated};
use crate::raw::block::{BLOCK, LookupBatch, Next};
use crate::raw::lookup::Lookup;
use crate::raw::probe::{BucketLayout, Bytes, Runs, with_layout};
use crate::raw::slots::{SlotKind, Slots};
use crate::raw::stripe::STRIPE_BYTES;
use crate::sys::directory::Member;
use crate::sys::isa::{Avx2, Avx2Function, Compiled, Function};
use crate::sys::prefetch::{CacheLevel, level_for};
use core::array;
use core::marker::PhantomData;

/// The number of keys of a block that may be in tables of two runs and are then looked up singly. At the end of growth
/// these are few: one in 16 at a rate of 0.1 %.
const FEW: u32 = BLOCK.div_ceil(4) as u32;

/// The keys of a block and their places. Numbers have 32 bits for half as many vectors, and arrays begin with a cache
/// line, because a vector in two lines waits for stores to both.
#[repr(C, align(64))]
struct LookupBlock<'a> {
    mixed: [Mixed; BLOCK],
    fingerprints: [u32; BLOCK],
    buckets: [[u32; BLOCK]; 2],
    leaves: [Member<'a, Leaf>; BLOCK],
    /// The shapes of these tables, and their union.
    shapes: [TableShape; BLOCK],
    begins: [[u32; BLOCK]; 2],
    addresses: [[u32; BLOCK]; 2],
    stripes: [u32; BLOCK],
    any_shape: TableShape,
    /// A bit per key in a table of two runs.
    wide: u64,
    count: usize,
    /// The turn of the directory before its cells were read.
    turn: u64,
}

/// An array at the beginning of a cache line.
#[repr(align(64))]
struct Aligned<T>(T);

struct ContainsEachAs<L>(PhantomData<L>);

pub(super) fn contains_each_in<K: SlotKind>(growing: &Growing<K>, next: Next<'_>, found: &mut [bool]) {
    let in_vectors = K::TIMED && growing.plan.has_slots_of_fours();
    let compiled: Compiled<_, LookupBatch<'_>, ()> = in_vectors
        .then(Compiled::for_avx2::<ContainsEachInVectors>)
        .flatten()
        .unwrap_or_else(|| with_layout!(layout_of(&growing.plan), L => Compiled::for_vectors::<ContainsEachAs<L>>()));
    compiled.call(growing, (level_for(growing.word_bytes()), next, found));
}

/// In filters with tags, as the single lookup.
struct ContainsEachInVectors;

impl<K: SlotKind> Avx2Function<Growing<K>, LookupBatch<'_>, ()> for ContainsEachInVectors {
    #[inline(always)]
    fn run(growing: &Growing<K>, (level, next, found): LookupBatch<'_>, avx2: Avx2) {
        growing.contains_each_as::<Bytes>(Some(avx2), level, next, found);
    }
}

impl<K: SlotKind, L: BucketLayout> Function<Growing<K>, LookupBatch<'_>, ()> for ContainsEachAs<L> {
    #[inline(always)]
    fn run(growing: &Growing<K>, (level, next, found): LookupBatch<'_>) {
        growing.contains_each_as::<L>(None, level, next, found);
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
    /// Stores the places and returns the cells of the keys.
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

    /// Computes the positions of the buckets.
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

    /// One loop that reads nothing just stored, so that it is vectorized.
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

    #[inline(always)]
    fn fetch<L: BucketLayout>(&self, at: usize, level: CacheLevel) {
        self.begins.iter().for_each(|begins| L::fetch(&self.leaves[at].shards.words, begins[at].into(), level));
    }

    /// Looks up one key by this moment. Returns nonzero if its version changed.
    #[inline(always)]
    fn lookup_one<L: BucketLayout, T: Slots>(&self, at: usize, slots: T, moment: T::Moment, found: &mut bool) -> u64 {
        let (stripe, begins) = (self.stripes[at].into(), [self.begins[0][at], self.begins[1][at]].map(u64::from));
        let leaf = self.leaves[at].get();
        let (is_found, change) = leaf.look::<L, T>(stripe, begins, self.fingerprints[at], slots, || moment);
        *found = is_found;
        change()
    }

    /// Looks up each key by this moment, in tables with the layout `N` or, for a few keys, `L`. Returns nonzero if a version changed.
    #[inline(always)]
    fn lookup_in_registers<L: BucketLayout, N: BucketLayout, T: Slots>(
        &self,
        coming: Option<(&LookupBlock<'_>, CacheLevel)>,
        slots: T,
        moment: T::Moment,
        found: &mut [bool],
    ) -> u64 {
        let [mut first, mut second] = [(); 2].map(|()| Aligned([N::Runs::default(); BLOCK]));
        let mut changed = 0;
        let mut read = |at: usize| {
            let (leaf, run_bits) = (self.leaves[at], self.shapes[at].bucket_bits() / 2);
            let addresses = [self.addresses[0][at], self.addresses[1][at]].map(u64::from);
            let (runs, change) = leaf
                .get()
                .read(self.stripes[at].into(), addresses, move |words, address| N::read(words, address, run_bits));
            [first.0[at], second.0[at]] = runs;
            changed |= change();
        };
        match (coming, found.len()) {
            (Some((coming, level)), BLOCK) => (0..BLOCK).for_each(|at| {
                read(at);
                coming.fetch::<L>(at, level);
            }),
            // The compiler unrolls this.
            (_, BLOCK) => (0..BLOCK).step_by(2).for_each(|at| [at, at + 1].into_iter().for_each(&mut read)),
            (_, count) => (0..count).for_each(read),
        }
        let mut hits = [0; BLOCK];
        #[expect(clippy::needless_range_loop, reason = "plain indices, which the compiler vectorizes")]
        for at in 0..BLOCK {
            let bits = self.shapes[at].bucket_bits();
            let width = u64::from(bits / 4);
            // The fingerprint as stored in this table, above the tag of a live slot.
            let slot = slots.unit(self.fingerprints[at].into()) & ((1 << width) - 1) | slots.alive(1, moment);
            let [low, pattern] = [1, slot].map(|value| repeated(value, N::Runs::SLOTS, width));
            let minus = slots.minus(low);
            let align = |runs, begin: u32| N::align(runs, begin.into(), bits / 2).hits(minus, pattern);
            let hit = align(first.0[at], self.begins[0][at]) | align(second.0[at], self.begins[1][at]);
            hits[at] = hit & low << (width - 1);
        }
        for (found, hits) in found.iter_mut().zip(hits) {
            *found = hits != 0;
        }
        if N::Runs::SLOTS != L::Runs::SLOTS {
            let mut wide = self.wide;
            while wide != 0 {
                let at = wide.trailing_zeros() as usize;
                if let Some(found) = found.get_mut(at) {
                    changed |= self.lookup_one::<L, _>(at, slots, moment, found);
                }
                wide &= wide - 1;
            }
        }
        changed
    }

    /// As [`LookupBlock::lookup_in_registers`], in tables of any width ([`Plan::has_slots_of_fours`]), with addresses of bytes.
    #[inline(always)]
    fn lookup_in_vectors<T: Slots>(
        &self,
        avx2: Avx2,
        coming: Option<(&LookupBlock<'_>, CacheLevel)>,
        slots: T,
        moment: T::Moment,
        found: &mut [bool],
    ) -> u64 {
        // Before the reads, where the compiler vectorizes it.
        let [mut patterns, mut most] = [(); 2].map(|()| Aligned([0; BLOCK]));
        for at in 0..BLOCK {
            [patterns.0[at], most.0[at]] = self.shapes[at].sought(self.fingerprints[at], slots, moment);
        }
        let mut changed = 0;
        for (at, found) in found.iter_mut().enumerate() {
            let (leaf, bytes) = (self.leaves[at].get(), [self.addresses[0][at], self.addresses[1][at]]);
            let sought = [patterns.0[at], most.0[at]];
            let (is_found, change) = leaf.look_in_vectors(avx2, self.stripes[at].into(), bytes, sought);
            *found = is_found;
            changed |= change();
            if let Some((coming, level)) = coming {
                coming.fetch::<Bytes>(at, level);
            }
        }
        changed
    }
}

impl<K: SlotKind> Growing<K> {
    #[inline(always)]
    fn contains_each_as<L: BucketLayout>(
        &self,
        avx2: Option<Avx2>,
        level: Option<CacheLevel>,
        next: Next<'_>,
        found: &mut [bool],
    ) {
        // Three blocks: the tables of one are located, the lines of another arrive, and the third is read.
        let mut blocks: [LookupBlock<'_>; 3] = array::from_fn(|_| LookupBlock::new(self));
        let mut left = found.len();
        self.ask::<L>(&mut blocks[0], &mut left, next);
        self.ask::<L>(&mut blocks[1], &mut left, next);
        let stripe_shift = self.plan.stripe_shift;
        blocks[0].begin::<L>(&self.geometry, stripe_shift);
        if let Some(level) = level {
            (0..BLOCK).for_each(|at| blocks[0].fetch::<L>(at, level));
        }
        let mut now = 0;
        for found in found.chunks_mut(BLOCK) {
            let next_one = (now + 1) % blocks.len();
            let last_one = (now + 2) % blocks.len();
            self.ask::<L>(&mut blocks[last_one], &mut left, next);
            blocks[next_one].begin::<L>(&self.geometry, stripe_shift);
            let block = &blocks[now];
            let coming = (blocks[next_one].count > 0).then_some(&blocks[next_one]).zip(level);
            match <&mut [bool; BLOCK]>::try_from(&mut *found) {
                Ok(found) if block.reads_one_run::<L>() => self.lookup::<L, L::Narrow>(avx2, block, coming, found),
                Ok(found) => self.lookup::<L, L>(avx2, block, coming, found),
                Err(_) if block.reads_one_run::<L>() => self.lookup::<L, L::Narrow>(avx2, block, None, found),
                Err(_) => self.lookup::<L, L>(avx2, block, None, found),
            }
            now = next_one;
        }
    }

    /// Locates the next keys and reads the shapes of their tables, in a loop of its own between vectorized ones.
    #[inline(always)]
    fn ask<'a, L: BucketLayout>(&'a self, block: &mut LookupBlock<'a>, left: &mut usize, next: Next<'_>) {
        block.count = (*left).min(BLOCK);
        *left -= block.count;
        if block.count == 0 {
            return;
        }
        next(&mut block.mixed);
        // A copy, so that the compiler can see that the loops do not write it, and vectorizes them.
        let (geometry, mut cells) = (self.geometry, Aligned([0; BLOCK]));
        if self.plan.extension_bits > 0 {
            block.cell_place(&mut cells, |mixed| geometry.cell_place_narrow::<true, true>(mixed));
        } else if geometry.shards() == 1 {
            block.cell_place(&mut cells, |mixed| geometry.cell_place_narrow::<true, false>(mixed));
        } else if geometry.is_narrow() {
            block.cell_place(&mut cells, |mixed| geometry.cell_place_narrow::<false, false>(mixed));
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

    /// Looks up each key, in vectors or in tables with the layout `N` or, for a few keys, `L`. If a version, a cell or the epoch
    /// changed, looks up all of them singly.
    #[inline(always)]
    fn lookup<L: BucketLayout, N: BucketLayout>(
        &self,
        avx2: Option<Avx2>,
        block: &LookupBlock<'_>,
        coming: Option<(&LookupBlock<'_>, CacheLevel)>,
        found: &mut [bool],
    ) {
        let slots = self.kind.slots();
        let now = slots.now();
        let moment = slots.moment(now);
        let changed = match avx2 {
            Some(avx2) => block.lookup_in_vectors(avx2, coming, slots, moment, found),
            None => block.lookup_in_registers::<L, N, _>(coming, slots, moment, found),
        };
        if changed | self.directory.change_since(block.turn) != 0 || !slots.is_still(now) {
            self.retry_each(&block.mixed, found);
        }
    }
}
