//! Doubling a table: it is split, and half of its classes get one of their own, or it is refilled, and all of them go to one of
//! twice the size.
//!
//! Copy, publish, clear: a refill is a split by which everything moves. Nothing is placed anew: a class has the same buckets in
//! both tables, or buckets that hold no others than before, so that nothing can fail once there is memory.

use super::Growing;
use super::leaf::Leaf;
use crate::error::InsertError;
use crate::layout::{Lanes, Packer, Plan};
use crate::raw::locks::LockedAll;
use crate::raw::slots::SlotKind;
use crate::sys::directory::{Member, New};
use crate::sys::steps::{Step, reached};
use std::time::Instant;

impl<K: SlotKind> Growing<K> {
    /// Whether the table may be doubled and is at this load. One that was refilled is named by no cell, and is not.
    pub(super) fn splits_from(&self, leaf: Member<'_, Leaf>, load: f64) -> bool {
        let slots = leaf.shards.plan().slots() as f64;
        let may_be = leaf.doublings() < self.plan.reserve_bits && self.is_named(leaf);
        may_be && leaf.load() as f64 >= load * slots
    }

    /// Whether cells name the table. Its first cell does, unless it was refilled.
    pub(super) fn is_named(&self, leaf: Member<'_, Leaf>) -> bool {
        self.directory.is_at(leaf.first_cell, leaf)
    }

    /// Doubles a table that has doubled so often, unless another thread has done so, or it is below this load when it is locked:
    /// who asks for it has read a load that may be gone, or never was (model a_table_that_was_emptied_is_not_split). The error
    /// is that there is no memory.
    ///
    /// The new table stays locked until all of its cells name it: else it could be split itself while cells of its own child
    /// are still to be written here (models split_of_a_child_*).
    #[cold]
    #[inline(never)]
    pub(super) fn split(&self, leaf: Member<'_, Leaf>, doublings: u32, from: f64) -> Result<(), InsertError> {
        let begun = Instant::now();
        if doublings >= self.plan.reserve_bits {
            return Ok(());
        }
        let depth = doublings + 1;
        let refills = doublings < self.plan.extension_bits;
        let cells = self.plan.cells_at(depth);
        let extent = self.plan.extent_after(depth, leaf.first_cell + if refills { 0 } else { cells });
        // Of a slot, above the tag.
        let bit = self.plan.slot_bits - doublings - 1;
        let change = leaf.shard().begin_change();
        let locked = leaf.shard().stripes().lock_all();
        // What a split that was interrupted has left takes room, and would be keys where it is copied to.
        leaf.mend(&locked, &self.plan);
        // The epoch is read under all locks of the table: what is dead by it is neither copied nor counted (models
        // tick_during_a_split_*).
        self.shard(leaf).sweep_all(&locked);
        if leaf.doublings() == doublings && self.splits_from(leaf, from) {
            // Not before the split is sure: of many that find a table full, one takes memory, which no arena gives back.
            let Some(child) = Leaf::new(&self.plan, &extent, &self.arena).and_then(New::of) else {
                drop(locked);
                change.end();
                return Err(InsertError::OutOfMemory);
            };
            let is_empty = leaf.load() == 0;
            // The one place where two tables are locked (H3): nobody else knows the second one, nor waits for the first with it.
            let (child, child_locked) = self.directory.add(child, |child| {
                let child_locked = child.get().shard().stripes().lock_all();
                let moved = match (is_empty, refills) {
                    (true, _) => 0,
                    (_, true) => self.copy_all_to(&leaf, &locked, child, bit),
                    (_, false) => leaf.copy_half_to(&locked, child, bit),
                };
                reached(Step::Copied);
                // From here on nothing allocates, and what is begun is ended: cells and numbers tell the same of both tables.
                leaf.note_doubling(&child, moved);
                child_locked
            });
            // Before anything is stored in its slots: `len` is never above all of them.
            if refills { &self.refills } else { &self.splits }.add(1);
            let copied = Copied { leaf: &leaf, locked: &locked, bit: (!refills).then_some(bit), is_empty };
            self.directory.publish(child.first_cell..child.first_cell + cells, child, || reached(Step::Published));
            drop(child_locked);
            drop(copied);
        }
        drop(locked);
        change.end();
        self.nanos_in_splits.add(begun.elapsed().as_nanos() as u64);
        Ok(())
    }

    /// Splits the table of a key, if it may be split and no other thread does so in the meantime.
    #[cfg(test)]
    pub(crate) fn split_owner(&self, key: crate::layout::Mixed) {
        let (leaf, _) = self.owner(self.cell_place(key));
        self.split(leaf, leaf.doublings(), 0.0).expect("memory");
    }

