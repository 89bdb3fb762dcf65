//! Lookups in the records of a snapshot: as those of a filter without writers, from bytes in place of words.

use crate::batch::hashing;
use crate::layout::{Geometry, Lanes, Mixed, Place, Plan, hits};
use crate::raw::{BLOCK, Next};
use crate::sys::bytes::Bytes;
use crate::sys::isa::{Compiled, Function, Signature};
use crate::sys::prefetch::{CacheLevel, level_for};
use core::marker::PhantomData;

/// The records of a plain filter, side by side, and the numbers that find a bucket in them.
pub(super) struct Lookups<B> {
    pub(super) bytes: B,
    geometry: Geometry,
    lanes: Lanes,
    bucket_bits: u64,
    run_bits: u64,
    /// Where the words of the first shard begin, and how far it is from those of one to those of the next, in bits.
    first: u64,
    stride: u64,
    /// Where lines are fetched to before they are read.
    level: Option<CacheLevel>,
    contains: Compiled<Contains<B>>,
    contains_each: Compiled<ContainsEach<B>>,
}

/// The signature of a lookup.
struct Contains<B>(PhantomData<B>);

impl<B> Signature for Contains<B> {
    type Context = Lookups<B>;
    type Input<'a> = Mixed;
    type Output = bool;
}

/// The signature of lookups of many keys.
struct ContainsEach<B>(PhantomData<B>);

impl<B> Signature for ContainsEach<B> {
    type Context = Lookups<B>;
    type Input<'a> = (Next<'a>, &'a mut [bool]);
    type Output = ();
}

/// How a bucket is read that begins at this bit.
trait Width {
    /// Its runs, brought down to the lowest bit. Above them stands whatever comes next.
    type Runs: Copy;

    const NONE: Self::Runs;

    /// The 8 bytes of each run.
    fn read<B: Bytes>(bytes: &B, begin: u64, run_bits: u64) -> Self::Runs;

    fn align(runs: Self::Runs, begin: u64, run_bits: u64) -> Self::Runs;

    fn hits(runs: Self::Runs, low: u64, pattern: u64) -> u64;
}

/// Up to 16 bits: a bucket is one run. It begins at a multiple of 4 bits, so that it lies in 8 bytes.
enum OneRun {}

/// 8 and 16 bits: the same, from the first bit of a byte on.
enum WholeBytes {}

/// Above: two runs of two slots, each in 8 bytes.
enum TwoRuns {}

/// 31 bits: a run begins at an even bit, and 6 bits and 62 are more than 8 bytes.
enum LongRuns {}

impl Width for OneRun {
    type Runs = u64;

    const NONE: u64 = 0;

    #[inline(always)]
    fn read<B: Bytes>(bytes: &B, begin: u64, _: u64) -> u64 {
        bytes.number_within((begin / 8) as usize)
    }

    #[inline(always)]
    fn align(run: u64, begin: u64, _: u64) -> u64 {
        run >> (begin % 8)
    }

    #[inline(always)]
    fn hits(run: u64, low: u64, pattern: u64) -> u64 {
        hits(run, pattern, low)
    }
}

impl Width for WholeBytes {
    type Runs = u64;

    const NONE: u64 = 0;

    #[inline(always)]
    fn read<B: Bytes>(bytes: &B, begin: u64, run_bits: u64) -> u64 {
        OneRun::read(bytes, begin, run_bits)
    }

    #[inline(always)]
    fn align(run: u64, _: u64, _: u64) -> u64 {
        run
    }

    #[inline(always)]
    fn hits(run: u64, low: u64, pattern: u64) -> u64 {
        hits(run, pattern, low)
    }
}

impl Width for TwoRuns {
    type Runs = [u64; 2];

    const NONE: [u64; 2] = [0; 2];

    #[inline(always)]
    fn read<B: Bytes>(bytes: &B, begin: u64, run_bits: u64) -> [u64; 2] {
        [begin, begin + run_bits].map(|begin| OneRun::read(bytes, begin, run_bits))
    }

    #[inline(always)]
    fn align([low, high]: [u64; 2], begin: u64, run_bits: u64) -> [u64; 2] {
        [OneRun::align(low, begin, run_bits), OneRun::align(high, begin + run_bits, run_bits)]
    }

