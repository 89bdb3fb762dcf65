//! What goes wrong outside the filter leaves it whole: a `Hash` or a hasher that panics. And what the types promise:
//! who may share a filter, what an error is, what a key may be given as.

#[path = "common/bomb.rs"]
mod bomb;

use bomb::{Bomb, bombs};
use concurrent_cuckoo_filter::{
    BuildError, Builder, CuckooFilter, DefaultHashBuilder, InsertError, MergeError, SnapshotError,
};
use std::any::Any;
use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::error::Error;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::panic::{self, AssertUnwindSafe, RefUnwindSafe, UnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;

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

fn panics<R>(work: impl FnOnce() -> R + UnwindSafe) {
    assert!(catch_unwind(|| drop(work())).is_err());
}

/// Every operation on every key, from a thread of its own: a stripe left locked would stop it for ever.
fn works_from_another_thread<K, S>(filter: &CuckooFilter<K, S>, keys: &[K])
where
    K: Hash + Sync,
    S: BuildHasher + Sync,
{
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for key in keys {
                assert!(filter.contains(key));
                assert_eq!(filter.count(key), 1);
                assert_eq!(filter.insert_unique(key), Ok(false));
                assert!(filter.remove(key));
                assert!(!filter.contains(key));
                assert_eq!(filter.insert_unique(key), Ok(true));
                assert_eq!(filter.insert(key), Ok(()));
                assert_eq!(filter.remove_all(key), 2);
                assert_eq!(filter.insert(key), Ok(()));
            }
        });
    });
}

