//! Linearizability: histories of concurrent operations, checked class by class against an exact multiset.
//!
//! For its classes a filter is exact: a multiset, in which a refusal is allowed where there is no room. Classes do not
//! meet, so each has a history of its own, and the state that explains it is what its eight copies at most have left. A
//! history comes from threads of the system (`threads`), whose memory reorders what it may, or from threads of a
//! scheduler that tries orders at random and by priorities (`schedules`, with `--cfg cuckoo_shuttle`), where every step
//! of the protocol is a place to switch.
//!
//! | file      | what                                                                        |
//! |-----------|-----------------------------------------------------------------------------|
//! | said      | what an operation said of a class, and what that means for its copies       |
//! | answer    | the same of bare slots, where only a number counts: a second oracle         |
//! | check     | whether some order of the operations explains all that was said             |
//! | shape     | the tables: tiny ones with stripes of a bucket or two, and promised ones    |
//! | scenario  | a table with something in it, and a program for each thread                 |
//! | world     | the filter that the programs run on, and what must hold when they have ended |
//! | corrupt   | histories with one fault each, which the check must refuse                  |

// The testkit includes this file, too: it is linked with another copy of this crate. It uses what is not needed here.
#[allow(dead_code, unreachable_pub)]
mod answer;
mod check;
mod said;
mod scenario;
mod shape;
mod world;

mod corrupt;
#[cfg(cuckoo_shuttle)]
mod schedules;
mod threads;

/// This number in the full run (`CUCKOO_FULL=1`), else the other one.
fn full_or(full: u64, short: u64) -> u64 {
    if std::env::var_os("CUCKOO_FULL").is_some() { full } else { short }
}
