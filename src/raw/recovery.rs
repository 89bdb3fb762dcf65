//! Taking over memory whose process ended at any instruction: noted changes are completed (`intent`;
//! docs/design/shared.md), locks are released, and stored fingerprints are counted. Readers proceed concurrently.

use super::filter::RawFilter;
use super::flat::Flat;
use super::intent::Intent;
use super::locks::{AllOfShard, Held, LockedAll};
use super::shard::Shard;
use super::shards::Shards;
use super::slots::{SlotKind, Slots};
use crate::error::SharedError;
use crate::layout::{Class, Fingerprint, SLOTS, Slot};

impl<K: SlotKind> RawFilter<K> {
    /// Takes over words and stripes that no other thread knows and no other process writes. Returns the number of
    /// completed changes, too. A shard in a state that no writer leaves behind is an error.
    pub(crate) fn take_over(shards: Shards) -> Result<(Self, usize), SharedError> {
        let flat = Flat::of(shards);
        let mut redone = 0;
        for (number, shard) in flat.each().enumerate() {
            let damaged = |what| SharedError::Damaged { shard: number, what };
            redone += shard.take_over().ok_or_else(|| damaged("a note that no writer leaves"))?;
            if !shard.recount() {
                return Err(damaged("keys after its last bucket"));
            }
        }
        Ok((RawFilter::Flat(flat), redone))
    }
}

impl<T: Slots> Shard<'_, T> {
    fn take_over(self) -> Option<usize> {
        self.stripes().each().iter().for_each(|stripe| stripe.take_over());
        let held = self.hold(self.stripes().lock_all());
        let noted = || self.stripes().each().iter().filter(|stripe| stripe.intent() != 0);
        if !noted().all(|stripe| Intent::from_bits(stripe.intent()).is_some_and(|intent| self.is_possible(intent))) {
            return None;
        }
        let mut redone = 0;
        for stripe in noted() {
            self.redo(&held, Intent::from_bits(stripe.intent())?)?;
            stripe.set_intent(0);
            redone += 1;
        }
        Some(redone)
    }

    /// Sets the counts to the number of occupied slots. Returns `false` if a bit behind the last bucket is set.
    fn recount(self) -> bool {
        let taken = self.occupied();
        self.stripes().each().iter().for_each(|stripe| stripe.set_count(0));
        taken.map(|taken| self.stripes().begin_with(taken)).is_some()
    }

    /// Whether an intent names slots of this shard and contents that they can hold.
    fn is_possible(self, intent: Intent) -> bool {
        let holds =
            |slot: u32, holds: u32| self.slot(slot).is_some() && u64::from(holds) < 1 << self.format().slot_bits;
        match intent {
            Intent::Write { slot, holds: value } => holds(slot, value),
            Intent::Relocate { from, holds: value, .. } => holds(from, value) && self.stored(value).is_some(),
            Intent::RemoveAll { slot, fingerprint } => {
                holds(slot, fingerprint)
                    && Fingerprint::from_slot(fingerprint).is_some()
                    && u64::from(fingerprint) < 1 << (self.format().slot_bits - self.plan().tag_bits)
            }
            Intent::Clear => true,
        }
    }

    /// Completes a change. The part of it that was done before makes no difference, because no later change touched its
    /// slots.
    fn redo(self, held: &Held<'_, AllOfShard<'_>, T::Moment>, intent: Intent) -> Option<()> {
        let locked: &LockedAll<'_> = &held.locked;
        match intent {
            Intent::Write { slot, holds } => self.bucket_array().write(self.slot(slot)?, holds),
            Intent::Relocate { from, to, holds } => {
                let from = self.slot(from)?;
                let class = self.class_in(from, self.stored(holds)?);
                let to = self.slot(class.second.get() * SLOTS as u32 + to)?;
                self.bucket_array().write(to, holds);
                locked.bump(class);
                self.bucket_array().write(from, 0);
            }
            Intent::RemoveAll { slot, fingerprint } => {
                let slot = self.slot(slot)?;
                let class = self.class_in(slot, Fingerprint::from_slot(fingerprint)?);
                locked.bump(class);
                self.bucket_array().write(slot, 0);
                self.remove_all_locked(held, class);
            }
            Intent::Clear => self.clear_locked(locked),
        }
        Some(())
    }

    /// The slot with this number in the shard.
    fn slot(self, number: u32) -> Option<Slot> {
        let bucket = self.plan().buckets_from(number / SLOTS as u32, 1).next()?;
        Some(Slot { bucket, begin: u64::from(number) * u64::from(self.format().slot_bits) })
    }

    /// The fingerprint in this content of a slot, dead or alive.
    fn stored(self, holds: u32) -> Option<Fingerprint> {
        Fingerprint::from_slot(holds >> self.plan().tag_bits)
    }

    fn class_in(self, slot: Slot, fingerprint: Fingerprint) -> Class {
        let second = self.alternates().alternate(fingerprint, slot.bucket);
        Class { fingerprint, first: slot.bucket, second }
    }
}
