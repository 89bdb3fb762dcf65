//! What look-ups see.

use super::options::Filter;
use super::overflow::Overflow;
use super::stats::Refusals;
use arc_swap::ArcSwap;
use concurrent_cuckoo_filter::InsertError;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A filter and the keys that it refused: together each key of a list once.
#[derive(Debug)]
pub(super) struct Side {
    pub(super) filter: Filter,
    pub(super) overflow: Overflow,
    refused: Arc<Refused>,
}

impl Side {
    pub(super) fn new(filter: Filter, refused: Arc<Refused>) -> Self {
        Side { filter, overflow: Overflow::default(), refused }
    }

    #[inline]
    pub(super) fn may_contain(&self, key: &str) -> bool {
        self.filter.contains(key) || self.overflow.contains(key)
    }

    /// Stores a key that is not here.
    pub(super) fn insert(&self, key: &str) {
        if let Err(error) = self.filter.insert(key) {
            self.refuse(key, &error);
        }
    }

    /// Stores keys that are not here, on the calling thread.
    pub(super) fn insert_batch(&self, keys: &[&str]) {
        for rejection in self.filter.insert_batch(keys).rejected {
            self.refuse(keys[rejection.index], &rejection.error);
        }
    }

    /// Stores keys that are not here, on all threads.
    pub(super) fn insert_bulk(&self, keys: &[&str]) {
        for rejection in self.filter.par_insert(keys).rejected {
            self.refuse(keys[rejection.index], &rejection.error);
        }
    }

    fn refuse(&self, key: &str, error: &InsertError) {
        self.overflow.insert(key);
        self.refused.count(error);
    }

    /// Removes a key that is here. `false` is a fault: it was not.
    pub(super) fn remove(&self, key: &str) -> bool {
        self.overflow.remove(key) || self.filter.remove(key)
    }

    /// Keys that are here; exact while nobody writes.
    pub(super) fn len(&self) -> u64 {
        (self.filter.len() + self.overflow.len()) as u64
    }

    /// Whether a larger filter is due.
    pub(super) fn is_full(&self) -> bool {
        !self.overflow.is_empty() || self.filter.len() >= self.filter.capacity()
    }
}

/// Keys that filters refused since the list was opened.
#[derive(Debug, Default)]
pub(super) struct Refused {
    full: AtomicU64,
    too_many_copies: AtomicU64,
}

impl Refused {
    fn count(&self, error: &InsertError) {
        let counter = match error {
            InsertError::TooManyCopies => &self.too_many_copies,
            _ => &self.full,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn counts(&self) -> Refusals {
        Refusals {
            full: self.full.load(Ordering::Relaxed),
            too_many_copies: self.too_many_copies.load(Ordering::Relaxed),
        }
    }
}

/// One state of the front. It is replaced as a whole.
#[derive(Debug)]
pub(super) struct Generation {
    /// The list.
    pub(super) current: Arc<Side>,
    /// The list that takes its place, while it does.
    pub(super) next: Option<Arc<Side>>,
}

/// The present generation.
#[derive(Debug)]
pub(super) struct Front(ArcSwap<Generation>);

impl Front {
    pub(super) fn new(current: Arc<Side>) -> Self {
        Front(ArcSwap::from_pointee(Generation { current, next: None }))
    }

    /// Look-ups that begin from now on see this.
    pub(super) fn install(&self, current: Arc<Side>, next: Option<Arc<Side>>) {
        self.0.store(Arc::new(Generation { current, next }));
    }

    /// Whether no list takes the place of another one.
    #[cfg(test)]
    pub(super) fn is_settled(&self) -> bool {
        self.0.load().next.is_none()
    }

    pub(super) fn current(&self) -> Arc<Side> {
        Arc::clone(&self.0.load().current)
    }

    #[inline]
    pub(super) fn may_contain(&self, key: &str) -> bool {
        let now = self.0.load();
        now.current.may_contain(key) || now.next.as_ref().is_some_and(|next| next.may_contain(key))
    }

    pub(super) fn may_contain_batch(&self, keys: &[&str], answers: &mut [bool]) {
        let now = self.0.load();
        now.current.filter.contains_batch(keys, answers);
        now.current.overflow.contains_batch(keys, answers);
        if let Some(next) = &now.next {
            for (key, answer) in keys.iter().zip(answers) {
                *answer = *answer || next.may_contain(key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use concurrent_cuckoo_filter::{CuckooFilter, StableHashBuilder};

    fn side(capacity: usize) -> Side {
        Side::new(CuckooFilter::with_capacity_and_hasher(capacity, StableHashBuilder::new()), Arc::default())
    }

    #[test]
    fn what_the_filter_refuses_is_kept_beside_it_and_removed_from_there() {
        let side = side(10);
        let keys: Vec<String> = (0..500).map(|key| key.to_string()).collect();
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        side.insert(keys[0]);
        side.insert_batch(&keys[1..100]);
        side.insert_bulk(&keys[100..]);
        assert_eq!(side.len(), 500);
        assert!(side.is_full() && side.overflow.len() > 400);
        let counts = side.refused.counts();
        assert_eq!(counts.full + counts.too_many_copies, side.overflow.len() as u64);
        assert!(keys.iter().all(|key| side.may_contain(key)));
        assert!(keys.iter().all(|key| side.remove(key)));
        assert_eq!(side.len(), 0);
        assert!(!side.remove("0") && !side.is_full());
    }

    #[test]
    fn both_lists_answer_while_one_takes_the_place_of_the_other() {
        let (old, new) = (Arc::new(side(100)), Arc::new(side(100)));
        old.insert("old");
        new.insert("new");
        new.overflow.insert("refused");
        let front = Front::new(Arc::clone(&old));
        let ask = || {
            let keys = ["old", "new", "refused", "neither"];
            let mut answers = [true; 4];
            front.may_contain_batch(&keys, &mut answers);
            assert_eq!(answers, keys.map(|key| front.may_contain(key)));
            answers
        };
        assert_eq!(ask(), [true, false, false, false]);
        front.install(old, Some(Arc::clone(&new)));
        assert_eq!(ask(), [true, true, true, false]);
        front.install(new, None);
        assert_eq!(ask(), [false, true, true, false]);
    }
}
