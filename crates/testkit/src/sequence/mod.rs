//! Sequences of operations on two filters of one shape, every answer compared with an exact model.

mod operation;
mod setup;
mod subject;
pub mod tagged;
mod whole;

use crate::input::{Input, is_one_of};
use concurrent_cuckoo_filter::{CuckooFilter, StableHashBuilder};
use operation::{Many, Operation, Whole};
use setup::Setup;
use std::mem;
use subject::Subject;

type Filter = CuckooFilter<u64, StableHashBuilder>;

/// One input in this many has a filter of two shards, or inserts enough keys to be sorted and stored by tasks, and looks keys up
/// on several threads.
const SELDOM: u32 = 512;
const KEYS_FOR_TASKS: usize = 1 << 12;

/// The largest number of operations on a whole filter per input. They take a hundred times as long as others.
const MAX_ON_WHOLE: usize = 4;

/// Draws two filters and a sequence of operations from the bytes, and compares each answer with the model. Returns the number of
/// refusals as full and as too many copies.
///
/// # Panics
///
/// If an answer is wrong.
pub fn run(bytes: &[u8]) -> [u64; 2] {
    let mut session = Session::new(bytes);
    while session.step().is_some() {}
    session.end()
}

/// Like [`run`], and prints each step.
pub fn tell(bytes: &[u8]) {
    let mut session = Session::new(bytes);
    println!("{:?}", session.now.setup);
    while let Some(operation) = Operation::read(&mut session.input.clone()) {
        println!("{operation:?}");
        session.step();
    }
    session.end();
}

struct Session<'a> {
    input: Input<'a>,
    seldom: bool,
    on_whole: usize,
    now: Subject,
    /// Built when it is first used.
    other: Option<Subject>,
}

impl<'a> Session<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        let mut input = Input::new(bytes);
        let seldom = is_one_of(SELDOM, bytes);
        let now = Subject::new(Setup::read(&mut input, seldom));
        Session { input, seldom, on_whole: 0, now, other: None }
    }

    fn step(&mut self) -> Option<()> {
        let keys = self.now.setup.keys;
        match Operation::read(&mut self.input)? {
            Operation::One(what, key, by_hash) => self.now.one(what, usize::from(key) % keys, by_hash),
            Operation::Many(what, range) => {
                let mut numbers: Vec<usize> = range.of(keys).collect();
                // Work on other threads takes longer than everything else.
                let by_tasks = !matches!(what, Many::Contains(_)) && mem::take(&mut self.seldom);
                if by_tasks {
                    numbers.extend((0..KEYS_FOR_TASKS).map(|number| number % keys));
                }
                self.now.many(what, &numbers, self.seldom);
            }
            Operation::Whole(what) => self.whole(what),
        }
        self.now.check_len();
        Some(())
    }

    fn whole(&mut self, what: Whole) {
        let Session { now, other, .. } = self;
        match what {
            Whole::Swap => mem::swap(now, other.get_or_insert_with(|| Subject::new(now.setup))),
            Whole::CheckAll => drop(now.check_all()),
            _ if self.on_whole == MAX_ON_WHOLE => {}
            Whole::Clear => {
                now.filter.clear();
                now.model.clear();
            }
            Whole::Copy => now.copy(),
            Whole::Join => now.join(),
            Whole::Merge => {
                if let Some(other) = other {
                    now.merge(other);
                }
            }
            Whole::MergeItself => now.merge_with_itself(),
            Whole::Delta => {
                if let Some(other) = other {
                    now.make_from(other);
                }
            }
        }
        self.on_whole += usize::from(!matches!(what, Whole::Swap | Whole::CheckAll));
    }

    fn end(self) -> [u64; 2] {
        let subjects = [Some(self.now), self.other].into_iter().flatten();
        subjects.map(|subject| subject.check_all()).fold([0; 2], |[a, b], [c, d]| [a + c, b + d])
    }
}
