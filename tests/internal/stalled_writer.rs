//! A writer that the system stops delays no lookup: writers are frozen at each of their steps, while they hold locks, and every
//! key is looked up meanwhile.
//!
//! Each operation runs first without a stop, and its steps are recorded. Then it runs again on a filter built in the same way,
//! frozen at its first step, again at its second, and so on until it ends without a stop.

use crate::hashing::DefaultHashBuilder;
use crate::layout::Plan;
use crate::raw::RawFilter;
use crate::sys::memory::HugePages;
use crate::sys::steps::{Step, steps_of, with_hook};
use crate::{CuckooFilter, InsertError};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

/// A bucket per word, buckets that share words, slots and buckets that straddle words, two words per bucket.
pub(super) const WIDTHS: [u32; 6] = [8, 12, 13, 16, 24, 32];

/// The widths with slots in two words.
const STRADDLING: [u32; 3] = [12, 13, 24];

/// The widths of growing filters. Of two successive widths at least one has slots in two words.
pub(super) const GROWING_WIDTHS: [u32; 5] = [9, 13, 16, 17, 30];

/// The capacity of 64 buckets, 16 per stripe.
const CAPACITY: usize = 190;
const STRIPES: usize = 4;

pub(super) const ABSENT: Range<u64> = 1 << 40..(1 << 40) + 300;

/// A test fails after this time, because a lookup waits. No test passes by time.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

pub(super) type Filter = CuckooFilter<u64>;

type Empty = fn(u32) -> Filter;

pub(super) fn empty(width: u32) -> Filter {
    Filter::builder().capacity(CAPACITY).fingerprint_bits(width).stripes(STRIPES).build().unwrap()
}

/// A filter of one such table, which may double twice: its first split gives two cells another table.
pub(super) fn growing(width: u32) -> Filter {
    let plan = Plan { reserve_bits: 2, ..*empty(width).plan() };
    let raw = RawFilter::new(&plan, HugePages::Unadvised).unwrap();
    Filter::from_raw([CAPACITY; 2], None, raw, (), DefaultHashBuilder::with_seeds(1, 2, 3, 4))
}

/// Keys are their hashes, so equal insertions build equal filters.
pub(super) fn filled(empty: Empty, width: u32, hashes: &[u64]) -> Filter {
    let filter = empty(width);
    for &hash in hashes {
        filter.hashed().insert(&hash).unwrap();
    }
    filter
}

fn holds_all(width: u32, hashes: &[u64]) -> bool {
    let filter = empty(width);
    hashes.iter().all(|&hash| filter.hashed().insert(&hash).is_ok())
}

fn times(wanted: Step, steps: &[Step]) -> usize {
    steps.iter().filter(|&&step| step == wanted).count()
}

