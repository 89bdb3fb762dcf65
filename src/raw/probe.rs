//! How lookups read a bucket: one body per layout of buckets in words.

use super::bucket_array::acquire;
use super::flat::Flat;
use super::shards::{ShardStrides, Shards};
use super::slots::SlotKind;
use super::stripe::{STRIPE_BYTES, Watch};
use crate::layout::{Format, Geometry, Packing, Place, hits_less};
#[cfg(feature = "snapshot")]
use crate::sys::bytes;
use crate::sys::memory::Buffer;
use crate::sys::prefetch::{CacheLevel, prefetch};
use crate::sys::read_only::ReadOnly;
use crate::sys::sync::AtomicU64;
use crate::sys::unaligned;

/// The [`BucketLayout`] of a filter's lookups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BucketLayoutKind {
    Word,
    Bytes,
    TwoBytes,
    Words,
    ThreeWords,
}

impl BucketLayoutKind {
    pub(crate) fn of(slot_bits: u32) -> Self {
        match Format::new(slot_bits).packing {
            Packing::Word => BucketLayoutKind::Word,
            Packing::Run if unaligned::AVAILABLE => BucketLayoutKind::Bytes,
            Packing::Run => BucketLayoutKind::Words,
            // Two slots of 31 bits begin at any even bit: 6 bits and 62 exceed 8 bytes.
            Packing::TwoRuns if unaligned::AVAILABLE && slot_bits != 31 => BucketLayoutKind::TwoBytes,
            Packing::TwoRuns => BucketLayoutKind::ThreeWords,
        }
    }
}

/// Evaluates `$body` with `$layout` bound to the layout of this kind.
macro_rules! with_layout {
    ($kind:expr, $layout:ident => $body:expr) => {
        $crate::raw::probe::with_layout!($kind, $layout => $body; Word Bytes TwoBytes Words ThreeWords)
    };
    ($kind:expr, $layout:ident => $body:expr; $($name:ident)*) => {
        match $kind {
            $($crate::raw::probe::BucketLayoutKind::$name => {
                type $layout = $crate::raw::probe::$name;
                $body
            })*
        }
    };
}
pub(crate) use with_layout;

/// Shards of equal size, side by side, as lookups read them: those of a filter or of a snapshot.
pub(crate) trait Probed: Sized {
    type Positions: Positions;
    type Source: Source;
    type Kind: SlotKind;

    /// See [`Lookup::REPEATS`](super::lookup::Lookup::REPEATS).
    const REPEATS: Option<u32> = None;

    fn shape(&self) -> Shape<'_, Self>;

    /// The version of the stripe at this byte.
    fn version(&self, stripe_offset: u64) -> impl Watch;
}

/// The memory of buckets, the places of buckets in it, and the format and the meaning of slots.
pub(crate) struct Shape<'a, P: Probed> {
    /// The words of all shards.
    pub(crate) source: &'a P::Source,
    pub(crate) geometry: &'a Geometry,
    pub(crate) positions: P::Positions,
    pub(crate) format: &'a Format,
    pub(crate) slots: <P::Kind as SlotKind>::Slots<'a>,
}

/// Converts a place to the positions of its buckets and its stripe.
pub(crate) trait Positions: Copy {
    /// Returns the same numbers, which the compiler can see to have 32 bits: it vectorizes their products.
    fn narrow(self) -> Self;

    /// The positions of the buckets of a class, for [`BucketLayout::address`].
    fn begins<L: BucketLayout>(self, place: Place) -> [u64; 2];

    /// The byte at which the stripe of a class begins.
    fn stripe_offset(self, place: Place) -> u64;
}

/// The memory of buckets: words of this process, or bytes of another owner. Reads are Acquire, unless nobody writes.
pub(crate) trait Source {
    /// The word with this number.
    fn word(&self, number: u64) -> u64;

    /// The 8 bytes from this one on, by one load, if [`unaligned::AVAILABLE`].
    fn eight(&self, byte: u64) -> u64;

    /// Prefetches the line of a word.
    fn fetch(&self, number: u64, level: CacheLevel);
}

impl Source for Buffer<AtomicU64> {
    #[inline(always)]
    fn word(&self, number: u64) -> u64 {
        acquire(self.at(number as usize))
    }

    #[inline(always)]
    fn eight(&self, byte: u64) -> u64 {
        unaligned::load(self, byte as usize)
    }

