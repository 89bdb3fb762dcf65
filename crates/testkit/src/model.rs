//! The exact multiset that a filter must equal: the classes it holds, and whether it has room for another copy.
//!
//! Keys with the same fingerprint and the same two buckets are one *class*. A filter cannot tell them apart, so the model holds
//! copies of classes, not keys. It computes the place of a key by `format::place`, a second implementation of docs/format.md.
//!
//! The model places copies in buckets of four slots as a filter does, but by an exhaustive search. A placement is a matching of
//! copies with slots, and the search looks for an augmenting path. So, whatever the present placement, another copy can be stored
//! exactly if the larger set has any placement. "Full" is therefore a property of the set, and the model predicts it for the
//! filter, although it places copies elsewhere.

use crate::MAX_COPIES;
use crate::answer::Answer;
use crate::format::place;
use crate::written;
use concurrent_cuckoo_filter::{CuckooFilter, InsertError, SavedHasher};
use std::collections::HashMap;
use std::rc::Rc;

const SLOTS: u8 = 4;

/// The least number of buckets that a search under all locks of a shard visits.
const ALWAYS_VISITED: usize = 32;

impl Answer {
    /// The answer of an insertion of a copy.
    ///
    /// # Panics
    ///
    /// If the insertion failed for a reason that a filter with enough memory never has.
    pub fn of_insert(result: Result<(), InsertError>) -> Self {
        match result {
            Ok(()) => Answer::Stored,
            Err(InsertError::Full) => Answer::Full,
            Err(InsertError::TooManyCopies) => Answer::TooManyCopies,
            Err(other) => panic!("{other}"),
        }
    }

    /// The answer of a unique insertion.
    ///
    /// # Panics
    ///
    /// Like [`Answer::of_insert`], and if the insertion was refused for too many copies, which a unique insertion never is.
    pub fn of_unique(result: Result<bool, InsertError>) -> Self {
        match result {
            Ok(true) => Answer::Admitted,
            Ok(false) => Answer::Present,
            Err(InsertError::Full) => Answer::NotAdmitted,
            Err(other) => panic!("a unique insertion: {other}"),
        }
    }
}

/// The classes and buckets of the keys of a filter.
pub struct Places {
    /// The hash of each key.
    pub hashes: Vec<u64>,
    /// The number of the class of each key.
    pub classes: Vec<usize>,
    /// The two buckets of each class. Buckets of no key are not counted.
    pairs: Vec<[usize; 2]>,
    /// The classes of each bucket, and which of their two buckets it is.
    in_bucket: Vec<Vec<(usize, usize)>>,
}

impl Places {
    /// Computes the places of these keys in this filter from the description of the format.
    ///
    /// # Panics
    ///
    /// If these classes are not those of [`CuckooFilter::class_of`].
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
    /// The places of its keys.
    pub places: Rc<Places>,
    /// The number of copies of each class in its first and in its second bucket.
    copies: Vec<[u8; 2]>,
    free: Vec<u8>,
    /// The number of copies of all classes.
    pub len: usize,
    /// The buckets that a search has reached, each with the class that moves into it and the index of the bucket it comes from.
    reached: Vec<(usize, Option<(usize, usize)>)>,
    visited: Vec<bool>,
}

impl Model {
    /// Creates an empty multiset.
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

    /// Returns the number of classes of the keys.
    pub fn classes(&self) -> usize {
        self.copies.len()
    }

    /// Returns the number of copies of a class.
    pub fn count(&self, class: usize) -> u32 {
        self.copies[class].into_iter().map(u32::from).sum()
    }

    /// Applies the change that the filter reports.
    ///
    /// # Panics
    ///
    /// If the answer is wrong: it implies another count, a refusal where there is room, or a success where there is none.
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

    /// Returns whether every search visits all buckets, even one that was shortened after searches in vain.
    pub fn every_search_is_whole(&self) -> bool {
        self.free.len() <= ALWAYS_VISITED
    }

    /// Inserts a copy, unless the class has all its copies or there is no room.
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

    /// Removes a copy, and returns whether there was one.
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

    /// Moves copies until one of two full buckets has a free slot, and returns which.
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

    /// Moves copies along the path to the bucket that was reached last, and returns which of the two roots it starts at.
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
