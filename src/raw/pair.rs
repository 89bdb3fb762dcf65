//! What is done to the buckets of a key under locks that cover them: find, count, place, update, take.

use super::bucket_array::UnderLock;
use super::counters::Event;
use super::intent::{self, Intent};
use super::locks::{Held, Locked};
use super::owner::Owner;
use super::shard::Shard;
use super::slots::Slots;
use super::stripe::{EMPTIED, REPLACED};
use crate::error::InsertError;
use crate::layout::{Bucket, Class, Matches, SLOTS, Slot};
use crate::sys::prefetch::CacheLevel;

/// What becomes of a key whose class is present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IfPresent {
    /// Another copy is stored.
    Another,
    /// Nothing.
    Keep,
    /// The copy that dies first lives as long as was asked, unless it lives longer anyway.
    Raise,
    /// The count of the value is added to that of the copy, up to the largest there is. If it `renews`, the copy lives as long as
    /// was asked, unless it lives longer anyway.
    Add { renews: bool },
    /// As `Add`, unless the copy counts more than `most`: nothing then.
    AddUpTo { renews: bool, most: u16 },
}

/// An insertion: a value, and what becomes of it where the class is present. Every insertion returns the value that the class
/// had, 0 if it was absent or another copy was stored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Put {
    /// 1 to the largest that there is; always 1 where slots are bare.
    pub(crate) value: u32,
    pub(crate) if_present: IfPresent,
}

impl Put {
    pub(crate) const COPY: Self = Put { value: 1, if_present: IfPresent::Another };
    pub(crate) const UNIQUE: Self = Put { value: 1, if_present: IfPresent::Keep };
}

impl<'a, T: Slots> Shard<'a, T> {
    /// Copies of the class. Takes the pair's locks: in the middle of a relocation both copies stand in the table.
    #[inline]
    pub(crate) fn count<H: Owner>(self, owner: H, class: Class) -> Result<usize, H::Again> {
        let held = self.hold(self.stripes().lock_pair(class.first, class.second));
        owner.check()?;
        Ok(self.copies(&held, class) as usize)
    }

    /// Inserts under the locks of the pair if that takes no relocation; `None` if the pair is full.
    #[inline]
    pub(crate) fn insert_into_pair<H: Owner>(
        self,
        owner: H,
        class: Class,
        put: Put,
    ) -> Result<Option<Result<u32, InsertError>>, H::Again> {
        let held = self.hold(self.stripes().lock_pair(class.first, class.second));
        owner.check()?;
        Ok(match self.place(&held, class, put) {
            Some(had) => Some(Ok(had)),
            None => self.is_saturated(&held, class).then(|| Err(too_many_copies(&held.locked, class))),
        })
    }

    /// Copies of the class.
    #[inline]
    pub(super) fn copies(self, held: &Held<'_, impl Sized, T::Moment>, class: Class) -> u32 {
        let [first, second] = self.find(held, class);
        first.count(second, self.format())
    }

    /// The copies of the class in each of its buckets. Coinciding candidates are one bucket, searched once.
    #[inline(always)]
    pub(super) fn find(self, held: &Held<'_, impl Sized, T::Moment>, class: Class) -> [Matches; 2] {
        let first = self.find_in(held, class, class.first);
        let second = self.find_in(held, class, class.second);
        [first, if class.coincides() { second.none() } else { second }]
    }

    /// The copies of the class in one of its buckets.
    #[inline(always)]
    pub(super) fn find_in(self, held: &Held<'_, impl Sized, T::Moment>, class: Class, bucket: Bucket) -> Matches {
        held.locked.assert_holds(bucket);
        let lanes = &self.format().lanes;
        let live = move |run| self.slots.live(*lanes, run, class.fingerprint, held.moment);
        self.bucket_array().matching(bucket, UnderLock, live)
    }

    /// The lowest slot of a locked bucket that may be written over.
    #[inline(always)]
    pub(super) fn room_in(self, held: &Held<'_, impl Sized, T::Moment>, bucket: Bucket) -> Option<Slot> {
        held.locked.assert_holds(bucket);
        let lanes = &self.format().lanes;
        let room = move |run| self.slots.lowest_room(*lanes, run, held.moment);
        self.bucket_array().matching(bucket, UnderLock, room).lowest(self.format())
    }

    /// Of some copies of a class, each with its value.
    #[inline(always)]
    fn valued(
        self,
        held: &Held<'_, impl Sized, T::Moment>,
        [first, second]: [Matches; 2],
    ) -> impl Iterator<Item = (Slot, u32)> {
        let slots = first.slots(self.format()).chain(second.slots(self.format()));
        slots.map(move |slot| (slot, self.slots.value(self.bucket_array().value(&held.locked, slot), held.moment)))
    }

