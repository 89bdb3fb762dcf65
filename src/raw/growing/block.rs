//! Lookups of many keys in a growing filter, in blocks, as `raw/block` does for filters of fixed size.
//!
//! The cell is read when a key is placed, a block ahead, and again when its buckets have been read. In between it takes
//! no value twice, so that one which is still the same was so all the time.

use super::Growing;
use super::leaf::{Leaf, layout_of};
use crate::layout::{Aim, Mixed, Plan, repeated};
use crate::raw::block::{BLOCK, ContainsEach, Next};
use crate::raw::filter::RawFilter;
use crate::raw::probe::{Layout, Runs, with_layout};
use crate::sys::directory::Member;
use crate::sys::isa::{Compiled, Function};
use crate::sys::prefetch::{CacheLevel, level_for};
use crate::sys::steps::{Step, reached};
use core::array;
use core::marker::PhantomData;

/// Keys of a block that may be in tables of two runs while the block is read as if none were: of a filter that has grown to
/// its end, few of them are, one in 16 where the rate is 0.1 %.
const FEW: u32 = BLOCK as u32 / 4;

/// The keys of a block, and where they are looked for.
struct Probes<'a> {
    mixed: [Mixed; BLOCK],
    count: usize,
    cells: [usize; BLOCK],
    leaves: [Member<'a, Leaf>; BLOCK],
    /// Of these tables.
    bucket_bits: [u32; BLOCK],
    /// The keys in tables of two runs, a bit each. Where they are few, all are read as one run, and these are looked up by
    /// themselves.
    wide: u32,
    begins: [[u64; BLOCK]; 2],
    addresses: [[u64; BLOCK]; 2],
    stripes: [u64; BLOCK],
    patterns: [u64; BLOCK],
}

struct ContainsEachAs<L>(PhantomData<L>);

/// The lookups of growing filters of this plan, for this processor.
pub(in crate::raw) fn contains_each_in(plan: &Plan) -> Compiled<ContainsEach> {
    with_layout!(layout_of(plan), L => Compiled::for_vectors::<ContainsEachAs<L>>())
}

impl<L: Layout> Function<ContainsEach> for ContainsEachAs<L> {
    #[inline(always)]
    fn run(filter: &RawFilter, (next, found): (Next<'_>, &mut [bool])) {
        let growing = filter.growing.as_deref().expect("the lookups of a growing filter");
        let level = level_for(growing.table_bytes());
        let mut blocks: [Probes<'_>; 2] = array::from_fn(|_| Probes::new(growing));
        let mut now = 0;
        let mut left = found.len();
        growing.place::<L>(&mut blocks[now], &mut left, next, level);
        for found in found.chunks_mut(BLOCK) {
            growing.place::<L>(&mut blocks[1 - now], &mut left, next, level);
            let probes = &blocks[now];
            match <&mut [bool; BLOCK]>::try_from(&mut *found) {
                Ok(found) if probes.reads_one_run() => growing.lookup::<L::Narrow>(probes, found),
                Ok(found) => growing.lookup::<L>(probes, found),
                Err(_) if probes.reads_one_run() => growing.lookup::<L::Narrow>(probes, found),
                Err(_) => growing.lookup::<L>(probes, found),
            }
            now = 1 - now;
        }
    }
}

impl<'a> Probes<'a> {
    #[inline(always)]
    fn new(growing: &'a Growing) -> Self {
        let leaf = growing.directory.at(growing.aim(Mixed::default()).cell);
        let none = [0; BLOCK];
        Probes {
            mixed: [Mixed::default(); BLOCK],
            count: 0,
            cells: [0; BLOCK],
            leaves: [leaf; BLOCK],
            bucket_bits: [leaf.look.bucket_bits; BLOCK],
            wide: 0,
            begins: [none; 2],
            addresses: [none; 2],
            stripes: none,
            patterns: none,
        }
    }
}

impl Probes<'_> {
    #[inline(always)]
    fn reads_one_run(&self) -> bool {
        self.wide.count_ones() <= FEW
    }

    /// Works out what is read where, and what it is compared with.
    #[inline(always)]
    fn begin_at<L: Layout>(&mut self, fingerprints: &[u32; BLOCK], buckets: &[[u32; BLOCK]; 2]) {
        for at in 0..BLOCK {
            let bits = self.bucket_bits[at];
            for (number, buckets) in buckets.iter().enumerate() {
                let begin = u64::from(buckets[at]) * u64::from(bits);
                self.begins[number][at] = begin;
                self.addresses[number][at] = L::address(begin);
            }
            let stored = u64::from(fingerprints[at]) & ((1 << (bits / 4)) - 1);
            self.patterns[at] = repeated(stored, L::Runs::SLOTS, u64::from(bits / 4));
        }
    }
}

impl Growing {
    /// Places the next keys and begins to fetch their lines. The tables are asked in a pass of its own, between loops that the
    /// compiler vectorises.
    #[inline(always)]
    fn place<'a, L: Layout>(
        &'a self,
        probes: &mut Probes<'a>,
        left: &mut usize,
        next: Next<'_>,
        level: Option<CacheLevel>,
    ) {
        probes.count = (*left).min(BLOCK);
        *left -= probes.count;
        if probes.count == 0 {
            return;
        }
        next(&mut probes.mixed);
        let (geometry, mixed) = (self.geometry, &probes.mixed);
        let (mut fingerprints, mut buckets) = ([0_u32; BLOCK], [[0_u32; BLOCK]; 2]);
        let mut note = |at: usize, aim: Aim| {
            probes.cells[at] = aim.cell;
            probes.stripes[at] = self.stripe_offset(aim.class.first);
            fingerprints[at] = aim.class.fingerprint.get();
            (buckets[0][at], buckets[1][at]) = (aim.class.first.get(), aim.class.second.get());
        };
        if geometry.is_narrow() {
            (0..BLOCK).for_each(|at| note(at, geometry.aim_narrow(mixed[at])));
        } else {
            (0..BLOCK).for_each(|at| note(at, geometry.aim(mixed[at])));
        }
        let mut ask = |at: usize| {
            let leaf = self.directory.at(probes.cells[at]);
            (probes.leaves[at], probes.bucket_bits[at]) = (leaf, leaf.look.bucket_bits);
        };
        if probes.count == BLOCK {
            (0..BLOCK).for_each(&mut ask);
        } else {
            (0..probes.count).for_each(&mut ask);
        }
        if L::Runs::SLOTS == 2 {
            let bits = (0_u32..).zip(probes.bucket_bits).map(|(at, bits)| u32::from(bits > u64::BITS) << at);
            probes.wide = bits.fold(0, core::ops::BitOr::bitor);
        }
        if probes.reads_one_run() {
            probes.begin_at::<L::Narrow>(&fingerprints, &buckets);
        } else {
            probes.begin_at::<L>(&fingerprints, &buckets);
        }
        let fetch = |level: CacheLevel| {
            // Behind the last key stand those of a block before.
            for at in 0..BLOCK {
                probes.begins.iter().for_each(|begins| L::fetch(probes.leaves[at].words(), begins[at], level));
            }
        };
        match level {
            None => {}
            Some(CacheLevel::L1) => fetch(CacheLevel::L1),
            Some(CacheLevel::L2) => fetch(CacheLevel::L2),
        }
    }

