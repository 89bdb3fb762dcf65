//! What is compared: sets behind one small trait.

pub mod ours;
mod peers;
#[cfg(test)]
mod tests;

pub use ours::{Kind, Version};

use crate::field::{Key, Size, Text};

/// A set of keys, shared by all threads.
pub trait Set<K>: Sync {
    /// Stores the key; `false` if it was refused.
    fn insert(&self, key: &K) -> bool;

    /// Says whether the key is present.
    fn contains(&self, key: &K) -> bool;

    /// Removes one copy and says whether there was one; only called where [`Contestant::removes`].
    fn remove(&self, _key: &K) -> bool {
        unreachable!("a Bloom filter cannot remove")
    }
}

/// Passes over many keys: the loops are compiled for each contestant, so that a `dyn` costs one call a pass.
pub trait Passes<K>: Set<K> {
    /// Inserts the keys and counts those that went in.
    fn insert_all(&self, keys: &[K]) -> usize;

    /// Looks the keys up and counts those that were found.
    fn contains_all(&self, keys: &[K]) -> usize;

    /// Removes the keys and counts those that were there.
    fn remove_all(&self, keys: &[K]) -> usize;

    /// Removes a key of the first list, inserts one of the second, and so on; counts the pairs of which both succeeded.
    fn churn(&self, out: &[K], into: &[K]) -> usize;
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

    fn churn(&self, out: &[K], into: &[K]) -> usize {
        out.iter().zip(into).filter(|(out, into)| self.remove(out) & self.insert(into)).count()
    }
}

/// What only this crate can do, and earlier commits of it.
pub trait Many<K>: Passes<K> {
    /// `contains_batch`.
    fn contains_batch(&self, keys: &[K], found: &mut [bool]);

    /// `insert_batch`; returns how many keys went in.
    fn insert_batch(&self, keys: &[K]) -> usize;

    /// `insert_unique` for each key; returns how many went in.
    fn insert_unique_all(&self, keys: &[K]) -> usize;

    /// `count` for each key; returns the sum.
    fn count_all(&self, keys: &[K]) -> usize;

    /// `par_insert`; returns how many keys went in.
    fn par_insert(&self, keys: &[K]) -> usize;

    /// Removes all keys.
    fn clear(&self);

    /// The slots of the table. It must not be empty.
    fn slots(&self) -> usize;

    /// A snapshot.
    fn save(&self) -> Vec<u8>;

    /// Loads a snapshot of its own, and returns how many keys are in it.
    fn load(&self, snapshot: &[u8]) -> usize;
}

/// One contestant: what it is and how to build it.
pub struct Contestant<K> {
    /// Its name in tables and in the names of benchmarks.
    pub name: &'static str,
    /// Whether keys can be removed.
    pub removes: bool,
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

    /// Whether it never loses a key that it took.
    pub fn faithful(&self) -> bool {
        self.name == ours::NAME || self.exact || !self.removes
    }
}

/// Keys that contests are held with: each type's contestants are compiled here, once and for all.
pub trait Contested: Key {
    /// All contestants, this crate first.
    fn contestants() -> Vec<Contestant<Self>>;
}

impl Contested for u64 {
    fn contestants() -> Vec<Contestant<Self>> {
        all()
    }
}

impl Contested for Text {
    fn contestants() -> Vec<Contestant<Self>> {
        all()
    }
}

fn all<K: Key>() -> Vec<Contestant<K>> {
    let mut all = vec![Contestant {
        name: ours::NAME,
        removes: true,
        exact: false,
        bits: |bits| (4..=32).contains(&bits),
        build: |size| Box::new(ours::Filter(ours::build(size))),
    }];
    all.extend(peers::all());
    all
}

/// Checks that what should have been done for all keys was done for 19 of 20 at least: some contestants lose a few.
pub fn most(done: usize, all: usize) {
    assert!(done <= all && done >= all - all.div_ceil(20), "{done} of {all}");
}
