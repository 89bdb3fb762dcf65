//! The multiset that a filter must be, exactly: which classes it holds, and which one more it can take.
//!
//! Copies are placed in buckets of four as a filter does it, but by a search that leaves nothing out. A set of copies that
//! has any placement can be turned into one with a free slot for another copy if and only if that larger set has one,
//! whatever the placement: it is a matching of copies with slots, and the search is for an augmenting path. So "full" is
//! a property of the set, and the model answers for the filter, though it places copies otherwise.

use super::shape::{MAX_COPIES, Places};
use std::rc::Rc;

/// Slots of a bucket.
const SLOTS: u8 = 4;

/// A search under all the locks of a shard visits that many buckets at least.
const ALWAYS_VISITED: usize = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    Full,
    TooManyCopies,
}

#[derive(Clone)]
pub(super) struct Model {
    pub(super) places: Rc<Places>,
    /// Of each class: how many lie in its first and in its second bucket.
    copies: Vec<[u8; 2]>,
    /// Free slots of each bucket.
    free: Vec<u8>,
    pub(super) len: usize,
    /// What a search has reached: the bucket, and which class moves into it, from where in this list.
    reached: Vec<(usize, Option<(usize, usize)>)>,
    visited: Vec<bool>,
}

impl Model {
    pub(super) fn new(places: Rc<Places>) -> Self {
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

    pub(super) fn classes(&self) -> usize {
        self.copies.len()
    }

    pub(super) fn count(&self, class: usize) -> usize {
        let [first, second] = self.copies[class];
        usize::from(first + second)
    }

    /// Whether even a search that was cut short after searches in vain sees every bucket.
    pub(super) fn every_search_is_whole(&self) -> bool {
        self.free.len() <= ALWAYS_VISITED
    }

    pub(super) fn insert(&mut self, class: usize) -> Result<(), Refusal> {
        if self.count(class) == MAX_COPIES {
            return Err(Refusal::TooManyCopies);
        }
        let pair = self.places.pairs[class];
        let side = [0, 1].into_iter().find(|&side| self.free[pair[side]] > 0);
        let side = side.or_else(|| self.make_room(pair)).ok_or(Refusal::Full)?;
        self.free[pair[side]] -= 1;
        self.copies[class][side] += 1;
        self.len += 1;
        Ok(())
    }

    /// Whether there was a copy.
    pub(super) fn remove(&mut self, class: usize) -> bool {
        let Some(side) = [0, 1].into_iter().find(|&side| self.copies[class][side] > 0) else { return false };
        self.free[self.places.pairs[class][side]] += 1;
        self.copies[class][side] -= 1;
        self.len -= 1;
        true
    }

    pub(super) fn clear(&mut self) {
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
                    return Some(self.carry_out());
                }
            }
            at += 1;
        }
        None
    }

    /// Moves along the path to the bucket that was reached last; says from which of the two roots it led.
    fn carry_out(&mut self) -> usize {
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
