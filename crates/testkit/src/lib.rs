//! What the tests, the fuzzer and the long checks share. It knows the library by its public face only.
//!
//! | file         | what                                                                                      |
//! |--------------|-------------------------------------------------------------------------------------------|
//! | `answer`     | the oracle of classes: which counts of copies explain an answer                           |
//! | `model`      | an exact multiset with buckets, and where the keys of a filter lie                        |
//! | `sequence`   | sequences of operations drawn from bytes, each answer compared with the model             |
//! | `stress`     | threads whose answers are all checked, for as long as they are told                       |
//! | `shape`      | filters that can be built again: sizes, widths, capacities                                |
//! | `operations` | every way to do one thing to many keys                                                    |
//! | `rate`       | the expected rate of false positives, and how far chance may lead from it                 |
//! | `format`     | the snapshot format, read a second time from its description                              |

#[path = "../../../tests/internal/linearizability/answer.rs"]
mod answer;
pub mod format;
mod input;
mod model;
pub mod operations;
pub mod rate;
pub mod sequence;
mod shape;
pub mod stress;
#[path = "../../../tests/internal/thousands.rs"]
mod thousands;
mod threads;

use concurrent_cuckoo_filter::StableHashBuilder;

pub use answer::{Answer, MAX_COPIES};
pub use input::{Input, is_one_of};
pub use model::{Model, Places};
pub use shape::{ABSENT, Filter, Shape, WIDTHS, Width, builder, random_seeds, slots};
pub use thousands::thousands;
pub use threads::{Done, each_on_all_cores, on_all_cores, watchdog};

/// Asserts that a value matches a pattern. A failure prints the value, after the text that follows the pattern.
#[macro_export]
macro_rules! assert_matches {
    ($value:expr, $pattern:pat $(if $guard:expr)?) => {
        $crate::assert_matches!($value, $pattern $(if $guard)?, "not the expected value")
    };
    ($value:expr, $pattern:pat $(if $guard:expr)?, $($text:tt)+) => {
        match $value {
            $pattern $(if $guard)? => {}
            other => panic!("{}: {other:?}", format_args!($($text)+)),
        }
    };
}

/// Returns the number for the long form of a check if `CUCKOO_FULL` is set, else the one for the short form.
pub fn choose<T>(full: T, short: T) -> T {
    if std::env::var_os("CUCKOO_FULL").is_some() { full } else { short }
}

/// Returns a hash function that is the same in every process.
pub fn hasher() -> StableHashBuilder {
    StableHashBuilder::with_seeds(1, 2)
}

/// Returns the bytes that `write` writes.
pub fn written<E: std::fmt::Debug>(write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(&mut bytes).expect("memory takes whatever is written");
    bytes
}
