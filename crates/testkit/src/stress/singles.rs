//! Operations on one key at a time.

use super::{Exact, Tally};
use crate::operations::{Single, single};
use crate::{Answer, Done};
use fastrand::Rng;
use std::sync::atomic::Ordering;

/// The number of single operations before the load is read again and a group has its turn.
const TURN: usize = 64;

pub(super) struct Worker<'a> {
    pub(super) field: &'a Exact,
    pub(super) rng: Rng,
    pub(super) done: Tally,
    /// Contested keys that this thread owns.
    won: Vec<u64>,
    /// Whether to insert more than to remove.
    pub(super) fill: bool,
}

pub(super) fn work(field: &Exact, operations: u64, rng: Rng) -> Tally {
    let _done = Done(&field.working);
    let mut worker = Worker { field, rng, done: Tally::default(), won: Vec::new(), fill: true };
    while worker.done.operations < operations && !field.is_stopped() {
        worker.fill = field.is_below_level();
        (0..TURN).for_each(|_| worker.flagged());
        (0..TURN / 2).for_each(|_| worker.contest());
        match worker.rng.u32(..64) {
            0..8 => worker.group(TURN),
            // Enough that each shard has a task.
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
    fn flagged(&mut self) {
        let number = self.rng.usize(..self.field.copies.len());
        let Some(mut copies) = self.field.try_flag(number) else { return };
        let key = number as u64;
        self.ask(key, *copies);
        *copies = if self.wants_to_insert() { self.insert(key, *copies) } else { self.remove(key, *copies) };
        self.ask(key, *copies);
        self.done.operations += 1;
    }

    /// Inserts a key that other threads insert, too. The thread that is told that the key is new owns it until it removes it.
    fn contest(&mut self) {
        let field = self.field;
        let key = self.rng.u64(field.keys.contested.clone());
        match field.filter.insert_unique(&key) {
            Ok(true) => {
                let count = field.filter.count(&key);
                let was_owned = field.owned(key).swap(true, Ordering::Relaxed);
                assert!(!was_owned && count == 1, "{key} is new to two threads, {count} copies");
                self.won.push(key);
            }
            Ok(false) => {}
            Err(error) => _ = field.check(key, 0, "insert_unique", Answer::of_unique(Err(error))),
        }
        self.done.operations += 1;
        // The key stays for a while, so that other threads that have begun to insert it find it.
        if !self.won.is_empty() && self.rng.bool() {
            let key = self.won.swap_remove(self.rng.usize(..self.won.len()));
            self.give_back(key);
        }
    }

    fn give_back(&mut self, key: u64) {
        self.field.owned(key).store(false, Ordering::Relaxed);
        assert!(self.field.filter.remove(&key), "remove says false to the only owner of {key}");
        self.done.operations += 1;
    }

    /// Mostly insertions up to the level, mostly removals above it.
    pub(super) fn wants_to_insert(&mut self) -> bool {
        self.rng.u32(..10) < if self.fill { 8 } else { 2 }
    }

    /// Runs an operation on a key with this many copies, checks the answer, and returns the resulting number of copies.
    fn single(&mut self, what: Single, key: u64, copies: u8) -> u8 {
        let by_hash = self.rng.bool();
        let answer = single(&self.field.filter, what, key, by_hash);
        self.field.check(key, copies, if by_hash { "by its hash" } else { "by itself" }, answer)
    }

    fn ask(&mut self, key: u64, copies: u8) {
        self.single(Single::Contains, key, copies);
        self.single(Single::Count, key, copies);
        self.done.lookups += 2;
    }

    fn insert(&mut self, key: u64, copies: u8) -> u8 {
        match self.rng.u32(..64) {
            0 => self.flood(key, copies),
            1..16 => self.single(Single::Insert, key, copies),
            _ => self.single(Single::InsertUnique, key, copies),
        }
    }

    /// Inserts copies until one is refused, and removes them again. A key of 8 copies fills two buckets in which nothing can move,
    /// and many such keys would keep the table from its level.
    fn flood(&mut self, key: u64, copies: u8) -> u8 {
        let mut most = copies;
        loop {
            let before = most;
            most = self.single(Single::Insert, key, before);
            if most == before {
                break;
            }
        }
        self.ask(key, most);
        (copies..most).rev().fold(most, |copies, _| self.single(Single::Remove, key, copies))
    }

    fn remove(&mut self, key: u64, copies: u8) -> u8 {
        let what = if self.rng.u32(..4) == 0 { Single::RemoveAll } else { Single::Remove };
        self.single(what, key, copies)
    }
}