    #[inline(always)]
    fn fetch(&self, number: u64, level: CacheLevel) {
        prefetch(self.at(number as usize), level);
    }
}

/// The fences of a lookup acquire ([`FencedRef`](super::stripe::FencedRef)).
impl Source for ReadOnly {
    #[inline(always)]
    fn word(&self, number: u64) -> u64 {
        self.at(number as usize).load()
    }

    #[inline(always)]
    fn eight(&self, byte: u64) -> u64 {
        self.eight(byte as usize)
    }

    #[inline(always)]
    fn fetch(&self, number: u64, level: CacheLevel) {
        self.fetch(number as usize, level);
    }
}

/// Bytes that nobody writes.
#[cfg(feature = "snapshot")]
impl Source for bytes::Bytes<'_> {
    #[inline(always)]
    fn word(&self, number: u64) -> u64 {
        self.eight_within(8 * number as usize)
    }

    #[inline(always)]
    fn eight(&self, byte: u64) -> u64 {
        self.eight_within(byte as usize)
    }

    #[inline(always)]
    fn fetch(&self, number: u64, level: CacheLevel) {
        self.prefetch(8 * number as usize, level);
    }
}

/// Reads a bucket by its position: the number of its word for [`Word`], of its first bit for all others. [`Words`] can
/// replace `Word` and [`Bytes`], and [`ThreeWords`] can replace [`TwoBytes`].
pub(crate) trait BucketLayout {
    /// Whether the position of a bucket is its number.
    const UNIT: bool = false;
    type Runs: Runs;
    /// The layout for buckets of one run in the same filter.
    type Narrow: BucketLayout;

    /// Precomputes the argument of [`read`](Self::read) from a position.
    #[inline(always)]
    fn address(begin: u64) -> u64 {
        begin
    }

    /// Reads the bucket. Its runs may be shifted by some bits.
    fn read(words: &impl Source, address: u64, run_bits: u32) -> Self::Runs;

    /// Shifts runs to the lowest bit. The bits above them are those that follow in memory.
    #[inline(always)]
    fn align(runs: Self::Runs, _begin: u64, _run_bits: u32) -> Self::Runs {
        runs
    }

    /// Reads the bucket that begins here, and aligns its runs.
    #[inline(always)]
    fn read_aligned(words: &impl Source, begin: u64, run_bits: u32) -> Self::Runs {
        Self::align(Self::read(words, Self::address(begin), run_bits), begin, run_bits)
    }

    /// Prefetches the first line, and for wide buckets the last one.
    #[inline(always)]
    fn fetch(words: &impl Source, begin: u64, level: CacheLevel) {
        words.fetch(begin / 64, level);
        words.fetch(begin / 64 + 1, level);
    }
}

/// The runs of a bucket as they are compared.
pub(crate) trait Runs: Copy + Default + 'static {
    /// The number of slots per run.
    const SLOTS: u32;

    /// [`hits_less`] of all runs, combined.
    #[inline(always)]
    fn hits(self, minus: u64, pattern: u64) -> u64 {
        self.any_of(|run| hits_less(run, pattern, minus))
    }

    /// The results of a function of all runs, combined.
    fn any_of(self, says: impl Fn(u64) -> u64) -> u64;

    /// See `BucketArray::runs`.
    fn both(self) -> [u64; 2];

    /// The runs of which [`both`](Self::both) are these.
    fn of(both: [u64; 2]) -> Self;
}

impl Runs for u64 {
    const SLOTS: u32 = 4;

    #[inline(always)]
    fn any_of(self, says: impl Fn(u64) -> u64) -> u64 {
        says(self)
    }

    #[inline(always)]
    fn both(self) -> [u64; 2] {
        [self, 0]
    }

    #[inline(always)]
    fn of([run, _]: [u64; 2]) -> Self {
        run
    }
}

impl Runs for [u64; 2] {
    const SLOTS: u32 = 2;

    #[inline(always)]
    fn any_of(self, says: impl Fn(u64) -> u64) -> u64 {
        says(self[0]) | says(self[1])
    }

    #[inline(always)]
    fn both(self) -> [u64; 2] {
        self
    }

    #[inline(always)]
    fn of(both: [u64; 2]) -> Self {
        both
    }
}

/// A bucket is a word.
pub(crate) enum Word {}

/// A bucket is one run, read by one load.
pub(crate) enum Bytes {}

/// A bucket is two runs, read by one load each.
pub(crate) enum TwoBytes {}

