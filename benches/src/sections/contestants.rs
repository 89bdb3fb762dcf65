//! The contestants as the sections see them.

use compare::{Contestant, Key, Passes, Size};

/// What this crate is called among them.
pub(crate) const OURS: &str = "this crate";

/// A contestant with a table of its own.
pub(crate) struct Entrant<K> {
    pub(crate) name: &'static str,
    /// The number of its colour in figures, one for each peer.
    pub(crate) colour: usize,
    pub(crate) locks: bool,
    /// Whether it never forgets a key that it took.
    pub(crate) faithful: bool,
    pub(crate) size: Size,
    build: fn(Size) -> Box<dyn Passes<K>>,
}

impl<K: Key> Entrant<K> {
    /// An empty table.
    pub(crate) fn build(&self) -> Box<dyn Passes<K>> {
        (self.build)(self.size)
    }

    /// The same with another width.
    pub(crate) fn with_bits(mut self, name: &'static str, bits: u32) -> Self {
        self.name = name;
        self.size.bits = bits;
        self
    }

    /// A table of these keys, and how many of them it refused.
    pub(crate) fn filled(&self, keys: &[K]) -> (Box<dyn Passes<K>>, usize) {
        let set = self.build();
        let refused = keys.len() - set.insert_all(keys);
        (set, refused)
    }
}

/// All contestants for which `wanted`, ours first, with tables of 2^`log2` slots; 16 bits, where they can.
pub(crate) fn entrants<K: Key>(log2: u32, wanted: impl Fn(&Contestant<K>) -> bool) -> Vec<Entrant<K>> {
    let contestants = compare::peers::contestants::<K>();
    let numbered = contestants.into_iter().enumerate().filter(|(_, contestant)| wanted(contestant));
    numbered
        .map(|(number, contestant)| Entrant {
            name: contestant.name,
            colour: number.saturating_sub(1),
            locks: contestant.locks,
            faithful: contestant.name == OURS || contestant.exact || !contestant.removes,
            size: Size::new(log2, if (contestant.bits)(16) { 16 } else { 8 }),
            build: contestant.build,
        })
        .collect()
}
