//! The tables of the histories.

use crate::layout::{Plan, Tags};
use fastrand::Rng;

#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) plan: Plan,
    /// The number of distinct keys that it must not refuse; 0 if none is promised.
    pub(super) promised: usize,
    /// Whether tags are counts, so that a class has one copy.
    pub(super) counts: bool,
}

/// Bits, buckets, and the power of two of buckets per stripe: as few as fill whole words. Two buckets are one pair, four or more
/// have paths, and slots straddle words at 5, 12, 13, 17 and 24 bits.
pub(super) const TINY: [(u32, u32, u32); 18] = [
    (16, 2, 0),
    (16, 4, 0),
    (16, 6, 0),
    (16, 8, 0),
    (16, 8, 1),
    (32, 2, 0),
    (32, 4, 0),
    (8, 2, 1),
    (8, 4, 1),
    (8, 6, 1),
    (4, 4, 2),
    (4, 8, 2),
    (12, 4, 2),
    (12, 8, 2),
    (24, 4, 1),
    (13, 4, 4),
    (5, 18, 4),
    (17, 18, 4),
];

/// The same, and the bits reserved for doublings. Slots straddle words in the first table or in its children.
const GROWING: [(u32, u32, u32, u32); 6] =
    [(16, 2, 4, 2), (9, 8, 4, 1), (16, 32, 4, 2), (17, 32, 4, 3), (12, 8, 4, 2), (28, 8, 4, 3)];

/// Bits of a slot and of its tag, buckets, the power of two of buckets per stripe, and doublings. Slots of 12, 20 and 24 bits
/// straddle words. Tables of 20-bit slots with tags of 4 bits have 16-bit slots from the fourth doubling on, and those of 18 bits
/// with 2 from the second.
const TAGGED: [(u32, u32, u32, u32, u32); 14] = [
    (16, 2, 2, 0, 0),
    (16, 2, 2, 1, 0),
    (16, 3, 4, 0, 0),
    (16, 4, 8, 1, 0),
    (8, 2, 2, 1, 0),
    (8, 4, 4, 1, 0),
    (32, 2, 4, 0, 0),
    (12, 4, 4, 2, 0),
    (24, 8, 4, 1, 0),
    (16, 2, 2, 4, 2),
    (18, 2, 4, 4, 3),
    (20, 4, 2, 4, 5),
    (24, 8, 4, 4, 2),
    (12, 4, 34, 4, 2),
];

/// The capacity of the tables that a builder would plan.
const PROMISED: usize = 100;

impl Shape {
    pub(super) fn any(rng: &mut Rng) -> Self {
        if rng.u32(..8) == 0 {
            let width = rng.choice([8, 13, 16, 24]).expect("some");
            let plan = Plan::new(PROMISED, width, Some(8)).expect("a small table");
            assert_eq!(plan.shards, 1);
            return Shape { plan, promised: PROMISED, counts: false };
        }
        Shape::of(rng.choice(TINY).expect("some"))
    }

    pub(super) fn growing(rng: &mut Rng) -> Self {
        let (width, buckets, stripe_shift, reserve_bits) = rng.choice(GROWING).expect("some");
        let shape = Shape::of((width, buckets, stripe_shift));
        Shape { plan: Plan { reserve_bits, ..shape.plan }, ..shape }
    }

    /// A filter with tags. A quarter of them count, and a quarter count within windows.
    pub(super) fn tagged(rng: &mut Rng) -> Self {
        let (width, bits, buckets, stripe_shift, reserve_bits) = rng.choice(TAGGED).expect("some");
        let (counts, count_bits) = match rng.u32(..4) {
            0 => (true, 0),
            1 if bits > 2 => (true, rng.u32(1..=bits - 2)),
            _ => (false, 0),
        };
        let shape = Shape::of((width, buckets, stripe_shift));
        Shape { plan: Plan { reserve_bits, count_bits, ..shape.plan.with_tags(bits) }, counts, ..shape }
    }

    pub(super) fn of((width, buckets, stripe_shift): (u32, u32, u32)) -> Self {
        Shape { plan: Plan::one_shard(width, buckets, stripe_shift), promised: 0, counts: false }
    }

    /// The value with one epoch left, and the largest value.
    pub(super) fn values(self) -> (u32, u32) {
        (1 << self.plan.count_bits, tags_of(&self.plan).most)
    }

    /// Whether a slot may be in two words.
    pub(super) fn straddles(self) -> bool {
        let narrows = self.plan.grows() && self.plan.tag_bits == 0;
        narrows || 64 % self.plan.slot_bits != 0
    }
}

/// The tags of a filter with this plan; for bare slots, tags whose value is always 1.
pub(super) fn tags_of(plan: &Plan) -> Tags {
    Tags::new(&if plan.tag_bits == 0 { plan.with_tags(1) } else { *plan })
}

/// Slots side by side in words, as described in DESIGN.md, "The table", read and written by plain arithmetic.
#[derive(Debug)]
pub(super) struct Words {
    width: u32,
    pub(super) words: Vec<u64>,
}

impl Words {
    pub(super) fn new(plan: &Plan) -> Self {
        Words { width: plan.slot_bits, words: vec![0; plan.words as usize] }
    }

    /// The word and the bit position of each bit of a slot.
    fn places(&self, bucket: usize, slot: usize) -> impl Iterator<Item = (usize, usize)> + use<> {
        let first = (bucket * 4 + slot) * self.width as usize;
        (first..first + self.width as usize).map(|bit| (bit / 64, bit % 64))
    }

    fn get(&self, words: &[u64], bucket: usize, slot: usize) -> u32 {
        let bits = self.places(bucket, slot).enumerate();
        bits.map(|(at, (word, bit))| ((words[word] >> bit & 1) as u32) << at).sum()
    }

    pub(super) fn is_empty(&self, bucket: usize, slot: usize) -> bool {
        self.get(&self.words, bucket, slot) == 0
    }

    /// The bucket and the content of each slot in use, in a copy of this number of buckets.
    pub(super) fn in_use(&self, words: &[u64], buckets: u32) -> impl Iterator<Item = (usize, u32)> {
        let slots = (0..buckets as usize).flat_map(|bucket| (0..4).map(move |slot| (bucket, slot)));
        let contents = slots.map(|(bucket, slot)| (bucket, self.get(words, bucket, slot)));
        contents.filter(|&(_, content)| content != 0)
    }

    pub(super) fn fill(&mut self, bucket: usize, slot: usize, value: u32) {
        for (at, (word, bit)) in self.places(bucket, slot).enumerate() {
            self.words[word] |= u64::from(value >> at & 1) << bit;
        }
    }
}
