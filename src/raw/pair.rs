//! Operations on the buckets of a key, under locks that cover them.

use super::bucket_array::UnderLock;
use super::counters::Event;
use super::intent::{self, Intent};
use super::locks::{Held, Locked};
use super::owner::Owner;
use super::shard::Shard;
use super::slots::Slots;
use super::stripe::{EMPTIED, REPLACED};
use crate::error::InsertError;
use crate::layout::{Bucket, Class, Matches, SLOTS, Slot, hits_less};
use crate::sys::prefetch::CacheLevel;

/// The effect of an insertion whose class is present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IfPresent {
    /// Stores another copy.
    Another,
    /// Changes nothing.
    Keep,
    /// Extends the life of the copy that dies first to the given one, unless it is longer.
    Raise,
    /// Adds the count of the value to that of the copy, up to the maximum. If it `renews`, extends the life like
    /// `Raise`.
    Add { renews: bool },
    /// Like `Add`, but changes nothing if the copy counts more than `most`.
    AddUpTo { renews: bool, most: u16 },
}

/// An insertion. Returns the previous value of the class, or 0 if it was absent or another copy was stored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Put {
    /// At least 1. Always 1 where slots are bare.
    pub(crate) value: u32,
    pub(crate) if_present: IfPresent,
}

impl Put {
    pub(crate) const COPY: Self = Put { value: 1, if_present: IfPresent::Another };
    pub(crate) const UNIQUE: Self = Put { value: 1, if_present: IfPresent::Keep };
}

impl<'a, T: Slots> Shard<'a, T> {
    /// The number of copies of the class. Locks the pair, because a relocation in progress has stored two copies of
    /// one.
    #[inline]
    pub(crate) fn count<H: Owner>(self, owner: H, class: Class) -> Result<usize, H::Again> {
        let held = self.hold(self.stripes().lock_pair(class.first, class.second));
        owner.check()?;
        Ok(self.copies(&held, class) as usize)
    }

    /// Inserts under the locks of the pair, without relocation. Returns `None` if the pair is full.
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

    #[inline]
    pub(super) fn copies(self, held: &Held<'_, impl Sized, T::Moment>, class: Class) -> u32 {
        let [first, second] = self.find(held, class);
        first.count(second, self.format())
    }

    /// The copies of the class in each of its buckets. Coinciding candidates are searched once.
    #[inline(always)]
    pub(super) fn find(self, held: &Held<'_, impl Sized, T::Moment>, class: Class) -> [Matches; 2] {
        let first = self.find_in(held, class, class.first);
        let second = self.find_in(held, class, class.second);
        [first, if class.coincides() { second.none() } else { second }]
    }

    /// Whether there is a copy of the class: the test of a lookup, which costs less than [`find`](Self::find).
    #[inline(always)]
    fn has(self, held: &Held<'_, impl Sized, T::Moment>, class: Class) -> bool {
        let (slots, lanes) = (self.slots, &self.format().lanes);
        let (low, fingerprint) = (lanes.low, class.fingerprint.get());
        let (pattern, minus) = (slots.pattern(low, fingerprint, held.moment), slots.minus(low));
        let hits = |run| hits_less(run, pattern, minus) & lanes.high;
        let hits_in = |bucket| {
            held.locked.assert_holds(bucket);
            self.bucket_array().matching(bucket, UnderLock, hits)
        };
        // Without a branch between the buckets, which would be unpredictable.
        hits_in(class.first).or(hits_in(class.second)).any()
    }

    #[inline(always)]
    pub(super) fn find_in(self, held: &Held<'_, impl Sized, T::Moment>, class: Class, bucket: Bucket) -> Matches {
        held.locked.assert_holds(bucket);
        self.bucket_array().matching(bucket, UnderLock, self.live(class.fingerprint, held.moment))
    }

    /// The lowest slot of a locked bucket that is empty or dead.
    #[inline(always)]
    pub(super) fn room_in(self, held: &Held<'_, impl Sized, T::Moment>, bucket: Bucket) -> Option<Slot> {
        held.locked.assert_holds(bucket);
        self.bucket_array().matching(bucket, UnderLock, self.room(held.moment)).lowest(self.format())
    }

