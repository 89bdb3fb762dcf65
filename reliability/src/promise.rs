//! What is promised, and the end of a run that finds a promise broken.

use crate::shape::Shape;
use std::fmt::{self, Display};
use std::sync::{Mutex, PoisonError};
use std::{panic, process};

/// What the README and the documentation promise.
#[derive(Clone, Copy)]
pub(crate) enum Promise {
    Present,
    Absent,
    Removal,
    Refusal,
    Admission,
    Copies,
    Count,
    Capacity,
    Rate,
    Snapshot,
    Clear,
    Stats,
    Seeds,
    Limit,
}

impl Display for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
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
        })
    }
}

/// The arguments that repeat the section that runs.
static REPEAT: Mutex<String> = Mutex::new(String::new());
/// Held by the thread that ends the process: of several messages only the first is printed.
static LAST_WORDS: Mutex<()> = Mutex::new(());

/// Sets what the messages from now on say of how to repeat the run. A panic ends the process as a broken promise does.
pub(crate) fn repeat_with(arguments: String) {
    *REPEAT.lock().unwrap_or_else(PoisonError::into_inner) = arguments;
    panic::set_hook(Box::new(|panic| end(&format!("broken promise: no panic: {panic}"))));
}

/// Ends the process.
#[cold]
pub(crate) fn broken(promise: Promise, shape: &Shape, key: impl Into<Option<u64>>, what: impl Display) -> ! {
    let key = key.into().map_or_else(|| "no single key".into(), |key| format!("key {key}"));
    end(&format!("broken promise: {promise}: {what} ({key}, filter of {shape})"))
}

fn end(message: &str) -> ! {
    let _last_words = LAST_WORDS.lock();
    let repeat = REPEAT.lock().unwrap_or_else(PoisonError::into_inner);
    eprintln!("\n{message}; to repeat it: cargo run --release -p reliability -- {repeat}");
    process::exit(1)
}
