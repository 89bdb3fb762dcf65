//! Lookups, changes, growth and replacements at the same time.

use super::*;
use std::sync::atomic::AtomicU64;

/// Ends threads when it is dropped, by a panic too.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Counts the rounds of a thread; many once it has panicked, so that no one waits for it.
struct Rounds<'a>(&'a AtomicU64);

impl Drop for Rounds<'_> {
    fn drop(&mut self) {
        self.0.store(u64::MAX, Ordering::Relaxed);
    }
}

/// Runs `work` while threads look up keys that are on the list all the time: none is ever answered "no".
fn while_asked<T>(list: &List, stable: std::ops::Range<u64>, work: impl FnOnce() -> T) -> T {
    let stable: Vec<String> = stable.map(key).collect();
    let stable: Vec<&str> = stable.iter().map(String::as_str).collect();
    let (end, rounds) = (AtomicBool::new(false), [const { AtomicU64::new(0) }; 3]);
    let ask_front = || stable.iter().for_each(|key| assert!(list.may_be_listed(key), "{key}"));
    let ask_batch = || {
        let mut answers = vec![false; stable.len()];
        list.may_be_listed_batch(&stable, &mut answers);
        assert!(answers.into_iter().all(|answer| answer));
    };
    let ask_store = || assert!(list.confirm(&stable).unwrap().into_iter().all(|answer| answer));
    thread::scope(|scope| {
        let asking: [&(dyn Fn() + Sync); 3] = [&ask_front, &ask_batch, &ask_store];
        for (ask, round) in asking.into_iter().zip(&rounds) {
            let end = &end;
            scope.spawn(move || {
                let rounds = Rounds(round);
                while !end.load(Ordering::Acquire) {
                    ask();
                    rounds.0.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let _ends = Ends(&end);
        let result = work();
        wait_until(|| rounds.iter().all(|round| round.load(Ordering::Relaxed) >= 10));
        result
    })
}

#[test]
fn a_list_grows_from_one_key_while_it_is_changed_and_asked() {
    let (folder, runtime) = (folder(), runtime());
    let options = options(folder.path());
    let list = open(&options).list;
    runtime.block_on(list.change((0..100).map(put).collect())).unwrap();
    // Four writers, each with numbers of its own; each takes back a third of what it puts.
    let writer = |writer: u64| {
        let list = list.clone();
        async move {
            for round in 0..20 {
                let first = 1000 + (round * 4 + writer) * 1000;
                let puts = list.change((first..first + 1000).map(put).collect()).await.unwrap();
                assert_eq!(puts, [true; 1000]);
                let deletes = list.change((first..first + 1000).step_by(3).map(delete).collect()).await.unwrap();
                assert_eq!(deletes, [true; 334]);
            }
        }
    };
    while_asked(&list, 0..100, || {
        let writers: Vec<_> = (0..4).map(|number| runtime.spawn(writer(number))).collect();
        runtime.block_on(async {
            let saver = list.clone();
            let saver = tokio::spawn(async move {
                loop {
                    saver.save_snapshot().await.unwrap();
                }
            });
            for writer in writers {
                writer.await.unwrap();
            }
            saver.abort();
        });
    });
    let model: BTreeSet<u64> =
        (0..100).chain((0..80 * 1000).filter(|at| at % 1000 % 3 != 0).map(|at| 1000 + at)).collect();
    check(&list, &model, 82_000);
    let stats = list.stats().filter;
    assert!(stats.splits > 0 && stats.refused_full == 0, "{stats:?}");
    runtime.block_on(list.close()).unwrap();
    let opened = open(&options);
    assert_eq!(opened.how, Start::Snapshot { changes: 0 });
    check(&opened.list, &model, 82_000);
    // Every key goes: none was there twice.
    runtime.block_on(opened.list.change(model.iter().copied().map(delete).collect())).unwrap();
    check(&opened.list, &BTreeSet::new(), 82_000);
    assert_eq!(opened.list.stats().filter.load_factor, 0.0);
    runtime.block_on(opened.list.close()).unwrap();
}

#[test]
fn no_key_of_both_lists_is_missed_at_any_moment() {
    let (folder, runtime) = (folder(), runtime());
    let options = options(folder.path());
    let list = open(&options).list;
    runtime.block_on(list.change((0..500).map(put).collect())).unwrap();
    let mut last = BTreeSet::new();
    while_asked(&list, 0..500, || {
        for round in 1..=12 {
            // Meanwhile changes of keys that are on neither list.
            let other = runtime.spawn({
                let list = list.clone();
                async move {
                    for number in 0..30 {
                        list.change(vec![put(900_000 + number)]).await.unwrap();
                        list.change(vec![delete(900_000 + number)]).await.unwrap();
                    }
                }
            });
            last = (0..500).chain(round * 10_000..round * 10_000 + 300 * round).collect();
            assert_eq!(runtime.block_on(replace(&list, last.iter().copied())), last.len() as u64);
            runtime.block_on(other).unwrap();
            runtime.block_on(list.change((800_000..802_000).map(put).collect())).unwrap();
        }
        runtime.block_on(list.change((800_000..802_000).map(delete).collect())).unwrap();
    });
    check(&list, &last, 130_000);
    assert_eq!(list.stats().totals.replacements, 12);
    runtime.block_on(list.close()).unwrap();
    let opened = open(&options);
    check(&opened.list, &last, 130_000);
    runtime.block_on(opened.list.close()).unwrap();
}

/// How often a thread has to see a key that comes or goes.
const TIMES: u64 = 300;

/// Repeats a step, which names the key that it lets come or go, while a thread asks for that key. Each key comes once
/// and goes once. So if the store has it before and after a lookup of the front, it has it meanwhile.
fn watched(list: &List, mut step: impl FnMut(u64, &AtomicU64)) {
    let (now, seen, end) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        let asking = scope.spawn(|| {
            let (mut last, mut had) = (u64::MAX, false);
            while !end.load(Ordering::Acquire) {
                let number = now.load(Ordering::Acquire);
                let key = key(number);
                let in_store = || list.confirm(&[&key]).unwrap()[0];
                let (before, may, after) = (in_store(), list.may_be_listed(&key), in_store());
                assert!(may || !before || !after, "the store has {key}, and the front says no");
                seen.fetch_add(u64::from(number == last && before != had), Ordering::Release);
                (last, had) = (number, before);
            }
        });
        let _ends = Ends(&end);
        let mut number = 0;
        while seen.load(Ordering::Acquire) < TIMES && !asking.is_finished() {
            step(number, &now);
            number += 1;
        }
    });
}

#[test]
fn the_front_has_a_key_before_the_store_has_it_and_until_the_store_has_lost_it() {
    let (folder, runtime) = (folder(), runtime());
    let list = open(&options(folder.path())).list;
    watched(&list, |number, now| {
        now.store(number, Ordering::Release);
        assert_eq!(runtime.block_on(list.change(vec![put(number)])).unwrap(), [true]);
        assert_eq!(runtime.block_on(list.change(vec![delete(number)])).unwrap(), [true]);
    });
    // The same for the keys of whole lists: in turn the key that goes and the one that comes.
    watched(&list, |number, now| {
        let mut replacement = runtime.block_on(list.begin_replacement()).unwrap();
        runtime.block_on(replacement.add(vec![boxed(number + 1)])).unwrap();
        now.store(number + number % 2, Ordering::Release);
        runtime.block_on(replacement.commit()).unwrap();
    });
    runtime.block_on(list.close()).unwrap();
}
