//! The contents of tables as plain words, one table after the other, while the filter serves and splits.

use super::Growing;
use crate::raw::copy::TableCopy;
use crate::raw::slots::{SlotKind, Slots};
use core::ops::Range;

impl<K: SlotKind> Growing<K> {
    /// The number of fingerprints in these shards. Tables are counted one after the other.
    pub(crate) fn stored_in(&self, shards: Range<usize>) -> u64 {
        let leaves = self.directory.each_from_newest();
        let leaves = leaves.filter(|leaf| shards.contains(&(leaf.first_cell / self.plan.cells_at(0))));
        leaves.map(|leaf| leaf.load().min(leaf.shards.plan.slots() as u64)).sum()
    }

    /// Copies the table whose first cell is this one.
    ///
    /// A split leaves that cell to the table that is split, and a refill before the lock to the new table, which is
    /// copied instead. So of adjacent tables, each cell is copied once, while its table is locked as a whole (models
    /// copy_during_a_*). The number of its cells is read under these locks, like the rest of a [`TableCopy`].
    pub(in crate::raw) fn copy_table(&self, cell: usize, words: &mut [u64]) -> TableCopy {
        loop {
            let leaf = self.directory.at(cell);
            debug_assert_eq!(leaf.first_cell, cell);
            let locked = leaf.shard().stripes().lock_all();
            if !self.is_named(leaf) {
                continue;
            }
            let epoch = <K::Slots<'_> as Slots>::number(self.kind.slots().now());
            leaf.mend(&locked, &self.plan);
            let copied = leaf.shards.plan.words as usize;
            leaf.shard().bucket_array().copy_to(&locked, &mut words[..copied]);
            return TableCopy { extent: leaf.extent(&self.plan), count: leaf.load(), epoch };
        }
    }
}
