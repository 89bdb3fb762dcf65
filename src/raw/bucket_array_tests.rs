//! Every read and write of buckets, at every width, against plain slots.

use super::bucket_array::{BucketArray, Optimistic, UnderLock};
use super::locks::Stripes;
use super::probe::{BucketLayout, BucketLayoutKind, Runs, ThreeWords, Words, with_layout};
use super::shards::Shards;
use super::slots::{Bare, Slots};
use crate::layout::{Bucket, FINGERPRINT_BITS, Fingerprint, Format, Matches, Plan, SLOTS, Slot};
use crate::sys::memory::HugePages;
use crate::sys::steps::{Step, number_of, with_hook};
use crate::sys::sync::load_locked;
use core::sync::atomic::Ordering;
use proptest::prelude::*;
use std::cell::RefCell;
use std::rc::Rc;

/// The first buckets of a geometry, which alone makes buckets.
fn buckets(count: usize) -> Vec<Bucket> {
    let even = count.next_multiple_of(2);
    Plan::one_shard(16, even as u32, 4).all_buckets().take(count).collect()
}

fn mask(width: u32) -> u32 {
    u32::MAX >> (32 - width)
}

/// Fingerprints near the ends of the range and next to each other, where borrows and neighbours show.
fn fingerprint(width: u32, pick: usize) -> Fingerprint {
    let picks =
        [1, 2, 3, mask(width), mask(width) - 1, 1 << (width - 1), (1 << (width - 1)) - 1, 0x5555_5555 & mask(width)];
    Fingerprint::from_slot(picks[pick % picks.len()]).unwrap()
}

/// A shard, and its slots as plain numbers.
struct Twin {
    width: u32,
    format: Format,
    shards: Shards,
    buckets: Vec<Bucket>,
    slots: Vec<u32>,
}

impl Twin {
    /// With no words but those of its buckets and the spare one.
    fn new(width: u32, count: usize) -> Self {
        let words = (count as u32 * SLOTS as u32 * width).div_ceil(64);
        let plan = Plan { words, ..Plan::one_shard(width, count.next_multiple_of(2) as u32, 4) };
        Twin {
            width,
            format: Format::new(width),
            shards: Shards::new(&plan, HugePages::Unadvised.into()).unwrap(),
            buckets: buckets(count),
            slots: vec![0; count * SLOTS],
        }
    }

