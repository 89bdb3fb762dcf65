//! Changes one after the other: exact answers, and an exact front after each.

use super::*;
use fastrand::Rng;
use tokio::runtime::Runtime;

/// All sequences of changes of two keys up to a length, on each state of the list before.
#[tokio::test]
async fn the_front_is_exact_after_every_sequence_of_changes_in_one_transaction() {
    let folder = folder();
    let list = open(&options(folder.path(), 100)).list;
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
            let side = list.0.shared.front.current();
            for number in 0..2 {
                assert_eq!(side.filter.count(&key(number)), usize::from(model.contains(&number)), "{sequence:?}");
            }
        }
    }
    // What changes nothing is not written.
    let sequence = || list.0.shared.totals.lock().sequence;
    list.change(vec![put(0), delete(1)]).await.unwrap();
    let before = sequence();
    assert_eq!(list.change(vec![put(0), put(1), delete(1)]).await.unwrap(), [false, true, true]);
    assert_eq!(list.change(vec![]).await.unwrap(), [false; 0]);
    assert_eq!(sequence(), before);
    // One invalid key refuses all that came with it.
    for bad in [Change::Put("".into()), Change::Delete("a\n".into()), Change::Put("x".repeat(1025).into())] {
        let error = list.change(vec![put(1), put(2), bad, put(3)]).await.unwrap_err();
        assert!(matches!(error, ChangeError::Key { index: 2, .. }), "{error}");
    }
    check(&list, &BTreeSet::from([0]), 4);
    list.close().await.unwrap();
}

/// A list whose filter refuses most of its 500 keys: the flag that prevents builds is set.
async fn overflowing(options: &Options) -> (List, BTreeSet<u64>) {
    let list = open(options).list;
    list.0.shared.closing.store(true, Ordering::Relaxed);
    list.change((0..500).map(put).collect()).await.unwrap();
    let stats = list.stats();
    assert!(stats.overflow_keys > 400 && stats.refusals == stats.overflow_keys, "{stats:?}");
    (list, (0..500).collect())
}

#[tokio::test]
async fn refused_keys_are_listed_put_once_and_deleted() {
    let folder = folder();
    let (list, mut model) = overflowing(&options(folder.path(), 10)).await;
    check(&list, &model, 510);
    assert_eq!(list.change((0..500).map(put).collect()).await.unwrap(), [false; 500]);
    for first in (0..500).step_by(50) {
        let some = first + 7..first + 40;
        let deleted = list.change(some.clone().chain(some.clone()).map(delete).collect()).await.unwrap();
        assert_eq!(deleted, [[true; 33], [false; 33]].concat());
        model.retain(|key| !some.contains(key));
        // Out of the overflow and in again, within one transaction and in two.
        let again = list.change(vec![put(first + 7), delete(first + 7), put(first + 7), delete(first)]).await.unwrap();
        assert_eq!(again, [true; 4]);
        model.insert(first + 7);
        model.remove(&first);
        check(&list, &model, 510);
    }
    list.change((0..500).map(delete).collect()).await.unwrap();
    check(&list, &BTreeSet::new(), 510);
    list.close().await.unwrap();
}

#[tokio::test]
async fn beyond_the_limit_of_refused_keys_puts_wait_for_the_larger_filter() {
    let folder = folder();
    let options = Options { overflow_limit: 100, ..options(folder.path(), 10) };
    let (list, mut model) = overflowing(&options).await;
    assert!(matches!(list.change(vec![put(500)]).await, Err(ChangeError::NoRoom)));
    assert_eq!(list.change(vec![delete(1)]).await.unwrap(), [true]);
    assert_eq!(list.save_snapshot().await.unwrap(), Saved::Overflowing);
    list.0.shared.closing.store(false, Ordering::Relaxed);
    // A build is started at the next command, which may be this one.
    while let Err(error) = list.change(vec![put(500)]).await {
        assert!(matches!(error, ChangeError::NoRoom), "{error}");
    }
    assert_eq!((list.stats().rebuilds, list.stats().overflow_keys), (1, 0));
    model.remove(&1);
    model.insert(500);
    check(&list, &model, 510);
    wait_until(|| list.stats().snapshot.is_some());
    list.close().await.unwrap();
    let opened = open(&options);
    assert_eq!(opened.how, Start::Snapshot { changes: 0 });
    check(&opened.list, &model, 510);
    opened.list.close().await.unwrap();
}

/// A fingerprint is gone, as by a fault of the memory or of this code.
#[tokio::test]
async fn a_filter_that_lacks_a_key_is_found_out_and_replaced() {
    let folder = folder();
    let list = open(&options(folder.path(), 1000)).list;
    list.change((0..100).map(put).collect()).await.unwrap();
    assert!(list.0.shared.front.current().filter.remove(&key(7)));
    assert_eq!(list.change(vec![delete(7)]).await.unwrap(), [true]);
    wait_until(|| list.stats().rebuilds == 1);
    assert_eq!((list.stats().filter_faults, list.stats().filter.len), (1, 99));
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
    rebuilds: u64,
    refusals: u64,
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
        let stats = self.list.stats();
        self.seen.rebuilds += stats.rebuilds;
        self.seen.refusals += stats.refusals;
        if close {
            self.runtime.block_on(self.list.clone().close()).unwrap();
        }
        if self.random.u8(..4) == 0 {
            let _ = std::fs::remove_file(self.options.snapshot());
        }
        // Drops the old one.
        let other = folder();
        self.list = open(&options(other.path(), 1)).list;
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
    let mut seen = Seen::default();
    for (number, capacity) in (0..).zip([1, 8, 64, 300, 1000]) {
        let folder = folder();
        let options = options(folder.path(), capacity);
        let (random, list) = (Rng::with_seed(seed.wrapping_add(number)), open(&options).list);
        let mut run = Run { random, runtime: runtime(), options, list, model: BTreeSet::new(), seen };
        for _ in 0..150 {
            match run.random.u8(..20) {
                0 => run.replace(),
                1 => run.reopen(true),
                2 => run.reopen(false),
                3 | 4 => {
                    let saved = run.runtime.block_on(run.list.save_snapshot()).unwrap();
                    run.seen.snapshots += usize::from(saved == Saved::Written);
                }
                _ => run.change(),
            }
            check(&run.list, &run.model, KEYS);
        }
        run.runtime.block_on(run.list.change((0..KEYS).map(delete).collect())).unwrap();
        run.model.clear();
        run.reopen(true);
        check(&run.list, &run.model, KEYS);
        seen = run.seen;
    }
    println!("{seen:?}");
    let all = [seen.snapshots, seen.replays, seen.bulk_loads, seen.replacements, seen.abandoned];
    assert!(all.iter().all(|&times| times > 3) && seen.rebuilds > 3 && seen.refusals > 0, "{seen:?}");
}
