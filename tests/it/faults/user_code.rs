//! A hasher that panics, a `Hash` that panics in one of several threads or uses the filter, and whom a panic blames.

use crate::support::{Bomb, bombs, panics};
use concurrent_cuckoo_filter::{CuckooFilter, DefaultHashBuilder};
use std::cell::Cell;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::panic;

/// Hashers that panic for key 13.
#[derive(Clone, Default)]
struct Superstitious(DefaultHashBuilder);

impl BuildHasher for Superstitious {
    type Hasher = SuperstitiousHasher;

    fn build_hasher(&self) -> Self::Hasher {
        SuperstitiousHasher(self.0.build_hasher())
    }
}

struct SuperstitiousHasher(<DefaultHashBuilder as BuildHasher>::Hasher);

impl Hasher for SuperstitiousHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
    }

    fn write_u32(&mut self, number: u32) {
        assert_ne!(number, 13, "not this one");
        self.0.write_u32(number);
    }

    fn finish(&self) -> u64 {
        self.0.finish()
    }
}

#[test]
fn a_hasher_that_panics_leaves_nothing_locked_or_changed() {
    let filter = CuckooFilter::<u32, _>::with_capacity_and_hasher(100, Superstitious::default());
    let keys: Vec<u32> = (100..110).collect();
    for key in &keys {
        filter.insert(key).unwrap();
    }
    panics(|| filter.insert(&13));
    panics(|| filter.insert_unique(&13));
    panics(|| filter.contains(&13));
    panics(|| filter.remove(&13));
    assert_eq!(filter.len(), 10);
    assert!(keys.iter().all(|key| filter.remove(key)));
    assert!(filter.is_empty());
}

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

/// A filter hashes inside of a hash: no lock is held while the user's code runs, so this is no deadlock.
#[test]
fn a_hash_may_use_the_filter_that_asks_for_it() {
    struct Nested<'a>(u64, &'a CuckooFilter<u64>);

    impl Hash for Nested<'_> {
        fn hash<H: Hasher>(&self, state: &mut H) {
            self.1.insert_unique(&self.0).unwrap();
            self.0.hash(state);
        }
    }

    let inner = CuckooFilter::<u64>::builder().capacity(10).stripes(1).build().unwrap();
    let outer = CuckooFilter::<Nested<'_>>::builder().capacity(10).stripes(1).build().unwrap();
    outer.insert(&Nested(1, &inner)).unwrap();
    assert!(outer.contains(&Nested(1, &inner)));
    assert_eq!((inner.len(), outer.len()), (1, 1));
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
