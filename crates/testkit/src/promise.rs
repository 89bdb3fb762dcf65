//! What is promised, and the panic of a check that finds a promise broken.

use crate::shape::Shape;
use std::fmt::Display;

/// What the README and the documentation promise.
#[derive(Clone, Copy, Debug)]
pub enum Promise {
    /// A key that is stored is found.
    Present,
    /// A key whose class is absent is not found.
    Absent,
    /// What is stored is removed, and nothing else.
    Removal,
    /// A refused insertion changes nothing, and says why.
    Refusal,
    /// Insert_unique stores a key if it is absent, and only then.
    Admission,
    /// A class has 8 copies at the most.
    Copies,
    /// Counts are exact for classes.
    Count,
    /// As many keys go in as were asked for.
    Capacity,
    /// False positives come at the rate of the formula.
    Rate,
    /// A snapshot holds what the filter holds.
    Snapshot,
    /// Clear removes everything.
    Clear,
    /// Stats tell what has happened.
    Stats,
    /// Keys that collide under some seeds do not under others.
    Seeds,
    /// Removals of keys that were never inserted do the harm that is documented.
    Limit,
}

impl Promise {
    fn text(self) -> &'static str {
        match self {
            Promise::Present => "a key that is stored is found",
            Promise::Absent => "a key whose class is absent is not found",
            Promise::Removal => "what is stored is removed, and nothing else",
            Promise::Refusal => "a refused insertion changes nothing, and says why",
            Promise::Admission => "insert_unique stores a key if it is absent, and only then",
            Promise::Copies => "a class has 8 copies at the most",
            Promise::Count => "counts are exact for classes",
            Promise::Capacity => "as many keys go in as were asked for",
            Promise::Rate => "false positives come at the rate of the formula",
            Promise::Snapshot => "a snapshot holds what the filter holds",
            Promise::Clear => "clear removes everything",
            Promise::Stats => "stats tell what has happened",
            Promise::Seeds => "keys that collide under some seeds do not under others",
            Promise::Limit => "removals of keys that were never inserted do the harm that is documented",
        }
    }
}

/// Panics with the promise, the key, the filter and what was wrong.
///
/// # Panics
///
/// Always.
#[cold]
#[track_caller]
pub fn broken(promise: Promise, shape: &Shape, key: impl Into<Option<u64>>, what: impl Display) -> ! {
    let key = key.into().map_or_else(|| "no single key".into(), |key| format!("key {key}"));
    panic!("broken promise: {}: {what} ({key}, filter of {shape})", promise.text())
}
