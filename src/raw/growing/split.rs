//! Doubling a table: a split moves half of its classes to a new one, and a refill moves all of them to one of twice the
//! size.
//!
//! Copy, publish, clear. No class is placed anew: it has the same buckets in both tables, or buckets that hold no
//! others than before. So nothing fails once there is memory.

use super::Growing;
use super::leaf::Leaf;
use crate::error::InsertError;
use crate::layout::{Lanes, Packer, Plan};
use crate::raw::locks::LockedAll;
use crate::raw::slots::SlotKind;
use crate::sys::directory::Member;
use crate::sys::steps::{Step, reached};
use std::time::Instant;

impl<K: SlotKind> Growing<K> {
    /// Whether the table may be doubled and has this load. A refilled table may not, because no cell points to it.
    pub(super) fn splits_from(&self, leaf: Member<'_, Leaf>, load: f64) -> bool {
        let slots = leaf.shards.plan.slots() as f64;
        let may_be = leaf.doublings() < self.plan.reserve_bits && self.is_named(leaf);
        may_be && leaf.load() as f64 >= load * slots
    }

    /// Whether cells point to the table. Its first cell does, unless it was refilled.
    pub(super) fn is_named(&self, leaf: Member<'_, Leaf>) -> bool {
        self.directory.is_at(leaf.first_cell, leaf)
    }

