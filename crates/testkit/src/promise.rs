//! What is promised, and the panic of a check that finds a promise broken.

use crate::shape::Shape;
use std::fmt::Display;

macro_rules! promises {
    ($($name:ident: $text:literal,)+) => {
        /// What the README and the documentation promise.
        #[derive(Clone, Copy, Debug)]
        pub enum Promise {
            $(#[doc = $text] $name,)+
        }

        impl Promise {
            fn text(self) -> &'static str {
                match self {
                    $(Promise::$name => $text,)+
                }
            }
        }
    };
}

promises! {
    Present: "a key that is stored is found",
    Absent: "a key whose class is absent is not found",
    Removal: "what is stored is removed, and nothing else",
    Refusal: "a refused insertion changes nothing, and says why",
    Admission: "insert_unique stores a key if it is absent, and only then",
    Copies: "a class has 8 copies at the most",
    Count: "counts are exact for classes",
    Capacity: "as many keys go in as were asked for",
    Rate: "false positives come at the rate of the formula",
    Snapshot: "a snapshot holds what the filter holds",
    Clear: "clear removes everything",
    Stats: "stats tell what has happened",
    Seeds: "keys that collide under some seeds do not under others",
    Limit: "removals of keys that were never inserted do the harm that is documented",
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