/// A bucket is one run, read in two words.
pub(crate) enum Words {}

/// A bucket is two runs, read in three words.
pub(crate) enum ThreeWords {}

impl BucketLayout for Word {
    const UNIT: bool = true;
    type Runs = u64;
    type Narrow = Self;

    #[inline(always)]
    fn read(words: &impl Source, begin: u64, _: u32) -> u64 {
        words.word(begin)
    }

    #[inline(always)]
    fn fetch(words: &impl Source, begin: u64, level: CacheLevel) {
        words.fetch(begin, level);
    }
}

impl BucketLayout for Bytes {
    type Runs = u64;
    type Narrow = Self;

    #[inline(always)]
    fn address(begin: u64) -> u64 {
        begin / 8
    }

    #[inline(always)]
    fn read(words: &impl Source, address: u64, _: u32) -> u64 {
        words.eight(address)
    }

    #[inline(always)]
    fn align(run: u64, begin: u64, _: u32) -> u64 {
        run >> (begin % 8)
    }
}

impl BucketLayout for TwoBytes {
    type Runs = [u64; 2];
    type Narrow = Bytes;

    #[inline(always)]
    fn read(words: &impl Source, begin: u64, run_bits: u32) -> [u64; 2] {
        [begin, begin + u64::from(run_bits)].map(|begin| words.eight(begin / 8))
    }

    #[inline(always)]
    fn align([low, high]: [u64; 2], begin: u64, run_bits: u32) -> [u64; 2] {
        [low >> (begin % 8), high >> ((begin + u64::from(run_bits)) % 8)]
    }
}

impl BucketLayout for Words {
    type Runs = u64;
    type Narrow = Self;

    #[inline(always)]
    fn read(words: &impl Source, begin: u64, _: u32) -> u64 {
        // The second word is always read: a branch on whether the run ends in the first would be unpredictable.
        let number = begin / 64;
        let [low, high] = [number, number + 1].map(|number| u128::from(words.word(number)));
        ((high << 64 | low) >> (begin % 64)) as u64
    }
}

impl BucketLayout for ThreeWords {
    type Runs = [u64; 2];
    type Narrow = Words;

    #[inline(always)]
    fn read(words: &impl Source, begin: u64, run_bits: u32) -> [u64; 2] {
        let (number, shift) = (begin / 64, (begin % 64) as u32);
        let [low, middle, high] = [number, number + 1, number + 2].map(|number| words.word(number));
        let second = shift + run_bits;
        let from =
            |low: u64, high: u64, shift: u32| ((u128::from(high) << 64 | u128::from(low)) >> (shift % 64)) as u64;
        // Without a branch on the word in which the second run begins, which would be unpredictable.
        let later = u64::from(second / 64).wrapping_neg();
        let lower = from(low, middle, shift);
        [lower, from(low ^ ((low ^ middle) & later), middle ^ ((middle ^ high) & later), second)]
    }
}

impl<K: SlotKind> Probed for Flat<K> {
    type Positions = ShardStrides;
    type Source = Buffer<AtomicU64>;
    type Kind = K;

    #[inline(always)]
    fn shape(&self) -> Shape<'_, Self> {
        let Shards { words, format, .. } = &self.shards;
        let (positions, slots) = (self.shards.positions(), self.kind.slots());
        Shape { source: words, geometry: &self.geometry, positions, format, slots }
    }

    #[inline(always)]
    fn version(&self, stripe_offset: u64) -> impl Watch {
        self.shards.version(stripe_offset)
    }
}

impl Positions for ShardStrides {
    #[inline(always)]
    fn narrow(self) -> Self {
        let narrow = |number: u64| number & u64::from(u32::MAX);
        let ShardStrides { bucket_bits, stripes, stripe_shift } = self;
        ShardStrides { bucket_bits: narrow(bucket_bits), stripes: narrow(stripes), stripe_shift }
    }

    #[inline(always)]
    fn begins<L: BucketLayout>(self, place: Place) -> [u64; 2] {
        [place.first, place.second].map(|number| if L::UNIT { number } else { number * self.bucket_bits })
    }

    /// That of its first bucket, which is known soonest. A relocation bumps the stripes of both buckets.
    #[inline(always)]
    fn stripe_offset(self, place: Place) -> u64 {
        let stripe = u64::from(place.class.first.get() >> self.stripe_shift);
        (place.shard * self.stripes + stripe) * STRIPE_BYTES as u64
    }
}
