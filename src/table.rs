//! The words of a shard: buckets of 4 slots side by side with no padding, as atomics.
//!
//! ```text
//! width 16:  word 0 = bucket 0                    word 1 = bucket 1
//! width 13:  word 0 = bucket 0, 12 bits of 1      word 1 = 40 bits of bucket 1, 24 of 2
//! width 24:  word 0 = slots 0, 1, 16 bits of 2    word 1 = 8 bits of slot 2, slot 3, 32 bits of bucket 1
//! ```

mod layout;

pub(crate) use layout::{Layout, Part, Run, TwoRuns, Word};

use crate::fail_point::{Step, reached};
use crate::geometry::{Bucket, Fingerprint};
use crate::lanes::{Lanes, SLOTS, taken_in_words};
use crate::prefetch::{Into, prefetch};
use crate::stripe::{Locked, LockedAll};
use crate::sync::{AtomicU64, load_locked, zeroed_words};
use core::sync::atomic::Ordering;

/// How the slots of one width lie in words.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Format {
    lanes: Lanes,
    width: u32,
    /// Four times the width.
    bucket_bits: u64,
    packing: Packing,
}

/// Which [`Layout`] the buckets have.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Packing {
    /// 16 bits: a bucket is a word.
    Word,
    /// 4 and 8 bits: a bucket is a part of a word.
    Part,
    /// Other widths up to 16: a bucket is one run in one or two words.
    Run,
    /// Above 16 bits: a bucket is two runs of two slots, each in one or two words.
    TwoRuns,
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

/// The words of a shard, and one more, always zero, so that every word has a next one.
pub(crate) struct Table {
    words: Box<[AtomicU64]>,
}

impl Format {
    pub(crate) fn new(width: u32) -> Self {
        let packing = match width {
            4 | 8 => Packing::Part,
            ..16 => Packing::Run,
            16 => Packing::Word,
            _ => Packing::TwoRuns,
        };
        Format { lanes: Lanes::new(width), width, bucket_bits: SLOTS as u64 * u64::from(width), packing }
    }

    /// The bit at which a bucket begins.
    #[inline]
    fn begin(&self, bucket: Bucket) -> u64 {
        u64::from(bucket.get()) * self.bucket_bits
    }

    /// Bits of a run: a whole bucket up to 16 bits a slot, half a bucket above.
    #[inline]
    fn run_bits(&self) -> u64 {
        if self.is_wide() { self.bucket_bits / 2 } else { self.bucket_bits }
    }

    #[inline]
    pub(crate) fn packing(&self) -> Packing {
        self.packing
    }

    /// The fingerprint in each slot of a run.
    #[inline(always)]
    pub(crate) fn pattern(&self, fingerprint: Fingerprint) -> u64 {
        self.lanes.repeat(fingerprint.get())
    }

    #[inline]
    fn is_wide(&self) -> bool {
        matches!(self.packing, Packing::TwoRuns)
    }
}

impl Table {
    /// `None` when there is no memory.
    pub(crate) fn new(words: usize) -> Option<Self> {
        Some(Table { words: zeroed_words(words + 1)? })
    }

    /// A table with these words.
    pub(crate) fn of_words(words: impl ExactSizeIterator<Item = u64>) -> Option<Self> {
        let table = Table::new(words.len())?;
        table.fill_with(words);
        Some(table)
    }

    /// Writes the words of a table that nobody else knows yet.
    pub(crate) fn fill_with(&self, words: impl Iterator<Item = u64>) {
        for (word, to) in words.zip(&self.words) {
            // Relaxed: whoever makes the table known to other threads orders this.
            to.store(word, Ordering::Relaxed);
        }
    }

    /// Copies the words, as many as `words` has. All stripes must be locked.
    pub(crate) fn copy_to(&self, _all: &LockedAll<'_>, words: &mut [u64]) {
        for (word, to) in self.words.iter().zip(words) {
            *to = load_locked(word);
        }
    }

