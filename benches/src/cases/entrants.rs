//! The contestants as the cases see them.

use crate::contestants::{Contestant, Contested, Passes, ours};
use crate::field::{Key, Size};

/// A contestant with a size.
pub(crate) struct Entrant<K> {
    /// Its name with its width.
    pub(crate) label: String,
    /// The number of its colour in figures, one for each peer.
    pub(crate) colour: usize,
    pub(crate) size: Size,
    pub(crate) contestant: Contestant<K>,
}

impl<K: Key> Entrant<K> {
    pub(crate) fn is_ours(&self) -> bool {
        self.contestant.name == ours::NAME
    }

    /// An empty table.
    pub(crate) fn build(&self) -> Box<dyn Passes<K>> {
        (self.contestant.build)(self.size)
    }

    /// A table of these keys, and how many of them it refused.
    pub(crate) fn filled(&self, keys: &[K]) -> (Box<dyn Passes<K>>, usize) {
        let set = self.build();
        let refused = keys.len() - set.insert_all(keys);
        (set, refused)
    }
}

/// This crate with 13 and with 16 bits, and the peers for which `wanted`, with tables of 2^`log2` slots.
pub(crate) fn entrants<K: Contested>(log2: u32, wanted: impl Fn(&Contestant<K>) -> bool) -> Vec<Entrant<K>> {
    let ours = [13, 16].into_iter().zip([K::contestants(), K::contestants()]);
    let ours = ours.map(|(bits, mut all)| (0, bits, all.swap_remove(0)));
    let peers = K::contestants().into_iter().skip(1).enumerate().filter(|(_, contestant)| wanted(contestant));
    let peers = peers.map(|(colour, contestant)| {
        let bits = [13, 16, 8].into_iter().find(|&bits| (contestant.bits)(bits)).expect("a width");
        (colour, bits, contestant)
    });
    ours.chain(peers)
        .map(|(colour, bits, contestant)| Entrant {
            label: if contestant.exact { contestant.name.into() } else { format!("{}, {bits} bits", contestant.name) },
            colour,
            size: Size::new(log2, bits),
            contestant,
        })
        .collect()
}
