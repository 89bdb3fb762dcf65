//! What a look-up reads, in two steps: find the words of a bucket, then read them. Between the two they can be on their
//! way from memory.

use super::{Format, Table, acquire, run};
use crate::geometry::Bucket;
use crate::prefetch::{Into, prefetch};
use crate::sync::AtomicU64;

/// How a bucket lies in words, known when it is compiled. [`Run`] is right for the widths of [`Word`] and [`Part`]
/// too.
pub(crate) trait Layout: Copy {
    /// Where the words of a bucket are.
    type Place<'a>: Copy;

    /// Finds the words of a bucket, without reading them.
    fn place<'a>(table: &'a Table, format: &Format, bucket: Bucket) -> Self::Place<'a>;

    /// Begins to fetch them.
    fn fetch(place: Self::Place<'_>, into: Into);

    /// Reads them, beside writers: whether any slot equals the pattern's.
    fn holds(place: Self::Place<'_>, format: &Format, pattern: u64) -> bool;
}

/// A bucket is a word.
#[derive(Clone, Copy)]
pub(crate) enum Word {}

/// A bucket is a part of a word.
#[derive(Clone, Copy)]
pub(crate) enum Part {}

/// A bucket is one run in one or two words.
#[derive(Clone, Copy)]
pub(crate) enum Run {}

/// A bucket is two runs in two or three words.
#[derive(Clone, Copy)]
pub(crate) enum TwoRuns {}

impl Layout for Word {
    type Place<'a> = &'a AtomicU64;

    #[inline(always)]
    fn place<'a>(table: &'a Table, _: &Format, bucket: Bucket) -> &'a AtomicU64 {
        &table.words[bucket.index()]
    }

    #[inline(always)]
    fn fetch(word: &AtomicU64, into: Into) {
        prefetch(word, into);
    }

    #[inline(always)]
    fn holds(word: &AtomicU64, format: &Format, pattern: u64) -> bool {
        format.lanes.any(acquire(word), pattern)
    }
}

impl Layout for Part {
    type Place<'a> = (&'a AtomicU64, u32);

    #[inline(always)]
    fn place<'a>(table: &'a Table, format: &Format, bucket: Bucket) -> Self::Place<'a> {
        let begin = format.begin(bucket);
        (&table.words[(begin / 64) as usize], (begin % 64) as u32)
    }

    #[inline(always)]
    fn fetch((word, _): Self::Place<'_>, into: Into) {
        prefetch(word, into);
    }

    #[inline(always)]
    fn holds((word, shift): Self::Place<'_>, format: &Format, pattern: u64) -> bool {
        format.lanes.any(acquire(word) >> shift, pattern)
    }
}

impl Layout for Run {
    /// The words, and the bit of the first one at which the run begins. The second word is read without asking whether
    /// the run ends there: a branch could not be predicted.
    type Place<'a> = (&'a [AtomicU64; 2], u32);

    #[inline(always)]
    fn place<'a>(table: &'a Table, format: &Format, bucket: Bucket) -> Self::Place<'a> {
        table.words_at(format.begin(bucket))
    }

    #[inline(always)]
    fn fetch((words, _): Self::Place<'_>, into: Into) {
        words.iter().for_each(|word| prefetch(word, into));
    }

    #[inline(always)]
    fn holds((words, shift): Self::Place<'_>, format: &Format, pattern: u64) -> bool {
        format.lanes.any(run(words, shift, acquire), pattern)
    }
}

impl Layout for TwoRuns {
    type Place<'a> = (&'a [AtomicU64; 3], u32);

    #[inline(always)]
    fn place<'a>(table: &'a Table, format: &Format, bucket: Bucket) -> Self::Place<'a> {
        table.words_at(format.begin(bucket))
    }

    #[inline(always)]
    fn fetch((words, _): Self::Place<'_>, into: Into) {
        words.iter().for_each(|word| prefetch(word, into));
    }

    #[inline(always)]
    fn holds((words, shift): Self::Place<'_>, format: &Format, pattern: u64) -> bool {
        let [low, middle, high] = words.each_ref().map(acquire);
        let second = shift + format.run_bits() as u32;
        let from =
            |low: u64, high: u64, shift: u32| ((u128::from(high) << 64 | u128::from(low)) >> (shift % 64)) as u64;
        let lower = from(low, middle, shift);
        // Chosen without a branch: in which word the second run begins cannot be predicted.
        let later = u64::from(second / 64).wrapping_neg();
        let higher = from(low ^ ((low ^ middle) & later), middle ^ ((middle ^ high) & later), second);
        format.lanes.any(lower, pattern) | format.lanes.any(higher, pattern)
    }
}