    /// Of some copies of a class, that with this value, or the one that dies first, and its value. Where copies are more than
    /// one, what is done to the one that dies first takes nothing from a class mate: sorted, the values of the copies stay at
    /// least those that the keys of the class were promised.
    #[inline(always)]
    fn choose(
        self,
        held: &Held<'_, impl Sized, T::Moment>,
        [first, second]: [Matches; 2],
        value: Option<u32>,
    ) -> Option<(Slot, u32)> {
        if !T::TAGGED {
            // Which bucket it is cannot be predicted: chosen without a branch.
            return first.or(second).lowest(self.format()).map(|slot| (slot, 1));
        }
        match value {
            None => self.valued(held, [first, second]).min_by_key(|&(_, value)| value),
            Some(value) => self.valued(held, [first, second]).find(|&(_, other)| other == value),
        }
    }

    /// Stores a copy where there is room, or updates the one that is there; `None` if the pair is full. What the class was
    /// before the locks were taken does not matter (H4).
    ///
    /// Always inlined: with a call, unique insertions are 8 % slower.
    #[inline(always)]
    pub(super) fn place(self, held: &Held<'_, impl Sized, T::Moment>, class: Class, put: Put) -> Option<u32> {
        if put.if_present != IfPresent::Another {
            let found = self.find(held, class);
            if !T::TAGGED {
                if found.into_iter().any(Matches::any) {
                    return Some(1);
                }
            } else if let Some((slot, had)) = self.choose(held, found, None) {
                let becomes = match put.if_present {
                    IfPresent::Another | IfPresent::Keep => had,
                    IfPresent::Raise => had.max(put.value),
                    IfPresent::AddUpTo { most, .. } if self.slots.count(had) > most.into() => had,
                    IfPresent::Add { renews } | IfPresent::AddUpTo { renews, .. } => {
                        self.slots.sum(had, put.value, renews)
                    }
                };
                self.revalue(held, slot, class, had, becomes);
                return Some(had);
            }
        }
        held.locked.assert_holds(class.first);
        held.locked.assert_holds(class.second);
        let lanes = &self.format().lanes;
        let room = move |run| self.slots.lowest_room(*lanes, run, held.moment);
        let slot = self.bucket_array().lower([class.first, class.second], UnderLock, room)?;
        self.fill(held, slot, class, put.value);
        Some(0)
    }

    /// Gives a copy of the class another value: one store of one word.
    #[inline(always)]
    fn revalue(self, held: &Held<'_, impl Sized, T::Moment>, slot: Slot, class: Class, from: u32, to: u32) {
        let to = self.slots.largest().min(to);
        if to != from {
            let mask = self.slots.largest();
            self.bucket_array().put_tag(
                &held.locked,
                slot,
                mask,
                self.slots.slot(class.fingerprint, to, held.moment) & mask,
            );
        }
    }

    /// Whether every slot of the pair holds the class: no relocation makes room for another copy.
    ///
    /// Always inlined: a call would move the guards of an insertion from registers to memory, 13 % of its time.
    #[inline(always)]
    pub(super) fn is_saturated(self, held: &Held<'_, impl Sized, T::Moment>, class: Class) -> bool {
        let slots = if class.coincides() { SLOTS } else { 2 * SLOTS };
        self.copies(held, class) as usize == slots
    }

    /// Puts the class into a slot of its pair that is empty or dead: a plain store, for a lookup that does not see it yet began
    /// before this insertion ended.
    #[inline]
    pub(super) fn fill(self, held: &Held<'_, impl Sized, T::Moment>, slot: Slot, class: Class, value: u32) {
        let was_empty = self.overwrite(held, slot, self.slots.slot(class.fingerprint, value, held.moment));
        held.locked.count(slot.bucket, |count| count.wrapping_add(if was_empty { 1 } else { REPLACED }));
    }

    /// Stores into a slot that is empty or dead, and says whether it was empty: a dead one is counted already.
    #[inline(always)]
    pub(super) fn overwrite(self, held: &Held<'_, impl Sized, T::Moment>, slot: Slot, holds: u32) -> bool {
        let was_empty = !T::TAGGED || self.bucket_array().value(&held.locked, slot) == 0;
        self.bucket_array().put(&held.locked, slot, holds);
        was_empty
    }

