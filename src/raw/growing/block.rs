//! Lookups of many keys in a growing filter, in blocks, as `raw/block` does for filters of fixed size.
//!
//! The cells are read when tables are asked, two blocks ahead. Whether any of them has changed since then is asked once for a
//! block, when its buckets have been read, by the turn of the directory.

use super::Growing;
use super::leaf::{Leaf, layout_of};
use crate::layout::{Aim, Bucket, Mixed, repeated};
use crate::raw::block::{BLOCK, ContainsEach, Next};
use crate::raw::probe::{Layout, Runs, with_layout};
use crate::raw::slots::{Compare, SlotKind, Slots};
use crate::raw::stripe::Watch;
use crate::sys::directory::Member;
use crate::sys::isa::{Compiled, Function};
use crate::sys::prefetch::{CacheLevel, level_for};
use crate::sys::steps::{Step, reached};
use core::array;
use core::marker::PhantomData;

/// Keys of a block that may be in tables of two runs while the block is read as if none were: of a filter that has grown to
/// its end, few of them are, one in 16 where the rate is 0.1 %.
const FEW: u8 = BLOCK.div_ceil(4) as u8;

/// Bytes for a flag of each key, a multiple of 8.
const FLAGS: usize = BLOCK.next_multiple_of(8);

/// The keys of a block, and where they are looked for.
struct Probes<'a> {
    mixed: [Mixed; BLOCK],
    count: usize,
    /// Of the directory, before its cells were read.
    turn: u64,
    fingerprints: [u32; BLOCK],
    buckets: [[u32; BLOCK]; 2],
    leaves: [Member<'a, Leaf>; BLOCK],
    /// Of these tables.
    bucket_bits: [u32; BLOCK],
    /// The keys in tables of two runs, a byte each. Where they are few, all are read as one run, and these are looked up by
    /// themselves.
    wide: [u8; FLAGS],
    begins: [[u64; BLOCK]; 2],
    addresses: [[u64; BLOCK]; 2],
    stripes: [u64; BLOCK],
    patterns: [u64; BLOCK],
}

struct ContainsEachAs<L>(PhantomData<L>);

/// As `raw::block::contains_each_in`.
pub(super) fn contains_each_in<K: SlotKind>(growing: &Growing<K>, next: Next<'_>, found: &mut [bool]) {
    let compiled: Compiled<ContainsEach<Growing<K>>> =
        with_layout!(layout_of(&growing.plan), L => Compiled::for_vectors::<ContainsEachAs<L>>());
    compiled.call(growing, (next, found));
}