    /// Doubles a table that has doubled so often, unless another thread has done so, or its load under all locks is
    /// below `from`: the caller may have read a load that is gone or never was (model
    /// a_table_that_was_emptied_is_not_split). Fails if allocation fails.
    ///
    /// The new table stays locked until all of its cells point to it. Otherwise it could be split while cells of its
    /// own child are still to be written here (models split_of_a_child_*).
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
        // The position in a slot, above the tag.
        let bit = self.plan.tag_bits + self.plan.fingerprint_bits - doublings - 1;
        let locked = leaf.shard().stripes().lock_all();
        // Ends before the stripes are unlocked, so that the next thread that locks all of them sees that a panic interrupted it.
        leaf.shard().change(|| {
            // Slots left by an interrupted split take room, and would become keys where they are copied to.
            leaf.mend(&locked, &self.plan);
            // The epoch is read under all locks of the table. Slots that are dead by it are neither copied nor counted
            // (models tick_during_a_split_*).
            self.shard(leaf).sweep_all(&locked);
            if leaf.doublings() != doublings || !self.splits_from(leaf, from) {
                return Ok(());
            }
            // Allocated when the split is certain: of many threads that find the table full, one takes memory, which no
            // arena gives back.
            let Some(child) = Leaf::new(&self.plan, &extent, &self.arena) else {
                return Err(InsertError::OutOfMemory);
            };
            let is_empty = leaf.load() == 0;
            // The one place where two tables are locked (H3): no other thread knows the second one, or waits for the
            // first while it holds the second.
            let (child, child_locked) = self.directory.add(child, |child| {
                let child_locked = child.get().shard().stripes().lock_all();
                let moved = match (is_empty, refills) {
                    (true, _) => 0,
                    (_, true) => self.copy_all_to(&leaf, &locked, child, bit),
                    (_, false) => leaf.copy_half_to(&locked, child, bit),
                };
                reached(Step::Copied);
                // Nothing allocates from here on, so that the cells and the numbers of both tables agree.
                leaf.note_doubling(&child, moved);
                child_locked
            });
            // Before any key is stored in its slots, so that `len` never exceeds `slots`.
            if !refills {
                self.splits.add(1);
            }
            let copied = Copied { leaf: &leaf, locked: &locked, bit: (!refills).then_some(bit), is_empty };
            self.directory.publish(child.first_cell..child.first_cell + cells, child, || reached(Step::Published));
            drop(child_locked);
            drop(copied);
            Ok(())
        })?;
        drop(locked);
        self.nanos_in_splits.add(begun.elapsed().as_nanos() as u64);
        Ok(())
    }

    /// Relocates a key from its first bucket in its present table.
    #[cfg(test)]
    pub(crate) fn hop(&self, key: crate::layout::Mixed) -> bool {
        let (shard, class) = self.locate(key);
        shard.hop(crate::layout::Hop::of(class))
    }

    /// Splits the table of a key, if it may be split and no other thread does so in the meantime.
    #[cfg(test)]
    pub(crate) fn split_owner(&self, key: crate::layout::Mixed) {
        let (leaf, _) = self.owner(self.cell_place(key));
        self.split(leaf, leaf.doublings(), 0.0).expect("memory");
    }

    /// Copies all slots to a table of twice the size that no reader knows, and returns their number. The slots of a
    /// bucket go to one of two, selected by `bit`, and for buckets of odd bases by a draw from the core, too.
    fn copy_all_to(&self, leaf: &Leaf, locked: &LockedAll<'_>, child: Member<'_, Leaf>, bit: u32) -> u64 {
        let (table, tag_bits, level) =
            (leaf.shard().bucket_array(), self.plan.tag_bits, leaf.shards.plan.extension_bits);
        let width = child.shards.plan.slot_bits;
        let mut words = Packer::new(width, child.shard().bucket_array().filled_by_each());
        for bucket in leaf.shard().plan().all_buckets() {
            let slots = table.slots(bucket, locked.into()).map(|slot| {
                let apart = self.geometry.alternates().is_apart(slot >> tag_bits, bucket, level);
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

/// The slots copied to a new table: all, or those with this bit. Cleared on drop, also if a panic unwinds after the
/// publication: otherwise, the sweep of a tick would count them in both tables.
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
            // The cells have changed before, so a lookup that reads a cleared slot looks in the other table.
            Some(bit) => self.leaf.clear_where(self.locked, |run| self.leaf.lanes().with_bit(run, bit)),
            // Only a lookup that began before the publication reads them (model lookup_during_a_refill_finds_its_key).
            None => self.leaf.shard().bucket_array().clear_all(self.locked),
        }
    }
}

impl Leaf {
    /// Corrects the counts if a change was interrupted.
    pub(super) fn mend(&self, locked: &LockedAll<'_>, plan: &Plan) {
        locked.mend_counts(|| {
            // Changes the state of each stripe, as H14 requires where slots are cleared.
            locked.bump_all();
            self.clear_strangers(locked, plan);
            self.shard().occupied().map(|taken| taken.wrapping_sub(self.moved.get()))
        });
    }

    /// Copies all slots with this bit to a table that no reader knows, and returns their number.
    fn copy_half_to(&self, locked: &LockedAll<'_>, child: Member<'_, Leaf>, bit: u32) -> u64 {
        let (lanes, width, mut moved) = (self.lanes(), child.shards.plan.slot_bits, 0);
        let mut words = Packer::new(self.slots_of_a_run() * width, child.shard().bucket_array().filled_by_each());
        self.each_run(locked, |run| {
            let goes = lanes.with_bit(run, bit);
            moved += u64::from(lanes.count([goes, 0, 0, 0]));
            words.push(lanes.narrowed(run & lanes.whole(goes), width));
        });
        words.end();
        moved
    }

    /// Clears the slots of an interrupted split whose classes are in another table.
    fn clear_strangers(&self, locked: &LockedAll<'_>, plan: &Plan) {
        let (extent, lanes) = (self.extent(plan), self.lanes());
        let ([known, _], mask) = (plan.known(&extent), plan.known_mask(&extent));
        let tag_bits = plan.tag_bits;
        let (known, mask) = (lanes.repeat((known & mask) << tag_bits), lanes.repeat(mask << tag_bits));
        self.clear_where(locked, |run| lanes.high & !lanes.equal(run & mask, known) & !lanes.equal(run, 0));
    }

    /// Clears the slots whose highest bits `goes` returns, word by word. A bucket is read before any word of it is
    /// written.
    fn clear_where(&self, locked: &LockedAll<'_>, goes: impl Fn(u64) -> u64) {
        let (table, lanes) = (self.shard().bucket_array(), self.lanes());
        let width = self.shards.plan.slot_bits;
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

    /// Calls `work` with all runs in order, each below other bits.
    #[inline(always)]
    fn each_run(&self, locked: &LockedAll<'_>, mut work: impl FnMut(u64)) {
        let table = self.shard().bucket_array();
        // A copy, which the compiler need not reload.
        let format = *table.format();
        for bucket in self.shard().plan().all_buckets() {
            let [low, high] = table.runs(&format, bucket, locked.into());
            work(low);
            if format.has_two_runs() {
                work(high);
            }
        }
    }
}
