//! The tables that histories are taken from.

use crate::layout::Plan;

/// The size of a table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) plan: Plan,
    /// The number of distinct keys that it must not refuse; 0 if nothing is promised.
    pub(super) promised: usize,
}

/// Bits, buckets, and buckets of a stripe as a power of two: as few as make whole words. Two buckets are one pair, four
/// and more have paths, and slots straddle words at 5, 12, 13, 17 and 24 bits.
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

/// The same, and the bits that are kept for doublings. Slots straddle words in the first table or in those that are split off.
const GROWING: [(u32, u32, u32, u32); 6] =
    [(16, 2, 4, 2), (9, 8, 4, 1), (16, 32, 4, 2), (17, 32, 4, 3), (12, 8, 4, 2), (28, 8, 4, 3)];

/// The capacity of the tables that a builder would make.
const PROMISED: usize = 100;

impl Shape {
    pub(super) fn any(rng: &mut fastrand::Rng) -> Self {
        if rng.u32(..8) == 0 {
            let width = rng.choice([8, 13, 16, 24]).expect("some");
            let plan = Plan::new(PROMISED, width, Some(8)).expect("a small table");
            assert_eq!(plan.shards, 1);
            return Shape { plan, promised: PROMISED };
        }
        Shape::of(rng.choice(TINY).expect("some"))
    }

    /// A filter that begins with one table.
    pub(super) fn growing(rng: &mut fastrand::Rng) -> Self {
        let (width, buckets, stripe_shift, reserve_bits) = rng.choice(GROWING).expect("some");
        let shape = Shape::of((width, buckets, stripe_shift));
        Shape { plan: Plan { reserve_bits, ..shape.plan }, ..shape }
    }

    pub(super) fn of((width, buckets, stripe_shift): (u32, u32, u32)) -> Self {
        Shape { plan: Plan::one_shard(width, buckets, stripe_shift), promised: 0 }
    }

    /// Whether a slot may lie in two words.
    pub(super) fn straddles(self) -> bool {
        self.plan.grows() || 64 % self.plan.slot_bits != 0
    }
}

/// Slots side by side in words, as DESIGN.md, "The table", describes them, read and written by plain arithmetic.
#[derive(Clone, Debug)]
pub(super) struct Words {
    width: u32,
    pub(super) words: Vec<u64>,
}

impl Words {
    pub(super) fn new(plan: &Plan) -> Self {
        Words { width: plan.slot_bits, words: vec![0; plan.words] }
    }

    pub(super) fn get(&self, bucket: usize, slot: usize) -> u32 {
        let bits = (0..self.width).map(|bit| {
            let at = (bucket * 4 + slot) * self.width as usize + bit as usize;
            u32::from(self.words[at / 64] >> (at % 64) & 1 == 1) << bit
        });
        bits.sum()
    }

    pub(super) fn set(&mut self, bucket: usize, slot: usize, value: u32) {
        for bit in 0..self.width {
            let at = (bucket * 4 + slot) * self.width as usize + bit as usize;
            let mask = 1 << (at % 64);
            let word = &mut self.words[at / 64];
            *word = if value >> bit & 1 == 1 { *word | mask } else { *word & !mask };
        }
    }
}
