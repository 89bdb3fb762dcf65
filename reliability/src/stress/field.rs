//! The filter, its keys, and what is true of them.

use crate::promise::{Promise, broken};
use crate::shape::{Filter, Shape};
use crate::slots::slots;
use concurrent_cuckoo_filter::InsertError;
use fastrand::Rng;
use std::fmt::Display;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

pub(super) const MAX_COPIES: u8 = 8;

/// Few enough that threads meet at one.
const CONTESTED: u64 = 64;

pub(super) struct Field {
    pub(super) shape: Shape,
    pub(super) filter: Filter,
    pub(super) keys: Keys,
    /// Of each flagged key.
    pub(super) copies: Vec<Mutex<u8>>,
    /// Of each contested key, whether a thread has been told that it is new, and has not begun to remove it.
    owned: Vec<AtomicBool>,
    /// The workers keep about this many copies in the filter.
    level: usize,
    pub(super) stop: AtomicBool,
    pub(super) refused_full: AtomicU64,
    pub(super) refused_copies: AtomicU64,
}

/// Keys are numbers; the flagged ones begin at 0.
pub(super) struct Keys {
    pub(super) flagged: Range<u64>,
    /// Inserted once, before all else, and never removed.
    pub(super) stable: Range<u64>,
    /// Loaded and removed in bulk.
    pub(super) bulk: Range<u64>,
    /// Inserted by several threads at once, as unique ones, and removed by the one that was told that the key is new.
    pub(super) contested: Range<u64>,
    /// Never inserted.
    pub(super) absent: Range<u64>,
}

impl Keys {
    fn new(flagged: u64) -> Self {
        let [stable, bulk, contested, end] = [flagged, flagged * 17 / 16, flagged * 69 / 64, flagged * 81 / 64];
        let absent = contested + CONTESTED;
        Keys {
            flagged: 0..flagged,
            stable: stable..bulk,
            bulk: bulk..contested,
            contested: contested..absent,
            absent: absent..end,
        }
    }

    fn all(&self) -> Range<u64> {
        self.flagged.start..self.absent.end
    }
}

impl Field {
    pub(super) fn new(flagged: u64, rng: &mut Rng) -> Self {
        let keys = Keys::new(flagged);
        // Fewer than there are keys, so that most are there once or not at all.
        let mut shape = Shape::new(flagged as usize * 3 / 4, 32, rng);
        // One draw of seeds in some hundred makes two of them share a class.
        let mut draws = 1;
        while share_a_class(&shape, keys.all()) {
            if draws == 4 {
                broken(Promise::Rate, &shape, None, "of four draws of seeds each made two keys share a class");
            }
            shape = shape.with_other_seeds(rng);
            draws += 1;
        }
        let filter = shape.build();
        keys.stable.clone().for_each(|key| filter.insert(&key).expect("an empty filter"));
        let level = slots(&filter) as usize * 95 / 100;
        let room = (level - filter.len()) as u64;
        let insert = |key| Mutex::new(u8::from(key < room && filter.insert(&key).is_ok()));
        Field {
            level,
            copies: keys.flagged.clone().map(insert).collect(),
            owned: keys.contested.clone().map(|_| AtomicBool::new(false)).collect(),
            shape,
            filter,
            keys,
            stop: AtomicBool::new(false),
            refused_full: AtomicU64::new(0),
            refused_copies: AtomicU64::new(0),
        }
    }

    pub(super) fn is_below_level(&self) -> bool {
        self.filter.len() < self.level
    }

    pub(super) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// The flag of the key of this number, unless another thread has it.
    pub(super) fn try_flag(&self, number: usize) -> Option<MutexGuard<'_, u8>> {
        self.copies[number].try_lock().ok()
    }

    pub(super) fn owned(&self, contested: u64) -> &AtomicBool {
        &self.owned[(contested - self.keys.contested.start) as usize]
    }

    /// Counts a refusal of a key with this many copies, and checks the reason.
    pub(super) fn refused(&self, key: u64, copies: u8, error: &InsertError) {
        let (counter, may_be) = match error {
            InsertError::Full => (&self.refused_full, copies < MAX_COPIES),
            InsertError::TooManyCopies => (&self.refused_copies, copies == MAX_COPIES),
            _ => self.broken(Promise::Refusal, key, format_args!("an error that there is not: {error}")),
        };
        if !may_be {
            self.broken(Promise::Refusal, key, format_args!("with {copies} copies: {error}"));
        }
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn broken(&self, promise: Promise, key: impl Into<Option<u64>>, what: impl Display) -> ! {
        broken(promise, &self.shape, key, what)
    }
}

/// Whether any two of the keys share a class: then one of them is found after the insertion of the other alone.
fn share_a_class(shape: &Shape, keys: Range<u64>) -> bool {
    let filter = shape.build();
    let keys: Vec<u64> = keys.collect();
    let mut found = vec![false; keys.len()];
    for (number, group) in keys.chunks(shape.capacity * 9 / 10).enumerate() {
        if group.iter().any(|key| filter.insert_unique(key) != Ok(true)) {
            return true;
        }
        let later = &keys[number * (shape.capacity * 9 / 10) + group.len()..];
        filter.contains_batch(later, &mut found[..later.len()]);
        if found[..later.len()].contains(&true) {
            return true;
        }
        filter.clear();
    }
    false
}
