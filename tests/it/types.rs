//! The promises of the types: which filters can be shared, what errors implement, and the forms of a key.

use concurrent_cuckoo_filter::kind::{Counting, Expiring};
use concurrent_cuckoo_filter::{
    BuildError, Builder, CountingFilter, CuckooFilter, DefaultHashBuilder, ExpiringFilter, FilterPart, FilterView,
    InsertError, Layout, MappedFilter, TaggedFilter,
};
use std::any::Any;
use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::error::Error;
use std::hash::RandomState;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::rc::Rc;
use std::sync::Arc;

fn shared<T: Send + Sync + UnwindSafe + RefUnwindSafe + 'static>() {}

/// Keys are hashed, not kept, so a filter is `Send` and `Sync` even if its keys are not.
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
    shared::<MappedFilter<CuckooFilter<Rc<u8>>>>();
    shared::<FilterView<CuckooFilter<Rc<u8>>>>();
}

/// This key cannot be hashed, but its hashes can be given.
#[test]
fn a_filter_of_keys_without_a_hash_takes_hashes() {
    let filter = CuckooFilter::<dyn Any>::with_capacity(10);
    filter.hashed().insert(&1).unwrap();
    assert!(filter.hashed().contains(&1));
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
    assert!(words.remove(&String::from("a")));
    assert_eq!(words.count(&String::from("b")), 1);

    let bytes = CuckooFilter::<Vec<u8>>::with_capacity(10);
    bytes.insert(&b"abc"[..]).unwrap();
    assert!(bytes.contains(&b"abc".to_vec()) && bytes.contains("abc".as_bytes()));

    let tuples = CuckooFilter::<(u32, &str)>::with_capacity(10);
    tuples.insert(&(1, "a")).unwrap();
    assert!(tuples.contains(&(1, "a")));
}
