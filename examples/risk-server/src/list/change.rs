//! A change of the list.

use super::key::{KeyError, check_key};

/// A change of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// From now on the key is on the list.
    Put(Box<str>),
    /// From now on the key is not on the list.
    Delete(Box<str>),
}

impl Change {
    /// Its key.
    #[must_use]
    pub fn key(&self) -> &str {
        let (Change::Put(key) | Change::Delete(key)) = self;
        key
    }

    pub(super) fn is_put(&self) -> bool {
        matches!(self, Change::Put(_))
    }
}

/// The first of these that is no key, and why.
pub(super) fn first_bad_key<'a>(mut keys: impl Iterator<Item = &'a str>) -> Option<(usize, KeyError)> {
    let mut index = 0;
    keys.find_map(|key| {
        let error = check_key(key).err().map(|error| (index, error));
        index += 1;
        error
    })
}