    #[inline(always)]
    fn hits([low_run, high_run]: [u64; 2], low: u64, pattern: u64) -> u64 {
        hits(low_run, pattern, low) | hits(high_run, pattern, low)
    }
}

impl Width for LongRuns {
    type Runs = [u128; 2];

    const NONE: [u128; 2] = [0; 2];

    #[inline(always)]
    fn read<B: Bytes>(bytes: &B, begin: u64, run_bits: u64) -> [u128; 2] {
        [begin, begin + run_bits].map(|begin| {
            let [low, high] = [0, 8].map(|next| u128::from(bytes.number_within((begin / 8) as usize + next)));
            high << 64 | low
        })
    }

    #[inline(always)]
    fn align([low, high]: [u128; 2], begin: u64, run_bits: u64) -> [u128; 2] {
        [low >> (begin % 8), high >> ((begin + run_bits) % 8)]
    }

    #[inline(always)]
    fn hits(runs: [u128; 2], low: u64, pattern: u64) -> u64 {
        TwoRuns::hits(runs.map(|run| run as u64), low, pattern)
    }
}

/// Compiled for one width, and for filters of one shard.
struct As<W, const ONE: bool>(PhantomData<W>);

impl<B: Bytes, W: Width, const ONE: bool> Function<Contains<B>> for As<W, ONE> {
    #[inline(always)]
    fn run(lookups: &Lookups<B>, mixed: Mixed) -> bool {
        let place = lookups.geometry.locate_flat::<ONE>(mixed);
        let (low, high, run_bits) = (lookups.lanes.low(), lookups.lanes.high(), lookups.run_bits);
        let pattern = u64::from(place.class.fingerprint.get()).wrapping_mul(low);
        let hits = lookups.strides().begins(place).map(|begin| {
            let runs = W::read(&lookups.bytes, begin, run_bits);
            W::hits(W::align(runs, begin, run_bits), low, pattern)
        });
        (hits[0] | hits[1]) & high != 0
    }
}

impl<B: Bytes, W: Width> Function<ContainsEach<B>> for As<W, false> {
    #[inline(always)]
    fn run(lookups: &Lookups<B>, (next, found): (Next<'_>, &mut [bool])) {
        // Two blocks: the lines of one are on their way while the other is read.
        let mut blocks = [Probes::default(), Probes::default()];
        let (mut now, mut left) = (0, found.len());
        lookups.place(&mut blocks[now], &mut left, next);
        for found in found.chunks_mut(BLOCK) {
            lookups.place(&mut blocks[1 - now], &mut left, next);
            match <&mut [bool; BLOCK]>::try_from(&mut *found) {
                Ok(found) => lookups.look::<W>(&blocks[now], found),
                Err(_) => lookups.look::<W>(&blocks[now], found),
            }
            now = 1 - now;
        }
    }
}

/// The lookups of filters of this plan, for this processor.
fn compiled<B: Bytes, W: Width>(plan: &Plan) -> (Compiled<Contains<B>>, Compiled<ContainsEach<B>>) {
    let contains =
        if plan.shards == 1 { Compiled::for_scalars::<As<W, true>>() } else { Compiled::for_scalars::<As<W, false>>() };
    (contains, Compiled::for_vectors::<As<W, false>>())
}

/// The keys of a block, and where they are looked for.
#[derive(Default)]
struct Probes {
    mixed: [Mixed; BLOCK],
    /// In bits.
    begins: [[u64; BLOCK]; 2],
    patterns: [u64; BLOCK],
}

/// From the number of a bucket to the bit at which it begins.
#[derive(Clone, Copy)]
struct Strides {
    first: u64,
    shard: u64,
    bucket: u64,
}

impl Strides {
    #[inline(always)]
    fn begins(self, Place { shard, class, .. }: Place) -> [u64; 2] {
        let shard = self.first + shard * self.shard;
        [class.first, class.second].map(|bucket| shard + u64::from(bucket.get()) * self.bucket)
    }

