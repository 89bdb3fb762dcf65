//! What a panic amid a change leaves behind. Only a fault of this crate can panic there, so this is a net that is not
//! meant to be used: it keeps a filter that has met such a fault from writing snapshots that nobody can read.
//!
//! | interrupted                     | left behind                                               |
//! |---------------------------------|-----------------------------------------------------------|
//! | insertion, removal              | the key or not, and a count that is wrong by one          |
//! | relocation                      | a copy in both buckets: one too many, which stays         |
//! | a store to a slot in two words  | some of its bits, which may look like another fingerprint |
//! | removal of all copies, clearing | some of the copies, and a count that is wrong             |
//!
//! Locks are released. No other key is lost, for a relocation copies before it clears.

use super::Shard;
use core::{mem, slice};

/// A change of these shards, under way. Nothing drops it but a panic.
///
/// It is held around whole operations: around each store and its count it costs up to 10 % of a batch of insertions,
/// and to ask `thread::panicking` when locks are dropped costs an insertion in cache 10 to 15 %.
#[must_use = "a change that is dropped was interrupted"]
pub(crate) struct Change<'a>(&'a [Shard]);

impl<'a> Change<'a> {
    #[inline(always)]
    pub(crate) fn of(shards: &'a [Shard]) -> Self {
        Change(shards)
    }

    #[inline(always)]
    pub(crate) fn end(self) {
        mem::forget(self);
    }
}

impl Drop for Change<'_> {
    /// Also for the panic of a user's code between two critical sections, which costs a recount.
    #[cold]
    #[inline(never)]
    fn drop(&mut self) {
        self.0.iter().for_each(|shard| shard.stripes.note_interrupted());
    }
}

impl Shard {
    #[inline(always)]
    pub(super) fn begin_change(&self) -> Change<'_> {
        Change::of(slice::from_ref(self))
    }
}