    /// Clears a slot that holds the class, and bumps first if copies of it stay in the pair: to a lookup of another key
    /// of the class, the removal of a copy that it has not read yet, after the insertion of one where it has read
    /// already, is a relocation (H2, models equal_fingerprint_*).
    #[inline(always)]
    pub(super) fn take(self, locked: &Locked<'_, impl Sized>, slot: Slot, class: Class, others_stay: bool) {
        if others_stay {
            locked.bump(class);
        }
        self.bucket_array().clear(locked, slot);
        locked.count(slot.bucket, |count| count.wrapping_add(EMPTIED));
    }

    /// Removes a copy of the class with this value, or the one that dies first, and returns the value that it had; 0 if there
    /// is none. A present class is always found: nothing moves it while its stripes are locked.
    #[inline]
    pub(crate) fn remove<H: Owner>(self, owner: H, class: Class, value: Option<u32>) -> Result<u32, H::Again> {
        self.fetch(class, CacheLevel::L1);
        let change = self.begin_change();
        let had = self.remove_fetched(owner, class, value);
        change.end();
        had
    }

    /// The same for a key whose buckets are on their way.
    #[inline(always)]
    pub(crate) fn remove_fetched<H: Owner>(self, owner: H, class: Class, value: Option<u32>) -> Result<u32, H::Again> {
        let held = self.hold(self.stripes().lock_pair(class.first, class.second));
        owner.check()?;
        Ok(self.remove_locked(&held, class, value))
    }

    /// The same, under locks that cover the pair.
    #[inline(always)]
    pub(super) fn remove_locked(self, held: &Held<'_, impl Sized, T::Moment>, class: Class, value: Option<u32>) -> u32 {
        let [first, second] = self.find(held, class);
        let Some((slot, had)) = self.choose(held, [first, second], value) else { return 0 };
        self.take(&held.locked, slot, class, first.count(second, self.format()) > 1);
        had
    }

    /// Gives the copy with this value, or the one that dies first, what `becomes` of its value, or removes it if that is 0. Returns
    /// the value that it had; 0 if there is none.
    pub(crate) fn update<H: Owner>(
        self,
        owner: H,
        class: Class,
        value: Option<u32>,
        becomes: impl Fn(u32) -> u32,
    ) -> Result<u32, H::Again> {
        let change = self.begin_change();
        let held = self.hold(self.stripes().lock_pair(class.first, class.second));
        let checked = owner.check();
        let found = self.find(&held, class);
        let chosen = if checked.is_ok() { self.choose(&held, found, value) } else { None };
        if let Some((slot, had)) = chosen {
            let others_stay = found[0].count(found[1], self.format()) > 1;
            match becomes(had) {
                0 => self.take(&held.locked, slot, class, others_stay),
                becomes => {
                    // H2 by tags: another copy, with the tag that goes, may stand where a reader has read already (model
                    // a_tag_that_stays_is_read_while_a_copy_gets_another).
                    if others_stay && value.is_some() {
                        held.locked.bump(class);
                    }
                    self.revalue(&held, slot, class, had, becomes);
                }
            }
        }
        drop(held);
        change.end();
        checked.map(|()| chosen.map_or(0, |(_, had)| had))
    }

    /// Removes every copy of the class and says how many there were. Of several copies, all but the last stay behind a
    /// cleared slot for a moment.
    #[inline]
    pub(crate) fn remove_all<H: Owner>(self, owner: H, class: Class) -> Result<usize, H::Again> {
        let held = self.hold(self.stripes().lock_pair(class.first, class.second));
        owner.check()?;
        let change = self.begin_change();
        let copies = self.remove_all_locked(&held, class);
        change.end();
        Ok(copies)
    }

    /// The same under locks that cover the pair. What is noted stands in the stripe of the lower bucket, whichever of the two
    /// is the first one, and names each slot before it is cleared: one that lies in two words may be found half cleared.
    pub(super) fn remove_all_locked(self, held: &Held<'_, impl Sized, T::Moment>, class: Class) -> usize {
        let (copies, lower) = (self.copies(held, class) as usize, class.first.min(class.second));
        for left in (0..copies).rev() {
            let [first, second] = self.find(held, class);
            if let Some(slot) = first.or(second).lowest(self.format()) {
                if held.locked.is_noted() {
                    let (slot, fingerprint) = (intent::number(self.format(), slot), class.fingerprint.get());
                    held.locked.intend(lower, Intent::RemoveAll { slot, fingerprint });
                }
                self.take(&held.locked, slot, class, left > 0);
            }
        }
        if held.locked.is_noted() {
            held.locked.fulfil(lower);
        }
        copies
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
