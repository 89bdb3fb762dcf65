//! Keys that a filter refused.

use parking_lot::RwLock;
use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};

/// An exact set of keys. While it is empty, which is nearly always, a look-up costs one load.
#[derive(Debug, Default)]
pub(super) struct Overflow {
    /// The length of `keys`, changed under its lock.
    len: AtomicUsize,
    keys: RwLock<HashSet<Box<str>>>,
}

impl Overflow {
    pub(super) fn len(&self) -> usize {
        // Acquire: pairs with the Release below, so that who sees a length finds the keys.
        self.len.load(Ordering::Acquire)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline]
    pub(super) fn contains(&self, key: &str) -> bool {
        !self.is_empty() && self.keys.read().contains(key)
    }

    /// Makes an answer "yes" for each key that is here.
    pub(super) fn contains_batch(&self, keys: &[&str], answers: &mut [bool]) {
        if self.is_empty() {
            return;
        }
        let here = self.keys.read();
        for (key, answer) in keys.iter().zip(answers) {
            *answer = *answer || here.contains(*key);
        }
    }

    pub(super) fn insert(&self, key: &str) {
        let mut keys = self.keys.write();
        keys.insert(key.into());
        self.len.store(keys.len(), Ordering::Release);
    }

    /// Says whether the key was here.
    pub(super) fn remove(&self, key: &str) -> bool {
        if self.is_empty() {
            return false;
        }
        let mut keys = self.keys.write();
        let removed = keys.remove(key);
        self.len.store(keys.len(), Ordering::Release);
        removed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_here_from_its_insertion_to_its_removal() {
        let overflow = Overflow::default();
        assert!(overflow.is_empty() && !overflow.contains("a") && !overflow.remove("a"));
        overflow.insert("a");
        overflow.insert("a");
        overflow.insert("b");
        assert_eq!(overflow.len(), 2);
        let mut answers = [false, true, false];
        overflow.contains_batch(&["a", "c", "c"], &mut answers);
        assert_eq!(answers, [true, true, false]);
        assert!(overflow.remove("a") && !overflow.remove("a") && !overflow.contains("a"));
        assert_eq!(overflow.len(), 1);
    }
}
