//! Splits when they are asked for, and the words of the first table.

use super::Growing;
use crate::layout::Mixed;
use crate::raw::shard::Shard;
use crate::raw::slots::SlotKind;

impl<K: SlotKind> Growing<K> {
    /// The oldest table. It is the only one before the first split.
    pub(crate) fn first_table(&self) -> Shard<'_> {
        self.directory.each().next().expect("a table").get().shard()
    }

    /// Splits the table that the key is in, if it may be, unless another thread does so meanwhile.
    pub(crate) fn split_owner(&self, key: Mixed) {
        let (leaf, _) = self.owner(self.cell_place(key));
        self.split(leaf, leaf.doublings(), 0.0).expect("memory");
    }
}
