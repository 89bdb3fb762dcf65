//! Whom a panic blames.

use crate::support::panics;
use concurrent_cuckoo_filter::CuckooFilter;
use std::cell::Cell;
use std::hash::RandomState;
use std::panic;

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
        ("contains_batch_hash", &|| filter.hashed().contains_batch(&[1], &mut [])),
        ("par_contains", &|| filter.par_contains(&[1], &mut [])),
        ("par_contains_hash", &|| filter.hashed().par_contains(&[1], &mut [])),
        ("Bulk::contains", &|| filter.bulk().contains(&[1], &mut [])),
        ("hashed().bulk().contains", &|| filter.hashed().bulk().contains(&[1], &mut [])),
    ];
    for (name, work) in work {
        BLAMED.set("");
        panics(work);
        assert_eq!(BLAMED.get(), file!(), "{name}");
    }
}
