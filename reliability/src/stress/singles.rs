//! One key at a time.

use super::Done;
use super::field::{Field, MAX_COPIES};
use crate::promise::Promise;
use fastrand::Rng;
use std::sync::atomic::Ordering;

/// Keys that are worked on one at a time, before the load is looked at again and a group has its turn.
const TURN: usize = 64;

pub(super) struct Worker<'a> {
    pub(super) field: &'a Field,
    pub(super) rng: Rng,
    pub(super) done: Done,
    /// Contested keys that this thread owns.
    won: Vec<u64>,
    /// Insert more than remove.
    pub(super) fill: bool,
}

pub(super) fn work(field: &Field, rng: Rng) -> Done {
    let mut worker = Worker { field, rng, done: Done::default(), won: Vec::new(), fill: true };
    while !field.stopped() {
        worker.fill = field.is_below_level();
        (0..TURN).for_each(|_| worker.single());
        (0..TURN / 2).for_each(|_| worker.contest());
        match worker.rng.u32(..64) {
            0..8 => worker.group(TURN),
            // Enough for each shard to have a task.
            8 => worker.group(4096),
            _ => {}
        }
    }
    while let Some(key) = worker.won.pop() {
        worker.give_back(key);
    }
    worker.done
}

impl Worker<'_> {
    fn single(&mut self) {
        let number = self.rng.usize(..self.field.copies.len());
        let Some(mut copies) = self.field.try_flag(number) else { return };
        let key = number as u64;
        self.ask(key, *copies);
        *copies = if self.wants_to_insert() { self.insert(key, *copies) } else { self.remove(key, *copies) };
        self.ask(key, *copies);
        self.done.operations += 1;
    }

    /// Inserts a key at which others are, too: whoever is told that it is new is its only owner, until he removes it.
    fn contest(&mut self) {
        let field = self.field;
        let key = self.rng.u64(field.keys.contested.clone());
        match field.filter.insert_unique(&key) {
            Ok(true) => {
                let count = field.filter.count(&key);
                if field.owned(key).swap(true, Ordering::Relaxed) || count != 1 {
                    field.broken(Promise::Admission, key, format_args!("new to two threads, {count} copies"));
                }
                self.won.push(key);
            }
            Ok(false) => {}
            Err(error) => field.refused(key, 0, &error),
        }
        self.done.operations += 1;
        // It is there for a while, so that those who have begun to insert it meet it.
        if !self.won.is_empty() && self.rng.bool() {
            let key = self.won.swap_remove(self.rng.usize(..self.won.len()));
            self.give_back(key);
        }
    }

    fn give_back(&mut self, key: u64) {
        self.field.owned(key).store(false, Ordering::Relaxed);
        if !self.field.filter.remove(&key) {
            self.field.broken(Promise::Removal, key, "remove says false to the only owner");
        }
        self.done.operations += 1;
    }

    /// Up to the level mostly insertions, above it mostly removals.
    pub(super) fn wants_to_insert(&mut self) -> bool {
        self.rng.u32(..10) < if self.fill { 8 } else { 2 }
    }

    fn ask(&mut self, key: u64, copies: u8) {
        let filter = &self.field.filter;
        let (found, count) = if self.rng.bool() {
            (filter.contains(&key), filter.count(&key))
        } else {
            let hash = filter.hash(&key);
            (filter.contains_hash(hash), filter.count_hash(hash))
        };
        self.check(key, copies, "contains", found);
        if count != usize::from(copies) {
            self.field.broken(Promise::Count, key, format_args!("count is {count} of {copies} copies"));
        }
        self.done.lookups += 1;
    }

    pub(super) fn check(&mut self, key: u64, copies: u8, name: &str, found: bool) {
        if found != (copies > 0) {
            let promise = if found { Promise::Absent } else { Promise::Present };
            self.field.broken(promise, key, format_args!("{name} says {found} of {copies} copies"));
        }
        self.done.lookups += 1;
    }

    /// Returns how many copies there are then.
    fn insert(&mut self, key: u64, copies: u8) -> u8 {
        match self.rng.u32(..64) {
            0 => self.flood(key, copies),
            1..16 => self.insert_copy(key, copies),
            _ => self.insert_unique(key, copies),
        }
    }

    fn insert_copy(&mut self, key: u64, copies: u8) -> u8 {
        let filter = &self.field.filter;
        let result = if self.rng.bool() { filter.insert(&key) } else { filter.insert_hash(filter.hash(&key)) };
        match result {
            Ok(()) if copies == MAX_COPIES => self.field.broken(Promise::Copies, key, "a ninth copy went in"),
            Ok(()) => copies + 1,
            Err(error) => {
                self.field.refused(key, copies, &error);
                copies
            }
        }
    }

    fn insert_unique(&mut self, key: u64, copies: u8) -> u8 {
        let filter = &self.field.filter;
        let result =
            if self.rng.bool() { filter.insert_unique(&key) } else { filter.insert_unique_hash(filter.hash(&key)) };
        match result {
            Ok(new) if new == (copies == 0) => copies + u8::from(new),
            Err(error) if copies == 0 => {
                self.field.refused(key, copies, &error);
                copies
            }
            result => self.field.broken(Promise::Admission, key, format_args!("{result:?} with {copies} copies")),
        }
    }

    /// Inserts copies until one is refused, and removes them again: what has 8 copies fills two buckets, in which nothing
    /// can move, and many such keys would keep the table from its level.
    fn flood(&mut self, key: u64, copies: u8) -> u8 {
        let mut most = copies;
        loop {
            let before = most;
            most = self.insert_copy(key, before);
            if most == before {
                break;
            }
        }
        self.ask(key, most);
        (copies..most).for_each(|_| {
            if !self.field.filter.remove(&key) {
                self.field.broken(Promise::Removal, key, "remove says false after a flood");
            }
        });
        copies
    }

    /// Returns how many copies there are then.
    fn remove(&mut self, key: u64, copies: u8) -> u8 {
        let filter = &self.field.filter;
        let (removed, expected) = match self.rng.u32(..8) {
            0 => (filter.remove_all(&key), copies),
            1 => (filter.remove_all_hash(filter.hash(&key)), copies),
            2..5 => (usize::from(filter.remove_hash(filter.hash(&key))), copies.min(1)),
            _ => (usize::from(filter.remove(&key)), copies.min(1)),
        };
        if removed != usize::from(expected) {
            self.field.broken(Promise::Removal, key, format_args!("{removed} removed of {copies} copies"));
        }
        copies - expected
    }
}