    /// These copies of a class with their values.
    #[inline(always)]
    fn valued(
        self,
        held: &Held<'_, impl Sized, T::Moment>,
        [first, second]: [Matches; 2],
    ) -> impl Iterator<Item = (Slot, u32)> {
        let slots = first.slots(self.format()).chain(second.slots(self.format()));
        slots.map(move |slot| self.with_value(held, slot))
    }

    #[inline(always)]
    fn with_value(self, held: &Held<'_, impl Sized, T::Moment>, slot: Slot) -> (Slot, u32) {
        (slot, self.slots.value(self.bucket_array().value(&held.locked, slot), held.moment))
    }

    /// The copy with this value, or the one that dies first, and its value. Changing the one that dies first keeps the
    /// promises to other keys of the class: in ascending order, the values of its copies remain at least those
    /// promised.
    #[inline(always)]
    fn choose(
        self,
        held: &Held<'_, impl Sized, T::Moment>,
        [first, second]: [Matches; 2],
        value: Option<u32>,
    ) -> Option<(Slot, u32)> {
        // Selected without a branch, which would be unpredictable.
        let lowest = first.or(second).lowest(self.format());
        if !T::TAGGED {
            return lowest.map(|slot| (slot, 1));
        }
        if first.count(second, self.format()) == 1 {
            let (slot, had) = self.with_value(held, lowest?);
            return value.is_none_or(|value| value == had).then_some((slot, had));
        }
        self.choose_among(held, [first, second], value)
    }

    /// Never inlined: the loops cost callers registers, which made `par_insert` of slots with tags a fifth slower.
    #[inline(never)]
    fn choose_among(
        self,
        held: &Held<'_, impl Sized, T::Moment>,
        copies: [Matches; 2],
        value: Option<u32>,
    ) -> Option<(Slot, u32)> {
        let mut valued = self.valued(held, copies);
        match value {
            None => valued.min_by_key(|&(_, value)| value),
            Some(value) => valued.find(|&(_, other)| other == value),
        }
    }

