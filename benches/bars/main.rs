//! This crate beside what a user might take instead, and many keys at once beside one at a time: ratios in one process,
//! turn by turn, and the ratios that are asked for.
//!
//! ```text
//! cargo bench -p compare --bench bars                   # every contest, about 15 minutes and 4 GiB
//! cargo bench -p compare --bench bars -- miss 2^16      # those whose names hold all the words
//! cargo bench -p compare --bench bars -- --turns 1      # a moment of each
//! cargo bench -p compare --bench bars -- --large 22     # the large table has 2^22 slots, not 2^27
//! ```
//!
//! In each turn every contestant does the same work once, in alternating order; a line shows the median of the turns'
//! ratios, their range, and the median speed of each side. Keys are drawn before the clock starts, every result is
//! checked, and in contests of several threads the clocks start behind a barrier inside the threads. What a contest
//! needs is built when its first turn begins.

mod batches;
mod bulk;
mod large;
mod overfull;
mod passes;
mod singles;
mod snapshot;
mod threads;
mod turns;
mod waits;
mod widths;

use compare::Field;
use large::Large;
use std::cell::LazyCell;
use turns::Program;

fn main() {
    let program = Program::from_arguments();
    println!("median of the turns' ratios (range), medians of both speeds, the ratio asked for");
    calls(&program);
    batches(&program);
    large(&program);
}

/// One key at a time, within the caches.
fn calls(program: &Program) {
    let contests = program.contests(15);
    let field = |log2| LazyCell::new(move || Field::new(log2, 1 << 20));
    singles::run(&contests, 16, &field(16));
    let field = field(20);
    singles::run(&contests, 20, &field);
    widths::run(&contests, &field);
    threads::run(&contests, &field);
}

/// Many keys on one thread.
fn batches(program: &Program) {
    let contests = program.contests(5);
    for log2 in [16, 20, program.large.unwrap_or(large::LOG2)] {
        batches::lookups(&contests, log2);
    }
    for log2 in [16, 18, 20, 22] {
        batches::writes(&contests, log2);
    }
}

/// Many keys in a table that no cache holds.
fn large(program: &Program) {
    let contests = program.contests(5);
    let log2 = program.large.unwrap_or(large::LOG2);
    let large = LazyCell::new(|| Large::new(log2));
    bulk::run(&contests, log2, &large);
    waits::run(&contests, log2, &large);
    overfull::run(&contests, log2, &large);
    snapshot::run(&contests, log2, &large);
}
