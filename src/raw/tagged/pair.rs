//! What is done to the buckets of a key under locks that cover them: find, put, raise, take.

use super::super::locks::Locked;
use super::super::table::{Reading, Table, UnderLock};
use super::filter::{Held, TaggedShard};
use crate::layout::{Bucket, Class, Format, Hop, Matches, Moment, SLOTS, Slot};
use crate::sys::prefetch::CacheLevel;
use crate::sys::steps::{Step, reached};
use crate::sys::sync::load_locked;

/// What becomes of a key whose class is present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IfPresent {
    /// Another copy is stored.
    Another,
    /// Nothing.
    Keep,
    /// The copy that dies first lives as long as was asked, unless it lives longer anyway.
    Raise,
    /// The value is added to that of the copy, up to the largest there is.
    Add,
}

/// A key and what is to be done with it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Put {
    pub(crate) class: Class,
    /// 1 to the largest that there is.
    pub(crate) value: u32,
    pub(crate) if_present: IfPresent,
}

impl Table<'_> {
    /// What a slot of a locked bucket holds.
    #[inline]
    fn value(self, locked: &Locked<'_, impl Sized>, slot: Slot) -> u32 {
        locked.assert_holds(slot.bucket);
        let width = self.format().slot_bits();
        let (word, shift) = (slot.begin / 64, slot.begin % 64);
        let spilled = (shift + u64::from(width)).saturating_sub(64);
        let low = load_locked(self.word(word)) >> shift;
        let high = if spilled > 0 { load_locked(self.word(word + 1)) << (64 - shift) } else { 0 };
        (low | high) as u32 & u32::MAX >> (32 - width)
    }

    /// Stores a slot of a locked bucket.
    #[inline]
    fn put(self, locked: &Locked<'_, impl Sized>, slot: Slot, value: u32) {
        locked.assert_holds(slot.bucket);
        self.write(slot, value);
    }

    /// Stores the lowest bits of a slot of a locked bucket, as many as a tag has: one store of one word.
    #[inline]
    fn put_tag(self, locked: &Locked<'_, impl Sized>, slot: Slot, mask: u32, tag: u32) {
        locked.assert_holds(slot.bucket);
        let shift = slot.begin % 64;
        self.write_word(slot.begin / 64, u64::from(mask) << shift, u64::from(tag) << shift);
    }
}

