//! Lookups of many keys, in blocks and in stages: place all, fetch all, read all, compare all. The compiler vectorizes
//! placing and comparing, and the loads of all keys overlap.
//!
//! Each key follows the protocol of a single lookup: version, both buckets, version. Slots are compared afterwards, and
//! if a version changed, all results of the block are dropped.

use super::lookup::Lookup;
use super::probe::{BucketLayout, BucketLayoutKind, Positions, Probed, Runs, Shape, with_layout};
use super::slots::Slots;
use super::stripe::Watch;
use crate::layout::{Mixed, Place};
use crate::sys::IS_MODEL;
use crate::sys::isa::{Compiled, Function};
use crate::sys::prefetch::{CacheLevel, level_for};
use crate::sys::steps::{Step, reached};
use core::marker::PhantomData;

/// Keys per block.
pub(crate) const BLOCK: usize = if IS_MODEL { 2 } else { 32 };

/// The keys of a block and their places.
struct LookupBlock {
    mixed: [Mixed; BLOCK],
    count: usize,
    /// The first bits of their buckets, and the addresses that read them.
    begins: [[u64; BLOCK]; 2],
    addresses: [[u64; BLOCK]; 2],
    stripes: [u64; BLOCK],
    patterns: [u64; BLOCK],
}

/// Lookups of many keys, compiled per layout.
struct ContainsEachAs<L>(PhantomData<L>);

/// The keys of a lookup: the cache that their lines are fetched to, if any, the hashes, and the places of the answers.
pub(crate) type LookupBatch<'a> = (Option<CacheLevel>, Next<'a>, &'a mut [bool]);

/// Looks up the next keys in words of `word_bytes` bytes. Selects the function per call: a filter that held it from its construction
/// would put all of them, 470 KB with those of growing filters, into every program.
pub(crate) fn contains_each_in<P: Probed>(probed: &P, word_bytes: usize, next: Next<'_>, found: &mut [bool]) {
    let layout = BucketLayoutKind::of(probed.shape().format.slot_bits);
    let compiled: Compiled<P, LookupBatch<'_>, ()> =
        with_layout!(layout, L => Compiled::for_vectors::<ContainsEachAs<L>>());
    compiled.call(probed, (level_for(word_bytes), next, found));
}

/// Stores the hashes of the next keys, at most as many as the slice holds, and returns their number. Only this function
/// depends on the user's types.
pub(crate) type Next<'a> = &'a mut dyn FnMut(&mut [Mixed]) -> usize;

impl<P: Probed, L: BucketLayout> Function<P, LookupBatch<'_>, ()> for ContainsEachAs<L> {
    #[inline(always)]
    fn run(shards: &P, (level, next, found): LookupBatch<'_>) {
        // Two blocks: one is read while the lines of the other arrive.
        let mut blocks = [LookupBlock::new(), LookupBlock::new()];
        let mut now = 0;
        let mut left = found.len();
        shards.place::<L>(&mut blocks[now], &mut left, next);
        if let Some(level) = level {
            (0..BLOCK).for_each(|at| shards.fetch::<L>(&blocks[now], at, level));
        }
        for found in found.chunks_mut(BLOCK) {
            shards.place::<L>(&mut blocks[1 - now], &mut left, next);
            let block = &blocks[now];
            match (<&mut [bool; BLOCK]>::try_from(&mut *found), level) {
                (Ok(found), None) => shards.lookup::<L>(block, None, found),
                (Ok(found), Some(level)) => shards.lookup::<L>(block, Some((&blocks[1 - now], level)), found),
                // The last block.
                (Err(_), _) => shards.lookup::<L>(block, None, found),
            }
            now = 1 - now;
        }
    }
}

impl LookupBlock {
    #[inline(always)]
    fn new() -> Self {
        let none = [0; BLOCK];
        LookupBlock {
            mixed: [Mixed::default(); BLOCK],
            count: 0,
            begins: [none; 2],
            addresses: [none; 2],
            stripes: none,
            patterns: none,
        }
    }
}

trait InBlocks: Probed + Lookup {
    /// Locates the next keys. In a block that is not full, the hashes behind its keys are located and looked up without
    /// effect.
    #[inline(always)]
    fn place<L: BucketLayout>(&self, block: &mut LookupBlock, left: &mut usize, next: Next<'_>) {
        block.count = (*left).min(BLOCK);
        *left -= block.count;
        if block.count == 0 {
            return;
        }
        next(&mut block.mixed);
        let Shape { geometry, positions, format, slots, .. } = self.shape();
        let (unit, positions) = (slots.unit(format.lanes.low), positions.narrow());
        let mut place = |at: usize, place: Place| {
            for (number, begin) in positions.begins::<L>(place).into_iter().enumerate() {
                block.begins[number][at] = begin;
                block.addresses[number][at] = L::address(begin);
            }
            block.stripes[at] = positions.stripe_offset(place);
            block.patterns[at] = u64::from(place.class.fingerprint.get()).wrapping_mul(unit);
        };
        let (geometry, mixed) = (*geometry, &block.mixed);
        if geometry.is_narrow() {
            for (at, &mixed) in mixed.iter().enumerate() {
                place(at, geometry.locate_narrow(mixed));
            }
        } else {
            for (at, &mixed) in mixed.iter().enumerate() {
                place(at, geometry.locate_flat::<false>(mixed));
            }
        }
    }