    /// As a lookup of each key. Where a version or a cell changed, the block is looked at again key by key.
    #[inline(always)]
    fn lookup<L: Layout>(&self, probes: &Probes<'_>, found: &mut [bool]) {
        let mut first = [L::Runs::default(); BLOCK];
        let mut second = [L::Runs::default(); BLOCK];
        let mut changed = 0;
        let mut read = |at: usize| {
            let (leaf, run_bits) = (probes.leaves[at], probes.bucket_bits[at] / 2);
            let (version, words) = (leaf.version(probes.stripes[at]), leaf.words());
            let begun = version.begin();
            first[at] = L::read(words, probes.addresses[0][at], run_bits);
            reached(Step::BucketRead);
            second[at] = L::read(words, probes.addresses[1][at], run_bits);
            reached(Step::BucketRead);
            changed |= version.change_since(begun) | self.directory.change_at(probes.cells[at], leaf) as u64;
        };
        if found.len() == BLOCK {
            // Unrolled by the compiler.
            (0..BLOCK).step_by(2).for_each(|at| [at, at + 1].into_iter().for_each(&mut read));
        } else {
            (0..found.len()).for_each(&mut read);
        }
        if changed != 0 {
            return self.lookup_each(&probes.mixed, found);
        }
        let mut hits = [0; BLOCK];
        for at in 0..BLOCK {
            let (bits, pattern) = (probes.bucket_bits[at], probes.patterns[at]);
            let low = repeated(1, L::Runs::SLOTS, u64::from(bits / 4));
            let first = L::align(first[at], probes.begins[0][at], bits / 2).hits(low, pattern);
            let second = L::align(second[at], probes.begins[1][at], bits / 2).hits(low, pattern);
            hits[at] = (first | second) & low << (bits / 4 - 1);
        }
        for (found, hits) in found.iter_mut().zip(hits) {
            *found = hits != 0;
        }
        if L::Runs::SLOTS == 4 {
            let mut wide = probes.wide;
            while wide != 0 {
                let at = wide.trailing_zeros() as usize;
                if let Some(found) = found.get_mut(at) {
                    *found = self.look_again(probes.mixed[at]);
                }
                wide &= wide - 1;
            }
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
