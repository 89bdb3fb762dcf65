//! What lookups see: the filter, the keys that it refused, and during a replacement the next list's.

use super::Filter;
use super::error::{LoadError, StoreError};
use super::store::KEYS;
use arc_swap::ArcSwap;
use concurrent_cuckoo_filter::BulkReport;
use parking_lot::RwLock;
use redb::{ReadTransaction, ReadableTable};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A load reports its progress, and checks whether it was cancelled, after this many keys.
const PROGRESS_KEYS: u64 = 1 << 17;

/// A filter and the keys that it refused. Together they hold each key of a list once.
#[derive(Debug)]
pub(super) struct Side {
    pub(super) filter: Filter,
    pub(super) overflow: Overflow,
}

impl Side {
    pub(super) fn new(filter: Filter) -> Self {
        Side { filter, overflow: Overflow::default() }
    }

    #[inline]
    pub(super) fn may_contain(&self, key: &str) -> bool {
        self.filter.contains(key) || self.overflow.contains(key)
    }

    fn may_contain_batch(&self, keys: &[&str], answers: &mut [bool]) {
        self.filter.contains_batch(keys, answers);
        if self.overflow.len() > 0 {
            let refused = self.overflow.keys.read();
            keys.iter().zip(answers).for_each(|(key, answer)| *answer = *answer || refused.contains(*key));
        }
    }

    /// Inserts a key that is absent.
    pub(super) fn insert(&self, key: &str) {
        if self.filter.insert(key).is_err() {
            self.overflow.insert(key);
        }
    }

    /// Inserts keys that are absent.
    pub(super) fn insert_batch(&self, keys: &[&str]) {
        for rejection in self.filter.insert_batch(keys).rejected {
            self.overflow.insert(keys[rejection.index]);
        }
    }

    /// Inserts all keys of a table into an empty side, on all threads of the pool. `progress` is told the number of keys
    /// read now and then.
    pub(super) fn load(
        &self,
        transaction: &ReadTransaction,
        table: usize,
        is_cancelled: impl Fn() -> bool,
        mut progress: impl FnMut(u64),
    ) -> Result<(), LoadError> {
        let table = transaction.open_table(KEYS[table]).map_err(StoreError::from)?;
        let (mut count, mut failure) = (0, None);
        let mut entries = table.iter().map_err(StoreError::from)?;
        let hashes = std::iter::from_fn(|| {
            if count % PROGRESS_KEYS == 0 {
                if is_cancelled() {
                    failure = Some(LoadError::Cancelled);
                    return None;
                }
                progress(count);
            }
            match entries.next()? {
                Ok((key, _)) => {
                    count += 1;
                    Some(self.filter.hash(key.value()))
                }
                Err(error) => {
                    failure = Some(StoreError::from(error).into());
                    None
                }
            }
        });
        let BulkReport { rejected, .. } = self.filter.par_insert_iter_hash(hashes);
        if let Some(failure) = failure {
            return Err(failure);
        }
        progress(count);
        // The report has indices only. Refusals are few: the filter was built for more keys than there are.
        let mut rejected = rejected.into_iter().map(|rejection| rejection.index).collect::<Vec<_>>();
        if rejected.is_empty() {
            return Ok(());
        }
        rejected.sort_unstable();
        let mut rejected = rejected.into_iter().peekable();
        let entries = table.iter().map_err(StoreError::from)?.enumerate();
        for (_, entry) in entries.filter(|(index, _)| rejected.next_if_eq(index).is_some()) {
            self.overflow.insert(entry.map_err(StoreError::from)?.0.value());
        }
        Ok(())
    }

    /// Removes a key that is present. Returns whether it was: `false` is a fault.
    pub(super) fn remove(&self, key: &str) -> bool {
        self.overflow.remove(key) || self.filter.remove(key)
    }

    /// The number of keys; exact while nothing is written.
    pub(super) fn len(&self) -> u64 {
        (self.filter.len() + self.overflow.len()) as u64
    }

    /// Whether a larger filter is due.
    pub(super) fn is_full(&self) -> bool {
        self.overflow.len() > 0 || self.filter.len() >= self.filter.capacity()
    }
}

