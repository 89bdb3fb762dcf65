//! What the types promise: who may share a filter, what an error is, what a key may be given as.

use concurrent_cuckoo_filter::kind::{Counting, Expiring};
use concurrent_cuckoo_filter::{
    BuildError, Builder, CountingFilter, CuckooFilter, DefaultHashBuilder, ExpiringFilter, FilterPart, InsertError,
    Layout, MergeError, SnapshotError, TaggedFilter,
};
use std::any::Any;
use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::error::Error;
use std::hash::RandomState;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::rc::Rc;
use std::sync::Arc;

fn shared<T: Send + Sync + UnwindSafe + RefUnwindSafe + 'static>() {}

/// Keys are hashed, not kept, so nothing that a key cannot do holds a filter back.
#[test]
fn a_filter_of_any_key_can_be_shared() {
    shared::<CuckooFilter<u64>>();
    shared::<CuckooFilter<String>>();
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
    shared::<Layout<Rc<u8>, RandomState>>();
    shared::<FilterPart<Rc<u8>, RandomState>>();
    shared::<ExpiringFilter<Rc<u8>, RandomState>>();
    shared::<Builder<Rc<u8>, DefaultHashBuilder, Expiring>>();
    shared::<CountingFilter<Rc<u8>, RandomState>>();
    shared::<TaggedFilter<Rc<u8>, RandomState>>();
    shared::<Builder<Rc<u8>, DefaultHashBuilder, Counting>>();
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
    filter.hashed().insert(&1).unwrap();
    assert!(filter.hashed().contains(&1));
    assert_eq!(filter.len(), 1);
}

#[test]
fn errors_are_errors_that_can_be_kept_compared_and_sent() {
    fn error<T: Error + Send + Sync + Clone + PartialEq + 'static>() {}
    error::<InsertError>();
    error::<BuildError>();
    let filter = CuckooFilter::<str>::with_capacity(10);
    let failed: Result<(), Box<dyn Error + Send + Sync>> = (0..9).try_for_each(|_| Ok(filter.insert("key")?));
    let error = failed.unwrap_err();
    assert!(matches!(error.downcast_ref(), Some(InsertError::TooManyCopies)) && error.source().is_none());
    assert_eq!(error.to_string(), "all 8 slots of this key hold copies of it already");
    assert!(InsertError::Full.to_string().contains("full"));
}

/// Variants without fields are named as they are, in patterns and in expressions.
#[test]
fn errors_are_matched_compared_and_counted_as_people_write_it() {
    let filter = CuckooFilter::<u64>::with_capacity(10);
    let mut refused: HashMap<InsertError, usize> = HashMap::new();
    let (mut full, mut too_many_copies) = (0, 0);
    let keys = (0..9).map(|_| 0).chain(0..100);
    for error in keys.filter_map(|hash| filter.hashed().insert(&hash).err()) {
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
    assert_eq!(filter.hashed().insert(&0), Err(InsertError::TooManyCopies));

    let no_capacity = CuckooFilter::<u64>::builder().build().unwrap_err();
    assert_eq!(no_capacity, BuildError::NoCapacity);
    assert_eq!(CuckooFilter::<u64>::builder().capacity(1).stripes(0).build().unwrap_err(), BuildError::NoStripes);
    let (small, large) = (CuckooFilter::<u64>::with_capacity(10), CuckooFilter::with_capacity(1000));
    assert_eq!(small.merge_from(&large), Err(MergeError::SizesDiffer));
    assert_eq!(small.merge_from(&CuckooFilter::with_capacity(10)), Err(MergeError::HashersDiffer));
    let unread = |bytes: &[u8]| CuckooFilter::<u64>::read_from(bytes, DefaultHashBuilder::default()).map(drop);
    assert!(matches!(unread(b"a text, and no filter at all"), Err(SnapshotError::NotASnapshot)));
    let no_parts = CuckooFilter::<u64>::join([&[][..]; 0], DefaultHashBuilder::default()).map(drop);
    assert!(matches!(no_parts, Err(SnapshotError::NoParts)));
}

#[test]
fn references_that_dereference_to_the_key_are_taken() {
    let words = CuckooFilter::<String>::with_capacity(10);
    words.insert("a").unwrap();
    words.insert(&String::from("b")).unwrap();
    words.insert(&*Box::<str>::from("c")).unwrap();
    words.insert(&*Rc::<str>::from("d")).unwrap();
    words.insert(&*Cow::Borrowed("e")).unwrap();
    assert!(["a", "b", "c", "d", "e"].into_iter().all(|word| words.contains(word)));
    let report = words.insert_batch(&[Cow::Borrowed("f"), Cow::Owned("g".into())]);
    assert!(report.inserted == 2 && words.contains("g"));
    assert_eq!(words.bulk().insert_iter([Rc::<str>::from("h")]).inserted, 1);
    assert_eq!(words.bulk().insert_iter([String::from("i")].iter()).inserted, 1);
    assert!(words.remove(&String::from("a")));
    assert_eq!(words.count(&String::from("b")), 1);

    let bytes = CuckooFilter::<Vec<u8>>::with_capacity(10);
    bytes.insert(&b"abc"[..]).unwrap();
    let owned: Vec<u8> = b"abc".to_vec();
    assert!(bytes.contains(&owned));
    assert!(bytes.contains("abc".as_bytes()));
    let mut found = [false; 2];
    bytes.contains_batch(&[b"abc", b"abd"], &mut found);
    assert_eq!(found, [true, false]);
    assert!(bytes.remove(&b"abc"[..]));

    let tuples = CuckooFilter::<(u32, &str)>::with_capacity(10);
    tuples.insert(&(1, "a")).unwrap();
    assert!(tuples.contains(&(1, "a")));
}
