//! A filter beside its model: after each operation they say the same.

use super::model::{Model, Refusal};
use super::operation::{Many, One};
use super::shape::Shape;
use crate::Filter;
use concurrent_cuckoo_filter::{BulkReport, InsertError, RemoveReport};

pub(super) struct Subject {
    pub(super) shape: Shape,
    pub(super) filter: Filter,
    pub(super) model: Model,
    /// Refusals since the filter was built or read.
    pub(super) refused: usize,
}

impl Subject {
    pub(super) fn new(shape: Shape) -> Self {
        Subject { filter: shape.build(), model: Model::new(shape.places()), refused: 0, shape }
    }

    pub(super) fn one(&mut self, what: One, number: usize, by_hash: bool) {
        let Subject { filter, model, .. } = self;
        let (key, hash, class) = (number as u64, model.places.hashes[number], model.places.classes[number]);
        match what {
            One::Insert => {
                let result = if by_hash { filter.insert_hash(hash) } else { filter.insert(&key) };
                let result = result.map_err(|error| refusal(&error));
                assert_eq!(result, model.insert(class));
                self.refused += usize::from(result.is_err());
            }
            One::InsertUnique => {
                let result = if by_hash { filter.insert_unique_hash(hash) } else { filter.insert_unique(&key) };
                let result = result.map_err(|error| refusal(&error));
                let new = model.count(class) == 0;
                assert_eq!(result, if new { model.insert(class).map(|()| true) } else { Ok(false) });
                self.refused += usize::from(result.is_err());
            }
            One::Contains => {
                let found = if by_hash { filter.contains_hash(hash) } else { filter.contains(&key) };
                assert_eq!(found, model.count(class) > 0);
            }
            One::Count => {
                let count = if by_hash { filter.count_hash(hash) } else { filter.count(&key) };
                assert_eq!(count, model.count(class));
            }
            One::Remove => {
                let removed = if by_hash { filter.remove_hash(hash) } else { filter.remove(&key) };
                assert_eq!(removed, model.remove(class));
            }
            One::RemoveAll => {
                let removed = if by_hash { filter.remove_all_hash(hash) } else { filter.remove_all(&key) };
                assert_eq!(removed, model.count(class));
                while model.remove(class) {}
            }
        }
    }

    pub(super) fn many(&mut self, what: Many, numbers: &[usize], by_hash: bool) {
        let hashes = &self.model.places.hashes;
        let keys: Vec<u64> = numbers.iter().map(|&number| number as u64).collect();
        let hashes: Vec<u64> = numbers.iter().map(|&number| hashes[number]).collect();
        let mut found = vec![false; keys.len()];
        match (what, by_hash) {
            (Many::Insert, false) => self.inserted(numbers, &self.filter.insert_batch(&keys)),
            (Many::Insert, true) => self.inserted(numbers, &self.filter.insert_batch_hash(&hashes)),
            (Many::ParInsert, false) => self.inserted(numbers, &self.filter.par_insert(&keys)),
            (Many::ParInsert, true) => self.inserted(numbers, &self.filter.par_insert_hash(&hashes)),
            (Many::ParInsertIter, false) => self.inserted(numbers, &self.filter.par_insert_iter(keys)),
            (Many::ParInsertIter, true) => self.inserted(numbers, &self.filter.par_insert_iter_hash(hashes)),
            (Many::Remove, false) => self.removed(numbers, &self.filter.remove_batch(&keys)),
            (Many::Remove, true) => self.removed(numbers, &self.filter.remove_batch_hash(&hashes)),
            (Many::ParRemove, false) => self.removed(numbers, &self.filter.par_remove(&keys)),
            (Many::ParRemove, true) => self.removed(numbers, &self.filter.par_remove_hash(&hashes)),
            (Many::Contains, false) => self.filter.contains_batch(&keys, &mut found),
            (Many::Contains, true) => self.filter.contains_batch_hash(&hashes, &mut found),
            (Many::ParContains, false) => self.filter.par_contains(&keys, &mut found),
            (Many::ParContains, true) => self.filter.par_contains_hash(&hashes, &mut found),
        }
        if let Many::Contains | Many::ParContains = what {
            self.found(numbers, &found);
        }
    }

    fn found(&self, numbers: &[usize], found: &[bool]) {
        let Model { ref places, .. } = self.model;
        for (&number, &found) in numbers.iter().zip(found) {
            assert_eq!(found, self.model.count(places.classes[number]) > 0, "key {number}");
        }
    }

    /// Only the first key that is refused as "full" has been tried with a whole search, unless every search is whole.
    fn inserted(&mut self, numbers: &[usize], report: &BulkReport) {
        let mut rejected = report.rejected.iter().peekable();
        let mut every_search_is_whole = true;
        for (index, &number) in numbers.iter().enumerate() {
            let class = self.model.places.classes[number];
            let refused = rejected.next_if(|rejection| rejection.index == index);
            let result = refused.map_or(Ok(()), |rejection| Err(refusal(&rejection.error)));
            let possible = self.model.insert(class);
            if result == Err(Refusal::Full) && possible.is_ok() && !every_search_is_whole {
                self.model.remove(class);
            } else {
                assert_eq!(result, possible, "key {number}, the {index}th");
            }
            every_search_is_whole &= result != Err(Refusal::Full) || self.model.every_search_is_whole();
        }
        assert_eq!(rejected.next(), None);
        assert_eq!((report.inserted + report.rejected.len(), report.rejected_unlisted), (numbers.len(), 0));
        self.refused += report.rejected.len();
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

    /// Every key, and the counters.
    pub(super) fn check_all(&self) {
        let Subject { shape, filter, model, .. } = self;
        let numbers: Vec<usize> = (0..shape.keys).collect();
        let mut found = vec![false; numbers.len()];
        filter.contains_batch_hash(&model.places.hashes, &mut found);
        self.found(&numbers, &found);
        for (number, &class) in model.places.classes.iter().enumerate() {
            let (hash, count) = (model.places.hashes[number], model.count(class));
            assert_eq!(filter.contains_hash(hash), count > 0, "key {number}");
            assert_eq!(filter.count_hash(hash), count, "key {number}");
        }
        let stats = filter.stats();
        assert_eq!((stats.refused_full + stats.refused_too_many_copies) as usize, self.refused);
        assert_eq!((stats.len, filter.is_empty()), (model.len, model.len == 0));
    }
}

pub(super) fn refusal(error: &InsertError) -> Refusal {
    match error {
        InsertError::Full => Refusal::Full,
        InsertError::TooManyCopies => Refusal::TooManyCopies,
        other => panic!("{other}"),
    }
}