/// The keys that a filter refused. While there are none, which is nearly always, a lookup costs one load.
#[derive(Debug, Default)]
pub(super) struct Overflow {
    /// The length of `keys`, changed under its lock.
    len: AtomicUsize,
    keys: RwLock<HashSet<Box<str>>>,
}

impl Overflow {
    pub(super) fn len(&self) -> usize {
        // Acquire: pairs with the Release stores, so that a reader that sees a length finds the keys.
        self.len.load(Ordering::Acquire)
    }

    #[inline]
    fn contains(&self, key: &str) -> bool {
        self.len() > 0 && self.keys.read().contains(key)
    }

    fn insert(&self, key: &str) {
        let mut keys = self.keys.write();
        keys.insert(key.into());
        self.len.store(keys.len(), Ordering::Release);
    }

    fn remove(&self, key: &str) -> bool {
        if self.len() == 0 {
            return false;
        }
        let mut keys = self.keys.write();
        let removed = keys.remove(key);
        self.len.store(keys.len(), Ordering::Release);
        removed
    }
}

/// One state of the front. It is replaced as a whole.
#[derive(Debug)]
struct Generation {
    current: Arc<Side>,
    /// The list that replaces it, while both are in front.
    next: Option<Arc<Side>>,
}

/// The current generation.
#[derive(Debug)]
pub(super) struct Front(ArcSwap<Generation>);

impl Front {
    pub(super) fn new(current: Side) -> Self {
        Front(ArcSwap::from_pointee(Generation { current: Arc::new(current), next: None }))
    }

    /// Lookups that begin from now on see this.
    pub(super) fn install(&self, current: Arc<Side>, next: Option<Arc<Side>>) {
        self.0.store(Arc::new(Generation { current, next }));
    }

    /// Whether no replacement is being switched to.
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
        now.current.may_contain_batch(keys, answers);
        if let Some(next) = &now.next {
            keys.iter().zip(answers).for_each(|(key, answer)| *answer = *answer || next.may_contain(key));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use concurrent_cuckoo_filter::{CuckooFilter, StableHashBuilder};

    fn side(capacity: usize) -> Side {
        Side::new(CuckooFilter::with_capacity_and_hasher(capacity, StableHashBuilder::new()))
    }

    #[test]
    fn both_lists_answer_while_one_replaces_the_other() {
        let (old, new) = (side(100), Arc::new(side(100)));
        old.insert("old");
        new.insert("new");
        new.overflow.insert("refused");
        let front = Front::new(old);
        let ask = || {
            let keys = ["old", "new", "refused", "neither"];
            let mut answers = [true; 4];
            front.may_contain_batch(&keys, &mut answers);
            assert_eq!(answers, keys.map(|key| front.may_contain(key)));
            answers
        };
        assert_eq!(ask(), [true, false, false, false]);
        front.install(front.current(), Some(Arc::clone(&new)));
        assert_eq!(ask(), [true, true, true, false]);
        front.install(new, None);
        assert_eq!(ask(), [false, true, true, false]);
    }

    #[test]
    fn every_key_of_a_table_is_loaded_even_into_a_filter_that_is_too_small() {
        let folder = tempfile::tempdir().unwrap();
        let database = redb::Database::create(folder.path().join("store")).unwrap();
        let transaction = database.begin_write().unwrap();
        let keys: Vec<String> = (0..500).map(|key| key.to_string()).collect();
        for key in &keys {
            transaction.open_table(KEYS[1]).unwrap().insert(key.as_str(), ()).unwrap();
        }
        transaction.commit().unwrap();
        let transaction = redb::ReadableDatabase::begin_read(&database).unwrap();
        let side = side(10);
        let mut told = vec![];
        side.load(&transaction, 1, || false, |keys| told.push(keys)).unwrap();
        assert_eq!((side.len(), side.is_full(), told), (500, true, vec![0, 500]));
        assert!(keys.iter().all(|key| side.may_contain(key)));
        assert!(keys.iter().all(|key| side.remove(key)) && !side.remove("0"));
        assert_eq!(side.len(), 0);
        assert!(matches!(side.load(&transaction, 1, || true, |_| {}), Err(LoadError::Cancelled)));
    }
}
