//! The contents of tables as plain words, one table after the other, while the filter serves and splits.

use super::Growing;
use crate::layout::Class;
use crate::raw::copy::TableCopy;
use crate::raw::slots::{Compare, SlotKind, Slots};
use core::ops::Range;

impl<K: SlotKind> Growing<K> {
    /// Copies the tables of these shards, one after the other, into the same `words`, which must hold any of them.
    ///
    /// `cell` is always the first one of a table. A split leaves it to the table that is split, and a refill before the
    /// lock to the new table, which is copied instead. So each cell is copied once, while its table is locked as a
    /// whole (models copy_during_a_*). The number of its cells is read under these locks, like the rest of a
    /// [`TableCopy`].
    pub(crate) fn copy_each<E>(
        &self,
        shards: Range<usize>,
        words: &mut [u64],
        mut take: impl FnMut(&TableCopy, &[u64]) -> Result<(), E>,
    ) -> Result<(), E> {
        let [mut cell, end] = [shards.start, shards.end].map(|shard| shard * self.plan.cells_at(0));
        while cell < end {
            let copy = self.copy_table(cell, words);
            cell += self.plan.cells_at(copy.extent.depth);
            take(&copy, &words[..copy.words])?;
        }
        Ok(())
    }

    /// Each copy of each class with its whole fingerprint and the shard in which it began, in a filter without writers.
    pub(crate) fn classes(&self, moment: K::Moment) -> impl Iterator<Item = (usize, Class)> {
        let mut next = 0;
        let tables = core::iter::from_fn(move || {
            let leaf = (next < self.cells()).then(|| self.directory.at(next))?;
            next += self.plan.cells_at(leaf.doublings());
            Some(leaf)
        });
        tables.flat_map(move |leaf| {
            let extent = leaf.extent(&self.plan);
            let classes = self.shard(leaf).classes(moment);
            classes.map(move |(class, _)| {
                let place = self.geometry.cell_place_of(&self.plan, &extent, class.fingerprint, class.first);
                (place.cell / self.plan.cells_at(0), place.class)
            })
        })
    }

    /// The number of fingerprints in these shards. Tables are counted one after the other.
    pub(crate) fn stored_in(&self, shards: Range<usize>) -> u64 {
        let leaves = self.directory.each_from_newest();
        let leaves = leaves.filter(|leaf| shards.contains(&(leaf.first_cell / self.plan.cells_at(0))));
        leaves.map(|leaf| leaf.load().min(leaf.shards.plan().slots() as u64)).sum()
    }

    fn copy_table(&self, cell: usize, words: &mut [u64]) -> TableCopy {
        loop {
            let leaf = self.directory.at(cell);
            debug_assert_eq!(leaf.first_cell, cell);
            let locked = leaf.shard().stripes().lock_all();
            if !self.is_named(leaf) {
                continue;
            }
            let epoch = <K::Slots<'_> as Slots>::number(self.kind.slots().now());
            leaf.mend(&locked, &self.plan);
            let copied = leaf.shards.plan().words;
            leaf.shard().bucket_array().copy_to(&locked, &mut words[..copied]);
            return TableCopy { extent: leaf.extent(&self.plan), count: leaf.load(), epoch, words: copied };
        }
    }
}
