//! How a lookup reads a bucket, concurrently with writers: one body for each way in which buckets lie in words.

use super::table::acquire;
use crate::layout::{Format, Packing, hits};
use crate::sys::memory::Run;
use crate::sys::prefetch::{CacheLevel, prefetch};
use crate::sys::sync::AtomicU64;
use crate::sys::unaligned;

/// Which [`Layout`] the lookups of a filter have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LayoutKind {
    Word,
    Bytes,
    TwoBytes,
    Words,
    ThreeWords,
}

impl LayoutKind {
    /// Of slots of this width.
    pub(crate) fn of(slot_bits: u32) -> Self {
        match Format::new(slot_bits).packing() {
            Packing::Word => LayoutKind::Word,
            Packing::Run if unaligned::AVAILABLE => LayoutKind::Bytes,
            Packing::Run => LayoutKind::Words,
            // Two slots of 31 bits begin at any even bit: 6 bits and 62 are more than 8 bytes.
            Packing::TwoRuns if unaligned::AVAILABLE && slot_bits != 31 => LayoutKind::TwoBytes,
            Packing::TwoRuns => LayoutKind::ThreeWords,
        }
    }
}

/// Runs `$body` with `$layout` standing for the layout of this kind.
macro_rules! with_layout {
    ($kind:expr, $layout:ident => $body:expr) => {
        $crate::raw::probe::with_layout!($kind, $layout => $body; Word Bytes TwoBytes Words ThreeWords)
    };
    ($kind:expr, $layout:ident => $body:expr; $($name:ident)*) => {
        match $kind {
            $($crate::raw::probe::LayoutKind::$name => {
                type $layout = $crate::raw::probe::$name;
                $body
            })*
        }
    };
}
pub(crate) use with_layout;

/// Reads a bucket by where it begins: the number of its word for [`Word`], of its bit for all others. [`Words`] is right where
/// `Word` and [`Bytes`] are, and [`ThreeWords`] where [`TwoBytes`] is.
pub(crate) trait Layout {
    /// Whether a bucket is one unit, so that its number need not be multiplied.
    const UNIT: bool;
    /// The runs of a bucket.
    type Runs: Runs;
    /// As this, of buckets of one run.
    type Narrow: Layout;

    /// What [`Layout::read`] takes, worked out beforehand.
    #[inline(always)]
    fn address(begin: u64) -> u64 {
        begin
    }

    /// Reads the bucket, each word with Acquire. Its runs may stand some bits too high.
    fn read(words: &Run<AtomicU64>, address: u64, run_bits: u32) -> Self::Runs;

    /// Brings what was read down to the lowest bit. Above the runs stands whatever the table holds next.
    #[inline(always)]
    fn align(runs: Self::Runs, _begin: u64, _run_bits: u32) -> Self::Runs {
        runs
    }

    /// Begins to fetch its first line, and for wide buckets the last one.
    #[inline(always)]
    fn fetch(words: &Run<AtomicU64>, begin: u64, level: CacheLevel) {
        let number = (begin / 64) as usize;
        prefetch(words.at(number), level);
        prefetch(words.at(number + 1), level);
    }
}

/// What is compared of a bucket.
pub(crate) trait Runs: Copy + Default {
    /// Slots of a run.
    const SLOTS: u32;

    /// As [`hits`], of all runs together.
    fn hits(self, low: u64, pattern: u64) -> u64;

    /// What this says of any run.
    fn any_of(self, says: impl Fn(u64) -> u64) -> u64;

    /// As of `Table::runs`.
    fn both(self) -> [u64; 2];
}

impl Runs for u64 {
    const SLOTS: u32 = 4;

    #[inline(always)]
    fn hits(self, low: u64, pattern: u64) -> u64 {
        hits(self, pattern, low)
    }

    #[inline(always)]
    fn any_of(self, says: impl Fn(u64) -> u64) -> u64 {
        says(self)
    }

    #[inline(always)]
    fn both(self) -> [u64; 2] {
        [self, 0]
    }
}