fn straddles(steps: &[Step]) -> bool {
    steps.windows(2).any(|pair| pair == [Step::WordWritten; 2])
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Operation {
    Insert(u64),
    InsertUnique(u64),
    Remove(u64),
    RemoveAll(u64),
    Clear,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Outcome {
    Inserted(Result<bool, InsertError>),
    Removed(usize),
}

impl Operation {
    pub(super) fn run(self, filter: &Filter) -> Outcome {
        match self {
            Operation::Insert(hash) => Outcome::Inserted(filter.hashed().insert(&hash).map(|()| true)),
            Operation::InsertUnique(hash) => Outcome::Inserted(filter.hashed().insert_unique(&hash)),
            Operation::Remove(hash) => Outcome::Removed(usize::from(filter.hashed().remove(&hash))),
            Operation::RemoveAll(hash) => Outcome::Removed(filter.hashed().remove_all(&hash)),
            Operation::Clear => {
                let len = filter.len();
                filter.clear();
                Outcome::Removed(len)
            }
        }
    }

    /// The right answer of a lookup of this key while the operation is stopped after these steps; `None` if both answers are
    /// right. `copies` is the number of copies before the operation.
    fn answer(self, hash: u64, copies: usize, outcome: &Outcome, passed: &[Step]) -> Option<bool> {
        let (before, after) = (copies > 0, self.copies_after(hash, copies, outcome) > 0);
        let (untouched, done) = if matches!(self, Operation::Remove(_) | Operation::RemoveAll(_)) {
            let cleared = times(Step::Cleared, passed);
            let mut since = passed.rsplit(|&step| step == Step::Cleared);
            let writing = since.next().is_some_and(|steps| steps.contains(&Step::WordWritten));
            (cleared + usize::from(writing) < copies, cleared == copies)
        } else {
            let touches = [Step::WordWritten, Step::Cleared];
            (!passed.iter().any(|step| touches.contains(step)), passed.contains(&Step::Counted))
        };
        if before == after || done { Some(after) } else { untouched.then_some(before) }
    }

    fn copies_after(self, hash: u64, copies: usize, outcome: &Outcome) -> usize {
        match (self, outcome) {
            (Operation::Insert(own) | Operation::InsertUnique(own), Outcome::Inserted(Ok(true))) if own == hash => {
                copies + 1
            }
            (Operation::Remove(own) | Operation::RemoveAll(own), &Outcome::Removed(removed)) if own == hash => {
                copies - removed
            }
            (Operation::Clear, _) => 0,
            _ => copies,
        }
    }
}

/// An operation on a filter that holds these hashes. No other key has the class of the operation's key.
#[derive(Clone)]
pub(super) struct Scenario {
    pub(super) empty: fn(u32) -> Filter,
    pub(super) width: u32,
    pub(super) stored: Vec<u64>,
    pub(super) operation: Operation,
}

impl fmt::Debug for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} of {} keys at {} bits", self.operation, self.stored.len(), self.width)
    }
}

impl Scenario {
    fn filter(&self) -> Filter {
        filled(self.empty, self.width, &self.stored)
    }

    /// Runs the operation without a stop, and returns its steps and its result.
    fn rehearse(&self) -> (Vec<Step>, Outcome) {
        let filter = self.filter();
        steps_of(|| self.operation.run(&filter))
    }

    /// Freezes the operation at each step, and returns the steps.
    fn stop_everywhere(&self, expected: &Outcome) -> Vec<Step> {
        let (steps, outcome) = self.rehearse();
        assert_eq!(outcome, *expected, "{self:?}");
        for at in 0..=steps.len() {
            self.stop_at(at, &steps, &outcome);
        }
        steps
    }

    /// Freezes the operation after step number `at`, or not at all if it has at most `at` steps.
    fn stop_at(&self, at: usize, steps: &[Step], outcome: &Outcome) {
        let filter = Arc::new(self.filter());
        let own = match self.operation {
            Operation::Insert(own) | Operation::InsertUnique(own) => Some(own),
            _ => None,
        };
        let copies: BTreeMap<u64, usize> = self
            .stored
            .iter()
            .copied()
            .chain(own)
            .chain(ABSENT)
            .map(|hash| (hash, filter.hashed().count(&hash) as usize))
            .collect();
        let len = filter.len();

        let (frozen, freezes) = channel();
        let (release, released) = channel::<()>();
        let (operation, shared) = (self.operation, Arc::clone(&filter));
        let writer = thread::spawn(move || {
            let mut passed = 0;
            let freeze = move |step| {
                passed += 1;
                if passed == at + 1 {
                    frozen.send(step).unwrap();
                    // Also returns, with an error, when the test has failed.
                    let _ = released.recv();
                }
            };
            with_hook(freeze, || operation.run(&shared))
        });

        match self.wait(&freezes, "the writer gets on") {
            Some(step) => {
                assert_eq!(Some(&step), steps.get(at), "{self:?} passes the same steps each time");
                let passed = &steps[..=at];
                if step == Step::Published {
                    assert_eq!(filter.stats().tables, 2, "a table that a cell names is counted");
                }
                // Where slots straddle words, a slot that is half written may look like any fingerprint.
                let torn = (step == Step::WordWritten || operation == Operation::Clear)
                    && (filter.raw.growing().is_some() || !matches!(self.width, 4 | 8 | 16 | 32));
                let questions = copies.iter().map(|(&hash, &copies)| {
                    let answer = operation.answer(hash, copies, outcome, passed);
                    (hash, answer.filter(|&found| found || !torn))
                });
                let len_now = self.lookup(&filter, questions.collect(), &format!("after {passed:?}"));
                let counted = times(Step::Counted, passed);
                let len = match operation {
                    Operation::Insert(_) | Operation::InsertUnique(_) => len + counted,
                    Operation::Remove(_) | Operation::RemoveAll(_) => len - counted,
                    Operation::Clear => len * (1 - counted),
                };
                assert_eq!(len_now, len, "{self:?} after {passed:?}");
                release.send(()).unwrap();
            }
            None => assert_eq!(at, steps.len(), "{self:?} passes the same steps each time"),
        }
        assert_eq!(writer.join().unwrap(), *outcome, "{self:?} frozen at step {at} of {steps:?}");

        let mut questions = Vec::new();
        for (&hash, &copies) in &copies {
            let copies = operation.copies_after(hash, copies, outcome);
            assert_eq!(filter.hashed().count(&hash) as usize, copies, "{self:?}: copies of {hash}");
            questions.push((hash, Some(copies > 0)));
        }
        self.lookup(&filter, questions, "at the end");
        let len_after = match (operation, outcome) {
            (Operation::Clear, _) => 0,
            (_, Outcome::Inserted(inserted)) => len + usize::from(*inserted == Ok(true)),
            (_, Outcome::Removed(removed)) => len - removed,
        };
        assert_eq!(filter.len(), len_after, "{self:?}");
    }

