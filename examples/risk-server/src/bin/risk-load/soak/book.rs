//! What is known of every key that comes and goes.
//!
//! Each key has one word: a version and a state. Whoever wants to change a key claims it first, so one change of a key
//! is under way at a time, and its answer tells what the key is from then on:
//!
//! ```text
//! absent, listed --claim--> changing --settle--> absent, listed
//!                           changing --doubt---> in doubt --settle--> absent, listed
//! ```
//!
//! In doubt is a key whose change was cut off, or met a replacement of the list: it may be either, until it is asked
//! for while nobody changes anything. Every step takes a new version, so whoever reads the same word before a look-up
//! and after it knows that the key did not change meanwhile, and what the answer has to be.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// What is known of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Its delete was acknowledged, or it was never put.
    Absent,
    /// Its put was acknowledged.
    Listed,
    /// A change is under way.
    Changing,
    /// The last change was made, or it was not.
    InDoubt,
}

impl State {
    fn of(listed: bool) -> Self {
        if listed { State::Listed } else { State::Absent }
    }

    /// Whether the key is listed, if that is known.
    pub(crate) fn listed(self) -> Option<bool> {
        match self {
            State::Absent => Some(false),
            State::Listed => Some(true),
            State::Changing | State::InDoubt => None,
        }
    }
}

/// A moment in the life of a key. Equal ones are the same moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Word(u64);

impl Word {
    fn next(self, state: State) -> Self {
        Word((((self.0 >> 2) + 1) << 2) | state as u64)
    }

    pub(crate) fn state(self) -> State {
        match self.0 & 3 {
            0 => State::Absent,
            1 => State::Listed,
            2 => State::Changing,
            _ => State::InDoubt,
        }
    }
}

/// The words of all keys. SeqCst: what is known has to be in the order in which requests are sent and answered.
pub(crate) struct Book(Vec<AtomicU64>);

impl Book {
    /// So many absent keys.
    pub(crate) fn new(keys: usize) -> Self {
        Book((0..keys).map(|_| AtomicU64::new(0)).collect())
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn read(&self, key: usize) -> Word {
        Word(self.0[key].load(SeqCst))
    }

    /// Claims a key, and says whether it is listed; not one that changes or is in doubt.
    pub(crate) fn claim(&self, key: usize) -> Option<bool> {
        let word = self.read(key);
        let listed = word.state().listed()?;
        let claimed = word.next(State::Changing);
        self.0[key].compare_exchange(word.0, claimed.0, SeqCst, SeqCst).is_ok().then_some(listed)
    }

    /// Whoever claimed the key, or asked for it while nothing changes, says what it is from now on.
    pub(crate) fn settle(&self, key: usize, listed: bool) {
        self.step(key, State::of(listed));
    }

    /// Whoever claimed the key does not know what came of the change.
    pub(crate) fn doubt(&self, key: usize) {
        self.step(key, State::InDoubt);
    }

    fn step(&self, key: usize, state: State) {
        self.0[key].store(self.read(key).next(state).0, SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_what_was_acknowledged_last() {
        let book = Book::new(2);
        assert_eq!((book.len(), book.read(0).state()), (2, State::Absent));
        assert_eq!(book.claim(0), Some(false));
        assert_eq!(book.read(0).state(), State::Changing);
        book.settle(0, true);
        assert_eq!(book.claim(0), Some(true));
        book.settle(0, false);
        assert_eq!(book.read(0).state().listed(), Some(false));
        assert_eq!(book.read(1).state(), State::Absent);
    }

    #[test]
    fn a_key_that_changes_or_is_in_doubt_is_nobodys_to_change() {
        let book = Book::new(1);
        assert!(book.claim(0).is_some());
        assert_eq!((book.claim(0), book.read(0).state().listed()), (None, None));
        book.doubt(0);
        assert_eq!((book.claim(0), book.read(0).state()), (None, State::InDoubt));
        book.settle(0, true);
        assert_eq!(book.claim(0), Some(true));
    }

    #[test]
    fn a_key_that_is_again_what_it_was_is_told_from_one_that_never_changed() {
        let book = Book::new(1);
        let before = book.read(0);
        assert_eq!(book.read(0), before);
        for listed in [true, false] {
            book.claim(0);
            book.settle(0, listed);
        }
        assert_eq!(book.read(0).state(), before.state());
        assert_ne!(book.read(0), before);
    }

    #[test]
    fn of_many_who_claim_a_key_one_gets_it() {
        let book = Book::new(64);
        let claimed = std::sync::atomic::AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    (0..64).filter(|&key| book.claim(key).is_some()).for_each(|_| {
                        claimed.fetch_add(1, SeqCst);
                    })
                });
            }
        });
        assert_eq!(claimed.into_inner(), 64);
    }
}
