//! The multiset that a filter must be, exactly: which classes it holds, and which one more it can take.
//!
//! Keys with the same fingerprint and the same two buckets are one *class*. A filter cannot tell them apart, so the model holds copies
//! of classes, not keys. It computes the place of a key by `format::place`, a second implementation of docs/format.md.
//!
//! Copies are placed in buckets of four as a filter does it, but by a search that leaves nothing out. A set of copies that
//! has any placement can be turned into one with a free slot for another copy if and only if that larger set has one,
//! whatever the placement: it is a matching of copies with slots, and the search is for an augmenting path. So "full" is
//! a property of the set, and the model answers for the filter, though it places copies otherwise.

use crate::MAX_COPIES;
use crate::answer::Answer;
use crate::format::place;
use crate::written;
use concurrent_cuckoo_filter::{CuckooFilter, InsertError, SavedHasher};
use std::collections::HashMap;
use std::rc::Rc;

/// Slots of a bucket.
const SLOTS: u8 = 4;

/// A search under all the locks of a shard visits that many buckets at least.
const ALWAYS_VISITED: usize = 32;

impl Answer {
    /// Of an insertion of a copy.
    ///
    /// # Panics
    ///
    /// If it failed for another reason than those of a filter with room for its table.
    pub fn of_insert(result: Result<(), InsertError>) -> Self {
        match result {
            Ok(()) => Answer::Stored,
            Err(InsertError::Full) => Answer::Full,
            Err(InsertError::TooManyCopies) => Answer::TooManyCopies,
            Err(other) => panic!("{other}"),
        }
    }

    /// Of a unique insertion.
    ///
    /// # Panics
    ///
    /// The same, and if it was refused because of copies, which a unique insertion never is.
    pub fn of_unique(result: Result<bool, InsertError>) -> Self {
        match result {
            Ok(true) => Answer::Admitted,
            Ok(false) => Answer::Present,
            Err(InsertError::Full) => Answer::NotAdmitted,
            Err(other) => panic!("a unique insertion: {other}"),
        }
    }
}

/// Where the keys of a filter lie.
pub struct Places {
    /// By key.
    pub hashes: Vec<u64>,
    /// By key: the number of its class.
    pub classes: Vec<usize>,
    /// The two buckets of each class. Buckets that no key has are not counted.
    pairs: Vec<[usize; 2]>,
    /// By bucket: the classes that have it, and as which of their two.
    in_bucket: Vec<Vec<(usize, usize)>>,
}

impl Places {
    /// Of these keys in this filter, by the description of the format.
    ///
    /// # Panics
    ///
    /// If other keys are one class by that than by [`CuckooFilter::class_of`].
    pub fn of<S: SavedHasher>(filter: &CuckooFilter<u64, S>, keys: impl IntoIterator<Item = u64>) -> Self {
        let hashes: Vec<u64> = keys.into_iter().map(|key| filter.hash(&key)).collect();
        let snapshot = written(|to| filter.write_to(to));
        let (mut classes, mut numbers, mut buckets) = (Vec::new(), HashMap::new(), HashMap::new());
        let mut told = HashMap::new();
        let (mut pairs, mut in_bucket) = (Vec::new(), Vec::new());
        for &hash in &hashes {
            let mut place = place(&snapshot, hash).expect("it was just written");
            place.buckets.sort_unstable();
            let class = *numbers.entry(place).or_insert_with(|| {
                let number = pairs.len();
                pairs.push(place.buckets.map(|bucket| {
                    let next = buckets.len();
                    *buckets.entry((place.shard, bucket)).or_insert(next)
                }));
                number
            });
            assert_eq!(
                *told.entry(filter.hashed().class_of(&hash)).or_insert(class),
                class,
                "two classes are told as one"
            );
            classes.push(class);
        }
        assert_eq!(told.len(), pairs.len(), "one class is told as two");
        in_bucket.resize(buckets.len(), Vec::new());
        for (class, pair) in pairs.iter().enumerate() {
            for (side, &bucket) in pair.iter().enumerate() {
                in_bucket[bucket].push((class, side));
            }
        }
        Places { hashes, classes, pairs, in_bucket }
    }
}

