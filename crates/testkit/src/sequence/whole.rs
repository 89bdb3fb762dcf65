//! Operations on a whole filter.

use super::Filter;
use super::subject::Subject;
use crate::{Model, written};
use concurrent_cuckoo_filter::{MergeReport, SnapshotReader};

impl Subject {
    /// Writes the filter, and replaces it with the one that is read.
    pub(super) fn copy(&mut self) {
        let bytes = written(|to| self.filter.write_to(to));
        self.filter = Filter::read_from(&bytes[..], self.setup.hasher()).expect("it was just written");
        self.refused = 0;
    }

    /// The same by one part per shard.
    pub(super) fn join(&mut self) {
        let part = |shard| written(|to| self.filter.snapshot().shards(shard..shard + 1).write_to(to));
        let parts: Vec<Vec<u8>> = (0..self.filter.config().shards).rev().map(part).collect();
        let parts = parts.iter().map(|part| &part[..]);
        self.filter = Filter::join(parts, self.setup.hasher()).expect("they were just written");
        self.refused = 0;
    }

    /// Applies the changes since another state to a copy of that state, as a client does.
    pub(super) fn make_from(&self, base: &Subject) {
        let [from, to] = [base, self].map(|subject| written(|to| subject.filter.write_to(to)));
        let [older, newer] = [&from, &to].map(|bytes| SnapshotReader::new(&bytes[..]).expect("it was just written"));
        let delta = written(|to| newer.write_delta_since(older, to));
        let copy = Filter::read_from(&from[..], self.setup.hasher()).expect("it was just written");
        let changed = copy.apply_delta(&delta[..]).expect("it is of this copy");
        assert_eq!(base.model.len + changed.inserted - changed.removed, self.model.len);
        assert_eq!(copy.digest(), self.filter.digest());
    }

    pub(super) fn merge(&mut self, other: &Subject) {
        let report = self.filter.merge_from(&other.filter).expect("they are of one shape");
        self.merged(&other.model, &report);
    }

    pub(super) fn merge_with_itself(&mut self) {
        let report = self.filter.merge_from(&self.filter).expect("it is of one shape");
        self.merged(&self.model.clone(), &report);
    }

    /// The report does not say which copies were refused, so the filter is queried. The number of copies with room does not depend
    /// on their order, because the sets of copies that have a placement form a matroid.
    fn merged(&mut self, other: &Model, report: &MergeReport) {
        assert_eq!(report.inserted + report.refused, other.len);
        let before = self.model.clone();
        let mut room = 0;
        for class in 0..before.classes() {
            room += (0..other.count(class)).filter(|_| self.model.insert(class).is_ok()).count();
        }
        if before.every_search_is_whole() || report.refused == 0 {
            assert_eq!(report.inserted, room);
        } else {
            assert!(report.inserted <= room);
        }
        self.model.clear();
        for class in 0..before.classes() {
            let number = before.places.classes.iter().position(|&of| of == class).expect("a class has a key");
            let count = self.filter.hashed().count(&before.places.hashes[number]);
            let least = before.count(class);
            assert!((least..=least + other.count(class)).contains(&count), "{count} copies, {least} before");
            assert!((0..count).all(|_| self.model.insert(class).is_ok()), "the filter holds them");
        }
        assert_eq!(self.model.len, before.len + report.inserted);
        self.refused += report.refused;
    }
}
