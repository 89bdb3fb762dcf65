//! Single steps of writers for models, which a step that reads words without locks would blind.

use super::Growing;
use super::write::InLeaf;
use crate::layout::{Hop, Mixed, Search, SearchBudget};
use crate::raw::owner::Fixed;
use crate::raw::pair::Put;
use crate::raw::slots::{SlotKind, Slots};
use core::cell::Cell;

impl<K: SlotKind> Growing<K> {
    /// Returns `None` if the pair is full.
    pub(crate) fn insert_into_pair(&self, key: Mixed, put: Put) -> Option<u32> {
        let result = self.at_owner(key, |shard, owner, class| shard.insert_into_pair(owner, class, put));
        result.map(|result| result.expect("no refusal"))
    }

    /// Inserts under one lock. Returns whether there was room.
    pub(crate) fn insert_into_first(&self, key: Mixed) -> bool {
        self.at_owner(key, |shard, owner, class| shard.insert_into(owner, class.first, class, 1))
    }

    /// Inserts under all locks of the table.
    pub(crate) fn insert_alone(&self, key: Mixed) {
        let result = self.at_owner(key, |shard, owner, class| {
            let (mut search, mut budget) = (Search::new(), SearchBudget::full());
            shard.exclusive().insert(owner, &mut search, &mut budget, class, Put::COPY)
        });
        assert_eq!(result, Ok(0));
    }

    /// Relocates a key from its first bucket in this table of the list, if both are there.
    pub(crate) fn hop_in_table(&self, number: usize, key: Mixed) -> bool {
        let class = self.cell_place(key).class;
        self.directory.each().nth(number).is_some_and(|table| self.shard(table).hop(Hop::of(table.class(class))))
    }

    /// Stores an absent key in the oldest table before that is split. Returns its previous value, 0.
    pub(crate) fn insert_unique_in_first_table(&self, key: Mixed) -> u32 {
        let class = self.cell_place(key).class;
        let oldest = self.directory.each().next().expect("a table");
        let Ok(result) = self.shard(oldest).insert_into_pair(Fixed, oldest.class(class), Put::UNIQUE);
        result.expect("there is room").expect("no refusal")
    }

    /// Stores a key in the slot from which another one is relocated, or returns `None` if the table was split.
    pub(crate) fn displace(&self, moved: Mixed, key: Mixed, put: Put) -> Option<u32> {
        let (cell, searched_long) = (self.cell_place(key).cell, Cell::new(false));
        let (leaf, class) = self.owner(self.cell_place(key));
        let owner = InLeaf { growing: self, cell, leaf, searched_long: &searched_long, doubles_to: 0 };
        let hop = Hop::of(leaf.class(self.cell_place(moved).class));
        // The key to be moved is not found in the new table.
        self.shard(leaf).last_hop(owner, hop, 1, class, put).ok()?
    }

    /// A search in vain for room for this key.
    pub(crate) fn searched(&self, key: Mixed) -> Box<Search> {
        let (shard, class) = self.locate(key);
        shard.searched(class)
    }

    /// Whether an insertion is refused after that search, or `None` if its key is in another table.
    pub(crate) fn was_full(&self, key: Mixed, search: &Search) -> Option<bool> {
        let (place, searched_long) = (self.cell_place(key), Cell::new(false));
        let (leaf, class) = self.owner(place);
        let owner = InLeaf { growing: self, cell: place.cell, leaf, searched_long: &searched_long, doubles_to: 0 };
        let now = self.kind.slots().now();
        self.shard(leaf).was_full(owner, search, class, Put::COPY, now).ok().flatten()
    }

    /// Like an insertion after a long search in the table of this key.
    pub(crate) fn split_owner_if_nearly_full(&self, key: Mixed) {
        self.split_if_nearly_full(self.owner(self.cell_place(key)).0);
    }

    /// Splits this table of the list if it has doubled so often. Returns whether it is there.
    pub(crate) fn split_table(&self, number: usize, doublings: u32) -> bool {
        let table = self.directory.each().nth(number);
        table.inspect(|&leaf| self.split(leaf, doublings, 0.0).expect("memory")).is_some()
    }
}
