//! Changes one after the other: exact answers, and an exact front after each.

use super::*;
use fastrand::Rng;
use tokio::runtime::Runtime;

/// All sequences of changes of two keys up to a length, on each state of the list before.
#[tokio::test]
async fn the_front_is_exact_after_every_sequence_of_changes_in_one_transaction() {
    let folder = folder();
    let list = open(&options(folder.path())).list;
    let mut sequences: BTreeSet<Vec<u64>> = BTreeSet::from([vec![]]);
    for _ in 0..4 {
        let longer =
            sequences.iter().flat_map(|sequence| (0..4).map(move |change| [sequence.as_slice(), &[change]].concat()));
        let longer: Vec<_> = longer.collect();
        sequences.extend(longer);
    }
    assert_eq!(sequences.len(), 1 + 4 + 16 + 64 + 256);
    for before in 0..4 {
        for sequence in &sequences {
            let mut model: BTreeSet<u64> = (0..2).filter(|number| before >> number & 1 == 1).collect();
            let state = (0..2).map(|number| if model.contains(&number) { put(number) } else { delete(number) });
            list.change(state.collect()).await.unwrap();
            let change = |what: &u64| if what & 1 == 1 { put(what >> 1) } else { delete(what >> 1) };
            let expected: Vec<bool> = sequence
                .iter()
                .map(|what| if what & 1 == 1 { model.insert(what >> 1) } else { model.remove(&(what >> 1)) })
                .collect();
            let answers = list.change(sequence.iter().map(change).collect()).await.unwrap();
            assert_eq!(answers, expected, "{sequence:?} on {before:02b}");
            check(&list, &model, 2);
            let filter = list.0.shared.front.current();
            for number in 0..2 {
                assert_eq!(filter.count(&key(number)), usize::from(model.contains(&number)), "{sequence:?}");
            }
        }
    }
    // What changes nothing is not written.
    let sequence = || list.stats().totals.changes_since_snapshot;
    list.change(vec![put(0), delete(1)]).await.unwrap();
    let before = sequence();
    assert_eq!(list.change(vec![put(0), put(1), delete(1)]).await.unwrap(), [false, true, true]);
    assert_eq!(list.change(vec![]).await.unwrap(), [false; 0]);
    assert_eq!(sequence(), before);
    check(&list, &BTreeSet::from([0]), 4);
    list.close().await.unwrap();
}

#[tokio::test]
async fn what_the_filter_has_no_room_for_is_refused_as_a_whole_and_what_is_there_stays() {
    let folder = folder();
    let options = Options { max_capacity: 1, ..options(folder.path()) };
    let list = open(&options).list;
    let mut model = BTreeSet::new();
    // Requests that wait for each other meet in one transaction; some of them have room.
    let full =
        'full: loop {
            let first = model.len() as u64;
            let requests =
                (0..4).map(|part| list.change((first + part * 500..first + part * 500 + 500).map(put).collect()));
            for (part, made) in (0..).zip(futures_util::future::join_all(requests).await) {
                match made {
                    Ok(made) => assert!(made.into_iter().all(|made| made)),
                    Err(error) => {
                        assert!(error.to_string().ends_with(
                            "the filter is full: no relocation makes room for this key; nothing was changed"
                        ));
                        break 'full first + part * 500;
                    }
                }
                model.extend(first + part * 500..first + part * 500 + 500);
            }
        };
    // Later ones of the four may have been made.
    let later = list.stats().totals.keys - model.len() as u64;
    list.change((full..full + 2000).map(delete).collect()).await.unwrap();
    check(&list, &model, full + 2000);
    assert!(later <= 1500 && list.stats().totals.write_failures > 0);
    // Deletes are made all the same, and make room.
    list.change((0..10_000).map(delete).collect()).await.unwrap();
    assert_eq!(list.change((full..full + 500).map(put).collect()).await.unwrap(), [true; 500]);
    model = model.range(10_000..).copied().chain(full..full + 500).collect();
    check(&list, &model, full + 500);
    list.close().await.unwrap();
}

/// A fingerprint is gone, as by a fault of the memory or of this code.
#[tokio::test]
async fn a_filter_that_lacks_a_key_is_found_out_and_replaced() {
    let folder = folder();
    let list = open(&options(folder.path())).list;
    list.change((0..100).map(put).collect()).await.unwrap();
    let filter = list.0.shared.front.current();
    assert!(filter.remove(&key(7)) && filter.remove(&key(8)));
    assert_eq!(list.change(vec![delete(7)]).await.unwrap(), [true]);
    assert_eq!((list.stats().totals.filter_faults, list.stats().filter.len), (1, 99));
    assert!(list.may_be_listed(&key(8)));
    list.close().await.unwrap();
}

/// Keys that there can be in random sequences.
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
}

impl Run {
    fn change(&mut self) {
        // Often few keys, so that changes of one key meet in a transaction.
        let keys = *self.random.choice(&[3, 20, KEYS]).unwrap();
        let puts = *self.random.choice(&[1, 5, 9]).unwrap();
        let random = &mut self.random;
        let numbers: Vec<(u64, bool)> =
            (0..random.usize(1..120)).map(|_| (random.u64(..keys), random.u8(..10) < puts)).collect();
        let change = |&(number, is_put): &(u64, bool)| if is_put { put(number) } else { delete(number) };
        let parts = numbers.chunks(self.random.usize(1..130)).map(|part| part.iter().map(change).collect());
        // They are sent in this order, so that they are made in it, in any number of transactions.
        let made = futures_util::future::join_all(parts.map(|part| self.list.change(part)));
        let made: Vec<bool> = self.runtime.block_on(made).into_iter().flat_map(Result::unwrap).collect();
        let model = &mut self.model;
        let expected: Vec<bool> = numbers
            .iter()
            .map(|(number, is_put)| if *is_put { model.insert(*number) } else { model.remove(number) })
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
                self.change();
            }
        }
        if self.random.u8(..3) == 0 {
            self.seen.abandoned += 1;
            return;
        }
        assert_eq!(self.runtime.block_on(replacement.commit()).unwrap(), new.len() as u64);
        self.model = new;
        self.seen.replacements += 1;
    }

    /// Without `close`, as good as killed.
    fn reopen(&mut self, close: bool) {
        if close {
            self.runtime.block_on(self.list.clone().close()).unwrap();
        }
        if self.random.u8(..4) == 0 {
            let _ = std::fs::remove_file(self.options.snapshot());
        }
        // Drops the old one.
        let other = folder();
        self.list = open(&options(other.path())).list;
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
    let folder = folder();
    let (options, random) = (options(folder.path()), Rng::with_seed(18));
    let (list, seen) = (open(&options).list, Seen::default());
    let mut run = Run { random, runtime: runtime(), options, list, model: BTreeSet::new(), seen };
    for _ in 0..400 {
        match run.random.u8(..20) {
            0 => run.replace(),
            1 => run.reopen(true),
            2 => run.reopen(false),
            3 | 4 => run.seen.snapshots += usize::from(run.runtime.block_on(run.list.save_snapshot()).unwrap()),
            _ => run.change(),
        }
        check(&run.list, &run.model, KEYS);
    }
    run.runtime.block_on(run.list.change((0..KEYS).map(delete).collect())).unwrap();
    run.model.clear();
    run.reopen(true);
    check(&run.list, &run.model, KEYS);
    let Seen { snapshots, replays, bulk_loads, replacements, abandoned } = run.seen;
    assert!([snapshots, replays, bulk_loads, replacements, abandoned].iter().all(|&times| times > 2), "{:?}", run.seen);
}
