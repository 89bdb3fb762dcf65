//! What all contestants can do.

use crate::field::Size;

/// A set of keys, from any thread.
pub trait Set<K>: Sync {
    /// Stores the key; `false` if it was refused.
    fn insert(&self, key: &K) -> bool;

    /// Says whether the key is present.
    fn contains(&self, key: &K) -> bool;

    /// Removes one copy and says whether there was one; only called where [`Contestant::removes`].
    fn remove(&self, key: &K) -> bool;
}

/// Passes over many keys: the loops are compiled for each contestant, so that a `dyn` costs one call a pass.
pub trait Passes<K>: Sync {
    /// Inserts the keys and counts those that went in.
    fn insert_all(&self, keys: &[K]) -> usize;

    /// Looks the keys up and counts those that were found.
    fn contains_all(&self, keys: &[K]) -> usize;

    /// Removes the keys and counts those that were there.
    fn remove_all(&self, keys: &[K]) -> usize;

    /// As [`Set::insert`].
    fn insert_one(&self, key: &K) -> bool;

    /// As [`Set::contains`].
    fn contains_one(&self, key: &K) -> bool;

    /// As [`Set::remove`].
    fn remove_one(&self, key: &K) -> bool;
}

impl<K, T: Set<K>> Passes<K> for T {
    fn insert_all(&self, keys: &[K]) -> usize {
        keys.iter().filter(|key| self.insert(key)).count()
    }

    fn contains_all(&self, keys: &[K]) -> usize {
        keys.iter().filter(|key| self.contains(key)).count()
    }

    fn remove_all(&self, keys: &[K]) -> usize {
        keys.iter().filter(|key| self.remove(key)).count()
    }

    fn insert_one(&self, key: &K) -> bool {
        self.insert(key)
    }

    fn contains_one(&self, key: &K) -> bool {
        self.contains(key)
    }

    fn remove_one(&self, key: &K) -> bool {
        self.remove(key)
    }
}

/// One contestant: what it is and how to build it.
pub struct Contestant<K> {
    /// Its name in tables and in the names of benchmarks.
    pub name: &'static str,
    /// Whether keys can be removed.
    pub removes: bool,
    /// Whether its lookups may take a lock, or wait for one.
    pub locks: bool,
    /// Whether it keeps the keys themselves, so that a "yes" is certain.
    pub exact: bool,
    /// Whether it can do this [`Size::bits`].
    pub bits: fn(u32) -> bool,
    /// Builds an empty one.
    pub build: fn(Size) -> Box<dyn Passes<K>>,
}

impl<K> Contestant<K> {
    /// Builds one that holds the keys, but for those that it refuses.
    pub fn filled(&self, size: Size, keys: &[K]) -> Box<dyn Passes<K>> {
        let set = (self.build)(size);
        set.insert_all(keys);
        set
    }
}

/// Checks that what should have been done for all keys was done for 19 of 20 at least: some contestants lose a few.
pub fn most(done: usize, all: usize) {
    assert!(done <= all && done >= all - all.div_ceil(20), "{done} of {all}");
}
