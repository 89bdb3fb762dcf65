//! What may stand before the store in place of the filter.

use clap::ValueEnum;
use dashmap::DashSet;
use risk_server::http::Front;
use std::fmt;

/// Which one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Variant {
    /// The server as it is.
    Filter,
    /// No front: each check reads the store.
    Store,
    /// No look-up at all: each check is answered "no".
    Nothing,
    /// An exact set of all keys in memory.
    Dashset,
}

impl Variant {
    pub(crate) const ALL: [Variant; 4] = [Variant::Filter, Variant::Store, Variant::Nothing, Variant::Dashset];

    /// The word for it, as an option.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Variant::Filter => "filter",
            Variant::Store => "store",
            Variant::Nothing => "nothing",
            Variant::Dashset => "dashset",
        }
    }

    /// Whether its answers are right.
    pub(crate) fn is_exact(self) -> bool {
        self != Variant::Nothing
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Variant::Filter => "the filter",
            Variant::Store => "the store alone",
            Variant::Nothing => "no look-up",
            Variant::Dashset => "DashSet<String>",
        })
    }
}

/// The same for every key.
pub(crate) struct Always(pub(crate) bool);

impl Front for Always {
    fn may_be_listed(&self, _: &str) -> bool {
        self.0
    }

    fn may_be_listed_batch(&self, _: &[&str], answers: &mut [bool]) {
        answers.fill(self.0);
    }
}

/// All keys, in memory.
#[derive(Default)]
pub(crate) struct Exact(DashSet<String>);

impl Exact {
    pub(crate) fn insert(&self, key: String) {
        self.0.insert(key);
    }

    pub(crate) fn remove(&self, key: &str) {
        self.0.remove(key);
    }
}

impl Front for Exact {
    fn may_be_listed(&self, key: &str) -> bool {
        self.0.contains(key)
    }

    fn may_be_listed_batch(&self, keys: &[&str], answers: &mut [bool]) {
        for (key, answer) in keys.iter().zip(answers) {
            *answer = self.0.contains(*key);
        }
    }
}
