//! Linearizability: histories of concurrent operations, checked class by class against an exact multiset.
//!
//! A filter is exact about its classes: it is a multiset of them, in which an insertion may be refused for lack of room. Classes
//! do not affect each other, so each has a history of its own, and the state that explains it is what its copies, at most eight,
//! have left. A history comes from threads of the system (`threads`), with the reordering of real memory, or from threads of a
//! scheduler that tries orders at random and by priorities (`schedules`, with `--cfg cuckoo_shuttle`), and can switch threads at
//! every step of the protocol.
//!
//! | file      | contents                                                                    |
//! |-----------|-----------------------------------------------------------------------------|
//! | said      | the result of an operation on a class, and its meaning for the copies       |
//! | answer    | the same for bare slots, where only a number counts: a second oracle        |
//! | check     | whether some order of the operations explains all results                   |
//! | shape     | the tables: tiny ones with stripes of a bucket or two, and built ones       |
//! | scenario  | a table with contents, and a program for each thread                        |
//! | world     | the filter that the programs run on, and the checks after they have ended   |
//! | corrupt   | histories with one fault each, which the check must refuse                  |

// The testkit includes this file, too, since it is linked with another copy of this crate. It uses items that are unused here.
#[allow(dead_code, unreachable_pub)]
mod answer;
mod check;
mod said;
mod scenario;
mod shape;
mod world;

#[cfg(not(cuckoo_model))]
mod corrupt;
#[cfg(cuckoo_shuttle)]
mod schedules;
#[cfg(not(cuckoo_model))]
mod threads;

/// Returns the first number in the full run (`CUCKOO_FULL=1`), else the second.
fn full_or(full: u64, short: u64) -> u64 {
    if std::env::var_os("CUCKOO_FULL").is_some() { full } else { short }
}
