//! Random sequences of everything that can happen to a list, against a plain set.

use crate::common::{boxed, check, delete, open, options, put, runtime};
use fastrand::Rng;
use risk_server::list::{Change, List, Options, Saved, Start};
use std::collections::BTreeSet;
use tokio::runtime::Runtime;

/// Keys that there can be.
const KEYS: u64 = 400;

struct Run {
    random: Rng,
    runtime: Runtime,
    options: Options,
    list: List,
    model: BTreeSet<u64>,
    seen: Seen,
}

/// What came up.
#[derive(Debug, Default)]
struct Seen {
    snapshots: usize,
    replays: usize,
    bulk_loads: usize,
    replacements: usize,
    abandoned: usize,
    rebuilds: u64,
    refusals: u64,
}

impl Run {
    fn changes(&mut self) {
        // Often few keys, so that one change meets another one of its key in its transaction.
        let keys = *self.random.choice(&[3, 20, KEYS]).unwrap();
        let puts = *self.random.choice(&[1, 5, 9]).unwrap();
        let number = self.random.usize(1..120);
        let changes: Vec<Change> = (0..number)
            .map(|_| {
                let number = self.random.u64(..keys);
                if self.random.u8(..10) < puts { put(number) } else { delete(number) }
            })
            .collect();
        let parts: Vec<Vec<Change>> = changes.chunks(self.random.usize(1..130)).map(<[_]>::to_vec).collect();
        // They are sent in this order, so that they are made in it, in as many transactions as it happens.
        let made = self.runtime.block_on(async {
            futures_util::future::join_all(parts.iter().map(|part| self.list.change(part.clone()))).await
        });
        let made: Vec<bool> = made.into_iter().flat_map(Result::unwrap).collect();
        let expected: Vec<bool> = changes
            .iter()
            .map(|change| {
                let number = u64::from_str_radix(change.key().trim_end_matches(".example"), 16).unwrap();
                match change {
                    Change::Put(_) => self.model.insert(number),
                    Change::Delete(_) => self.model.remove(&number),
                }
            })
            .collect();
        assert_eq!(made, expected);
    }

    fn replace(&mut self) {
        let share = self.random.u8(..=100);
        let new: BTreeSet<u64> = (0..KEYS).filter(|_| self.random.u8(..100) < share).collect();
        let mut replacement = self.runtime.block_on(self.list.begin_replacement()).unwrap();
        let mut keys: Vec<u64> = new.iter().chain(new.iter().take(10)).copied().collect();
        self.random.shuffle(&mut keys);
        for part in keys.chunks(self.random.usize(1..200)) {
            self.runtime.block_on(replacement.add(part.iter().copied().map(boxed).collect())).unwrap();
            if self.random.u8(..10) == 0 {
                self.changes();
            }
        }
        if self.random.u8(..3) == 0 {
            self.seen.abandoned += 1;
            return;
        }
        assert_eq!(self.runtime.block_on(replacement.commit()).unwrap().keys, new.len() as u64);
        self.model = new;
        self.seen.replacements += 1;
    }

    fn reopen(&mut self, orderly: bool) {
        let stats = self.list.stats();
        self.seen.rebuilds += stats.rebuilds;
        self.seen.refusals += stats.refusals.full + stats.refusals.too_many_copies;
        // Clones are the same list: it ends with this one.
        let folder = self.options.folder.join("filter.snapshot");
        let list = self.list.clone();
        if orderly {
            self.runtime.block_on(list.close()).unwrap();
        } else {
            // As good as killed, but that the file of the store is in order.
            drop(list);
        }
        if self.random.u8(..4) == 0 {
            let _ = std::fs::remove_file(folder);
        }
        let placeholder = tempfile::tempdir().unwrap();
        self.list = open(&options(placeholder.path(), 1)).list;
        let opened = open(&self.options);
        match opened.how {
            Start::Snapshot { changes } => self.seen.replays += usize::from(changes > 0),
            Start::BulkLoad { .. } => self.seen.bulk_loads += 1,
            Start::Empty => assert!(self.model.is_empty()),
        }
        self.list = opened.list;
    }
}

#[test]
fn a_list_is_a_set_whatever_happens_to_it() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut total = Seen::default();
    for (number, capacity) in [1, 8, 64, 300, 1000].into_iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        // None waits for room: a call that waits is made after those that were made later.
        let options = options(folder.path(), capacity);
        let list = open(&options).list;
        let random = Rng::with_seed(seed.wrapping_add(number as u64));
        let mut run = Run { random, runtime: runtime(), options, list, model: BTreeSet::new(), seen: Seen::default() };
        for _ in 0..150 {
            match run.random.u8(..20) {
                0 => run.replace(),
                1 => run.reopen(true),
                2 => run.reopen(false),
                3 | 4 => {
                    let saved = run.runtime.block_on(run.list.save_snapshot()).unwrap();
                    run.seen.snapshots += usize::from(matches!(saved, Saved::Written { .. }));
                }
                _ => run.changes(),
            }
            check(&run.list, &run.model, KEYS);
        }
        let all: Vec<Change> = (0..KEYS).map(delete).collect();
        run.runtime.block_on(run.list.change(all)).unwrap();
        run.model.clear();
        check(&run.list, &run.model, KEYS);
        run.reopen(true);
        check(&run.list, &run.model, KEYS);
        let seen = run.seen;
        total.snapshots += seen.snapshots;
        total.replays += seen.replays;
        total.bulk_loads += seen.bulk_loads;
        total.replacements += seen.replacements;
        total.abandoned += seen.abandoned;
        total.rebuilds += seen.rebuilds;
        total.refusals += seen.refusals;
    }
    println!("{total:?}");
    let all = [total.snapshots, total.replays, total.bulk_loads, total.replacements, total.abandoned];
    assert!(all.iter().all(|&times| times > 3) && total.rebuilds > 3 && total.refusals > 0, "{total:?}");
}