impl<K: SlotKind, L: Layout> Function<ContainsEach<Growing<K>>> for ContainsEachAs<L> {
    #[inline(always)]
    fn run(growing: &Growing<K>, (next, found): (Next<'_>, &mut [bool])) {
        let level = level_for(growing.table_bytes());
        // Three blocks: of one the tables are asked, the lines of another are on their way, and the third is read.
        let mut blocks: [Probes<'_>; 3] = array::from_fn(|_| Probes::new(growing));
        let mut left = found.len();
        growing.ask::<L>(&mut blocks[0], &mut left, next);
        growing.ask::<L>(&mut blocks[1], &mut left, next);
        let slots = growing.kind.slots();
        blocks[0].begin::<L>(slots);
        if let Some(level) = level {
            (0..BLOCK).for_each(|at| blocks[0].fetch::<L>(at, level));
        }
        let mut now = 0;
        for found in found.chunks_mut(BLOCK) {
            let next_one = (now + 1) % blocks.len();
            let last_one = (now + 2) % blocks.len();
            growing.ask::<L>(&mut blocks[last_one], &mut left, next);
            blocks[next_one].begin::<L>(slots);
            let probes = &blocks[now];
            let coming = (blocks[next_one].count > 0).then_some(&blocks[next_one]).zip(level);
            match <&mut [bool; BLOCK]>::try_from(&mut *found) {
                Ok(found) if probes.reads_one_run::<L>() => growing.lookup::<L, L::Narrow>(probes, coming, found),
                Ok(found) => growing.lookup::<L, L>(probes, coming, found),
                Err(_) if probes.reads_one_run::<L>() => growing.lookup::<L, L::Narrow>(probes, None, found),
                Err(_) => growing.lookup::<L, L>(probes, None, found),
            }
            now = next_one;
        }
    }
}

impl<'a> Probes<'a> {
    #[inline(always)]
    fn new<K: SlotKind>(growing: &'a Growing<K>) -> Self {
        let leaf = growing.directory.at(growing.aim(Mixed::default()).cell);
        let none = [0; BLOCK];
        Probes {
            mixed: [Mixed::default(); BLOCK],
            count: 0,
            turn: 0,
            fingerprints: [0; BLOCK],
            buckets: [[0; BLOCK]; 2],
            leaves: [leaf; BLOCK],
            bucket_bits: [leaf.look.bucket_bits(); BLOCK],
            wide: [0; FLAGS],
            begins: [none; 2],
            addresses: [none; 2],
            stripes: none,
            patterns: none,
        }
    }
}

impl Probes<'_> {
    #[inline(always)]
    fn reads_one_run<L: Layout>(&self) -> bool {
        L::Runs::SLOTS == 4 || self.wide.iter().sum::<u8>() <= FEW
    }

    /// The keys in tables of two runs, a bit each.
    #[inline(always)]
    fn wide_ones(&self) -> u64 {
        let (eights, _) = self.wide.as_chunks();
        // The product has the lowest bit of each byte in its uppermost byte.
        let bits = |&eight: &[u8; 8]| u64::from_le_bytes(eight).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        eights.iter().rev().fold(0, |all, eight| all << 8 | bits(eight))
    }

    /// Works out what is read where, and what it is compared with, and begins to fetch the lines.
    #[inline(always)]
    fn begin<L: Layout>(&mut self, slots: impl Slots) {
        if self.count == 0 {
            return;
        }
        let bits = self.bucket_bits;
        if L::Runs::SLOTS == 2 {
            self.wide.iter_mut().zip(bits).for_each(|(wide, bits)| *wide = u8::from(bits > u64::BITS));
        }
        if self.reads_one_run::<L>() {
            self.begin_at::<L::Narrow>(bits, slots);
        } else {
            self.begin_at::<L>(bits, slots);
        }
    }

    /// Makes the numbers of buckets those that they have in their tables.
    #[inline(always)]
    fn shorten(&mut self, stripe_offset: impl Fn(Bucket) -> u64) {
        for at in 0..BLOCK {
            let leaf = self.leaves[at];
            let [first, second] = [0, 1].map(|number| leaf.look.bucket(Bucket::new(self.buckets[number][at])));
            (self.buckets[0][at], self.buckets[1][at]) = (first.get(), second.get());
            self.stripes[at] = stripe_offset(first);
        }
    }

    /// Begins to fetch the lines of a key.
    #[inline(always)]
    fn fetch<L: Layout>(&self, at: usize, level: CacheLevel) {
        let fetch = |level| self.begins.iter().for_each(|begins| L::fetch(self.leaves[at].words(), begins[at], level));
        match level {
            CacheLevel::L1 => fetch(CacheLevel::L1),
            CacheLevel::L2 => fetch(CacheLevel::L2),
        }
    }

    #[inline(always)]
    fn begin_at<L: Layout>(&mut self, bits: [u32; BLOCK], slots: impl Slots) {
        let (fingerprints, buckets) = (self.fingerprints, self.buckets);
        for at in 0..BLOCK {
            for (number, buckets) in buckets.iter().enumerate() {
                let begin = u64::from(buckets[at]) * u64::from(bits[at]);
                self.begins[number][at] = begin;
                self.addresses[number][at] = L::address(begin);
            }
            let width = u64::from(bits[at] / 4);
            // The fingerprint as the table stores it, above the tag.
            let stored = slots.unit(fingerprints[at].into()) & ((1 << width) - 1);
            self.patterns[at] = repeated(stored, L::Runs::SLOTS, width);
        }
    }
}

impl Probes<'_> {
    /// Looks for one of the keys, at this epoch. Not 0 if its version changed.
    #[inline(always)]
    fn lookup_one<L: Layout, T: Slots>(&self, at: usize, slots: T, moment: T::Moment, found: &mut bool) -> u64 {
        let leaf = self.leaves[at].get();
        let (look, words) = (leaf.look, leaf.words().view());
        let (run_bits, version) = (look.bucket_bits() / 2, leaf.version(self.stripes[at]));
        let pattern = u64::from(self.fingerprints[at] & leaf.mask()).wrapping_mul(slots.unit(look.low));
        let (pattern, minus) = (pattern | slots.alive(look.low, moment), slots.minus(look.low));
        let begun = version.begin();
        let hits = [self.begins[0][at], self.begins[1][at]].map(|begin| {
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
    fn ask<'a, L: Layout>(&'a self, probes: &mut Probes<'a>, left: &mut usize, next: Next<'_>) {
        probes.count = (*left).min(BLOCK);
        *left -= probes.count;
        if probes.count == 0 {
            return;
        }
        next(&mut probes.mixed);
        let (geometry, mixed) = (self.geometry, probes.mixed);
        let mut cells = [0; BLOCK];
        let mut note = |at: usize, aim: Aim| {
            cells[at] = aim.cell;
            probes.stripes[at] = self.stripe_offset(aim.class.first);
            probes.fingerprints[at] = aim.class.fingerprint.get();
            (probes.buckets[0][at], probes.buckets[1][at]) = (aim.class.first.get(), aim.class.second.get());
        };
        if self.plan.extension_bits > 0 {
            (0..BLOCK).for_each(|at| note(at, geometry.aim_extended(mixed[at])));
        } else if geometry.shards() == 1 {
            (0..BLOCK).for_each(|at| note(at, geometry.aim_narrow::<true>(mixed[at])));
        } else if geometry.is_narrow() {
            (0..BLOCK).for_each(|at| note(at, geometry.aim_narrow::<false>(mixed[at])));
        } else {
            (0..BLOCK).for_each(|at| note(at, geometry.aim(mixed[at])));
        }
        probes.turn = self.directory.turn();
        let leaf_at = self.directory.reader();
        let mut ask = |at: usize| {
            let leaf = leaf_at(cells[at]);
            (probes.leaves[at], probes.bucket_bits[at]) = (leaf, leaf.look.bucket_bits());
        };
        if probes.count == BLOCK {
            (0..BLOCK).for_each(&mut ask);
        } else {
            (0..probes.count).for_each(&mut ask);
        }
        if self.plan.extension_bits > 0 {
            probes.shorten(|bucket| self.stripe_offset(bucket));
        }
    }

    /// As a lookup of each key, in tables that are read as `L` or, all but a few, as `N`. Where a version, a cell or the epoch changed, the
    /// block is looked at again key by key.
    ///
    /// As each key is read, the lines of one that is coming begin to be fetched: side by side, so that there are always some
    /// on their way, and never more than the processor keeps track of.
    #[inline(always)]
    fn lookup<L: Layout, N: Layout>(
        &self,
        probes: &Probes<'_>,
        coming: Option<(&Probes<'_>, CacheLevel)>,
        found: &mut [bool],
    ) {
        let slots = self.kind.slots();
        let now = slots.now();
        let mut first = [N::Runs::default(); BLOCK];
        let mut second = [N::Runs::default(); BLOCK];
        let mut changed = 0;
        let mut read = |at: usize| {
            let (leaf, run_bits) = (probes.leaves[at], probes.bucket_bits[at] / 2);
            let (version, words) = (leaf.version(probes.stripes[at]), leaf.words().view());
            let begun = version.begin();
            first[at] = N::read(&*words, probes.addresses[0][at], run_bits);
            reached(Step::BucketRead);
            second[at] = N::read(&*words, probes.addresses[1][at], run_bits);
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
        for at in 0..BLOCK {
            let bits = probes.bucket_bits[at];
            let low = repeated(1, N::Runs::SLOTS, u64::from(bits / 4));
            let (pattern, minus) = (probes.patterns[at] | slots.alive(low, moment), slots.minus(low));
            let first = N::align(first[at], probes.begins[0][at], bits / 2).hits(minus, pattern);
            let second = N::align(second[at], probes.begins[1][at], bits / 2).hits(minus, pattern);
            hits[at] = (first | second) & low << (bits / 4 - 1);
        }
        for (found, hits) in found.iter_mut().zip(hits) {
            *found = hits != 0;
        }
        if N::Runs::SLOTS != L::Runs::SLOTS {
            let mut wide = probes.wide_ones();
            while wide != 0 {
                let at = wide.trailing_zeros() as usize;
                if let Some(found) = found.get_mut(at) {
                    changed |= probes.lookup_one::<L, _>(at, slots, moment, found);
                }
                wide &= wide - 1;
            }
        }
        if changed | self.directory.change_since(probes.turn) != 0 || !slots.is_still(now) {
            self.lookup_each(&probes.mixed, found);
        }
    }

    #[cold]
    #[inline(never)]
    fn lookup_each(&self, mixed: &[Mixed; BLOCK], found: &mut [bool]) {
        for (found, &mixed) in found.iter_mut().zip(mixed) {
            *found = self.look_again(mixed);
        }
    }
}