    #[inline(always)]
    fn fetch<L: BucketLayout>(&self, block: &LookupBlock, at: usize, level: CacheLevel) {
        block.begins.iter().for_each(|begins| L::fetch(self.shape().source, begins[at], level));
    }

    /// Looks up each key at one epoch, and all of them singly if a version or the epoch changed. The lines of the
    /// `coming` block are prefetched one by one in between, since all at once would wait for each other. At the
    /// end that is an earlier block again, without effect.
    #[inline(always)]
    fn lookup<L: BucketLayout>(
        &self,
        block: &LookupBlock,
        coming: Option<(&LookupBlock, CacheLevel)>,
        found: &mut [bool],
    ) {
        let Shape { format, slots, .. } = self.shape();
        let (count, run_bits) = (found.len(), 2 * format.slot_bits);
        let (low, high) = (format.lanes.low, format.lanes.high);
        let now = slots.now();
        let mut first = [L::Runs::default(); BLOCK];
        let mut second = [L::Runs::default(); BLOCK];
        let mut changed = 0;
        let mut read = |at: usize| {
            let version = self.version(block.stripes[at]);
            let begun = version.begin();
            first[at] = L::read(self.shape().source, block.addresses[0][at], run_bits);
            reached(Step::BucketRead);
            second[at] = L::read(self.shape().source, block.addresses[1][at], run_bits);
            reached(Step::BucketRead);
            changed |= version.change_since(begun);
        };
        match (coming, count) {
            (Some((coming, level)), BLOCK) => (0..BLOCK).for_each(|at| {
                read(at);
                self.fetch::<L>(coming, at, level);
            }),
            // The compiler unrolls this.
            (_, BLOCK) => (0..BLOCK).step_by(2).for_each(|at| [at, at + 1].into_iter().for_each(&mut read)),
            (_, count) => (0..count).for_each(read),
        }
        if changed != 0 || !slots.is_still(now) {
            return self.retry_each(&block.mixed, found);
        }
        let (alive, minus) = (slots.alive(low, slots.moment(now)), slots.minus(low));
        let mut hits = [0; BLOCK];
        for at in 0..BLOCK {
            let pattern = block.patterns[at] | alive;
            let first = L::align(first[at], block.begins[0][at], run_bits).hits(minus, pattern);
            let second = L::align(second[at], block.begins[1][at], run_bits).hits(minus, pattern);
            hits[at] = (first | second) & high;
        }
        for (found, hits) in found.iter_mut().zip(hits) {
            *found = hits != 0;
        }
    }
}

impl<P: Probed> InBlocks for P {}

#[cfg(all(test, not(cuckoo_model)))]
mod tests {
    use super::*;
    use crate::CuckooFilter;
    use crate::sys::prefetch::choose_level;
    use crate::sys::steps::with_hook;

    /// With keys in each bucket of their pair and in both.
    fn filter(width: u32) -> (CuckooFilter<u64>, Vec<u64>) {
        let filter = CuckooFilter::builder().capacity(200).fingerprint_bits(width).build().unwrap();
        for hash in (0..100).chain([0; 5]) {
            let _ = filter.hashed().insert(&hash);
        }
        (filter, (0..150).collect())
    }

    #[test]
    fn without_writers_each_key_is_read_once() {
        let only_reads = |step| assert_eq!(step, Step::BucketRead);
        for width in 4..=32 {
            let (filter, hashes) = filter(width);
            with_hook(only_reads, || hashes.iter().for_each(|&hash| _ = filter.hashed().contains(&hash)));
            let one_by_one: Vec<bool> = hashes.iter().map(|&hash| filter.hashed().count(&hash) > 0).collect();
            for fetch in [None, Some(CacheLevel::L1), Some(CacheLevel::L2)] {
                choose_level(fetch);
                let mut found = vec![false; hashes.len()];
                with_hook(only_reads, || filter.hashed().contains_batch(&hashes, &mut found));
                assert_eq!(found, one_by_one, "{width} bits");
                for length in 0..2 * BLOCK + 2 {
                    let mut some = vec![!one_by_one[0]; length];
                    filter.hashed().contains_batch(&hashes[..length], &mut some);
                    assert_eq!(some, one_by_one[..length], "{width} bits");
                }
            }
        }
    }

    #[test]
    fn a_lookup_that_begins_again_gives_the_same_answer() {
        for width in 4..=32 {
            let (filter, hashes) = filter(width);
            for hash in hashes {
                let present = filter.hashed().count(&hash) > 0;
                assert_eq!(filter.raw.flat().retry(Mixed::of(hash)), present, "{hash} at {width} bits");
            }
        }
    }
}
