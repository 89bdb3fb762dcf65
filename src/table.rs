//! The words of a shard: buckets of 4 slots side by side with no padding, as atomics.
//!
//! ```text
//! width 16:  word 0 = bucket 0                    word 1 = bucket 1
//! width 13:  word 0 = bucket 0, 12 bits of 1      word 1 = 40 bits of bucket 1, 24 of 2
//! width 24:  word 0 = slots 0, 1, 16 bits of 2    word 1 = 8 bits of slot 2, slot 3, 32 bits of bucket 1
//! ```

use crate::fail_point::{Step, reached};
use crate::geometry::{Bucket, Fingerprint};
use crate::lanes::{Lanes, SLOTS};
use crate::stripe::Locked;
use crate::sync::{AtomicU64, load_locked, zeroed_words};
use core::sync::atomic::Ordering;

/// How the slots of one width lie in words.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Format {
    lanes: Lanes,
    width: u32,
    packing: Packing,
}

#[derive(Clone, Copy, Debug)]
enum Packing {
    /// 16 bits: a bucket is a word.
    Word,
    /// 4 and 8 bits: a bucket is a part of one word, `1 << shift` bits long.
    Part { shift: u32 },
    /// Other widths up to 16: a bucket is one run in one or two words.
    Straddling,
    /// Above 16 bits: a bucket is two runs of two slots, each in one or two words.
    Wide,
}

/// The bit of the table at which a slot begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot(u64);

/// The words of a shard.
pub(crate) struct Table {
    words: Box<[AtomicU64]>,
}

impl Format {
    pub(crate) fn new(width: u32) -> Self {
        let packing = match width {
            16 => Packing::Word,
            4 | 8 => Packing::Part { shift: (SLOTS as u32 * width).trailing_zeros() },
            ..16 => Packing::Straddling,
            _ => Packing::Wide,
        };
        Format { lanes: Lanes::new(width), width, packing }
    }

    #[inline]
    fn bucket_bits(&self) -> u64 {
        SLOTS as u64 * u64::from(self.width)
    }

    /// Where the runs of a bucket begin, and how many bits each has.
    #[inline]
    fn runs(&self, bucket: Bucket) -> (impl Iterator<Item = u64> + use<>, u64) {
        let begin = u64::from(bucket.get()) * self.bucket_bits();
        match self.packing {
            Packing::Word | Packing::Part { .. } | Packing::Straddling => {
                ([begin, begin].into_iter().take(1), self.bucket_bits())
            }
            Packing::Wide => {
                let half = self.bucket_bits() / 2;
                ([begin, begin + half].into_iter().take(2), half)
            }
        }
    }
}

impl Table {
    /// `None` when there is no memory.
    pub(crate) fn new(words: usize) -> Option<Self> {
        Some(Table { words: zeroed_words(words)? })
    }