    /// Counts the slots that are taken, in a table of so many buckets that nobody writes. `None` if anything stands
    /// behind the last bucket.
    pub(crate) fn occupied(&self, format: &Format, buckets: impl ExactSizeIterator<Item = Bucket>) -> Option<u64> {
        let end = buckets.len() as u64 * format.bucket_bits;
        let mut behind = self.words[(end / 64) as usize..].iter().map(|word| Beside.load(word));
        if behind.next().is_some_and(|word| word >> (end % 64) != 0) || behind.any(|word| word != 0) {
            return None;
        }
        if 64 % format.width == 0 {
            return Some(taken_in_words(format.width, self.words.iter().map(|word| Beside.load(word))));
        }
        let empty = |begin| format.lanes.equal(self.run(begin, Beside), format.lanes.repeat(0));
        let taken = buckets.map(|bucket| {
            let begin = format.begin(bucket);
            let high = if format.is_wide() { empty(begin + format.run_bits()) } else { 0 };
            SLOTS as u64 - u64::from(format.lanes.count([empty(begin), high, 0, 0]))
        });
        Some(taken.sum())
    }

    pub(crate) fn bytes_of(words: usize) -> Option<usize> {
        words.checked_add(1)?.checked_mul(size_of::<AtomicU64>())
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.words)
    }

    /// The words from the one in which this bit is, and the place of the bit in the first of them.
    #[inline(always)]
    fn words_at<const N: usize>(&self, begin: u64) -> (&[AtomicU64; N], u32) {
        let words = self.words[(begin / 64) as usize..].first_chunk();
        (words.expect("a word to spare at the end"), (begin % 64) as u32)
    }

    /// The run that begins at this bit, with anything above it, of a locked bucket: reads no word that may be another
    /// stripe's.
    #[inline(always)]
    fn run_locked(&self, begin: u64, bits: u64) -> u64 {
        let shift = begin % 64;
        let low = load_locked(&self.words[(begin / 64) as usize]);
        // Where the run ends in the same word, this reads that word again, and what it adds stands above the run.
        let high = load_locked(&self.words[((begin + bits - 1) / 64) as usize]);
        low >> shift | (high << 1 << (63 - shift))
    }

    /// Whether the bucket has an empty slot.
    #[inline]
    pub(crate) fn has_room(&self, format: &Format, bucket: Bucket, reading: impl Reading) -> bool {
        if let Packing::Word = format.packing {
            return format.lanes.any(reading.load(&self.words[bucket.index()]), 0);
        }
        let begin = format.begin(bucket);
        let any = |begin| format.lanes.any(self.run(begin, reading), 0);
        any(begin) || format.is_wide() && any(begin + format.run_bits())
    }

    /// The four slots of the bucket.
    #[inline]
    pub(crate) fn slots(&self, format: &Format, bucket: Bucket, reading: impl Reading) -> [u32; SLOTS] {
        let (begin, width) = (format.begin(bucket), format.width);
        let mask = u64::from(u32::MAX >> (32 - width));
        let slot = |run: u64, number: u32| (run >> (number * width) & mask) as u32;
        let low = self.run(begin, reading);
        if format.is_wide() {
            let high = self.run(begin + format.run_bits(), reading);
            [slot(low, 0), slot(low, 1), slot(high, 0), slot(high, 1)]
        } else {
            [slot(low, 0), slot(low, 1), slot(low, 2), slot(low, 3)]
        }
    }

    /// The run that begins at this bit, with anything above it.
    #[inline(always)]
    fn run(&self, begin: u64, reading: impl Reading) -> u64 {
        let (words, shift) = self.words_at(begin);
        run(words, shift, |word| reading.load(word))
    }

    /// Begins to fetch all buckets.
    pub(crate) fn prefetch_all(&self) {
        // A line is 8 words on most machines; on others this asks for some lines twice, or for every other one.
        self.words.chunks(8).for_each(|line| prefetch(&line[0], Into::L2));
    }

    /// Begins to fetch the bucket, for a writer.
    #[inline]
    pub(crate) fn prefetch(&self, format: &Format, bucket: Bucket, into: Into) {
        if let Some(word) = self.words.get((format.begin(bucket) / 64) as usize) {
            prefetch(word, into);
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
        if let Packing::Word = format.packing {
            let run = load_locked(&self.words[bucket.index()]);
            return Matches { bucket, low: format.lanes.equal(run, pattern), high: 0 };
        }
        let (begin, bits) = (format.begin(bucket), format.run_bits());
        let equal = |begin| format.lanes.equal(self.run_locked(begin, bits), pattern);
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

    /// Empties every slot. All stripes must be locked. Words that hold nothing are not written, so memory that was
    /// never used stays unused.
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

/// The run that begins at this bit of the first word, with anything above it.
#[inline(always)]
fn run(words: &[AtomicU64; 2], shift: u32, load: impl Fn(&AtomicU64) -> u64) -> u64 {
    let [low, high] = words.each_ref().map(|word| u128::from(load(word)));
    ((high << 64 | low) >> shift) as u64
}

/// A look-up's read of a word.
#[inline]
fn acquire(word: &AtomicU64) -> u64 {
    // Acquire: pairs with the Release in `Table::write_word`, and keeps the second read of the version after it.
    word.load(Ordering::Acquire)
}

/// How a search for a path reads.
pub(crate) trait Reading: Copy {
    /// Whether the shard is in the cache of the reader.
    const NEAR: bool;

    fn load(self, word: &AtomicU64) -> u64;
}

/// Beside writers: a hint, checked again under locks.
#[derive(Clone, Copy)]
pub(crate) struct Beside;

impl Reading for Beside {
    const NEAR: bool = false;

    #[inline(always)]
    fn load(self, word: &AtomicU64) -> u64 {
        // Relaxed: a hint that is checked again under the locks (H4).
        word.load(Ordering::Relaxed)
    }
}

/// With all of the shard locked.
impl Reading for &LockedAll<'_> {
    const NEAR: bool = true;

    #[inline(always)]
    fn load(self, word: &AtomicU64) -> u64 {
        load_locked(word)
    }
}

#[cfg(all(test, not(any(cuckoo_loom, cuckoo_shuttle))))]
mod tests {
    use super::*;
    use crate::fail_point::with_hook;
    use crate::geometry::{FINGERPRINT_BITS, Geometry, Plan};
    use crate::stripe::Stripes;
    use proptest::prelude::*;
    use std::cell::RefCell;
    use std::collections::BTreeSet;
    use std::rc::Rc;

    /// The buckets 0 .. `count`, drawn from a geometry: nothing else makes buckets.
    fn buckets(count: usize) -> Vec<Bucket> {
        let even = count.next_multiple_of(2);
        let plan = Plan { shards: 1, buckets: even as u32, width: 16, stripe_shift: 4, words: 0, stripes: 0 };
        let (geometry, mut drawn) = (Geometry::new(&plan), BTreeSet::new());
        for hash in 0.. {
            drawn.insert(geometry.locate(hash).1.first);
            if drawn.len() == even {
                break;
            }
        }
        drawn.into_iter().take(count).collect()
    }

    fn mask(width: u32) -> u32 {
        u32::MAX >> (32 - width)
    }

    /// Fingerprints near the ends of the range and next to each other, where borrows and neighbours show.
    fn fingerprint(width: u32, pick: usize) -> Fingerprint {
        let picks = [
            1,
            2,
            3,
            mask(width),
            mask(width) - 1,
            1 << (width - 1),
            (1 << (width - 1)) - 1,
            0x5555_5555 & mask(width),
        ];
        Fingerprint::from_slot(picks[pick % picks.len()]).unwrap()
    }

    /// A table with its stripes, and beside it the slots as plain numbers.
    struct Twin {
        width: u32,
        format: Format,
        table: Table,
        stripes: Stripes,
        buckets: Vec<Bucket>,
        slots: Vec<u32>,
    }

    impl Twin {
        /// With no word to spare but the table's own.
        fn new(width: u32, count: usize) -> Self {
            let words = (count * SLOTS * width as usize).div_ceil(64);
            Twin {
                width,
                format: Format::new(width),
                table: Table::new(words).unwrap(),
                stripes: Stripes::new(count.div_ceil(16), 4).unwrap(),
                buckets: buckets(count),
                slots: vec![0; count * SLOTS],
            }
        }

        fn slots_of(&self, bucket: usize) -> &[u32] {
            &self.slots[bucket * SLOTS..][..SLOTS]
        }

        /// What a look-up is told, by the way for words where there is one and by the way for all widths.
        fn contains(&self, key: Fingerprint, first: Bucket, second: Bucket) -> bool {
            match self.format.packing() {
                Packing::TwoRuns => self.holds::<TwoRuns>(key, first, second),
                Packing::Run => self.holds::<Run>(key, first, second),
                Packing::Word => {
                    let found = self.holds::<Word>(key, first, second);
                    assert_eq!(self.holds::<Run>(key, first, second), found);
                    found
                }
                Packing::Part => {
                    let found = self.holds::<Part>(key, first, second);
                    assert_eq!(self.holds::<Run>(key, first, second), found);
                    found
                }
            }
        }

        fn holds<L: Layout>(&self, key: Fingerprint, first: Bucket, second: Bucket) -> bool {
            let pattern = self.format.pattern(key);
            let holds = |bucket| L::holds(L::place(&self.table, &self.format, bucket), &self.format, pattern);
            holds(first) | holds(second)
        }

        fn held(&self, bucket: usize, value: u32) -> bool {
            self.slots_of(bucket).contains(&value)
        }

        /// Puts the fingerprint into the lowest empty slot; says whether there was one.
        fn store(&mut self, bucket: usize, key: Fingerprint) -> bool {
            let locked = self.stripes.lock_all();
            let at = self.buckets[bucket];
            let found = self.table.find_empty(&locked, &self.format, at).lowest(&self.format);
            let expected = self.slots_of(bucket).iter().position(|&slot| slot == 0);
            assert_eq!(found, self.slot(bucket, expected), "the lowest empty slot");
            let (Some(slot), Some(expected)) = (found, expected) else { return false };
            self.table.store(&locked, &self.format, slot, key);
            self.slots[bucket * SLOTS + expected] = key.get();
            true
        }

        /// Takes the lowest copy of the fingerprint out; says whether there was one.
        fn clear(&mut self, bucket: usize, key: Fingerprint) -> bool {
            let locked = self.stripes.lock_all();
            let at = self.buckets[bucket];
            let found = self.table.find(&locked, &self.format, key, at).lowest(&self.format);
            let expected = self.slots_of(bucket).iter().position(|&slot| slot == key.get());
            assert_eq!(found, self.slot(bucket, expected), "the lowest copy");
            let (Some(slot), Some(expected)) = (found, expected) else { return false };
            self.table.clear(&locked, &self.format, slot);
            self.slots[bucket * SLOTS + expected] = 0;
            true
        }

        fn slot(&self, bucket: usize, slot: Option<usize>) -> Option<Slot> {
            let begin = |slot| ((bucket * SLOTS + slot) * self.width as usize) as u64;
            slot.map(|slot| Slot { bucket: self.buckets[bucket], begin: begin(slot) })
        }

        /// The bits of the table are those of the slots, one after the other, and nothing else: no neighbour was
        /// touched, and nothing stands above the last slot.
        fn check_words(&self) {
            let mut words = vec![0u64; self.table.words.len()];
            for (slot, &value) in self.slots.iter().enumerate() {
                for bit in (0..self.width as usize).filter(|bit| value >> bit & 1 == 1) {
                    let at = slot * self.width as usize + bit;
                    words[at / 64] |= 1 << (at % 64);
                }
            }
            let found: Vec<u64> = self.table.words.iter().map(|word| Beside.load(word)).collect();
            assert_eq!(found, words, "width {}: {:?}", self.width, self.slots);
        }

        /// All reads of a bucket, and look-ups in it and another one.
        fn check_reads(&self, bucket: usize, other: usize, key: Fingerprint) {
            let locked = self.stripes.lock_all();
            let at = self.buckets[bucket];
            assert_eq!(self.table.slots(&self.format, at, Beside), self.slots_of(bucket));
            assert_eq!(self.table.has_room(&self.format, at, Beside), self.held(bucket, 0));
            self.check_matches(&locked, bucket, other, key);
            let expected = self.held(bucket, key.get()) || self.held(other, key.get());
            for (first, second) in [(bucket, other), (other, bucket)] {
                let found = self.contains(key, self.buckets[first], self.buckets[second]);
                assert_eq!(found, expected, "width {}: {key:?} in {first} and {second}: {:?}", self.width, self.slots);
            }
            let alone = self.contains(key, at, at);
            assert_eq!(alone, self.held(bucket, key.get()), "coinciding candidates");
        }
    }

    impl Twin {
        /// What writers see of a bucket and another one, and which of the two they take.
        fn check_matches(&self, locked: &LockedAll, bucket: usize, other: usize, key: Fingerprint) {
            for value in [0, key.get()] {
                let found = [bucket, other]
                    .map(|bucket| self.table.find_value(locked, &self.format, value, self.buckets[bucket]));
                let held = [bucket, other].map(|bucket| {
                    let slots = self.slots_of(bucket).iter().enumerate();
                    slots.filter(|&(_, &slot)| slot == value).map(|(slot, _)| slot).collect::<Vec<_>>()
                });
                let ([one, two], [in_one, in_two]) = (found, &held);
                let lowest = |matches: Matches| matches.lowest(&self.format);
                let first = |bucket: usize, held: &[usize]| self.slot(bucket, held.first().copied());
                assert_eq!((one.any(), two.any()), (!in_one.is_empty(), !in_two.is_empty()));
                assert_eq!(one.count(two, &self.format) as usize, in_one.len() + in_two.len());
                assert_eq!(one.count(two.none(), &self.format) as usize, in_one.len());
                assert_eq!((lowest(one), lowest(two)), (first(bucket, in_one), first(other, in_two)));
                assert_eq!(lowest(one.none()), None);
                assert_eq!(lowest(one.or(two)), first(bucket, in_one).or(first(other, in_two)));
                let lower = match (in_one.first(), in_two.first()) {
                    (Some(here), Some(there)) if there < here => first(other, in_two),
                    (None, _) => first(other, in_two),
                    _ => first(bucket, in_one),
                };
                assert_eq!(lowest(one.or_lower(two)), lower);
            }
        }

        /// The slot with this number in the whole table.
        fn nth(&self, slot: usize) -> Slot {
            self.slot(slot / SLOTS, Some(slot % SLOTS)).unwrap()
        }
    }

    /// An operation by lot: a bucket (one of the ends of stripes and of the table, or any), another one, a fingerprint,
    /// whether to store or to clear.
    fn operations() -> impl Strategy<Value = Vec<(usize, usize, usize, bool)>> {
        let bucket = || prop_oneof![prop::sample::select(vec![0, 15, 16, 31, 32, usize::MAX]), 0usize..40];
        prop::collection::vec((bucket(), bucket(), 0usize..8, prop::bool::weighted(0.6)), 1..150)
    }

    proptest! {
        #[test]
        fn every_width_agrees_with_a_list_of_slots(count in 1usize..=40, operations in operations()) {
            for width in FINGERPRINT_BITS {
                let mut twin = Twin::new(width, count);
                for &(bucket, other, pick, stores) in &operations {
                    let (bucket, other) = (bucket.min(count - 1), other.min(count - 1));
                    let key = fingerprint(width, pick);
                    if stores {
                        twin.store(bucket, key);
                    } else {
                        twin.clear(bucket, key);
                    }
                    twin.check_words();
                    twin.check_reads(bucket, other, key);
                    twin.check_reads(other, bucket, fingerprint(width, pick + 1));
                }
                for bucket in 0..count {
                    for pick in 0..8 {
                        twin.check_reads(bucket, count - 1 - bucket, fingerprint(width, pick));
                    }
                }
            }
        }
    }

    /// Fills a table to its last slot with one value, beside buckets full of another, and empties it again.
    #[test]
    fn every_slot_is_filled_and_emptied_alone() {
        for width in FINGERPRINT_BITS {
            for count in [1, 2, 3, 16, 17] {
                for [key, other] in [[mask(width), 1], [1, mask(width)], [mask(width) - 1, mask(width)]] {
                    let [key, other] = [key, other].map(|value| Fingerprint::from_slot(value).unwrap());
                    for bucket in 0..count {
                        let mut twin = Twin::new(width, count);
                        for neighbour in (0..count).filter(|&neighbour| neighbour != bucket) {
                            while twin.store(neighbour, other) {}
                        }
                        for _ in 0..SLOTS {
                            twin.check_reads(bucket, count - 1, key);
                            assert!(twin.store(bucket, key));
                            twin.check_words();
                        }
                        assert!(!twin.store(bucket, key));
                        for _ in 0..SLOTS {
                            twin.check_reads(bucket, count - 1, key);
                            assert!(twin.clear(bucket, key));
                            twin.check_words();
                        }
                        assert!(!twin.clear(bucket, key));
                    }
                }
            }
        }
    }

    #[test]
    fn clearing_all_leaves_no_bit_and_writes_no_empty_word() {
        for width in FINGERPRINT_BITS {
            let mut twin = Twin::new(width, 35);
            for bucket in [0, 15, 16, 34] {
                while twin.store(bucket, fingerprint(width, 3)) {}
            }
            let used = twin.table.words.iter().filter(|word| Beside.load(word) != 0).count();
            let cleared = Rc::new(RefCell::new(0));
            let noted = Rc::clone(&cleared);
            with_hook(
                move |step| *noted.borrow_mut() += usize::from(step == Step::Cleared),
                || twin.table.clear_all(&twin.stripes.lock_all()),
            );
            assert_eq!(cleared.take(), used);
            twin.slots.fill(0);
            twin.check_words();
        }
    }

    #[test]
    fn taken_slots_are_counted_and_nothing_may_stand_behind_the_last_bucket() {
        for width in FINGERPRINT_BITS {
            for count in [1, 2, 3, 16, 17] {
                let mut twin = Twin::new(width, count);
                let occupied = |twin: &Twin| twin.table.occupied(&twin.format, twin.buckets.iter().copied());
                for taken in 0..count * SLOTS {
                    assert_eq!(occupied(&twin), Some(taken as u64), "width {width}, {count} buckets");
                    assert!(twin.store(taken / SLOTS, fingerprint(width, taken)));
                }
                assert_eq!(occupied(&twin), Some((count * SLOTS) as u64));
                for bit in count * SLOTS * width as usize..twin.table.words.len() * 64 {
                    let locked = twin.stripes.lock_all();
                    let word = load_locked(&twin.table.words[bit / 64]);
                    twin.table.words[bit / 64].store(word | 1 << (bit % 64), Ordering::Relaxed);
                    assert_eq!(occupied(&twin), None, "width {width}, {count} buckets, bit {bit}");
                    twin.table.words[bit / 64].store(word, Ordering::Relaxed);
                    drop(locked);
                }
            }
        }
    }

    /// The check of debug builds, on which the tests of the protocol rely.
    #[test]
    fn a_word_is_not_written_without_its_stripe() {
        let twin = Twin::new(16, 48);
        let key = fingerprint(16, 0);
        for locked in [0, 15, 16, 31, 32] {
            for bucket in [0, 15, 16, 31, 32] {
                let locked_pair = twin.stripes.lock_pair(twin.buckets[locked], twin.buckets[locked]);
                let write = || twin.table.store(&locked_pair, &twin.format, twin.nth(bucket * SLOTS), key);
                let written = std::panic::catch_unwind(std::panic::AssertUnwindSafe(write)).is_ok();
                assert_eq!(written, locked / 16 == bucket / 16, "bucket {bucket} under the lock of bucket {locked}");
            }
        }
    }

    /// Between the two stores of a slot that straddles words, look-ups find everything else as it was (H6).
    #[test]
    fn only_the_slot_in_flux_can_be_torn() {
        for width in FINGERPRINT_BITS {
            let count = 17;
            let mut torn = 0;
            for slot in 0..count * SLOTS {
                for (old, new) in [(0, mask(width)), (mask(width), 0), (0, 1 << (width - 1)), (1 << (width - 1), 0)] {
                    let twin = Twin::new(width, count);
                    let around = 0x2aaa_aaaa & mask(width);
                    for other in 0..count * SLOTS {
                        twin.table.write(&twin.format, twin.nth(other), if other == slot { old } else { around });
                    }
                    let twin = Rc::new(twin);
                    let seen = Rc::new(RefCell::new(Vec::new()));
                    let (reader, noted) = (Rc::clone(&twin), Rc::clone(&seen));
                    let look = move |_| {
                        for (bucket, &at) in reader.buckets.iter().enumerate() {
                            for (i, found) in reader.table.slots(&reader.format, at, Beside).into_iter().enumerate() {
                                if bucket * SLOTS + i == slot {
                                    noted.borrow_mut().push(found);
                                } else {
                                    assert_eq!(found, around, "width {width}: slot {slot} is written");
                                }
                            }
                            let key = Fingerprint::from_slot(around).unwrap();
                            assert!(reader.contains(key, at, at));
                        }
                    };
                    with_hook(look, || twin.table.write(&twin.format, twin.nth(slot), new));
                    let seen = seen.take();
                    assert_eq!(seen.last(), Some(&new));
                    assert!(seen.len() <= 2);
                    torn += seen.len() - 1;
                }
            }
            assert_eq!(torn > 0, ![4, 8, 16, 32].contains(&width), "width {width}: {torn} slots in two words");
        }
    }
}
