//! Lookups at the same time as changes and replacements.

use super::*;
use std::sync::atomic::AtomicU64;

/// Ends threads when it is dropped, by a panic too.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// How often a thread has to see a key that comes or goes.
const TIMES: u64 = 100;

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
