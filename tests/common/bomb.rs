//! A key that is the user's fault.

use std::hash::{Hash, Hasher};
use std::ops::Range;

/// A key whose `Hash` panics, after it has hashed a part, when it is armed.
#[derive(Clone)]
pub(super) struct Bomb {
    pub(super) number: u64,
    pub(super) armed: bool,
}

impl Hash for Bomb {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.number.hash(state);
        assert!(!self.armed, "the bomb of key {}", self.number);
        self.number.hash(state);
    }
}

/// Keys of these numbers, none of them armed.
pub(super) fn bombs(numbers: Range<u64>) -> Vec<Bomb> {
    numbers.map(|number| Bomb { number, armed: false }).collect()
}
