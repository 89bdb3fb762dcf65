//! What is done to the buckets of a key under locks that cover them: find, count, place, take.

use super::counters::Event;
use super::home::Home;
use super::locks::Locked;
use super::shard::Shard;

use super::table::UnderLock;
use crate::error::InsertError;
use crate::layout::{Class, Matches, SLOTS, Slot};

/// Whether a class that is present may be stored again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// Another copy each time.
    Copies,
    /// Only if the class is absent.
    Unique,
}

impl Shard<'_> {
    /// Copies of the class. Takes the pair's locks: in the middle of a relocation both copies stand in the table.
    #[inline]
    pub(crate) fn count<H: Home>(self, home: H, class: Class) -> Result<usize, H::Again> {
        let locked = self.stripes().lock_pair(class.first, class.second);
        home.check()?;
        Ok(self.copies(&locked, class) as usize)
    }

    /// Inserts under the locks of the pair if that takes no relocation; `None` if the pair is full.
    #[inline]
    pub(crate) fn insert_into_pair<H: Home>(
        self,
        home: H,
        class: Class,
        admission: Admission,
    ) -> Result<Option<Result<bool, InsertError>>, H::Again> {
        let locked = self.stripes().lock_pair(class.first, class.second);
        home.check()?;
        Ok(match self.place(&locked, class, admission) {
            Some(stored) => Some(Ok(stored)),
            None => self.is_saturated(&locked, class).then(|| Err(too_many_copies(&locked, class))),
        })
    }

    /// Copies of the class.
    #[inline]
    pub(super) fn copies(self, locked: &Locked<'_, impl Sized>, class: Class) -> u32 {
        let [first, second] = self.find(locked, class);
        first.count(second, self.table().format())
    }

    /// The copies of the class in each of its buckets. Coinciding candidates are one bucket, searched once.
    #[inline(always)]
    pub(super) fn find(self, locked: &Locked<'_, impl Sized>, class: Class) -> [Matches; 2] {
        let first = self.table().find(locked, class.fingerprint, class.first);
        let second = self.table().find(locked, class.fingerprint, class.second);
        [first, if class.coincides() { second.none() } else { second }]
    }

    /// Stores a copy where there is room; `None` if the pair is full. What the class was before the locks were taken
    /// does not matter (H4).
    ///
    /// Always inlined: with a call, unique insertions are 8 % slower.
    #[inline(always)]
    pub(super) fn place(self, locked: &Locked<'_, impl Sized>, class: Class, admission: Admission) -> Option<bool> {
        if admission == Admission::Unique && self.find(locked, class).into_iter().any(Matches::any) {
            return Some(false);
        }
        locked.assert_holds(class.first);
        locked.assert_holds(class.second);
        let slot = self.table().lower_empty([class.first, class.second], UnderLock)?;
        self.fill(locked, slot, class);
        Some(true)
    }

    /// Whether every slot of the pair holds the class: no relocation makes room for another copy.
    ///
    /// Always inlined: a call would move the guards of an insertion from registers to memory, 13 % of its time.
    #[inline(always)]
    pub(super) fn is_saturated(self, locked: &Locked<'_, impl Sized>, class: Class) -> bool {
        let slots = if class.coincides() { SLOTS } else { 2 * SLOTS };
        self.copies(locked, class) as usize == slots
    }

    /// Puts the class into an empty slot of its pair: a plain store, for a lookup that does not see it yet began before
    /// this insertion ended.
    #[inline]
    pub(super) fn fill(self, locked: &Locked<'_, impl Sized>, slot: Slot, class: Class) {
        self.table().store(locked, slot, class.fingerprint);
        locked.count(slot.bucket, |count| count.wrapping_add(1));
    }

    /// Clears a slot that holds the class, and bumps first if copies of it stay in the pair: to a lookup of another key
    /// of the class, the removal of a copy that it has not read yet, after the insertion of one where it has read
    /// already, is a relocation (H2, models equal_fingerprint_*).
    #[inline(always)]
    pub(super) fn take(self, locked: &Locked<'_, impl Sized>, slot: Slot, class: Class, others_stay: bool) {
        if others_stay {
            locked.bump(class);
        }
        self.table().clear(locked, slot);
        locked.count(slot.bucket, |count| count.wrapping_sub(1));
    }
}

/// Counts the refusal of a class that has all the slots of its pair.
///
/// Always inlined, as what asks for it.
#[inline(always)]
pub(super) fn too_many_copies(locked: &Locked<'_, impl Sized>, class: Class) -> InsertError {
    locked.note(class.first, Event::RefusedCopies);
    InsertError::TooManyCopies
}
