//! Single steps of writers, for models: those that choose a bucket by a look without locks would blind them.

use super::Growing;
use super::write::InLeaf;
use crate::layout::{Class, Hop, Mixed, Search, SearchBudget};
use crate::raw::owner::Fixed;
use crate::raw::pair::Put;
use crate::raw::slots::{Compare, SlotKind};
use core::cell::Cell;

impl<K: SlotKind> Growing<K> {
    /// `None` if the pair is full.
    pub(crate) fn insert_into_pair(&self, key: Mixed, put: Put) -> Option<u32> {
        let result = self.at_owner(key, |shard, owner, class| shard.insert_into_pair(owner, class, put));
        result.map(|result| result.expect("no refusal"))
    }

    /// Under one lock. Whether there was room.
    pub(crate) fn insert_into_first(&self, key: Mixed) -> bool {
        self.at_owner(key, |shard, owner, class| shard.insert_into(owner, class.first, class, 1))
    }

    /// With all of the table locked.
    pub(crate) fn insert_alone(&self, key: Mixed) {
        let result = self.at_owner(key, |shard, owner, class| {
            let (mut search, mut budget) = (Search::new(), SearchBudget::full());
            shard.exclusive().insert(owner, &mut search, &mut budget, class, Put::COPY)
        });
        assert_eq!(result, Ok(0));
    }

    /// Moves a key out of its first bucket, in the table that it is in.
    pub(crate) fn hop(&self, key: Mixed) -> bool {
        self.shard(self.owner(self.cell_place(key)).0).hop(out_of_first(self.owner(self.cell_place(key)).1))
    }

    /// The same in this table of the list, whether or not it is there and the key in it.
    pub(crate) fn hop_in_table(&self, number: usize, key: Mixed) -> bool {
        let class = self.cell_place(key).class;
        self.directory.each().nth(number).is_some_and(|table| self.shard(table).hop(out_of_first(table.class(class))))
    }

    /// Stores a key that is absent in the oldest table, before that is split; says whether it was absent.
    pub(crate) fn insert_unique_in_first_table(&self, key: Mixed) -> u32 {
        let class = self.cell_place(key).class;
        let oldest = self.directory.each().next().expect("a table");
        let Ok(result) = self.shard(oldest).insert_into_pair(Fixed, oldest.class(class), Put::UNIQUE);
        result.expect("there is room").expect("no refusal")
    }

    /// Stores a key into the slot out of which another one is moved; `None` if its table was split meanwhile.
    pub(crate) fn displace(&self, moved: Mixed, key: Mixed, put: Put) -> Option<u32> {
        let (cell, searched_long) = (self.cell_place(key).cell, Cell::new(false));
        let (leaf, class) = self.owner(self.cell_place(key));
        let owner = InLeaf { growing: self, cell, leaf, searched_long: &searched_long };
        let hop = out_of_first(leaf.class(self.cell_place(moved).class));
        // In the new table the one to be moved is not found.
        self.shard(leaf).last_hop(owner, hop, 1, class, put).ok()?
    }

    /// A search in vain for room for this key.
    pub(crate) fn searched(&self, key: Mixed) -> Box<Search> {
        let (leaf, class) = self.owner(self.cell_place(key));
        self.shard(leaf).searched(class)
    }

    /// Whether an insertion is refused after that search. `None`: its key went to another table.
    pub(crate) fn was_full(&self, key: Mixed, search: &Search) -> Option<bool> {
        let (place, searched_long) = (self.cell_place(key), Cell::new(false));
        let (leaf, class) = self.owner(place);
        let owner = InLeaf { growing: self, cell: place.cell, leaf, searched_long: &searched_long };
        let now = self.kind.slots().now();
        self.shard(leaf).was_full(owner, search, class, Put::COPY, now).ok()
    }

    /// As an insertion does that was long in finding room in the table of this key.
    pub(crate) fn split_owner_if_nearly_full(&self, key: Mixed) {
        self.split_if_nearly_full(self.owner(self.cell_place(key)).0);
    }

    /// Splits this table of the list, if it is there and has doubled so often; says whether it was there.
    pub(crate) fn split_table(&self, number: usize, doublings: u32) -> bool {
        let table = self.directory.each().nth(number);
        table.inspect(|&leaf| self.split(leaf, doublings, 0.0).expect("memory")).is_some()
    }
}

fn out_of_first(class: Class) -> Hop {
    Hop { fingerprint: class.fingerprint, from: class.first, to: class.second }
}