    /// Looks up the keys on a thread of its own, which must end without having repeated a lookup, since no version changes while
    /// the writer is stopped. Returns the number of present keys.
    fn lookup(&self, filter: &Arc<Filter>, questions: Vec<(u64, Option<bool>)>, when: &str) -> usize {
        let (done, answers): (Sender<(Vec<_>, usize)>, _) = channel();
        let shared = Arc::clone(filter);
        thread::spawn(move || {
            let (steps, answers) = steps_of(|| {
                let wrong = questions.into_iter().filter(|&(hash, expected)| {
                    let found = shared.hashed().contains(&hash);
                    expected.is_some_and(|expected| expected != found)
                });
                (wrong.collect(), shared.len())
            });
            let only_reads = steps.iter().all(|&step| step == Step::BucketRead);
            assert!(only_reads, "a lookup passes no step of a writer and begins once: {steps:?}");
            // If the answers are not received, the test has failed already.
            let _ = done.send(answers);
        });
        let (wrong, len) = self.wait(&answers, when).expect("the lookups do not panic");
        assert!(wrong.is_empty(), "{self:?} {when}: hashes and what lookups should have said of them: {wrong:?}");
        len
    }

    /// Returns what the other thread sends; `None` if it ended instead.
    fn wait<T>(&self, from: &Receiver<T>, what: &str) -> Option<T> {
        use std::sync::mpsc::RecvTimeoutError::{Disconnected, Timeout};
        match from.recv_timeout(PATIENCE) {
            Ok(sent) => Some(sent),
            Err(Disconnected) => None,
            Err(Timeout) => panic!("{self:?} {what}: still waiting after {PATIENCE:?}"),
        }
    }
}

/// The steps that change what other threads see. Successive bumps of several stripes count as one.
fn changes(steps: &[Step]) -> Vec<Step> {
    let mut changes: Vec<_> = steps
        .iter()
        .copied()
        .filter(|step| !matches!(step, Step::Locked | Step::Searched | Step::WordWritten))
        .collect();
    changes.dedup_by(|next, step| [*next, *step] == [Step::Bumped; 2]);
    changes
}

/// Inserts hashes into filters until one has a class of its own and its insertion `fits`. Returns the hashes stored before it, and
/// the hash.
fn insertion(empty: Empty, width: u32, fits: impl Fn(&[Step], &Result<(), InsertError>) -> bool) -> (Vec<u64>, u64) {
    for start in (0..100).map(|filter| filter << 20) {
        let filter = empty(width);
        let mut stored = Vec::new();
        for hash in start..start + 300 {
            let absent = filter.hashed().count(&hash) == 0;
            let (steps, result) = steps_of(|| filter.hashed().insert(&hash));
            if absent && fits(&steps, &result) {
                return (stored, hash);
            }
            if result.is_ok() {
                stored.push(hash);
            }
        }
    }
    panic!("no such insertion at {width} bits");
}

