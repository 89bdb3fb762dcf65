//! The load at which a table refuses its first key, by slots per bucket and candidate buckets per key. It is simulated, with the
//! draws and the search of this crate, which itself has only 2 buckets of 4 slots.

use super::Plan;
use crate::record::{Record, Table as Rows};
use fastrand::Rng;
use rayon::prelude::*;

/// Slots per bucket, candidate buckets, and the load in the literature.
const SHAPES: [(usize, usize, &str); 5] =
    [(1, 2, "50 %"), (2, 2, "84 %"), (4, 2, "95 %"), (8, 2, "98 %"), (2, 4, "98 to 99 %")];

/// The largest number of buckets that a search visits, as in this crate.
const MOST_VISITED: usize = 2000;

pub(super) fn run(plan: &Plan, record: &mut Record) {
    let (log2, tables) = if plan.quick { (10, 4) } else { (16, 32) };
    record.heading("Claims");
    record.text(&format!(
        "For docs/claims.md. Load at the first refusal, by slots per bucket and choices of a bucket: {tables} tables of \
         2^{log2} buckets, fingerprints of 16 bits, breadth-first searches of up to {MOST_VISITED} buckets. Bits are \
         those that a fingerprint needs for a rate of 0.1 %, over the mean load."
    ));
    let mut rows = Rows::new(["slots, choices", "articles", "mean", "least", "bits per key at 0.1 %"]);
    for (slots, choices, said) in SHAPES {
        plan.step(&format!("occupancy, {slots} slots, {choices} choices"));
        let fill = |seed| Table::new(1 << log2, slots, choices).fill(&mut Rng::with_seed(seed));
        let loads: Vec<f64> = (0..tables).into_par_iter().map(fill).collect();
        let mean = loads.iter().sum::<f64>() / loads.len() as f64;
        let least = loads.iter().copied().fold(f64::INFINITY, f64::min);
        let bits = (1000.0 * (slots * choices) as f64 * mean).log2() / mean;
        rows.row([
            format!("{slots}, {choices}"),
            said.into(),
            format!("{:.1} %", mean * 100.0),
            format!("{:.1} %", least * 100.0),
            format!("{bits:.1}"),
        ]);
    }
    record.table(&rows);
}

struct Table {
    slots: usize,
    choices: usize,
    /// A power of two.
    buckets: usize,
    values: Vec<u16>,
    /// For each bucket the number of the last search that visited it.
    seen: Vec<u32>,
}

/// A bucket that a search has reached, the node that led to it, and the slot of that node whose fingerprint would move.
struct Node {
    bucket: usize,
    from: Option<(usize, usize)>,
}

impl Table {
    fn new(buckets: usize, slots: usize, choices: usize) -> Self {
        Table { slots, choices, buckets, values: vec![0; buckets * slots], seen: vec![0; buckets] }
    }

    /// Inserts random keys until one is refused, and returns the load.
    fn fill(mut self, random: &mut Rng) -> f64 {
        for key in 0.. {
            let (value, bucket) = (random.u16(1..), random.usize(..self.buckets));
            if !self.insert(value, bucket, key + 1) {
                return f64::from(key) / self.values.len() as f64;
            }
        }
        unreachable!("a table is full at last")
    }

    /// Returns the other candidate buckets of a fingerprint in this bucket.
    fn others(&self, value: u16, bucket: usize) -> impl Iterator<Item = usize> + use<> {
        let mask = self.buckets - 1;
        let product = u32::from(value).wrapping_mul(0x9e37_79b9);
        let sum = (product ^ (product >> 16)) as usize & mask | 1;
        let second = u32::from(value).wrapping_mul(0x85eb_ca6b) as usize >> 7 & mask | 2;
        let others = match self.choices {
            // The two add up to the sum of the fingerprint, as in this crate.
            2 => [sum.wrapping_sub(bucket) & mask; 3],
            // A bucket, and its XOR with one of two sums or with both: each leads to the three others.
            _ => [bucket ^ sum, bucket ^ second, bucket ^ sum ^ second],
        };
        others.into_iter().take(self.choices - 1)
    }

    fn empty(&self, bucket: usize) -> Option<usize> {
        let first = bucket * self.slots;
        (first..first + self.slots).find(|&slot| self.values[slot] == 0)
    }

    fn insert(&mut self, value: u16, bucket: usize, search: u32) -> bool {
        let mut nodes: Vec<Node> = Vec::new();
        for bucket in std::iter::once(bucket).chain(self.others(value, bucket)) {
            self.seen[bucket] = search;
            nodes.push(Node { bucket, from: None });
        }
        let mut next = 0;
        while next < nodes.len() {
            let bucket = nodes[next].bucket;
            if let Some(slot) = self.empty(bucket) {
                self.move_along(&nodes, next, slot, value);
                return true;
            }
            for slot in bucket * self.slots..(bucket + 1) * self.slots {
                for other in self.others(self.values[slot], bucket) {
                    if nodes.len() < MOST_VISITED && self.seen[other] != search {
                        self.seen[other] = search;
                        nodes.push(Node { bucket: other, from: Some((next, slot)) });
                    }
                }
            }
            next += 1;
        }
        false
    }

    /// Moves the fingerprints along the path to the empty slot, and stores the value in the slot that becomes free.
    fn move_along(&mut self, nodes: &[Node], last: usize, mut slot: usize, value: u16) {
        let mut node = &nodes[last];
        while let Some((from, moved)) = node.from {
            self.values[slot] = self.values[moved];
            slot = moved;
            node = &nodes[from];
        }
        self.values[slot] = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No fingerprint is lost, and each is in one of its buckets.
    #[test]
    fn tables_keep_what_they_take() {
        for (slots, choices, _) in SHAPES {
            let mut table = Table::new(64, slots, choices);
            let mut random = Rng::with_seed(1);
            let mut keys = Vec::new();
            for key in 0.. {
                let (value, bucket) = (random.u16(1..), random.usize(..64));
                if !table.insert(value, bucket, key + 1) {
                    break;
                }
                keys.push((value, bucket));
            }
            assert!(keys.len() > 16 * slots);
            assert_eq!(table.values.iter().filter(|&&value| value != 0).count(), keys.len());
            for (value, bucket) in keys {
                let holds = |bucket: usize| table.values[bucket * slots..][..slots].contains(&value);
                assert!(holds(bucket) || table.others(value, bucket).any(holds));
            }
        }
    }
}