    /// The same, and the compiler knows that factors have 32 bits.
    #[inline(always)]
    fn narrow(self) -> Self {
        let narrow = |number: u64| number & u64::from(u32::MAX);
        Strides { shard: narrow(self.shard), bucket: narrow(self.bucket), ..self }
    }
}

impl<B: Bytes> Lookups<B> {
    /// `first` is the byte at which the words of the first shard begin, `stride` how far those of the next are.
    pub(super) fn new(bytes: B, plan: &Plan, first: usize, stride: usize) -> Self {
        let (contains, contains_each) = match plan.slot_bits {
            8 | 16 => compiled::<_, WholeBytes>(plan),
            ..=16 => compiled::<_, OneRun>(plan),
            31 => compiled::<_, LongRuns>(plan),
            _ => compiled::<_, TwoRuns>(plan),
        };
        let level = level_for(bytes.len());
        // For `number_within`: a lookup reads up to 16 bytes from the bytes of a bucket on.
        let end = first + (plan.shards - 1) * stride + plan.words * size_of::<u64>() + 16;
        assert!(end <= bytes.len(), "a trailer stands behind the last record");
        let bits = u64::from(plan.slot_bits);
        let (first, stride) = (8 * first as u64, 8 * stride as u64);
        let geometry = Geometry::new(plan);
        let lanes = Lanes::new(plan.slot_bits);
        let (bucket_bits, run_bits) = (4 * bits, 2 * bits);
        Lookups { bytes, geometry, lanes, bucket_bits, run_bits, first, stride, level, contains, contains_each }
    }

    #[inline]
    pub(super) fn contains(&self, mixed: Mixed) -> bool {
        self.contains.call(self, mixed)
    }

    /// Looks up the keys, a block at a time.
    pub(super) fn contains_each<T>(&self, keys: &[T], mixed: impl Fn(&T) -> Mixed, found: &mut [bool]) {
        self.contains_each.call(self, (&mut hashing(keys, mixed), found));
    }

    #[inline(always)]
    fn strides(&self) -> Strides {
        Strides { first: self.first, shard: self.stride, bucket: self.bucket_bits }
    }

    /// Places the next keys and begins to fetch their lines. Where a block is not full, what stands behind its keys is
    /// looked for in vain, which does no harm: every hash has a place.
    #[inline(always)]
    fn place(&self, probes: &mut Probes, left: &mut usize, next: Next<'_>) {
        if *left == 0 {
            return;
        }
        *left -= (*left).min(BLOCK);
        next(&mut probes.mixed);
        let (geometry, low, strides) = (self.geometry, self.lanes.low(), self.strides().narrow());
        let mixed = &probes.mixed;
        let mut place = |at: usize, place: Place| {
            let [first, second] = strides.begins(place);
            probes.begins[0][at] = first;
            probes.begins[1][at] = second;
            probes.patterns[at] = u64::from(place.class.fingerprint.get()).wrapping_mul(low);
        };
        if geometry.is_narrow() {
            mixed.iter().enumerate().for_each(|(at, &mixed)| place(at, geometry.locate_narrow(mixed)));
        } else {
            mixed.iter().enumerate().for_each(|(at, &mixed)| place(at, geometry.locate_flat::<false>(mixed)));
        }
        if let Some(level) = self.level {
            for &begin in probes.begins.iter().flatten() {
                self.bytes.fetch((begin / 8) as usize, level);
                self.bytes.fetch((begin / 8) as usize + 7, level);
            }
        }
    }

    #[inline(always)]
    fn look<W: Width>(&self, probes: &Probes, found: &mut [bool]) {
        let (low, high, run_bits) = (self.lanes.low(), self.lanes.high(), self.run_bits);
        let [mut first, mut second] = [[W::NONE; BLOCK]; 2];
        for at in 0..found.len() {
            first[at] = W::read(&self.bytes, probes.begins[0][at], run_bits);
            second[at] = W::read(&self.bytes, probes.begins[1][at], run_bits);
        }
        let mut hits = [0; BLOCK];
        for at in 0..BLOCK {
            let pattern = probes.patterns[at];
            let first = W::align(first[at], probes.begins[0][at], run_bits);
            let second = W::align(second[at], probes.begins[1][at], run_bits);
            hits[at] = (W::hits(first, low, pattern) | W::hits(second, low, pattern)) & high;
        }
        for (found, hits) in found.iter_mut().zip(hits) {
            *found = hits != 0;
        }
    }
}
