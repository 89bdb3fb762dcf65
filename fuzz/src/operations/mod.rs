//! Sequences of operations on two filters of one shape, every answer compared with an exact model.

mod model;
mod operation;
mod shape;
mod subject;
mod whole;

use crate::input::{Input, is_one_of};
use operation::{Many, Operation, Whole};
use shape::Shape;
use std::mem;
use subject::Subject;

/// One input in so many has a filter of two shards or loads as many keys as are sorted and stored by tasks, and looks
/// keys up on several threads.
const SELDOM: u32 = 512;
const KEYS_FOR_TASKS: usize = 1 << 12;

/// Operations on a whole filter that one input may have. They take a hundred times as long as others.
const MAX_ON_WHOLE: usize = 4;

/// What the fuzzer calls.
pub fn run(bytes: &[u8]) {
    let mut session = Session::new(bytes);
    while session.step().is_some() {}
    session.end();
}

/// The same, with each step told.
pub fn tell(bytes: &[u8]) {
    let mut session = Session::new(bytes);
    println!("{:?}", session.now.shape);
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
    /// Built when it is asked for.
    other: Option<Subject>,
}

impl<'a> Session<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        let mut input = Input::new(bytes);
        let seldom = is_one_of(SELDOM, bytes);
        let now = Subject::new(Shape::of(&mut input, seldom));
        Session { input, seldom, on_whole: 0, now, other: None }
    }

    /// `None` at the end.
    fn step(&mut self) -> Option<()> {
        let keys = self.now.shape.keys;
        match Operation::read(&mut self.input)? {
            Operation::One(what, key, by_hash) => self.now.one(what, usize::from(key) % keys, by_hash),
            Operation::Many(what, range, by_hash) => {
                let mut numbers: Vec<usize> = range.of(keys).collect();
                let what = match what {
                    // A handover to another thread takes longer than all the rest.
                    Many::ParContains if !self.seldom => Many::Contains,
                    Many::ParInsert | Many::ParInsertIter | Many::ParRemove if mem::take(&mut self.seldom) => {
                        numbers.extend((0..KEYS_FOR_TASKS).map(|number| number % keys));
                        what
                    }
                    _ => what,
                };
                self.now.many(what, &numbers, by_hash);
            }
            Operation::Whole(what) => self.whole(what),
        }
        self.now.check_len();
        Some(())
    }

    fn whole(&mut self, what: Whole) {
        let Session { now, other, .. } = self;
        match what {
            Whole::Swap => mem::swap(now, other.get_or_insert_with(|| Subject::new(now.shape))),
            Whole::CheckAll => now.check_all(),
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
        }
        self.on_whole += usize::from(!matches!(what, Whole::Swap | Whole::CheckAll));
    }

    fn end(self) {
        self.now.check_all();
        if let Some(other) = self.other {
            other.check_all();
        }
    }
}
