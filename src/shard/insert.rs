//! Insertion where there is room.

use super::Shard;
use crate::error::InsertError;
use crate::geometry::{Candidates, Geometry};
use crate::lanes::SLOTS;
use crate::path::Effort;
use crate::prefetch::Into;
use crate::stripe::Locked;
use crate::table::{Format, Slot};
use crate::tally::Event;

/// Whether a class that is present may be stored again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// Another copy each time.
    Copies,
    /// Only if the class is absent.
    Unique,
}

impl Shard {
    /// Stores a copy of the class: `Ok(true)`. `Ok(false)` if it was to be unique and is present.
    #[inline]
    pub(crate) fn insert(
        &self,
        geometry: &Geometry,
        format: &Format,
        key: Candidates,
        admission: Admission,
    ) -> Result<bool, InsertError> {
        self.fetch(format, key, Into::L1);
        let change = self.begin_change();
        let result = self.insert_fetched(geometry, format, key, admission, &mut Effort::full());
        change.end();
        result
    }

    /// The same for a key whose buckets are on their way: one of many, which search for a place as hard as the ones
    /// before them make it worth while.
    #[inline(always)]
    pub(crate) fn insert_fetched(
        &self,
        geometry: &Geometry,
        format: &Format,
        key: Candidates,
        admission: Admission,
        effort: &mut Effort,
    ) -> Result<bool, InsertError> {
        match self.place(format, key, admission) {
            Some(result) => result,
            None => self.insert_by_path(geometry, format, key, admission, effort),
        }
    }

    /// Inserts if that takes no relocation; `None` if the pair is full.
    #[inline]
    pub(crate) fn place(
        &self,
        format: &Format,
        key: Candidates,
        admission: Admission,
    ) -> Option<Result<bool, InsertError>> {
        let locked = self.stripes.lock_pair(key.first, key.second);
        match self.place_locked(&locked, format, key, admission) {
            Some(stored) => Some(Ok(stored)),
            None => self.is_saturated(&locked, format, key).then(|| Err(too_many_copies(&locked, key))),
        }
    }

    /// The same, under locks that cover the pair. What the class was before they were taken does not matter (H4).
    #[inline]
    pub(super) fn place_locked(
        &self,
        locked: &Locked<'_, impl Sized>,
        format: &Format,
        key: Candidates,
        admission: Admission,
    ) -> Option<bool> {
        if admission == Admission::Unique && self.copies(locked, format, key) > 0 {
            return Some(false);
        }
        let empty = |bucket| self.table.find_empty(locked, format, bucket);
        // Buckets fill from their lowest slot, so the lower empty slot is in the emptier bucket, more or less: pairs
        // that are full are fewer. Chosen without a branch, for it cannot be predicted.
        let slot = empty(key.first).or_lower(empty(key.second)).lowest(format)?;
        self.fill(locked, format, slot, key);
        Some(true)
    }

    /// Whether every slot of the pair holds the class: no relocation makes room for another copy.
    ///
    /// Always inlined: a call would move the guards of [`Shard::place`] from registers to memory, 13 % of an insertion.
    #[inline(always)]
    pub(super) fn is_saturated(&self, locked: &Locked<'_, impl Sized>, format: &Format, key: Candidates) -> bool {
        let slots = if key.coincide() { SLOTS } else { 2 * SLOTS };
        self.copies(locked, format, key) as usize == slots
    }

    /// Puts the key into an empty slot of its pair: a plain store, for a look-up that does not see it yet began before
    /// this insertion ended.
    #[inline]
    pub(super) fn fill(&self, locked: &Locked<'_, impl Sized>, format: &Format, slot: Slot, key: Candidates) {
        self.table.store(locked, format, slot, key.fingerprint);
        locked.count(key, |count| count.wrapping_add(1));
    }
}

/// Counts the refusal of a class that has all the slots of its pair.
///
/// Always inlined, as what asks for it.
#[inline(always)]
pub(super) fn too_many_copies(locked: &Locked<'_, impl Sized>, key: Candidates) -> InsertError {
    locked.note(key.first, Event::RefusedCopies);
    InsertError::TooManyCopies
}
