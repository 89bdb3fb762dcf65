//! Panics during a change. Only a bug of this crate can panic there; this prevents the filter from writing snapshots
//! that readers refuse.
//!
//! | interrupted                    | remains                                                   |
//! |--------------------------------|-----------------------------------------------------------|
//! | insertion, removal             | the key or not, and a count that is wrong by one          |
//! | relocation                     | a copy in both buckets: one too many, for good            |
//! | a store to a slot in two words | some of its bits, which may look like another fingerprint |
//! | removal of all copies, clear   | some of the copies, and a wrong count                     |
//!
//! Locks are released. No other key is lost, because a relocation copies before it clears.

use super::shard::Shard;
use super::shards::Shards;
use super::slots::{Bare, Slots};
use core::mem;

/// A change of one or of all shards in progress. Dropped only on unwind, when it calls the function, which marks them as
/// interrupted.
///
/// It covers whole operations: one per store and its count would cost up to 10 % of a batch of insertions, querying
/// `thread::panicking` at each unlock 10 to 15 % of an insertion in cache, and a recount at each copy several times the
/// copy.
#[must_use = "a change that is dropped was interrupted"]
pub(crate) struct PoisonOnUnwind<F: Fn()>(F);

impl<F: Fn()> PoisonOnUnwind<F> {
    #[inline(always)]
    pub(crate) fn end(self) {
        mem::forget(self);
    }
}

impl<F: Fn()> Drop for PoisonOnUnwind<F> {
    /// Also runs if user code panics between two critical sections, which costs a recount.
    #[cold]
    #[inline(never)]
    fn drop(&mut self) {
        self.0();
    }
}

impl Shards {
    #[inline(always)]
    pub(crate) fn begin_change(&self) -> PoisonOnUnwind<impl Fn()> {
        PoisonOnUnwind(|| (0..self.plan.shards).for_each(|at| self.at(at, Bare).stripes().interrupted().set(true)))
    }
}

impl<'a, T: Slots> Shard<'a, T> {
    /// [`change`](Self::change) without a closure around the work, for insertions and removals: it would keep its captured
    /// variables in memory.
    #[inline(always)]
    pub(super) fn begin_change(self) -> PoisonOnUnwind<impl Fn() + use<'a, T>> {
        let interrupted = self.stripes().interrupted();
        PoisonOnUnwind(move || interrupted.set(true))
    }

    /// Runs `work` as one change: if it panics, the shard is marked as interrupted.
    pub(super) fn change<R>(self, work: impl FnOnce() -> R) -> R {
        let change = self.begin_change();
        let result = work();
        change.end();
        result
    }
}
