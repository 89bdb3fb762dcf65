//! The words of a shard as atomics: buckets of 4 slots side by side, without padding.

use super::intent::{self, Intent};
use super::locks::{Locked, LockedAll};
use super::shards::Shards;
use crate::layout::{Bucket, Format, Matches, Packing, SLOTS, Slot};
use crate::sys::prefetch::{CacheLevel, prefetch};
use crate::sys::steps::{Step, reached};
use crate::sys::sync::{AtomicU64, load_locked};
use crate::sys::unaligned;
use core::sync::atomic::Ordering;

/// The words of one shard among those of the filter.
#[derive(Clone, Copy)]
pub(crate) struct BucketArray<'a> {
    shards: &'a Shards,
    /// The index of its first word.
    first: usize,
}

impl<'a> BucketArray<'a> {
    #[inline(always)]
    pub(super) fn of(shards: &'a Shards, shard: usize) -> Self {
        BucketArray { shards, first: shard * shards.plan.words as usize }
    }

    #[inline(always)]
    pub(super) fn format(self) -> &'a Format {
        &self.shards.format
    }

    fn count(self) -> usize {
        self.shards.plan.words as usize
    }

    pub(super) fn words(self) -> &'a [AtomicU64] {
        self.shards.words.part(self.first, self.count())
    }

    #[inline(always)]
    pub(super) fn word(self, number: u64) -> &'a AtomicU64 {
        debug_assert!(number < self.count() as u64, "word {number} of {}", self.count());
        self.shards.words.at(self.first + number as usize)
    }

    /// Returns a function that writes the words of a shard that no other thread knows, one after the other.
    #[inline(always)]
    pub(crate) fn filled_by_each(self) -> impl FnMut(u64) + use<'a> {
        self.shards.words.populate(self.first, self.count());
        let mut words = self.words().iter();
        move |word| {
            if let Some(to) = words.next() {
                // Relaxed: the thread that publishes the shard orders this store.
                to.store(word, Ordering::Relaxed);
            }
        }
    }

    /// Returns a function that replaces one word after the other, to clear slots, while all stripes are locked.
    #[inline(always)]
    pub(crate) fn emptied_by_each(self, _all: &LockedAll<'_>) -> impl FnMut(u64) + use<'a> {
        let mut words = self.words().iter();
        move |word| {
            if let Some(at) = words.next().filter(|at| load_locked(at) != word) {
                // Release: see `write_word`.
                at.store(word, Ordering::Release);
                reached(Step::Cleared);
            }
        }
    }

    /// Copies as many words as `words` holds, while all stripes are locked.
    pub(crate) fn copy_to(self, _all: &LockedAll<'_>, words: &mut [u64]) {
        for (word, to) in self.words().iter().zip(words) {
            *to = load_locked(word);
        }
    }

    /// Counts the occupied slots of these buckets in a shard without writers. Returns `None` if any bit behind the last
    /// bucket is set.
    pub(crate) fn occupied(self, buckets: impl ExactSizeIterator<Item = Bucket>) -> Option<u64> {
        let end = buckets.len() as u64 * self.format().bucket_bits;
        let is_set_behind = !end.is_multiple_of(64) && Optimistic.load(self.word(end / 64)) >> (end % 64) != 0;
        let occupied = |bucket| self.slots(bucket, Optimistic).into_iter().filter(|&slot| slot != 0).count() as u64;
        (!is_set_behind).then(|| buckets.map(occupied).sum())
    }

    /// The runs of a bucket, each below other bits; the second is meaningless where a bucket has one run. `format` is
    /// that of the filter, or a copy of it.
    #[inline(always)]
    pub(super) fn runs(self, format: &Format, bucket: Bucket, reading: Reading) -> [u64; 2] {
        if let Packing::Word = format.packing {
            return [reading.load(self.word(u64::from(bucket.get()))), 0];
        }
        let begin = format.begin(bucket);
        let high = if format.has_two_runs() { self.run(format, begin + format.run_bits(), reading) } else { 0 };
        [self.run(format, begin, reading), high]
    }

    /// The run that begins at this bit, below other bits.
    #[inline(always)]
    fn run(self, format: &Format, begin: u64, reading: Reading) -> u64 {
        if unaligned::AVAILABLE && begin % 8 + format.run_bits() <= 64 {
            return self.run_at_once(begin);
        }
        let shift = begin % 64;
        // If the run ends in the first word, that word is read twice, and the second copy lies above the run. So no
        // word of another stripe is read.
        let [low, high] = format.words_of_run(begin).map(|word| reading.load(self.word(word)));
        low >> shift | (high << 1 << (63 - shift))
    }

    /// Reads a run of up to 8 bytes by one load.
    #[inline(always)]
    pub(super) fn run_at_once(self, begin: u64) -> u64 {
        // Bits of other stripes lie above the run.
        unaligned::load(&self.shards.words, self.first * size_of::<u64>() + (begin / 8) as usize) >> (begin % 8)
    }

    #[inline]
    pub(crate) fn slots(self, bucket: Bucket, reading: Reading) -> [u32; SLOTS] {
        self.format().slots(self.runs(self.format(), bucket, reading))
    }

    #[inline]
    pub(crate) fn prefetch(self, bucket: Bucket, level: CacheLevel) {
        prefetch(self.word(self.format().begin(bucket) / 64), level);
    }

    /// The slots of a bucket whose highest bit `is` sets in its runs. Exact under the bucket's lock, otherwise a hint.
    #[inline(always)]
    pub(super) fn matching(self, bucket: Bucket, reading: Reading, is: impl Fn(u64) -> u64) -> Matches {
        let [low, high] = self.runs(self.format(), bucket, reading);
        Matches { bucket, low: is(low), high: if self.format().has_two_runs() { is(high) } else { 0 } }
    }

    /// The lowest slot with room of two buckets, in the bucket where its position is lower: buckets fill from their
    /// lowest slot, so this is usually the emptier one, and fewer pairs become full. Exact under both locks, otherwise
    /// a hint. Selected without a branch, which would be unpredictable. Of the result of `room`, only the lowest slot
    /// need be exact.
    #[inline(always)]
    pub(super) fn lower(self, buckets: [Bucket; 2], reading: Reading, room: impl Fn(u64) -> u64) -> Option<Slot> {
        let format = self.format();
        if !unaligned::AVAILABLE || format.has_two_runs() {
            let matching = |bucket| self.matching(bucket, reading, &room);
            return matching(buckets[0]).or_lower(matching(buckets[1])).lowest(format);
        }
        // One load per bucket.
        let in_bucket = |bucket| {
            let begin = format.begin(bucket);
            (room(self.run_at_once(begin)), Slot { bucket, begin })
        };
        let (first, second) = (in_bucket(buckets[0]), in_bucket(buckets[1]));
        let (room, Slot { bucket, begin }) =
            if second.0.trailing_zeros() < first.0.trailing_zeros() { second } else { first };
        (room != 0).then(|| Slot { bucket, begin: begin + u64::from(format.lanes.lowest(room)) })
    }

    /// The content of a slot of a locked bucket.
    #[inline]
    pub(super) fn value(self, locked: &Locked<'_, impl Sized>, slot: Slot) -> u32 {
        locked.assert_holds(slot.bucket);
        let width = self.format().slot_bits;
        let (word, shift) = (slot.begin / 64, slot.begin % 64);
        let spilled = (shift + u64::from(width)).saturating_sub(64);
        let low = load_locked(self.word(word)) >> shift;
        let high = if spilled > 0 { load_locked(self.word(word + 1)) << (64 - shift) } else { 0 };
        (low | high) as u32 & u32::MAX >> (32 - width)
    }

    /// Stores the content of a slot of a locked bucket.
    #[inline]
    pub(super) fn put(self, locked: &Locked<'_, impl Sized>, slot: Slot, value: u32) {
        locked.assert_holds(slot.bucket);
        if self.is_in_two_words(slot) && locked.is_noted() {
            return self.write_noted(locked, slot, value);
        }
        self.write(slot, value);
    }

    #[inline(always)]
    fn is_in_two_words(self, slot: Slot) -> bool {
        (slot.begin % 64) as u32 + self.format().slot_bits > 64
    }

    /// Notes a store to two words before it, unless it is a part of a noted change.
    #[cold]
    #[inline(never)]
    fn write_noted(self, locked: &Locked<'_, impl Sized>, slot: Slot, value: u32) {
        if locked.has_intent(slot.bucket) {
            return self.write(slot, value);
        }
        locked.intend(slot.bucket, Intent::Write { slot: intent::number(self.format(), slot), holds: value });
        self.write(slot, value);
        locked.fulfil(slot.bucket);
    }

    /// Stores the tag of a slot of a locked bucket, in its lowest bits, by one store to one word.
    #[inline]
    pub(super) fn put_tag(self, locked: &Locked<'_, impl Sized>, slot: Slot, mask: u32, tag: u32) {
        locked.assert_holds(slot.bucket);
        let shift = slot.begin % 64;
        self.write_word(slot.begin / 64, u64::from(mask) << shift, u64::from(tag) << shift);
    }

    /// Clears a slot of a locked bucket.
    #[inline]
    pub(crate) fn clear(self, locked: &Locked<'_, impl Sized>, slot: Slot) {
        self.put(locked, slot, 0);
        reached(Step::Cleared);
    }

    /// Clears every slot while all stripes are locked. Does not touch words that are zero, so that unused memory stays
    /// unused. The upper word of a slot is cleared before the lower one, which has its tag, as in [`write`](Self::write)
    /// (model values_in_two_words_beside_a_clear_*).
    pub(crate) fn clear_all(self, _all: &LockedAll<'_>) {
        self.words().iter().rev().filter(|word| load_locked(word) != 0).for_each(|word| {
            // Release: see `write_word`.
            word.store(0, Ordering::Release);
            reached(Step::Cleared);
        });
    }

    /// Writes the one or two words of a slot. Between two stores, the slot may look like another fingerprint: at worst
    /// a false positive, because only its own bits change (H6).
    ///
    /// A tag lies in the lower word. That word is written first to an empty slot, whose tag 0 may look alive (model
    /// values_in_two_words_beside_an_insertion_*), and last to any other slot: a dead slot that is being cleared has
    /// lost its fingerprint before its tag looks alive (model dead_while_it_is_swept).
    #[inline]
    pub(super) fn write(self, slot: Slot, value: u32) {
        let width = self.format().slot_bits;
        let mask = u64::from(u32::MAX >> (32 - width));
        let (word, shift) = (slot.begin / 64, (slot.begin % 64) as u32);
        let lower = (word, mask << shift, u64::from(value) << shift);
        if shift + width > 64 {
            let spilled = 64 - shift;
            let upper = (word + 1, mask >> spilled, u64::from(value) >> spilled);
            let is_empty = |&(word, mask, _): &(u64, u64, u64)| load_locked(self.word(word)) & mask == 0;
            let fills = self.shards.plan.tag_bits > 0 && [lower, upper].iter().all(is_empty);
            let words = if fills { [lower, upper] } else { [upper, lower] };
            return words.into_iter().for_each(|(word, mask, bits)| self.write_word(word, mask, bits));
        }
        self.write_word(lower.0, lower.1, lower.2);
    }

    #[inline]
    pub(super) fn write_word(self, word: u64, mask: u64, bits: u64) {
        let word = self.word(word);
        // Release: pairs with the Acquire in `acquire`. A lookup that reads a cleared slot also reads the version that
        // was bumped before (H1, H2, models relocation_* and equal_fingerprint_*).
        word.store(load_locked(word) & !mask | bits, Ordering::Release);
        reached(Step::WordWritten);
    }
}

/// Reads a word for a lookup.
#[inline(always)]
pub(super) fn acquire(word: &AtomicU64) -> u64 {
    // Acquire: pairs with the Release in `BucketArray::write_word`, and keeps the second read of the version behind it.
    word.load(Ordering::Acquire)
}

/// How a writer reads words. Both are one instruction, except in models.
#[derive(Clone, Copy)]
pub(crate) enum Reading {
    /// Without locks, for hints that are checked again under them.
    Optimistic,
    /// Under the lock of the bucket's stripe.
    UnderLock,
}
pub(crate) use Reading::{Optimistic, UnderLock};

impl Reading {
    #[inline(always)]
    pub(super) fn load(self, word: &AtomicU64) -> u64 {
        match self {
            // Relaxed: a hint that is checked again under the locks (H4).
            Optimistic => word.load(Ordering::Relaxed),
            UnderLock => load_locked(word),
        }
    }
}

impl From<&LockedAll<'_>> for Reading {
    #[inline(always)]
    fn from(_: &LockedAll<'_>) -> Self {
        UnderLock
    }
}
