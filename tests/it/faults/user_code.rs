//! A `Hash` that panics in one of several threads, and whom a panic blames.

use crate::support::{Bomb, bombs, panics};
use concurrent_cuckoo_filter::CuckooFilter;
use std::cell::Cell;
use std::hash::RandomState;
use std::panic;

#[test]
fn a_hash_that_panics_in_one_thread_does_not_disturb_the_others() {
    let filter = &CuckooFilter::<Bomb>::builder().capacity(1000).fingerprint_bits(32).build().unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            scope.spawn(move || {
                for i in 0..200 {
                    let key = Bomb { number: thread * 200 + i, armed: false };
                    assert_eq!(filter.insert_unique(&key), Ok(true));
                    if i % 20 == thread {
                        panics(|| filter.remove(&Bomb { armed: true, ..key }));
                    }
                    assert!(filter.contains(&key));
                }
            });
        }
    });
    assert_eq!(filter.len(), 800);
    assert!(bombs(0..800).iter().all(|key| filter.remove(key)));
    assert!(filter.is_empty());
}

thread_local! {
    /// The file of the last panic of this thread.
    static BLAMED: Cell<&'static str> = const { Cell::new("") };
}

/// A panic that a caller can cause by what is given names the caller's line, not one of the crate.
#[test]
fn panics_by_contract_name_the_line_of_the_caller() {
    let print = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        let location = panic.location().expect("std gives it always");
        // Leaked, a few bytes at each panic of this test program.
        BLAMED.set(location.file().to_string().leak());
        print(panic);
    }));
    let filter = CuckooFilter::<u64>::with_capacity(10);
    let work: [(&str, &dyn Fn()); 8] = [
        ("with_capacity", &|| drop(CuckooFilter::<u64>::with_capacity(usize::MAX))),
        ("with_capacity_and_hasher", &|| {
            drop(CuckooFilter::<u64, _>::with_capacity_and_hasher(usize::MAX, RandomState::new()));
        }),
        ("contains_batch", &|| filter.contains_batch(&[1], &mut [])),
        ("contains_batch_hash", &|| filter.contains_batch_hash(&[1], &mut [])),
        ("par_contains", &|| filter.par_contains(&[1], &mut [])),
        ("par_contains_hash", &|| filter.par_contains_hash(&[1], &mut [])),
        ("Bulk::contains", &|| filter.bulk().contains(&[1], &mut [])),
        ("Bulk::contains_hash", &|| filter.bulk().contains_hash(&[1], &mut [])),
    ];
    for (name, work) in work {
        BLAMED.set("");
        panics(work);
        assert_eq!(BLAMED.get(), file!(), "{name}");
    }
}