#[test]
fn a_hash_that_panics_leaves_nothing_locked_or_changed() {
    // One stripe: any lock left is in everybody's way. A full table: insertions lock all they can.
    let filter = CuckooFilter::<Bomb>::builder().capacity(100).fingerprint_bits(32).stripes(1).build().unwrap();
    let keys = bombs(0..100);
    for key in &keys {
        filter.insert(key).unwrap();
    }
    for number in [0, 50, 1000] {
        let bomb = &Bomb { number, armed: true };
        panics(|| filter.hash(bomb));
        panics(|| filter.contains(bomb));
        panics(|| filter.count(bomb));
        panics(|| filter.insert(bomb));
        panics(|| filter.insert_unique(bomb));
        panics(|| filter.remove(bomb));
        panics(|| filter.remove_all(bomb));
        assert_eq!(filter.len(), 100);
        assert!(keys.iter().all(|key| filter.contains(key) && filter.count(key) == 1));
        works_from_another_thread(&filter, &keys);
        assert_eq!(filter.len(), 100);
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

fn shared<T: Send + Sync + UnwindSafe + RefUnwindSafe + 'static>() {}

/// Keys are hashed, not kept, so nothing that a key cannot do holds a filter back.
#[test]
fn a_filter_of_any_key_can_be_shared() {
    shared::<CuckooFilter<u64>>();
    shared::<CuckooFilter<str>>();
    shared::<CuckooFilter<[u8]>>();
    shared::<CuckooFilter<Rc<u8>>>();
    shared::<CuckooFilter<Cell<u8>>>();
    shared::<CuckooFilter<RefCell<String>>>();
    shared::<CuckooFilter<*mut u8>>();
    shared::<CuckooFilter<&'static mut u8>>();
    shared::<CuckooFilter<dyn Any>>();
    shared::<CuckooFilter<dyn Fn(Rc<u8>)>>();
    shared::<CuckooFilter<Rc<u8>, RandomState>>();
    shared::<Arc<CuckooFilter<Rc<u8>>>>();
    shared::<Builder<Rc<u8>>>();
    shared::<DefaultHashBuilder>();
}

#[test]
fn filters_of_keys_that_stay_in_one_thread_work_in_all() {
    let filter = Arc::new(CuckooFilter::<Rc<str>>::with_capacity(10));
    filter.insert(&Rc::from("key")).unwrap();
    let other = Arc::clone(&filter);
    std::thread::spawn(move || assert!(other.remove(&Rc::from("key")))).join().unwrap();
    assert!(filter.is_empty());

    // Nothing can be hashed here, but the twins and the sizes are there.
    let filter = CuckooFilter::<dyn Any>::with_capacity(10);
    filter.insert_hash(1).unwrap();
    assert!(filter.contains_hash(1));
    assert_eq!(filter.len(), 1);
}

#[test]
fn a_filter_can_be_a_static() {
    static SEEN: std::sync::LazyLock<CuckooFilter<str>> = std::sync::LazyLock::new(|| CuckooFilter::with_capacity(10));
    std::thread::spawn(|| SEEN.insert("key")).join().unwrap().unwrap();
    assert!(SEEN.contains("key"));
}

#[test]
fn errors_are_errors_that_can_be_kept_compared_and_sent() {
    fn error<T: Error + Send + Sync + Clone + PartialEq + 'static>() {}
    error::<InsertError>();
    error::<BuildError>();
    fn equality_is_total<T: Eq>() {}
    equality_is_total::<InsertError>();

    let filter = CuckooFilter::<str>::with_capacity(10);
    let failed: Result<(), Box<dyn Error + Send + Sync>> = (0..9).try_for_each(|_| Ok(filter.insert("key")?));
    let error = failed.unwrap_err();
    assert!(matches!(error.downcast_ref(), Some(InsertError::TooManyCopies)));
    assert_eq!(error.to_string(), "all 8 slots of this key hold copies of it already");

    let failed = (0..1000u64).try_for_each(|hash| filter.insert_hash(hash)).unwrap_err();
    assert_eq!(failed, InsertError::Full);
    assert!(failed.to_string().contains("full"), "{failed}");
}

/// Variants without fields are named as they are, in patterns and in expressions.
#[test]
fn errors_are_matched_compared_and_counted_as_people_write_it() {
    let filter = CuckooFilter::<u64>::with_capacity(10);
    let mut refused: HashMap<InsertError, usize> = HashMap::new();
    let (mut full, mut too_many_copies) = (0, 0);
    let keys = (0..9).map(|_| 0).chain(0..100);
    for error in keys.filter_map(|hash| filter.insert_hash(hash).err()) {
        match error {
            InsertError::Full => full += 1,
            InsertError::TooManyCopies => too_many_copies += 1,
            error => panic!("{error}"),
        }
        *refused.entry(error).or_default() += 1;
    }
    assert!(full > 0 && too_many_copies > 0);
    let expected = [(InsertError::Full, full), (InsertError::TooManyCopies, too_many_copies)];
    assert_eq!(refused, HashMap::from(expected));
    assert_eq!(filter.insert_hash(0), Err(InsertError::TooManyCopies));

    let no_capacity = CuckooFilter::<u64>::builder().build().unwrap_err();
    assert_eq!(no_capacity, BuildError::NoCapacity);
    assert_eq!(CuckooFilter::<u64>::builder().capacity(1).stripes(0).build().unwrap_err(), BuildError::NoStripes);
    let (small, large) = (CuckooFilter::<u64>::with_capacity(10), CuckooFilter::with_capacity(1000));
    assert_eq!(small.merge_from(&large), Err(MergeError::SizesDiffer));
    assert_eq!(small.merge_from(&CuckooFilter::with_capacity(10)), Err(MergeError::HashersDiffer));
    let unread = |bytes: &[u8]| CuckooFilter::<u64>::read_from(bytes, DefaultHashBuilder::new()).map(drop);
    assert!(matches!(unread(b"a text, and no filter at all"), Err(SnapshotError::NotASnapshot)));
    let no_parts = CuckooFilter::<u64>::join([&[][..]; 0], DefaultHashBuilder::new()).map(drop);
    assert!(matches!(no_parts, Err(SnapshotError::NoParts)));
}

#[test]
fn references_that_dereference_to_the_key_are_taken() {
    let words = CuckooFilter::<str>::with_capacity(10);
    words.insert("a").unwrap();
    words.insert(&String::from("b")).unwrap();
    words.insert(&Box::<str>::from("c")).unwrap();
    words.insert(&Rc::<str>::from("d")).unwrap();
    words.insert(&Cow::Borrowed("e")).unwrap();
    assert!(["a", "b", "c", "d", "e"].into_iter().all(|word| words.contains(word)));
    assert!(words.remove(&String::from("a")));
    assert_eq!(words.count(&String::from("b")), 1);

    let bytes = CuckooFilter::<[u8]>::with_capacity(10);
    bytes.insert(b"abc").unwrap();
    let owned: Vec<u8> = b"abc".to_vec();
    assert!(bytes.contains(&owned));
    assert!(bytes.contains(&[97, 98, 99]));
    assert!(bytes.contains("abc".as_bytes()));
    assert!(bytes.remove(b"abc"));

    let tuples = CuckooFilter::<(u32, &str)>::with_capacity(10);
    tuples.insert(&(1, "a")).unwrap();
    assert!(tuples.contains(&(1, "a")));
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
        assert!(catch_unwind(AssertUnwindSafe(work)).is_err(), "{name} was to panic");
        assert_eq!(BLAMED.get(), file!(), "{name}");
    }
}

#[test]
fn a_panic_while_a_filter_is_borrowed_does_not_poison_it() {
    let filter = CuckooFilter::<u64>::with_capacity(10);
    let mut calls = 0;
    let result = catch_unwind(AssertUnwindSafe(|| {
        filter.insert(&1).unwrap();
        calls += 1;
        panic!("somebody else's");
    }));
    assert!(result.is_err() && calls == 1);
    assert!(filter.contains(&1));
    assert!(filter.remove(&1));
}
