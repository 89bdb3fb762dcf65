//! The filter, its keys, and their numbers of copies.

use crate::{Answer, Filter, Shape, slots};
use fastrand::Rng;
use std::collections::HashSet;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

/// Few enough that several threads work on the same key.
const MAX_CONTESTED: u64 = 64;

/// A filter whose every answer is known: fingerprints have 32 bits, and no two keys share a class.
pub struct Exact {
    pub(super) shape: Shape,
    /// The filter.
    pub filter: Filter,
    pub(super) keys: Keys,
    /// The number of copies of each flagged key.
    pub(super) copies: Vec<Mutex<u8>>,
    /// Whether a thread owns each contested key: it was told that the key is new, and has not begun to remove it.
    owned: Vec<AtomicBool>,
    /// The workers keep about this many copies in the filter.
    level: usize,
    stop: AtomicBool,
    pub(super) working: AtomicUsize,
    /// The numbers of keys refused as full and as too many copies.
    refused: [AtomicU64; 2],
}

/// Keys are numbers; the flagged ones begin at 0.
pub(super) struct Keys {
    pub(super) flagged: Range<u64>,
    /// Inserted once, before everything else, and never removed.
    pub(super) stable: Range<u64>,
    /// Inserted by several threads at the same time as unique keys, and removed by the thread that was told that the key is new.
    pub(super) contested: Range<u64>,
    pub(super) absent: Range<u64>,
}

impl Keys {
    fn new(flagged: u64) -> Self {
        let mut end = flagged;
        let mut next = |count: u64| {
            let start = end;
            end += count;
            start..end
        };
        Keys {
            flagged: 0..flagged,
            stable: next((flagged / 2).max(4)),
            contested: next((flagged / 16).clamp(2, MAX_CONTESTED)),
            absent: next((flagged / 8).max(16)),
        }
    }

    fn all(&self) -> Range<u64> {
        self.flagged.start..self.absent.end
    }
}

impl Exact {
    /// A filter of this capacity, filled to 95 % of its slots: some 40 % by stable keys, the rest by flagged ones, of which there
    /// are more than fit, so that most of them have one copy or none.
    ///
    /// # Panics
    ///
    /// If keys share classes more often than chance explains.
    pub fn new(capacity: usize, stripes: Option<usize>, rng: &mut Rng) -> Self {
        let keys = Keys::new((capacity as u64 * 4 / 5).max(16));
        let mut shape = Shape { stripes, ..Shape::new(capacity, 32, rng) };
        // One draw of seeds in some hundred lets two keys share a class.
        let mut draws = 1;
        while share_a_class(&shape.build(), keys.all()) {
            assert!(draws < 4, "of four draws of seeds each made two keys share a class: {shape:?}");
            shape.seed = rng.u64(..);
            draws += 1;
        }
        // Shown by a test that fails, so that the filter can be built again.
        println!("{shape:?}");
        let filter = shape.build();
        keys.stable.clone().for_each(|key| filter.insert(&key).expect("an empty filter"));
        let level = slots(&filter) as usize * 95 / 100;
        let room = level.saturating_sub(filter.len()) as u64;
        let insert = |key| Mutex::new(u8::from(key < room && filter.insert(&key).is_ok()));
        let copies = keys.flagged.clone().map(insert).collect();
        Exact {
            level,
            copies,
            owned: keys.contested.clone().map(|_| AtomicBool::new(false)).collect(),
            stop: AtomicBool::new(false),
            working: AtomicUsize::new(0),
            refused: [filter.stats().refused_full, 0].map(AtomicU64::new),
            shape,
            filter,
            keys,
        }
    }

    pub(super) fn is_below_level(&self) -> bool {
        self.filter.len() < self.level
    }

    /// Tells the workers to end.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Returns whether any worker is left. The other threads end with the last worker.
    pub(super) fn is_worked_on(&self) -> bool {
        self.working.load(Ordering::Relaxed) > 0
    }

    /// Returns the numbers of keys refused as full and as too many copies, which `stats` must return, too.
    pub fn refused(&self) -> [u64; 2] {
        self.refused.each_ref().map(|counter| counter.load(Ordering::Relaxed))
    }

    /// Returns the flag of the key with this number, unless another thread holds it.
    pub(super) fn try_flag(&self, number: usize) -> Option<MutexGuard<'_, u8>> {
        self.copies[number].try_lock().ok()
    }

    pub(super) fn owned(&self, contested: u64) -> &AtomicBool {
        &self.owned[(contested - self.keys.contested.start) as usize]
    }

    /// Checks an answer about a key with this many copies, counts a refusal, and returns the resulting number of copies.
    pub(super) fn check(&self, key: u64, copies: u8, name: &str, answer: Answer) -> u8 {
        match answer {
            Answer::Full | Answer::NotAdmitted => self.refused[0].fetch_add(1, Ordering::Relaxed),
            Answer::TooManyCopies => self.refused[1].fetch_add(1, Ordering::Relaxed),
            _ => 0,
        };
        answer.after(copies).unwrap_or_else(|| panic!("{name}: {answer:?} of {key} with {copies} copies"))
    }
}

fn share_a_class(filter: &Filter, mut keys: Range<u64>) -> bool {
    let mut classes = HashSet::new();
    !keys.all(|key| classes.insert(filter.class_of(&key)))
}
