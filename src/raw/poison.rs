//! What a panic during a change leaves behind. Only a bug of this crate can panic there, so this is a net that is not
//! meant to be used: it keeps a filter that has met such a bug from writing snapshots that no reader accepts.
//!
//! | interrupted                     | left behind                                               |
//! |---------------------------------|-----------------------------------------------------------|
//! | insertion, removal              | the key or not, and a count that is wrong by one          |
//! | relocation                      | a copy in both buckets: one too many, which stays         |
//! | a store to a slot in two words  | some of its bits, which may look like another fingerprint |
//! | removal of all copies, clearing | some of the copies, and a count that is wrong             |
//!
//! Locks are released. No other key is lost, for a relocation copies before it clears.

use super::shard::Shard;
use super::shards::Shards;
use super::slots::Slots;
use crate::sys::sync::Flag;
use core::{mem, slice};

/// A change of shards, under way. Dropped only on unwind.
///
/// It is held around whole operations: around each store and its count it costs up to 10 % of a batch of insertions,
/// and to ask `thread::panicking` when locks are dropped costs an insertion in cache 10 to 15 %. To recount at each copy
/// would cost 54 to 196 us a shard.
#[must_use = "a change that is dropped was interrupted"]
pub(crate) struct PoisonOnUnwind<'a>(&'a [Flag]);

impl<'a> PoisonOnUnwind<'a> {
    #[inline(always)]
    pub(crate) fn end(self) {
        mem::forget(self);
    }
}

impl Drop for PoisonOnUnwind<'_> {
    /// Also for the panic of user code between two critical sections, which costs a recount.
    #[cold]
    #[inline(never)]
    fn drop(&mut self) {
        self.0.iter().for_each(|interrupted| interrupted.set(true));
    }
}

impl Shards {
    /// Begins a change of any of them.
    #[inline(always)]
    pub(crate) fn begin_change(&self) -> PoisonOnUnwind<'_> {
        PoisonOnUnwind(self.interrupted.part(0, self.plan().shards))
    }
}

impl<'a, T: Slots> Shard<'a, T> {
    #[inline(always)]
    pub(super) fn begin_change(self) -> PoisonOnUnwind<'a> {
        PoisonOnUnwind(slice::from_ref(self.stripes().interrupted()))
    }
}