    pub(crate) fn bytes_of(words: usize) -> usize {
        words * size_of::<AtomicU64>()
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.words)
    }

    /// Whether a slot of either bucket holds the fingerprint, read beside writers.
    ///
    /// Both buckets are read whatever the first one says: their lines are fetched at the same time, and which of the
    /// two holds a key cannot be predicted.
    #[inline]
    pub(crate) fn contains(&self, format: &Format, fingerprint: Fingerprint, first: Bucket, second: Bucket) -> bool {
        let pattern = format.lanes.repeat(fingerprint.get());
        let matches = |run| format.lanes.any(run, pattern);
        match format.packing {
            Packing::Word => {
                let run = |bucket: Bucket| acquire(&self.words[bucket.index()]);
                matches(run(first)) | matches(run(second))
            }
            Packing::Part { shift } => {
                let run = |bucket: Bucket| {
                    let bit = bucket.index() << shift;
                    acquire(&self.words[bit / 64]) >> (bit % 64)
                };
                matches(run(first)) | matches(run(second))
            }
            Packing::Straddling => {
                let bits = format.bucket_bits();
                let run = |bucket: Bucket| self.run(u64::from(bucket.get()) * bits, bits, acquire);
                matches(run(first)) | matches(run(second))
            }
            Packing::Wide => self.wide_contains(format, pattern, first) | self.wide_contains(format, pattern, second),
        }
    }

    #[inline(never)]
    fn wide_contains(&self, format: &Format, pattern: u64, bucket: Bucket) -> bool {
        let (runs, bits) = format.runs(bucket);
        runs.fold(false, |found, begin| found | format.lanes.any(self.run(begin, bits, acquire), pattern))
    }

    /// The run of `bits` bits that begins at `begin`, with anything above it.
    #[inline]
    fn run(&self, begin: u64, bits: u64, load: impl Fn(&AtomicU64) -> u64) -> u64 {
        let shift = begin % 64;
        let low = load(&self.words[(begin / 64) as usize]);
        // Where the run ends in the same word, this reads that word again, and what it adds stands above the run.
        let high = load(&self.words[((begin + bits - 1) / 64) as usize]);
        low >> shift | high << 1 << (63 - shift)
    }

    /// Whether the bucket has an empty slot, read beside writers: a hint.
    pub(crate) fn has_room(&self, format: &Format, bucket: Bucket) -> bool {
        let (mut runs, bits) = format.runs(bucket);
        runs.any(|begin| format.lanes.any(self.run(begin, bits, relaxed), 0))
    }

    /// The four slots of the bucket, read beside writers: a hint.
    pub(crate) fn slots(&self, format: &Format, bucket: Bucket) -> [u32; SLOTS] {
        let begin = u64::from(bucket.get()) * format.bucket_bits();
        let width = u64::from(format.width);
        let mask = u32::MAX >> (32 - format.width);
        core::array::from_fn(|slot| self.run(begin + slot as u64 * width, width, relaxed) as u32 & mask)
    }

    /// The number of slots of a locked bucket that hold the fingerprint.
    #[inline]
    pub(crate) fn copies(&self, locked: &Locked, format: &Format, fingerprint: Fingerprint, bucket: Bucket) -> u32 {
        locked.assert_holds(bucket);
        let pattern = format.lanes.repeat(fingerprint.get());
        let (runs, bits) = format.runs(bucket);
        runs.map(|begin| format.lanes.count(self.run(begin, bits, load_locked), pattern)).sum()
    }

    /// A slot of a locked bucket that holds the fingerprint.
    #[inline]
    pub(crate) fn find(&self, locked: &Locked, format: &Format, key: Fingerprint, bucket: Bucket) -> Option<Slot> {
        self.find_value(locked, format, key.get(), bucket)
    }

    /// An empty slot of a locked bucket.
    #[inline]
    pub(crate) fn find_empty(&self, locked: &Locked, format: &Format, bucket: Bucket) -> Option<Slot> {
        self.find_value(locked, format, 0, bucket)
    }

    #[inline]
    fn find_value(&self, locked: &Locked, format: &Format, value: u32, bucket: Bucket) -> Option<Slot> {
        locked.assert_holds(bucket);
        let pattern = format.lanes.repeat(value);
        let (mut runs, bits) = format.runs(bucket);
        runs.find_map(|begin| {
            let lowest = format.lanes.lowest(self.run(begin, bits, load_locked), pattern)?;
            Some(Slot(begin + u64::from(lowest)))
        })
    }

    /// Puts the fingerprint into an empty slot of a locked bucket.
    #[inline]
    pub(crate) fn store(&self, locked: &Locked, format: &Format, bucket: Bucket, slot: Slot, key: Fingerprint) {
        locked.assert_holds(bucket);
        self.write(format, slot, key.get());
    }

    /// Empties a slot of a locked bucket.
    #[inline]
    pub(crate) fn clear(&self, locked: &Locked, format: &Format, bucket: Bucket, slot: Slot) {
        locked.assert_holds(bucket);
        self.write(format, slot, 0);
        reached(Step::Cleared);
    }

    /// Empties every slot. All stripes must be locked. Words that hold nothing are not written, so memory that was never
    /// used stays unused.
    pub(crate) fn clear_all(&self, _all: &Locked) {
        for word in self.words.iter().filter(|word| load_locked(word) != 0) {
            word.store(0, Ordering::Release);
            reached(Step::Cleared);
        }
    }

    /// Writes the word, or the two words, of a slot. Between two stores the slot may look like another fingerprint: a
    /// false positive at the worst, for nobody's bits but its own are in flux (H6).
    #[inline]
    fn write(&self, format: &Format, slot: Slot, value: u32) {
        let mask = u64::from(u32::MAX >> (32 - format.width));
        let (word, shift) = ((slot.0 / 64) as usize, (slot.0 % 64) as u32);
        self.write_word(word, mask << shift, u64::from(value) << shift);
        if shift + format.width > 64 {
            let spilled = 64 - shift;
            self.write_word(word + 1, mask >> spilled, u64::from(value) >> spilled);
        }
    }

    #[inline]
    fn write_word(&self, word: usize, mask: u64, bits: u64) {
        let word = &self.words[word];
        // Release: pairs with `acquire` below. A look-up that sees a slot cleared also sees the version that was
        // advanced before (H1, H2, models relocation_* and equal_fingerprint_*).
        word.store(load_locked(word) & !mask | bits, Ordering::Release);
        reached(Step::WordWritten);
    }
}

/// A look-up's read of a word.
#[inline]
fn acquire(word: &AtomicU64) -> u64 {
    // Acquire: pairs with the Release in `Table::write_word`, and keeps the second read of the version after it.
    word.load(Ordering::Acquire)
}

/// A search's read of a word.
#[inline]
fn relaxed(word: &AtomicU64) -> u64 {
    // Relaxed: a hint that is checked again under the locks (H4).
    word.load(Ordering::Relaxed)
}
