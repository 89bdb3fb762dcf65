//! The shapes of filters that are tried, and where keys lie in them.
//!
//! A filter is exact for *classes*: keys of equal fingerprint and equal bucket pair. Where a class lies is found from
//! the outside: all eight copies of one key in an empty filter of the same shape fill its two buckets, and the filter is
//! written as a snapshot, where they can be seen.

use crate::Filter;
use crate::format::fingerprints;
use crate::input::Input;
use concurrent_cuckoo_filter::{CuckooFilter, StableHashBuilder};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// Copies of one class that its two buckets hold.
pub(super) const MAX_COPIES: usize = 8;

/// Tables of 4 to 66 buckets.
const CAPACITIES: [usize; 11] = [0, 1, 3, 6, 10, 17, 33, 50, 64, 80, 200];
const TWO_SHARDS: usize = 260_000;

const KEYS: [usize; 4] = [6, 24, 64, 128];

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Shape {
    capacity: usize,
    bits: u32,
    stripes: usize,
    seed: u64,
    /// The keys are 0, 1, ... up to this.
    pub(super) keys: usize,
}

impl Shape {
    /// A large one only where there is time for it.
    pub(super) fn of(input: &mut Input, may_be_large: bool) -> Self {
        let capacity = input.pick(&CAPACITIES);
        // Narrow ones more often: there, keys meet in classes.
        let bits = input.byte();
        let bits = u32::from(if bits & 0x80 > 0 { bits % 5 } else { bits % 29 }) + 4;
        let rest = input.byte();
        let keys = KEYS[usize::from(rest >> 6)];
        let shape = Shape { capacity, bits, stripes: usize::from(rest % 8) + 1, seed: u64::from(rest >> 3 & 1), keys };
        let large = may_be_large && rest & 0x10 > 0;
        if large { Shape { capacity: TWO_SHARDS, bits: 4, keys: KEYS[1], ..shape } } else { shape }
    }

    pub(super) fn build(&self) -> Filter {
        let builder =
            CuckooFilter::<u64>::builder().capacity(self.capacity).fingerprint_bits(self.bits).stripes(self.stripes);
        builder.hasher(self.hasher()).build().expect("every shape is possible")
    }

    pub(super) fn hasher(&self) -> StableHashBuilder {
        StableHashBuilder::with_keys(self.seed, 0)
    }

    /// Found once for each shape.
    pub(super) fn places(&self) -> Rc<Places> {
        thread_local! {
            static KNOWN: RefCell<HashMap<Shape, Rc<Places>>> = RefCell::default();
        }
        // Stripes change nothing about where keys lie.
        let shape = Shape { stripes: 1, ..*self };
        KNOWN.with_borrow_mut(|known| known.entry(shape).or_insert_with(|| Rc::new(Places::of(&shape))).clone())
    }
}

/// Where the keys of a shape lie.
pub(super) struct Places {
    /// By key.
    pub(super) hashes: Vec<u64>,
    pub(super) classes: Vec<usize>,
    /// The two buckets of each class. Buckets that no key has are not counted.
    pub(super) pairs: Vec<[usize; 2]>,
    /// By bucket: the classes that have it, and as which of their two.
    pub(super) in_bucket: Vec<Vec<(usize, usize)>>,
}

impl Places {
    fn of(shape: &Shape) -> Self {
        let filter = shape.build();
        let hashes: Vec<u64> = (0..shape.keys as u64).map(|key| filter.hash(&key)).collect();
        let (mut classes, mut numbers, mut buckets) = (Vec::new(), HashMap::new(), HashMap::new());
        let (mut pairs, mut in_bucket) = (Vec::new(), Vec::new());
        let mut bytes = Vec::new();
        for &hash in &hashes {
            let report = filter.insert_batch_hash(&[hash; MAX_COPIES]);
            assert_eq!(report.inserted, MAX_COPIES);
            bytes.clear();
            filter.write_to(&mut bytes).expect("there is memory");
            assert_eq!(filter.remove_all_hash(hash), MAX_COPIES);
            let slots: Vec<_> = fingerprints(&bytes).expect("it was just written").collect();
            let (first, second) = (slots[0], slots[MAX_COPIES - 1]);
            assert_eq!(slots, [[first; 4], [second; 4]].concat(), "eight copies fill two buckets");
            assert!(first.0 == second.0 && first.1 != second.1 && first.2 == second.2, "in one shard");
            let class = *numbers.entry((first, second)).or_insert_with(|| {
                let number = pairs.len();
                pairs.push([first, second].map(|(shard, bucket, _)| {
                    let next = buckets.len();
                    *buckets.entry((shard, bucket)).or_insert(next)
                }));
                number
            });
            classes.push(class);
        }
        in_bucket.resize(buckets.len(), Vec::new());
        for (class, pair) in pairs.iter().enumerate() {
            for (side, &bucket) in pair.iter().enumerate() {
                in_bucket[bucket].push((class, side));
            }
        }
        Places { hashes, classes, pairs, in_bucket }
    }
}
