//! The layout of the slots of one width in words.
//!
//! ```text
//! 16 bits:  word 0 = bucket 0                    word 1 = bucket 1
//! 13 bits:  word 0 = bucket 0, 12 bits of 1      word 1 = 40 bits of bucket 1, 24 of 2
//! 24 bits:  word 0 = slots 0, 1, 16 bits of 2    word 1 = 8 bits of slot 2, slot 3, 32 bits of bucket 1
//! ```

use super::geometry::Bucket;
use super::lanes::{Lanes, SLOTS};
use core::hint::select_unpredictable;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Format {
    pub(crate) lanes: Lanes,
    pub(crate) slot_bits: u32,
    pub(crate) bucket_bits: u64,
    pub(crate) packing: Packing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packing {
    /// 16 bits: a bucket is a word.
    Word,
    /// Other widths up to 16 bits: a bucket is one run, in one or two words.
    Run,
    /// Above 16 bits: a bucket is two runs of two slots, each in one or two words.
    TwoRuns,
}

/// A slot of a bucket, by its lowest bit in the shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) bucket: Bucket,
    pub(crate) begin: u64,
}

/// Slots of one bucket with some value, if any.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Matches {
    pub(crate) bucket: Bucket,
    /// Results of [`Lanes::equal`], for the lower run, and for the higher one if there are two.
    pub(crate) low: u64,
    pub(crate) high: u64,
}

impl Format {
    pub(crate) fn new(slot_bits: u32) -> Self {
        let packing = match slot_bits {
            ..16 => Packing::Run,
            16 => Packing::Word,
            _ => Packing::TwoRuns,
        };
        Format { lanes: Lanes::new(slot_bits), slot_bits, bucket_bits: SLOTS as u64 * u64::from(slot_bits), packing }
    }

    /// Returns the lowest bit of a bucket in its shard.
    #[inline]
    pub(crate) fn begin(&self, bucket: Bucket) -> u64 {
        u64::from(bucket.get()) * self.bucket_bits
    }

    /// Returns the bits of a run: a whole bucket up to 16 bits per slot, half a bucket above.
    #[inline]
    pub(crate) fn run_bits(&self) -> u64 {
        if self.has_two_runs() { self.bucket_bits / 2 } else { self.bucket_bits }
    }

    /// Returns the first and the last word of the run that begins at this bit.
    #[inline(always)]
    pub(crate) fn words_of_run(&self, begin: u64) -> [u64; 2] {
        [begin / 64, (begin + self.run_bits() - 1) / 64]
    }

    #[inline(always)]
    pub(crate) fn slots(&self, [low, high]: [u64; 2]) -> [u32; SLOTS] {
        let width = self.slot_bits;
        let mask = u64::from(u32::MAX >> (32 - width));
        let slot = |run: u64, number: u32| (run >> (number * width) & mask) as u32;
        if self.has_two_runs() {
            [slot(low, 0), slot(low, 1), slot(high, 0), slot(high, 1)]
        } else {
            [slot(low, 0), slot(low, 1), slot(low, 2), slot(low, 3)]
        }
    }

    #[inline]
    pub(crate) fn has_two_runs(&self) -> bool {
        self.packing == Packing::TwoRuns
    }
}

impl Matches {
    #[inline]
    pub(crate) fn any(self) -> bool {
        self.low | self.high != 0
    }

    #[inline]
    pub(crate) fn or(self, others: Matches) -> Matches {
        if self.any() { self } else { others }
    }

    /// Returns these slots or the others, whichever have a slot nearer to the beginning of their bucket.
    #[inline]
    pub(crate) fn or_lower(self, others: Matches) -> Matches {
        if others.rank() < self.rank() { others } else { self }
    }

    /// Returns the position of the lowest slot; above all others if there is none.
    #[inline]
    fn rank(self) -> u32 {
        self.low.trailing_zeros() + if self.low == 0 { self.high.trailing_zeros() } else { 0 }
    }

    #[inline]
    pub(crate) fn lowest(self, format: &Format) -> Option<Slot> {
        let begin = format.begin(self.bucket);
        // The run of the slot is unpredictable.
        let (run, begin) =
            select_unpredictable(self.low != 0, (self.low, begin), (self.high, begin + format.run_bits()));
        (run != 0).then(|| Slot { bucket: self.bucket, begin: begin + u64::from(format.lanes.lowest(run)) })
    }

    #[inline]
    pub(crate) fn slots(mut self, format: &Format) -> impl Iterator<Item = Slot> {
        core::iter::from_fn(move || {
            let slot = self.lowest(format)?;
            let run = if self.low != 0 { &mut self.low } else { &mut self.high };
            *run &= *run - 1;
            Some(slot)
        })
    }

    /// Returns the number of slots in two buckets.
    #[inline]
    pub(crate) fn count(self, others: Matches, format: &Format) -> u32 {
        format.lanes.count([self.low, self.high, others.low, others.high])
    }

    #[inline]
    pub(crate) fn none(self) -> Matches {
        Matches { low: 0, high: 0, ..self }
    }
}
