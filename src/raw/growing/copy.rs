//! The contents of tables as plain words, one table after the other, while the filter serves and splits.

use super::Growing;
use crate::layout::{Aim, Bucket, Class, Fingerprint, unpack};
use crate::raw::filter::RawFilter;

/// What a copy of a table is of.
pub(crate) struct TableCopy {
    base: usize,
    /// The bits of a whole fingerprint that it does not store.
    above: u32,
    words: usize,
    bits: u32,
    cells: usize,
}

impl Growing {
    /// Copies all tables, one after the other, into the same `words`, which hold any of them.
    ///
    /// The cell at which this stands is always the first one of a table, and a split leaves that cell to the table that is
    /// split: so every cell is copied once, at a moment when its table was locked as a whole (models copy_during_a_split_*). How many
    /// cells a table has is read under its locks.
    pub(crate) fn copy_each<E>(
        &self,
        words: &mut [u64],
        mut take: impl FnMut(&TableCopy, &[u64]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut cell = 0;
        while cell < self.cells() {
            let copy = self.copy_table(cell, words);
            cell += copy.cells;
            take(&copy, &words[..copy.words])?;
        }
        Ok(())
    }

    /// Each copy of each class by the shard that it began in, with its whole fingerprint, of a filter without writers.
    pub(crate) fn classes(&self) -> impl Iterator<Item = (usize, Class)> {
        let mut next = 0;
        let tables = core::iter::from_fn(move || {
            let leaf = (next < self.cells()).then(|| self.directory.at(next))?;
            next += 1 << (self.plan.reserve_bits - leaf.doublings());
            Some(leaf)
        });
        tables.flat_map(|leaf| {
            let above = self.spent(leaf.first_cell, &leaf.raw);
            let whole = move |class: Class| Class { fingerprint: class.fingerprint.with(above), ..class };
            let base = leaf.first_cell >> self.plan.reserve_bits;
            leaf.get().shard().classes().map(move |class| (base, whole(class)))
        })
    }

    /// The bits of a whole fingerprint by which a table was chosen when it was made, which it does not store.
    fn spent(&self, first_cell: usize, table: &RawFilter) -> u32 {
        let reserve = (first_cell & ((1 << self.plan.reserve_bits) - 1)) as u32;
        let stored = table.plan().reserve_bits;
        reserve >> stored << stored << self.plan.core_bits()
    }

    fn copy_table(&self, cell: usize, words: &mut [u64]) -> TableCopy {
        let leaf = self.directory.at(cell);
        debug_assert_eq!(leaf.first_cell, cell);
        let locked = leaf.shard().stripes().lock_all();
        leaf.mend(&locked, &self.plan);
        let (plan, doublings) = (leaf.raw.plan(), leaf.doublings());
        leaf.shard().table().copy_to(&locked, &mut words[..plan.words]);
        TableCopy {
            base: cell >> self.plan.reserve_bits,
            above: self.spent(cell, &leaf.raw),
            words: plan.words,
            bits: plan.slot_bits,
            cells: 1 << (self.plan.reserve_bits - doublings),
        }
    }

    /// All that a copy holds.
    pub(crate) fn aims<'a>(&'a self, copy: &'a TableCopy, words: &'a [u64]) -> impl Iterator<Item = Aim> + 'a {
        let above = copy.above;
        let buckets = self.geometry.all_buckets().zip(unpack(words, copy.bits, self.plan.buckets as usize));
        buckets.flat_map(move |(bucket, slots): (Bucket, _)| {
            let fingerprints = slots.into_iter().filter_map(Fingerprint::from_slot);
            fingerprints.map(move |stored| self.geometry.aim_of(copy.base, stored.with(above), bucket))
        })
    }
}