/// The same for an insertion that splits the table before it stores its key.
pub(super) fn insertion_that_splits(width: u32) -> (Vec<u64>, u64) {
    insertion(growing, width, |steps, result| steps.contains(&Step::Published) && result.is_ok())
}

/// 180 hashes, the last of which has a class of its own.
pub(super) fn stored_for_removal(width: u32) -> (Vec<u64>, u64) {
    let mut stored: Vec<u64> = (0..180).collect();
    let filter = filled(empty, width, &stored);
    let own = stored.iter().rposition(|&hash| filter.hashed().count(&hash) == 1).unwrap();
    let own = stored.remove(own);
    stored.push(own);
    (stored, own)
}

/// An operation whose steps differ from those of the others, and those of its steps that change what other threads see.
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) scenario: Scenario,
    pub(super) outcome: Outcome,
    pub(super) changes: Vec<Step>,
}

/// Every kind of operation on one key, and a clear, on filters in which it takes all of its possible steps.
pub(super) fn cases(width: u32) -> Vec<Case> {
    use Operation::{Clear, Insert, InsertUnique, Remove, RemoveAll};
    use Step::{Bumped, Cleared, Copied, Counted};
    let mut cases = Vec::new();
    let mut case = |name, stored: &[u64], operation, outcome: Outcome, changes: Vec<Step>| {
        let scenario = Scenario { empty, width, stored: stored.to_vec(), operation };
        cases.push(Case { name, scenario, outcome, changes });
    };

    // Both ways of inserting make the same changes.
    let stored: Vec<u64> = (1000..1100).collect();
    let absent = (0..).find(|&hash| filled(empty, width, &stored).hashed().count(&hash) == 0).unwrap();
    let hops = |hops: usize| [&[Copied, Bumped, Cleared].repeat(hops)[..], &[Counted]].concat();
    let by_path = |hops| insertion(empty, width, |steps, _| times(Copied, steps) == hops);
    let mut insertions = vec![
        ("insertion", (stored, absent), Ok(true), hops(0)),
        ("insertion by a path of one hop", by_path(1), Ok(true), hops(1)),
        ("insertion by a path of two hops", by_path(2), Ok(true), hops(2)),
        ("insertion by a path of three hops", by_path(3), Ok(true), hops(3)),
    ];
    let in_two =
        |moves: bool| insertion(empty, width, move |steps, _| straddles(steps) && (times(Copied, steps) == 1) == moves);
    if STRADDLING.contains(&width) {
        insertions.push(("insertion into a slot in two words", in_two(false), Ok(true), hops(0)));
        insertions.push(("insertion by a path through a slot in two words", in_two(true), Ok(true), hops(1)));
    }
    let full = insertion(empty, width, |_, result| *result == Err(InsertError::Full));
    insertions.push(("insertion that is refused", full, Err(InsertError::Full), vec![]));
    for (name, (stored, hash), told, changes) in insertions {
        for operation in [Insert(hash), InsertUnique(hash)] {
            case(name, &stored, operation, Outcome::Inserted(told), changes.clone());
        }
    }

    // Where another key has the same two buckets, the eighth copy finds the filter full.
    let eight = (0..100).map(|hash| [vec![hash; 8], (1000..1100).collect()].concat());
    let eight = eight.into_iter().find(|stored| holds_all(width, stored)).unwrap();
    let too_many = Outcome::Inserted(Err(InsertError::TooManyCopies));
    case("insertion of a ninth copy", &eight, Insert(eight[0]), too_many, vec![]);
    let (stored, own) = stored_for_removal(width);
    case("insertion of what is there", &stored, InsertUnique(own), Outcome::Inserted(Ok(false)), vec![]);
    let few = [&stored[..50], &[own]].concat();
    case("insertion of another copy", &few, Insert(own), Outcome::Inserted(Ok(true)), vec![Counted]);

    // Of several copies, each but the last is behind a cleared slot. With 5 copies, both buckets hold some.
    for copies in [1, 2, 5] {
        let stored = [&stored[..], &vec![own; copies - 1]].concat();
        let bumped = [Bumped, Cleared, Counted];
        let one = &bumped[usize::from(copies == 1)..];
        case("removal", &stored, Remove(own), Outcome::Removed(1), one.to_vec());
        let all = [&bumped.repeat(copies - 1)[..], &bumped[1..]].concat();
        case("removal of all copies", &stored, RemoveAll(own), Outcome::Removed(copies), all);
    }
    if STRADDLING.contains(&width) {
        let (stored, hash) = in_two(false);
        let stored = [&stored[..], &[hash]].concat();
        case("removal out of a slot in two words", &stored, Remove(hash), Outcome::Removed(1), vec![Cleared, Counted]);
    }
    // As many steps as there are words.
    case("clear", &stored, Clear, Outcome::Removed(stored.len()), vec![Bumped, Cleared, Counted]);
    cases
}

