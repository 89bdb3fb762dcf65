//! What a look-up asks first.

use crate::list::List;

/// Answers in memory whether a key may be on the list. "No" must be certain; "maybe" is confirmed by the store.
pub trait Front: Send + Sync {
    /// Says whether the key may be on the list. Never blocks.
    fn may_be_listed(&self, key: &str) -> bool;

    /// Answers for each of the keys, which are as many as the answers.
    fn may_be_listed_batch(&self, keys: &[&str], answers: &mut [bool]);
}

impl Front for List {
    fn may_be_listed(&self, key: &str) -> bool {
        List::may_be_listed(self, key)
    }

    fn may_be_listed_batch(&self, keys: &[&str], answers: &mut [bool]) {
        List::may_be_listed_batch(self, keys, answers);
    }
}