    /// Stores a copy where there is room, or updates a copy. Returns `None` if the pair is full. The state of the class
    /// before the locks were taken is irrelevant (H4).
    ///
    /// Always inlined: with a call, unique insertions are 8 % slower.
    #[inline(always)]
    pub(super) fn place(self, held: &Held<'_, impl Sized, T::Moment>, class: Class, put: Put) -> Option<u32> {
        if put.if_present != IfPresent::Another && self.has(held, class) {
            if !T::TAGGED {
                return Some(1);
            }
            let found = self.find(held, class);
            if let Some((slot, had)) = self.choose(held, found, None) {
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
        let slot = self.bucket_array().lower([class.first, class.second], UnderLock, self.room(held.moment))?;
        self.fill(held, slot, class, put.value);
        Some(0)
    }

    /// Changes the value of a copy by one store to one word.
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

    /// Whether every slot of the pair holds the class, so that no relocation makes room for another copy.
    ///
    /// Always inlined: a call would move the guards of an insertion from registers to memory, which costs 13 % of its
    /// time.
    #[inline(always)]
    pub(super) fn is_saturated(self, held: &Held<'_, impl Sized, T::Moment>, class: Class) -> bool {
        let slots = if class.coincides() { SLOTS } else { 2 * SLOTS };
        self.copies(held, class) as usize == slots
    }

    /// Stores the class in an empty or dead slot of its pair. A plain store: a lookup that does not see it began before
    /// this insertion ended.
    #[inline]
    pub(super) fn fill(self, held: &Held<'_, impl Sized, T::Moment>, slot: Slot, class: Class, value: u32) {
        let was_empty = self.overwrite(held, slot, self.slots.slot(class.fingerprint, value, held.moment));
        held.locked.count(slot.bucket, |count| count.wrapping_add(if was_empty { 1 } else { REPLACED }));
    }

    /// Stores in an empty or dead slot, and returns whether it was empty. A dead slot is counted already.
    #[inline(always)]
    pub(super) fn overwrite(self, held: &Held<'_, impl Sized, T::Moment>, slot: Slot, holds: u32) -> bool {
        let was_empty = !T::TAGGED || self.bucket_array().value(&held.locked, slot) == 0;
        self.bucket_array().put(&held.locked, slot, holds);
        was_empty
    }

    /// Clears a slot of the class, and bumps first if other copies stay in the pair: a lookup that read the place of a
    /// later copy before it was stored, and the slot of this one after it was cleared, must retry (H2, models
    /// equal_fingerprint_*).
    #[inline(always)]
    pub(super) fn take(self, locked: &Locked<'_, impl Sized>, slot: Slot, class: Class, others_stay: bool) {
        if others_stay {
            locked.bump(class);
        }
        self.bucket_array().clear(locked, slot);
        locked.count(slot.bucket, |count| count.wrapping_add(EMPTIED));
    }

    /// Removes a copy of the class with this value, or the one that dies first. Returns its value, or 0 if there is
    /// none. A present class is always found, because nothing moves it while its stripes are locked.
    #[inline]
    pub(crate) fn remove<H: Owner>(self, owner: H, class: Class, value: Option<u32>) -> Result<u32, H::Again> {
        self.fetch(class, CacheLevel::L1);
        let change = self.begin_change();
        let had = self.remove_fetched(owner, class, value);
        change.end();
        had
    }

    #[inline(always)]
    pub(crate) fn remove_fetched<H: Owner>(self, owner: H, class: Class, value: Option<u32>) -> Result<u32, H::Again> {
        let held = self.hold(self.stripes().lock_pair(class.first, class.second));
        owner.check()?;
        Ok(self.remove_locked(&held, class, value))
    }

    #[inline(always)]
    pub(super) fn remove_locked(self, held: &Held<'_, impl Sized, T::Moment>, class: Class, value: Option<u32>) -> u32 {
        let [first, second] = self.find(held, class);
        let Some((slot, had)) = self.choose(held, [first, second], value) else { return 0 };
        self.take(&held.locked, slot, class, first.count(second, self.format()) > 1);
        had
    }

    /// See [`RawFilter::update`](super::RawFilter::update).
    pub(crate) fn update<H: Owner>(
        self,
        owner: H,
        class: Class,
        value: Option<u32>,
        becomes: impl Fn(u32) -> u32,
    ) -> Result<u32, H::Again> {
        self.change(|| {
            let held = self.hold(self.stripes().lock_pair(class.first, class.second));
            owner.check()?;
            let found = self.find(&held, class);
            let Some((slot, had)) = self.choose(&held, found, value) else { return Ok(0) };
            let others_stay = found[0].count(found[1], self.format()) > 1;
            match becomes(had) {
                0 => self.take(&held.locked, slot, class, others_stay),
                becomes => {
                    // H2 by tags: a reader may have passed the place of another copy that has the present tag (model
                    // a_tag_that_stays_is_read_while_a_copy_gets_another).
                    if others_stay && value.is_some() {
                        held.locked.bump(class);
                    }
                    self.revalue(&held, slot, class, had, becomes);
                }
            }
            Ok(had)
        })
    }

    /// Removes all copies of the class and returns their number.
    #[inline]
    pub(crate) fn remove_all<H: Owner>(self, owner: H, class: Class) -> Result<usize, H::Again> {
        let held = self.hold(self.stripes().lock_pair(class.first, class.second));
        owner.check()?;
        Ok(self.change(|| self.remove_all_locked(&held, class)))
    }

    /// The intent stands in the stripe of the lower bucket, whichever comes first, and names each slot before it is
    /// cleared, because a slot in two words may be left half cleared.
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

/// Counts the refusal of a class that occupies all slots of its pair. Always inlined, like [`Shard::is_saturated`].
#[inline(always)]
pub(super) fn too_many_copies(locked: &Locked<'_, impl Sized>, class: Class) -> InsertError {
    locked.note(class.first, Event::RefusedCopies);
    InsertError::TooManyCopies
}
