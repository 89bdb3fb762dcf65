//! The contestants: sets behind one small trait.

pub mod ours;
mod peers;
#[cfg(test)]
mod tests;

use crate::field::Size;
use rayon::prelude::*;

/// A set of keys, shared by all threads. Passes over many keys are compiled for each contestant, so that a `dyn` costs one call
/// per pass.
pub trait Set: Sync {
    /// Stores the key, and returns whether it was stored.
    fn insert(&self, key: &u64) -> bool;

    /// Returns whether the key is present.
    fn contains(&self, key: &u64) -> bool;

    /// Removes one copy, and returns whether there was one. Called only if [`Contestant::removes`].
    fn remove(&self, _key: &u64) -> bool {
        unreachable!("a Bloom filter cannot remove")
    }

    /// Inserts the keys, and counts those that were stored.
    fn insert_all(&self, keys: &[u64]) -> usize {
        keys.iter().filter(|key| self.insert(key)).count()
    }

    /// Looks the keys up, and counts those that were found.
    fn contains_all(&self, keys: &[u64]) -> usize {
        keys.iter().filter(|key| self.contains(key)).count()
    }

    /// Removes the keys, and counts those that were found.
    fn remove_all(&self, keys: &[u64]) -> usize {
        keys.iter().filter(|key| self.remove(key)).count()
    }

    /// Removes a key of the first list, inserts one of the second, and so on, and counts the pairs in which both succeeded.
    fn churn(&self, out: &[u64], into: &[u64]) -> usize {
        out.iter().zip(into).filter(|(out, into)| self.remove(out) & self.insert(into)).count()
    }

    /// Inserts the keys on all threads, by a bulk operation if there is one, else by a parallel loop.
    fn load(&self, keys: &[u64]) -> usize {
        keys.par_chunks(1 << 12).map(|keys| self.insert_all(keys)).sum()
    }

    /// Returns passes that only this crate has, by name.
    fn more(&self) -> Vec<(&'static str, Pass<'_>)> {
        Vec::new()
    }
}

/// A pass over some keys, which counts those that were found or stored.
pub type Pass<'a> = Box<dyn Fn(&[u64]) -> usize + 'a>;

/// The kind of a contestant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// A plain filter of this crate.
    Ours,
    /// Another kind of filter of this crate.
    Kind,
    /// A filter of another crate.
    Peer,
    /// A set that stores the keys themselves, without false positives.
    Exact,
}

/// One contestant.
pub struct Contestant {
    /// Its name, with its width.
    pub name: String,
    /// Its kind.
    pub family: Family,
    /// Whether keys can be removed.
    pub removes: bool,
    /// Its [`Size::bits`].
    pub bits: u32,
    /// Builds an empty one.
    pub make: fn(Size) -> Box<dyn Set>,
}

impl Contestant {
    /// Builds an empty table of 2^`log2` slots.
    pub fn build(&self, log2: u32) -> Box<dyn Set> {
        (self.make)(Size::new(log2, self.bits))
    }

    /// Builds a table of these keys, without those that it refuses.
    pub fn filled(&self, log2: u32, keys: &[u64]) -> Box<dyn Set> {
        let set = self.build(log2);
        set.insert_all(keys);
        set
    }

    /// Returns whether it never loses a key that it has stored.
    pub fn is_faithful(&self) -> bool {
        self.family != Family::Peer || !self.removes
    }

    /// Returns whether it is of this crate.
    pub fn is_ours(&self) -> bool {
        matches!(self.family, Family::Ours | Family::Kind)
    }

    /// Returns whether it is a plain filter of this crate of fixed size, with 13 bits.
    pub fn is_default(&self) -> bool {
        self.family == Family::Ours && self.bits == 13
    }
}

/// Returns the plain filters of this crate, its other kinds, and the peers, if they are `wanted`.
pub fn all(wanted: impl Fn(&Contestant) -> bool) -> Vec<Contestant> {
    ours::contestants().into_iter().chain(peers::all()).filter(wanted).collect()
}

/// Asserts that at least 19 of 20 operations succeeded: some contestants lose a few keys.
pub fn most(done: usize, all: usize) {
    assert!(done <= all && done >= all - all.div_ceil(20), "{done} of {all}");
}