/// The multiset.
#[derive(Clone)]
pub struct Model {
    /// Where its keys lie.
    pub places: Rc<Places>,
    /// Of each class: how many lie in its first and in its second bucket.
    copies: Vec<[u8; 2]>,
    /// Free slots of each bucket.
    free: Vec<u8>,
    /// Copies of all classes.
    pub len: usize,
    /// What a search has reached: the bucket, and which class moves into it, from where in this list.
    reached: Vec<(usize, Option<(usize, usize)>)>,
    visited: Vec<bool>,
}

impl Model {
    /// An empty one.
    pub fn new(places: Rc<Places>) -> Self {
        let (classes, buckets) = (places.pairs.len(), places.in_bucket.len());
        Model {
            copies: vec![[0; 2]; classes],
            free: vec![SLOTS; buckets],
            len: 0,
            reached: Vec::new(),
            visited: vec![false; buckets],
            places,
        }
    }

    /// How many classes the keys are.
    pub fn classes(&self) -> usize {
        self.copies.len()
    }

    /// Copies of a class.
    pub fn count(&self, class: usize) -> u32 {
        self.copies[class].into_iter().map(u32::from).sum()
    }

    /// Does to the multiset what the filter says that it did.
    ///
    /// # Panics
    ///
    /// If the answer is wrong: its count is another one, or there is room where it says that there is none, or none where
    /// it found some.
    pub fn follow(&mut self, class: usize, answer: Answer) {
        let before = self.count(class) as u8;
        let Some(after) = answer.after(before) else { panic!("{answer:?} of a class of {before} copies") };
        match answer {
            Answer::Stored | Answer::Admitted => {
                assert_eq!(self.insert(class), Ok(()), "there was no room: {answer:?}")
            }
            Answer::Full | Answer::NotAdmitted => {
                assert_eq!(self.insert(class), Err(InsertError::Full), "there was room")
            }
            _ => (after..before).for_each(|_| assert!(self.remove(class))),
        }
    }

    /// Whether even a search that was cut short after searches in vain sees every bucket.
    pub fn every_search_is_whole(&self) -> bool {
        self.free.len() <= ALWAYS_VISITED
    }

    /// Inserts a copy, if the class may have one more and there is room for it.
    pub fn insert(&mut self, class: usize) -> Result<(), InsertError> {
        if self.count(class) == MAX_COPIES.into() {
            return Err(InsertError::TooManyCopies);
        }
        let pair = self.places.pairs[class];
        let side = [0, 1].into_iter().find(|&side| self.free[pair[side]] > 0);
        let side = side.or_else(|| self.make_room(pair)).ok_or(InsertError::Full)?;
        self.free[pair[side]] -= 1;
        self.copies[class][side] += 1;
        self.len += 1;
        Ok(())
    }

    /// Removes a copy, and says whether there was one.
    pub fn remove(&mut self, class: usize) -> bool {
        let Some(side) = [0, 1].into_iter().find(|&side| self.copies[class][side] > 0) else { return false };
        self.free[self.places.pairs[class][side]] += 1;
        self.copies[class][side] -= 1;
        self.len -= 1;
        true
    }

    /// Removes everything.
    pub fn clear(&mut self) {
        self.copies.fill([0; 2]);
        self.free.fill(SLOTS);
        self.len = 0;
    }

    /// Moves copies until one of two full buckets has a free slot, and says which.
    fn make_room(&mut self, pair: [usize; 2]) -> Option<usize> {
        let Model { places, copies, free, reached, visited, .. } = self;
        reached.clear();
        visited.fill(false);
        for bucket in pair {
            visited[bucket] = true;
            reached.push((bucket, None));
        }
        let mut at = 0;
        while let Some(&(bucket, _)) = reached.get(at) {
            for &(class, side) in &places.in_bucket[bucket] {
                let other = places.pairs[class][1 - side];
                if copies[class][side] == 0 || visited[other] {
                    continue;
                }
                visited[other] = true;
                reached.push((other, Some((class, at))));
                if free[other] > 0 {
                    return Some(self.apply());
                }
            }
            at += 1;
        }
        None
    }

    /// Moves along the path to the bucket that was reached last; says from which of the two roots it led.
    fn apply(&mut self) -> usize {
        let mut at = self.reached.len() - 1;
        while let (bucket, Some((class, from))) = self.reached[at] {
            let to = usize::from(self.places.pairs[class][1] == bucket);
            self.copies[class][to] += 1;
            self.copies[class][1 - to] -= 1;
            self.free[bucket] -= 1;
            self.free[self.reached[from].0] += 1;
            at = from;
        }
        at
    }
}
