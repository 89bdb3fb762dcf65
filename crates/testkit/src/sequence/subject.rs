//! A filter and its model, whose answers are compared after each operation.

use super::Filter;
use super::operation::Many;
use super::setup::Setup;
use crate::Model;
use crate::operations::{self, Single, single};
use concurrent_cuckoo_filter::{BulkReport, InsertError, RemoveReport, StableHashBuilder};

type Ways = operations::Ways<StableHashBuilder>;

pub(super) struct Subject {
    pub(super) setup: Setup,
    pub(super) filter: Filter,
    pub(super) model: Model,
    /// The number of refusals since the filter was built or read.
    pub(super) refused: usize,
}

impl Subject {
    pub(super) fn new(setup: Setup) -> Self {
        Subject { filter: setup.build(), model: Model::new(setup.places()), refused: 0, setup }
    }

    pub(super) fn one(&mut self, what: Single, number: usize, by_hash: bool) {
        let answer = single(&self.filter, what, number as u64, by_hash);
        self.model.follow(self.model.places.classes[number], answer);
        self.refused += usize::from(answer.is_refusal());
    }

    /// Runs an operation on many keys; lookups use several threads only if `on_threads` is set.
    pub(super) fn many(&mut self, what: Many, numbers: &[usize], on_threads: bool) {
        let keys: Vec<u64> = numbers.iter().map(|&number| number as u64).collect();
        match what {
            Many::Insert(way) => {
                self.inserted(numbers, &Ways::INSERTS[way % Ways::INSERTS.len()].1(&self.filter, &keys))
            }
            Many::Remove(way) => {
                self.removed(numbers, &Ways::REMOVES[way % Ways::REMOVES.len()].1(&self.filter, &keys))
            }
            Many::Contains(way) => {
                let mut found = vec![false; keys.len()];
                Ways::LOOKUPS[way % if on_threads { 8 } else { 4 }].1(&self.filter, &keys, &mut found);
                self.found(numbers, &found);
            }
        }
    }

    fn found(&self, numbers: &[usize], found: &[bool]) {
        let Model { ref places, .. } = self.model;
        for (&number, &found) in numbers.iter().zip(found) {
            assert_eq!(found, self.model.count(places.classes[number]) > 0, "key {number}");
        }
    }

    /// The insertion of the first key that is refused as full has searched everything. Later refusals may follow shortened
    /// searches, unless every search visits all buckets.
    fn inserted(&mut self, numbers: &[usize], report: &BulkReport) {
        let mut refused = report.refused.iter().peekable();
        let mut every_search_is_whole = true;
        for (index, &number) in numbers.iter().enumerate() {
            let class = self.model.places.classes[number];
            let refused = refused.next_if(|refusal| refusal.index == index);
            let result = refused.map_or(Ok(()), |refusal| Err(refusal.error));
            let possible = self.model.insert(class);
            if result == Err(InsertError::Full) && possible.is_ok() && !every_search_is_whole {
                self.model.remove(class);
            } else {
                assert_eq!(result, possible, "key {number}, the {index}th");
            }
            every_search_is_whole &= result != Err(InsertError::Full) || self.model.every_search_is_whole();
        }
        assert_eq!(refused.next(), None);
        assert_eq!((report.inserted + report.refused.len(), report.refused_unlisted), (numbers.len(), 0));
        self.refused += report.refused.len();
    }

    fn removed(&mut self, numbers: &[usize], report: &RemoveReport) {
        let mut missing = report.missing.iter().peekable();
        for (index, &number) in numbers.iter().enumerate() {
            let there = self.model.remove(self.model.places.classes[number]);
            assert_eq!(missing.next_if_eq(&&index).is_none(), there, "key {number}, the {index}th");
        }
        assert_eq!(missing.next(), None);
        assert_eq!((report.removed + report.missing.len(), report.missing_unlisted), (numbers.len(), 0));
    }

    pub(super) fn check_len(&self) {
        assert_eq!(self.filter.len(), self.model.len);
    }

    /// Checks every key and the counters. Returns the number of refusals as full and as too many copies.
    pub(super) fn check_all(&self) -> [u64; 2] {
        let Subject { setup, filter, model, .. } = self;
        let numbers: Vec<usize> = (0..setup.keys).collect();
        let mut found = vec![false; numbers.len()];
        filter.hashed().contains_batch(&model.places.hashes, &mut found);
        self.found(&numbers, &found);
        for (number, &class) in model.places.classes.iter().enumerate() {
            let (hash, count) = (model.places.hashes[number], model.count(class));
            assert_eq!(filter.hashed().contains(&hash), count > 0, "key {number}");
            assert_eq!(filter.hashed().count(&hash), count, "key {number}");
        }
        let stats = filter.stats();
        assert_eq!((stats.refused_full + stats.refused_too_many_copies) as usize, self.refused);
        assert_eq!((stats.len, filter.is_empty()), (model.len, model.len == 0));
        [stats.refused_full, stats.refused_too_many_copies]
    }
}