    fn bucket_array(&self) -> BucketArray<'_> {
        self.shards.at(0, Bare).bucket_array()
    }

    fn stripes(&self) -> Stripes<'_> {
        self.shards.at(0, Bare).stripes()
    }

    fn find(&self, value: u32, bucket: Bucket) -> Matches {
        let lanes = self.format.lanes;
        self.bucket_array().matching(bucket, UnderLock, |run| lanes.equal(run, lanes.repeat(value)))
    }

    fn lower_empty(&self, buckets: [Bucket; 2]) -> Option<Slot> {
        let lanes = self.format.lanes;
        self.bucket_array().lower(buckets, UnderLock, |run| Bare.lowest_room(lanes, run, ()))
    }

    fn slots_of(&self, bucket: usize) -> &[u32] {
        &self.slots[bucket * SLOTS..][..SLOTS]
    }

    /// The result of a lookup, by the layout of the filter and by the portable one.
    fn contains(&self, key: Fingerprint, first: Bucket, second: Bucket) -> bool {
        let kind = BucketLayoutKind::of(self.format.slot_bits);
        let found = with_layout!(kind, L => self.holds::<L>(key, first, second));
        let portable = if self.format.has_two_runs() {
            self.holds::<ThreeWords>(key, first, second)
        } else {
            self.holds::<Words>(key, first, second)
        };
        assert_eq!(found, portable, "width {}: the layouts agree", self.width);
        found
    }

    fn holds<L: BucketLayout>(&self, key: Fingerprint, first: Bucket, second: Bucket) -> bool {
        let lanes = self.format.lanes;
        let pattern = lanes.repeat(key.get());
        let holds = |bucket: Bucket| {
            let unit = if L::UNIT { 1 } else { self.format.bucket_bits };
            let (begin, run_bits) = (u64::from(bucket.get()) * unit, 2 * self.format.slot_bits);
            let runs = L::read_aligned(&self.shards.words, begin, run_bits);
            runs.hits(lanes.minus_low, pattern) & lanes.high != 0
        };
        holds(first) | holds(second)
    }

    fn held(&self, bucket: usize, value: u32) -> bool {
        self.slots_of(bucket).contains(&value)
    }

    /// Stores the fingerprint in the lowest empty slot. Returns whether there was one.
    fn store(&mut self, bucket: usize, key: Fingerprint) -> bool {
        let at = self.buckets[bucket];
        let locked = self.shards.at(0, Bare).stripes().lock_all();
        let found = self.find(0, at).lowest(&self.format);
        let expected = self.slots_of(bucket).iter().position(|&slot| slot == 0);
        assert_eq!(found, self.slot(bucket, expected), "the lowest empty slot");
        let other = (bucket + 1) % self.buckets.len();
        let lower = self.lower_empty([at, self.buckets[other]]);
        let expected_of_other = self.slots_of(other).iter().position(|&slot| slot == 0);
        let is_lower = expected_of_other.is_some_and(|of_other| expected.is_none_or(|expected| of_other < expected));
        let expected_lower = if is_lower { (other, expected_of_other) } else { (bucket, expected) };
        assert_eq!(lower, self.slot(expected_lower.0, expected_lower.1), "the lower empty slot of two buckets");
        let (Some(slot), Some(expected)) = (found, expected) else { return false };
        self.bucket_array().put(&locked, slot, key.get());
        drop(locked);
        self.slots[bucket * SLOTS + expected] = key.get();
        true
    }

    /// Clears the lowest copy of the fingerprint. Returns whether there was one.
    fn clear(&mut self, bucket: usize, key: Fingerprint) -> bool {
        let locked = self.shards.at(0, Bare).stripes().lock_all();
        let at = self.buckets[bucket];
        let found = self.find(key.get(), at).lowest(&self.format);
        let expected = self.slots_of(bucket).iter().position(|&slot| slot == key.get());
        assert_eq!(found, self.slot(bucket, expected), "the lowest copy");
        let (Some(slot), Some(expected)) = (found, expected) else { return false };
        self.bucket_array().clear(&locked, slot);
        drop(locked);
        self.slots[bucket * SLOTS + expected] = 0;
        true
    }

    fn slot(&self, bucket: usize, slot: Option<usize>) -> Option<Slot> {
        let begin = |slot| ((bucket * SLOTS + slot) * self.width as usize) as u64;
        slot.map(|slot| Slot { bucket: self.buckets[bucket], begin: begin(slot) })
    }

    /// Asserts that the bits of the shard are those of the slots and no others, also behind the last slot.
    fn check_words(&self) {
        let mut words = vec![0u64; self.bucket_array().words().len()];
        for (slot, &value) in self.slots.iter().enumerate() {
            let at = slot * self.width as usize;
            let bits = u128::from(value) << (at % 64);
            words[at / 64] |= bits as u64;
            if let Some(next) = words.get_mut(at / 64 + 1) {
                *next |= (bits >> 64) as u64;
            }
        }
        let found: Vec<u64> = self.bucket_array().words().iter().map(|word| Optimistic.load(word)).collect();
        assert_eq!(found, words, "width {}: {:?}", self.width, self.slots);
    }

    /// Asserts the results of all reads of a bucket, and of lookups in it and another one.
    fn check_reads(&self, bucket: usize, other: usize, key: Fingerprint) {
        let at = self.buckets[bucket];
        assert_eq!(self.bucket_array().slots(at, Optimistic), self.slots_of(bucket));
        let room = |run| Bare.lowest_room(self.format.lanes, run, ());
        assert_eq!(self.bucket_array().matching(at, Optimistic, room).any(), self.held(bucket, 0));
        self.check_matches(bucket, other, key);
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
    /// Asserts the writers' view of two buckets, and which of the two they select.
    fn check_matches(&self, bucket: usize, other: usize, key: Fingerprint) {
        for value in [0, key.get()] {
            let found = [bucket, other].map(|bucket| self.find(value, self.buckets[bucket]));
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

    fn nth(&self, slot: usize) -> Slot {
        self.slot(slot / SLOTS, Some(slot % SLOTS)).unwrap()
    }
}

/// Random operations: a bucket (at the ends of stripes and of the shard, or any), another one, a fingerprint, and
/// whether to store or to clear it.
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

#[test]
fn clearing_all_leaves_no_bit_and_writes_no_empty_word() {
    for width in FINGERPRINT_BITS {
        let mut twin = Twin::new(width, 35);
        for bucket in [0, 15, 16, 34] {
            while twin.store(bucket, fingerprint(width, 3)) {}
        }
        let used = twin.bucket_array().words().iter().filter(|word| Optimistic.load(word) != 0).count();
        let clear = || twin.bucket_array().clear_all(&twin.stripes().lock_all());
        assert_eq!(number_of(Step::Cleared, clear).0, used);
        twin.slots.fill(0);
        twin.check_words();
    }
}

#[test]
fn taken_slots_are_counted_and_nothing_may_stand_behind_the_last_bucket() {
    for width in FINGERPRINT_BITS {
        for count in [1, 2, 3, 16, 17] {
            let mut twin = Twin::new(width, count);
            let occupied = |twin: &Twin| twin.bucket_array().occupied(twin.buckets.iter().copied());
            for taken in 0..count * SLOTS {
                assert_eq!(occupied(&twin), Some(taken as u64), "width {width}, {count} buckets");
                assert!(twin.store(taken / SLOTS, fingerprint(width, taken)));
            }
            assert_eq!(occupied(&twin), Some((count * SLOTS) as u64));
            for bit in count * SLOTS * width as usize..twin.bucket_array().words().len() * 64 {
                let locked = twin.stripes().lock_all();
                let word = load_locked(&twin.bucket_array().words()[bit / 64]);
                twin.bucket_array().words()[bit / 64].store(word | 1 << (bit % 64), Ordering::Relaxed);
                assert_eq!(occupied(&twin), None, "width {width}, {count} buckets, bit {bit}");
                twin.bucket_array().words()[bit / 64].store(word, Ordering::Relaxed);
                drop(locked);
            }
        }
    }
}

/// Between the two stores of a slot in two words, lookups read everything else unchanged (H6).
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
                    twin.bucket_array().write(twin.nth(other), if other == slot { old } else { around });
                }
                let twin = Rc::new(twin);
                let seen = Rc::new(RefCell::new(Vec::new()));
                let (reader, noted) = (Rc::clone(&twin), Rc::clone(&seen));
                let look = move |_| {
                    for (bucket, &at) in reader.buckets.iter().enumerate() {
                        for (i, found) in reader.bucket_array().slots(at, Optimistic).into_iter().enumerate() {
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
                with_hook(look, || twin.bucket_array().write(twin.nth(slot), new));
                let seen = seen.take();
                assert_eq!(seen.last(), Some(&new));
                assert!(seen.len() <= 2);
                torn += seen.len() - 1;
            }
        }
        assert_eq!(torn > 0, ![4, 8, 16, 32].contains(&width), "width {width}: {torn} slots in two words");
    }
}