impl Runs for [u64; 2] {
    const SLOTS: u32 = 2;

    #[inline(always)]
    fn hits(self, low: u64, pattern: u64) -> u64 {
        self[0].hits(low, pattern) | self[1].hits(low, pattern)
    }

    #[inline(always)]
    fn any_of(self, says: impl Fn(u64) -> u64) -> u64 {
        says(self[0]) | says(self[1])
    }

    #[inline(always)]
    fn both(self) -> [u64; 2] {
        self
    }
}

/// A bucket is a word.
pub(crate) enum Word {}

/// A bucket is one run, read at once.
pub(crate) enum Bytes {}

/// A bucket is two runs, each read at once.
pub(crate) enum TwoBytes {}

/// A bucket is one run, read in two words.
pub(crate) enum Words {}

/// A bucket is two runs, read in three words.
pub(crate) enum ThreeWords {}

impl Layout for Word {
    const UNIT: bool = true;
    type Runs = u64;
    type Narrow = Self;

    #[inline(always)]
    fn read(words: &Run<AtomicU64>, begin: u64, _: u32) -> u64 {
        acquire(words.at(begin as usize))
    }

    #[inline(always)]
    fn fetch(words: &Run<AtomicU64>, begin: u64, level: CacheLevel) {
        prefetch(words.at(begin as usize), level);
    }
}

impl Layout for Bytes {
    const UNIT: bool = false;
    type Runs = u64;
    type Narrow = Self;

    #[inline(always)]
    fn address(begin: u64) -> u64 {
        begin / 8
    }

    #[inline(always)]
    fn read(words: &Run<AtomicU64>, address: u64, _: u32) -> u64 {
        unaligned::load(words, address as usize)
    }

    #[inline(always)]
    fn align(run: u64, begin: u64, _: u32) -> u64 {
        run >> (begin % 8)
    }
}

impl Layout for TwoBytes {
    const UNIT: bool = false;
    type Runs = [u64; 2];
    type Narrow = Bytes;

    #[inline(always)]
    fn read(words: &Run<AtomicU64>, begin: u64, run_bits: u32) -> [u64; 2] {
        [begin, begin + u64::from(run_bits)].map(|begin| unaligned::load(words, (begin / 8) as usize))
    }

    #[inline(always)]
    fn align([low, high]: [u64; 2], begin: u64, run_bits: u32) -> [u64; 2] {
        [low >> (begin % 8), high >> ((begin + u64::from(run_bits)) % 8)]
    }
}

impl Layout for Words {
    const UNIT: bool = false;
    type Runs = u64;
    type Narrow = Self;

    #[inline(always)]
    fn read(words: &Run<AtomicU64>, begin: u64, _: u32) -> u64 {
        // The second word is read without asking whether the run ends in the first: a branch could not be predicted.
        let number = (begin / 64) as usize;
        let [low, high] = [number, number + 1].map(|number| u128::from(acquire(words.at(number))));
        ((high << 64 | low) >> (begin % 64)) as u64
    }
}

impl Layout for ThreeWords {
    const UNIT: bool = false;
    type Runs = [u64; 2];
    type Narrow = Words;

    #[inline(always)]
    fn read(words: &Run<AtomicU64>, begin: u64, run_bits: u32) -> [u64; 2] {
        let (number, shift) = ((begin / 64) as usize, (begin % 64) as u32);
        let [low, middle, high] = [number, number + 1, number + 2].map(|number| acquire(words.at(number)));
        let second = shift + run_bits;
        let from =
            |low: u64, high: u64, shift: u32| ((u128::from(high) << 64 | u128::from(low)) >> (shift % 64)) as u64;
        // Chosen without a branch: in which word the second run begins cannot be predicted.
        let later = u64::from(second / 64).wrapping_neg();
        let lower = from(low, middle, shift);
        [lower, from(low ^ ((low ^ middle) & later), middle ^ ((middle ^ high) & later), second)]
    }
}