impl<'a> TaggedShard<'a> {
    #[inline(always)]
    pub(super) fn table(self) -> Table<'a> {
        self.shard.table()
    }

    #[inline(always)]
    pub(super) fn format(self) -> &'a Format {
        self.table().format()
    }

    /// The slots of a bucket that are empty or dead.
    #[inline(always)]
    pub(super) fn room(self, bucket: Bucket, moment: Moment, reading: impl Reading) -> Matches {
        self.matching(bucket, reading, |run| self.tags().room(run, moment))
    }

    /// The dead slots of a locked bucket.
    #[inline(always)]
    pub(super) fn dead(self, held: &Held<'_, impl Sized>, bucket: Bucket) -> Matches {
        held.locked.assert_holds(bucket);
        self.matching(bucket, UnderLock, |run| self.tags().dead(run, held.moment))
    }

    #[inline(always)]
    pub(super) fn matching(self, bucket: Bucket, reading: impl Reading, is: impl Fn(u64) -> u64) -> Matches {
        let [low, high] = self.table().runs(self.format(), bucket, reading);
        Matches::new(bucket, is(low), if self.format().has_two_runs() { is(high) } else { 0 })
    }

    /// The live copies of the class in one of its buckets.
    #[inline(always)]
    pub(super) fn live_in(self, held: &Held<'_, impl Sized>, class: Class, bucket: Bucket) -> Matches {
        held.locked.assert_holds(bucket);
        let pattern = self.tags().pattern(class.fingerprint);
        self.matching(bucket, UnderLock, |run| self.tags().live(run, pattern, held.moment))
    }

    /// The live copies of the class in each of its buckets. Coinciding candidates are one bucket, searched once.
    #[inline(always)]
    pub(super) fn live(self, held: &Held<'_, impl Sized>, class: Class) -> [Matches; 2] {
        let second = self.live_in(held, class, class.second);
        [self.live_in(held, class, class.first), if class.coincides() { second.none() } else { second }]
    }

    /// Live copies of the class.
    #[inline]
    pub(super) fn copies(self, held: &Held<'_, impl Sized>, class: Class) -> u32 {
        let [first, second] = self.live(held, class);
        first.count(second, self.format())
    }

    /// The value of a slot that is not empty.
    #[inline(always)]
    pub(super) fn value(self, held: &Held<'_, impl Sized>, slot: Slot) -> u32 {
        self.tags().value(self.table().value(&held.locked, slot), held.moment)
    }

    /// The live copies of the class, each with its value.
    #[inline(always)]
    fn valued(self, held: &Held<'_, impl Sized>, class: Class) -> impl Iterator<Item = (Slot, u32)> {
        let [first, second] = self.live(held, class);
        let slots = first.slots(self.format()).chain(second.slots(self.format()));
        slots.map(move |slot| (slot, self.value(held, slot)))
    }

    /// The live copy of the class with the least value, and that value. Where copies are more than one, what is done to
    /// the one that dies first takes nothing from a class mate: sorted, the values of the copies stay at least those
    /// that the keys of the class were promised.
    #[inline(always)]
    fn first_to_die(self, held: &Held<'_, impl Sized>, class: Class) -> Option<(Slot, u32)> {
        self.valued(held, class).min_by_key(|&(_, value)| value)
    }

    /// Stores the class with this value, or does what is to be done where it is present. Returns the value that it had,
    /// 0 if it was absent; `None` if the pair is full.
    #[inline]
    pub(super) fn put_in_pair(self, held: &Held<'_, impl Sized>, put: Put) -> Option<u32> {
        let Put { class, value, if_present } = put;
        if if_present != IfPresent::Another
            && let Some((slot, had)) = self.first_to_die(held, class)
        {
            let most = self.tags().most();
            let becomes = match if_present {
                IfPresent::Another | IfPresent::Keep => had,
                IfPresent::Raise => had.max(value),
                IfPresent::Add => had.saturating_add(value).min(most),
            };
            if becomes != had {
                self.table().put_tag(&held.locked, slot, most, self.tags().tag(becomes, held.moment));
            }
            return Some(had);
        }
        let room = |bucket| self.room(bucket, held.moment, UnderLock);
        let slot = room(class.first).or_lower(room(class.second)).lowest(self.format())?;
        self.fill(held, slot, class, value);
        Some(0)
    }

    /// Puts the class into a slot of its pair that is empty or dead.
    #[inline]
    pub(super) fn fill(self, held: &Held<'_, impl Sized>, slot: Slot, class: Class, value: u32) {
        let was_empty = self.overwrite(held, slot, self.tags().slot(class.fingerprint, value, held.moment));
        held.locked.count(slot.bucket, |count| count.wrapping_add(u64::from(was_empty)));
    }

    /// Stores into a slot that is empty or dead, and says whether it was empty: a dead one is counted already.
    #[inline(always)]
    fn overwrite(self, held: &Held<'_, impl Sized>, slot: Slot, holds: u32) -> bool {
        let was_empty = self.table().value(&held.locked, slot) == 0;
        self.table().put(&held.locked, slot, holds);
        was_empty
    }

    /// Whether every slot of the pair holds a live copy of the class.
    pub(super) fn is_saturated(self, held: &Held<'_, impl Sized>, class: Class) -> bool {
        let slots = if class.coincides() { SLOTS } else { 2 * SLOTS };
        self.copies(held, class) as usize == slots
    }

    /// Moves a live copy to its other bucket, with its tag. As without tags: copy, bump, clear. Returns the slot that it
    /// left; `None` if none is there any more, or the other bucket has no room left.
    #[inline]
    pub(super) fn relocate(self, held: &Held<'_, impl Sized>, Hop { fingerprint, from, to }: Hop) -> Option<Slot> {
        let class = Class { fingerprint, first: from, second: to };
        let old = self.live_in(held, class, from).lowest(self.format())?;
        let new = self.room(to, held.moment, UnderLock).lowest(self.format())?;
        let was_empty = self.overwrite(held, new, self.table().value(&held.locked, old));
        reached(Step::Copied);
        held.locked.bump(class);
        self.table().clear(&held.locked, old);
        if was_empty {
            held.locked.move_count(from, to);
        } else {
            held.locked.count(from, |count| count.wrapping_sub(1));
        }
        Some(old)
    }

    /// Raises the copy that dies first and returns the value that it had; 0 if there is none.
    #[inline]
    pub(crate) fn raise(self, class: Class, value: u32) -> u32 {
        let change = self.shard.begin_change();
        let held = self.hold(self.shard.stripes().lock_pair(class.first, class.second));
        let had = self.first_to_die(&held, class);
        if let Some((slot, had)) = had
            && had < value
        {
            let tag = self.tags().tag(value, held.moment);
            self.table().put_tag(&held.locked, slot, self.tags().most(), tag);
        }
        drop(held);
        change.end();
        had.map_or(0, |(_, had)| had)
    }

    /// Gives a copy with the value `from` another one; says whether there was one.
    #[inline]
    pub(crate) fn replace(self, class: Class, from: u32, to: u32) -> bool {
        let change = self.shard.begin_change();
        let held = self.hold(self.shard.stripes().lock_pair(class.first, class.second));
        let copy = self.valued(&held, class).find(|&(_, value)| value == from);
        if let Some((slot, _)) = copy {
            // H2 by tags: another copy, with the tag that goes, may stand where a reader has read already (model
            // a_tag_that_stays_is_read_while_a_copy_gets_another).
            if self.copies(&held, class) > 1 {
                held.locked.bump(class);
            }
            self.table().put_tag(&held.locked, slot, self.tags().most(), self.tags().tag(to, held.moment));
        }
        drop(held);
        change.end();
        copy.is_some()
    }

    /// Removes a live copy with this value, or the one that dies first, and returns the value that it had; 0 if there is
    /// none.
    #[inline]
    pub(crate) fn remove(self, class: Class, with: Option<u32>) -> u32 {
        self.shard.fetch(class, CacheLevel::L1);
        let change = self.shard.begin_change();
        let held = self.hold(self.shard.stripes().lock_pair(class.first, class.second));
        let taken = match with {
            None => self.first_to_die(&held, class),
            Some(value) => self.valued(&held, class).find(|&(_, other)| other == value),
        };
        if let Some((slot, _)) = taken {
            self.shard.take(&held.locked, slot, class, self.copies(&held, class) > 1);
        }
        drop(held);
        change.end();
        taken.map_or(0, |(_, value)| value)
    }
}
