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
use crate::prefetch::prefetch;
use crate::stripe::{Locked, LockedAll};
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

/// A slot of a bucket, by the bit of the table at which it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    bucket: Bucket,
    begin: u64,
}

/// Slots of one bucket that hold some value, or none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Matches {
    bucket: Bucket,
    /// As of [`Lanes::equal`], for the lower run, and for the higher where there are two.
    low: u64,
    high: u64,
}

impl Matches {
    #[inline]
    pub(crate) fn any(self) -> bool {
        self.low | self.high != 0
    }

    /// These, or the others if there are none.
    #[inline]
    pub(crate) fn or(self, others: Matches) -> Matches {
        if self.any() { self } else { others }
    }

    /// These or the others, whichever have a slot nearer to the beginning of their bucket.
    #[inline]
    pub(crate) fn or_lower(self, others: Matches) -> Matches {
        if others.rank() < self.rank() { others } else { self }
    }

    /// Where the lowest stands, for comparison; above all of them if there is none.
    #[inline]
    fn rank(self) -> u32 {
        self.low.trailing_zeros() + if self.low == 0 { self.high.trailing_zeros() } else { 0 }
    }

    /// The lowest of them.
    #[inline]
    pub(crate) fn lowest(self, format: &Format) -> Option<Slot> {
        let begin = format.begin(self.bucket);
        let begin = if self.low != 0 {
            begin + u64::from(format.lanes.lowest(self.low))
        } else if self.high != 0 {
            begin + format.run_bits() + u64::from(format.lanes.lowest(self.high))
        } else {
            return None;
        };
        Some(Slot { bucket: self.bucket, begin })
    }

    /// How many there are in two buckets.
    #[inline]
    pub(crate) fn count(self, others: Matches, format: &Format) -> u32 {
        format.lanes.count([self.low, self.high, others.low, others.high])
    }

    /// None, in the same bucket.
    #[inline]
    pub(crate) fn none(self) -> Matches {
        Matches { low: 0, high: 0, ..self }
    }
}

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

    /// The bit at which a bucket begins.
    #[inline]
    fn begin(&self, bucket: Bucket) -> u64 {
        u64::from(bucket.get()) * self.bucket_bits()
    }

    /// Bits of a run: a whole bucket up to 16 bits a slot, half a bucket above.
    #[inline]
    fn run_bits(&self) -> u64 {
        if self.is_wide() { self.bucket_bits() / 2 } else { self.bucket_bits() }
    }

    #[inline]
    fn is_wide(&self) -> bool {
        matches!(self.packing, Packing::Wide)
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
                let run = |bucket: Bucket| self.run(format.begin(bucket), bits, acquire);
                matches(run(first)) | matches(run(second))
            }
            Packing::Wide => self.wide_contains(format, pattern, first) | self.wide_contains(format, pattern, second),
        }
    }

    #[inline(never)]
    fn wide_contains(&self, format: &Format, pattern: u64, bucket: Bucket) -> bool {
        let (begin, bits) = (format.begin(bucket), format.run_bits());
        format.lanes.any(self.run(begin, bits, acquire), pattern)
            | format.lanes.any(self.run(begin + bits, bits, acquire), pattern)
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
    #[inline]
    pub(crate) fn has_room(&self, format: &Format, bucket: Bucket) -> bool {
        let (begin, bits) = (format.begin(bucket), format.run_bits());
        format.lanes.any(self.run(begin, bits, relaxed), 0)
            || format.is_wide() && format.lanes.any(self.run(begin + bits, bits, relaxed), 0)
    }

    /// The four slots of the bucket, read beside writers: a hint.
    #[inline]
    pub(crate) fn slots(&self, format: &Format, bucket: Bucket) -> [u32; SLOTS] {
        let (begin, bits, width) = (format.begin(bucket), format.run_bits(), format.width);
        let mask = u64::from(u32::MAX >> (32 - width));
        let slot = |run: u64, number: u32| (run >> (number * width) & mask) as u32;
        let low = self.run(begin, bits, relaxed);
        if format.is_wide() {
            let high = self.run(begin + bits, bits, relaxed);
            [slot(low, 0), slot(low, 1), slot(high, 0), slot(high, 1)]
        } else {
            [slot(low, 0), slot(low, 1), slot(low, 2), slot(low, 3)]
        }
    }

    /// Begins to fetch the bucket, for a writer that is about to wait for its locks.
    #[inline]
    pub(crate) fn prefetch(&self, format: &Format, bucket: Bucket) {
        if let Some(word) = self.words.get((format.begin(bucket) / 64) as usize) {
            prefetch(word);
        }
    }

    /// The slots of a locked bucket that hold the fingerprint.
    #[inline(always)]
    pub(crate) fn find(
        &self,
        locked: &Locked<'_, impl Sized>,
        format: &Format,
        fingerprint: Fingerprint,
        bucket: Bucket,
    ) -> Matches {
        self.find_value(locked, format, fingerprint.get(), bucket)
    }

    /// The empty slots of a locked bucket.
    #[inline(always)]
    pub(crate) fn find_empty(&self, locked: &Locked<'_, impl Sized>, format: &Format, bucket: Bucket) -> Matches {
        self.find_value(locked, format, 0, bucket)
    }

    #[inline(always)]
    fn find_value(&self, locked: &Locked<'_, impl Sized>, format: &Format, value: u32, bucket: Bucket) -> Matches {
        locked.assert_holds(bucket);
        let pattern = format.lanes.repeat(value);
        let (begin, bits) = (format.begin(bucket), format.run_bits());
        let equal = |begin| format.lanes.equal(self.run(begin, bits, load_locked), pattern);
        Matches { bucket, low: equal(begin), high: if format.is_wide() { equal(begin + bits) } else { 0 } }
    }

    /// Puts the fingerprint into an empty slot of a locked bucket.
    #[inline]
    pub(crate) fn store(&self, locked: &Locked<'_, impl Sized>, format: &Format, slot: Slot, key: Fingerprint) {
        locked.assert_holds(slot.bucket);
        self.write(format, slot, key.get());
    }

    /// Empties a slot of a locked bucket.
    #[inline]
    pub(crate) fn clear(&self, locked: &Locked<'_, impl Sized>, format: &Format, slot: Slot) {
        locked.assert_holds(slot.bucket);
        self.write(format, slot, 0);
        reached(Step::Cleared);
    }

    /// Empties every slot. All stripes must be locked. Words that hold nothing are not written, so memory that was never
    /// used stays unused.
    pub(crate) fn clear_all(&self, _all: &LockedAll) {
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
        let (word, shift) = ((slot.begin / 64) as usize, (slot.begin % 64) as u32);
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