#[test]
fn a_writer_that_stands_still_delays_no_lookup() {
    for width in WIDTHS {
        for Case { name, scenario, outcome, changes: expected } in cases(width) {
            let steps = scenario.stop_everywhere(&outcome);
            let mut made = changes(&steps);
            if scenario.operation == Operation::Clear {
                // Every stripe is bumped before a word is cleared.
                assert!(times(Step::Bumped, &steps) == STRIPES && times(Step::Cleared, &steps) > 1);
                made.dedup();
                assert_eq!(made, expected, "{name} at {width} bits");
                continue;
            }
            assert_eq!(made, expected, "{name} at {width} bits");
            let written = steps.iter().position(|&step| step == Step::WordWritten);
            let bumped = steps.iter().position(|&step| step == Step::Bumped);
            assert_eq!(written.is_none(), expected.is_empty(), "{name} at {width} bits");
            assert!(expected.first() != Some(&Step::Bumped) || bumped < written, "{name} bumps before it writes");
            let writes = usize::from(!expected.is_empty());
            let each_hop_has_locks = times(Step::Locked, &steps) >= times(Step::Copied, &steps).max(writes);
            assert!(each_hop_has_locks, "{name} at {width} bits");
        }
    }
}

#[test]
fn a_writer_that_stands_still_in_a_split_delays_no_lookup() {
    for width in GROWING_WIDTHS {
        let (stored, hash) = insertion_that_splits(width);
        for operation in [Operation::Insert(hash), Operation::InsertUnique(hash)] {
            let scenario = Scenario { empty: growing, width, stored: stored.clone(), operation };
            let steps = changes(&scenario.stop_everywhere(&Outcome::Inserted(Ok(true))));
            // Two cells, and most of the words of 256 slots.
            let (copied, cleared) = (&steps[..3], &steps[3..steps.len() - 1]);
            assert_eq!(copied, [Step::Copied, Step::Published, Step::Published]);
            let words = 4 * width as usize;
            assert!((words / 2..=words).contains(&cleared.len()), "{} of {words} words", cleared.len());
            assert!(cleared.iter().all(|&step| step == Step::Cleared));
            assert_eq!(steps.last(), Some(&Step::Counted));
        }
    }
}

/// A search without locks that found the filter full is repeated under all locks.
#[test]
fn insertion_into_a_filter_that_is_cleared_during_its_search() {
    for width in WIDTHS {
        let (stored, hash) = insertion(empty, width, |_, result| *result == Err(InsertError::Full));
        let filter = Arc::new(filled(empty, width, &stored));
        let shared = Arc::clone(&filter);
        let clear = move |step| {
            if step == Step::Searched {
                shared.clear();
            }
        };
        assert_eq!(with_hook(clear, || filter.hashed().insert(&hash)), Ok(()));
        assert_eq!((filter.len(), filter.hashed().count(&hash)), (1, 1));
    }
}