    /// Copies all to a table of twice the size that no reader knows, and says how many there were. What lies in a bucket goes to
    /// one of two, which this bit says, and in buckets of odd bases a draw from the core, too.
    fn copy_all_to(&self, leaf: &Leaf, locked: &LockedAll<'_>, child: Member<'_, Leaf>, bit: u32) -> u64 {
        let (table, tag_bits, level) =
            (leaf.shard().bucket_array(), self.plan.tag_bits(), leaf.shards.plan().extension_bits);
        let width = child.shards.plan().slot_bits;
        let mut words = Packer::new(width, child.shard().bucket_array().filled_by_each());
        for bucket in leaf.shard().geometry().all_buckets() {
            let slots = table.slots(bucket, locked).map(|slot| {
                let apart = self.geometry.is_apart(slot >> tag_bits, bucket, level);
                (u64::from(slot) & (u64::MAX >> (u64::BITS - width)), (slot >> bit & 1 == 1) ^ apart)
            });
            for half in [false, true] {
                slots.iter().for_each(|&(slot, goes)| words.push(if goes == half { slot } else { 0 }));
            }
        }
        words.end();
        leaf.load()
    }
}

/// What was copied to a new table: everything, or half of it, which has this bit. Cleared when this is dropped, as it also is if a
/// panic unwinds behind the publication: the sweep of a tick would count what it clears in both tables.
struct Copied<'a> {
    leaf: &'a Leaf,
    locked: &'a LockedAll<'a>,
    bit: Option<u32>,
    is_empty: bool,
}

impl Drop for Copied<'_> {
    fn drop(&mut self) {
        match self.bit {
            _ if self.is_empty => {}
            Some(bit) => self.leaf.clear_half(self.locked, bit),
            // Nobody looks for anything there any more, but who came before (model lookup_during_a_refill_finds_its_key).
            None => self.leaf.shard().bucket_array().clear_all(self.locked),
        }
    }
}

impl Leaf {
    /// Makes the counts what there is, if a change was interrupted.
    pub(super) fn mend(&self, locked: &LockedAll<'_>, plan: &Plan) {
        if self.shard().stripes().interrupted().is_set() {
            self.clear_strangers(locked, plan);
        }
        locked.mend_counts(|| self.shard().occupied().map(|taken| taken.wrapping_sub(self.moved.get())));
    }

    /// Copies all that has this bit to a table that no reader knows, and says how many there were.
    fn copy_half_to(&self, locked: &LockedAll<'_>, child: Member<'_, Leaf>, bit: u32) -> u64 {
        let (lanes, width, mut moved) = (self.lanes(), child.shards.plan().slot_bits, 0);
        let mut words = Packer::new(self.slots_of_a_run() * width, child.shard().bucket_array().filled_by_each());
        self.each_run(locked, |run| {
            let goes = lanes.with_bit(run, bit);
            moved += u64::from(lanes.count([goes, 0, 0, 0]));
            words.push(lanes.narrowed(run & lanes.whole(goes), width));
        });
        words.end();
        moved
    }

    /// Clears all that has this bit, of which the other table has a copy. The cells have changed before: who sees a slot cleared
    /// looks there.
    fn clear_half(&self, locked: &LockedAll<'_>, bit: u32) {
        let lanes = self.lanes();
        self.clear_where(locked, |run| lanes.with_bit(run, bit));
    }

    /// Clears what a split that was interrupted has left, of classes that are in another table.
    fn clear_strangers(&self, locked: &LockedAll<'_>, plan: &Plan) {
        let (extent, lanes) = (self.extent(plan), self.lanes());
        let ([known, _], mask) = (plan.known(&extent), plan.known_mask(&extent));
        let tag_bits = plan.tag_bits();
        let (known, mask) = (lanes.repeat((known & mask) << tag_bits), lanes.repeat(mask << tag_bits));
        self.clear_where(locked, |run| lanes.high() & !lanes.equal(run & mask, known) & !lanes.equal(run, 0));
    }

    /// Clears the slots of a run of which this says the highest bits, word by word: a bucket is read before any word of it is
    /// written.
    fn clear_where(&self, locked: &LockedAll<'_>, goes: impl Fn(u64) -> u64) {
        let (table, lanes) = (self.shard().bucket_array(), self.lanes());
        let width = self.shards.plan().slot_bits;
        let mut words = Packer::new(self.slots_of_a_run() * width, table.emptied_by_each(locked));
        self.each_run(locked, |run| words.push(lanes.only(run) & !lanes.whole(goes(run))));
        words.end();
    }

    fn lanes(&self) -> Lanes {
        self.shard().bucket_array().format().lanes
    }

    fn slots_of_a_run(&self) -> u32 {
        if self.shard().bucket_array().format().has_two_runs() { 2 } else { 4 }
    }

    /// All runs, in order, each with anything above it.
    #[inline(always)]
    fn each_run(&self, locked: &LockedAll<'_>, mut work: impl FnMut(u64)) {
        let table = self.shard().bucket_array();
        // A copy, which the compiler need not read anew.
        let format = *table.format();
        for bucket in self.shard().geometry().all_buckets() {
            let [low, high] = table.runs(&format, bucket, locked);
            work(low);
            if format.has_two_runs() {
                work(high);
            }
        }
    }
}
