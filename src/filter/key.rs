//! The forms of keys in batches.

use core::borrow::Borrow;
use core::hash::Hash;
use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;

/// A key of a batch or of an iterator, for a filter of `K`: a borrowed form of `K`, or a reference to one. A filter of `u64` takes `u64`
/// and `&u64`; a filter of `String` or `str` takes `String`, `&str`, references to them, and `Box<str>`, `Rc<str>`, `Arc<str>` and
/// `Cow<str>`; a filter of bytes takes the same forms of `[u8]`, and arrays.
///
/// `Form` is inferred, and selects one of several implementations that would overlap without it. Other crates need not implement this
/// trait: every borrowed form of `K` that implements [`Hash`] has it.
///
/// ```
/// use concurrent_cuckoo_filter::CuckooFilter;
///
/// let filter = CuckooFilter::<String>::with_capacity(100);
/// let owned = vec![String::from("a.com"), String::from("b.com")];
/// assert_eq!(filter.insert_batch(&owned).inserted, 2);
/// assert_eq!(filter.insert_batch(&["c.com", "d.com"]).inserted, 2);
/// let mut found = [false; 2];
/// filter.contains_batch(&owned.iter().collect::<Vec<&String>>(), &mut found);
/// assert_eq!(found, [true; 2]);
/// ```
///
/// # Common mistakes
/// Each of these is a compile error. `insert_batch` reports a list of keys of another type as "the trait bound `u64: Borrow<u32>` is not
/// satisfied", and a list of references to them as "`&u32` is no key for a filter of `u64`":
/// ```compile_fail,E0277
/// # use concurrent_cuckoo_filter::CuckooFilter;
/// let numbers: Vec<u32> = vec![1, 2, 3];
/// let _ = CuckooFilter::<u64>::with_capacity(100).insert_batch(&numbers);
/// ```
/// ```compile_fail,E0277
/// # use concurrent_cuckoo_filter::CuckooFilter;
/// let numbers: Vec<&u32> = vec![&1, &2, &3];
/// let _ = CuckooFilter::<u64>::with_capacity(100).insert_batch(&numbers);
/// ```
/// A single key of another type is a mismatch, "expected `&u64`, found `&u32`":
/// ```compile_fail,E0308
/// # use concurrent_cuckoo_filter::CuckooFilter;
/// let _ = CuckooFilter::<u64>::with_capacity(100).contains(&7_u32);
/// ```
/// In a filter of `String`, which borrows as several types, it is an unsatisfied bound, "`String: Borrow<u32>`":
/// ```compile_fail,E0277
/// # use concurrent_cuckoo_filter::CuckooFilter;
/// let _ = CuckooFilter::<String>::with_capacity(100).contains(&7_u32);
/// ```
/// A tagged filter removes pairs of a key and a tag, and `remove` without a tag lacks an argument, "argument #2 of type `u32` is missing":
/// ```compile_fail,E0061
/// # use concurrent_cuckoo_filter::TaggedFilter;
/// TaggedFilter::<String>::with_capacity(100).remove("key");
/// ```
/// An expiring filter has no default time to live, so it is built by its builder: "`Expiring: Timeless`" is not satisfied in
/// ```compile_fail,E0599
/// # use concurrent_cuckoo_filter::ExpiringFilter;
/// let _ = ExpiringFilter::<u64>::with_capacity(100);
/// ```
/// A filter of `str` takes a `&String`, which coerces to `&str`:
/// ```
/// # use concurrent_cuckoo_filter::CuckooFilter;
/// let filter = CuckooFilter::<str>::with_capacity(100);
/// filter.insert(&String::from("key"))?;
/// assert!(filter.contains("key"));
/// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no key for a filter of `{K}`",
    label = "neither a borrowed form of `{K}`, nor a reference to one",
    note = "a filter of `String` or `str` takes `String`, `&String` and `&str`; a filter of `u64` takes `u64` and `&u64`",
    note = "for hashes of keys, use `filter.hashed()`"
)]
pub trait BatchKey<K: ?Sized, Form>: Hash {}

/// The [form](BatchKey) of keys passed by value.
#[derive(Debug)]
pub enum Owned {}

/// The [form](BatchKey) of keys passed by reference.
#[derive(Debug)]
pub enum Reference {}

/// The [form](BatchKey) of strings and bytes that `K` does not borrow as, but that dereference to the same slice.
#[derive(Debug)]
pub enum Dereferenced {}

impl<K: ?Sized + Borrow<Q>, Q: Hash> BatchKey<K, Owned> for Q {}

impl<K: ?Sized + Borrow<Q>, Q: ?Sized + Hash> BatchKey<K, Reference> for &Q {}

// Each of these types hashes like its target.
macro_rules! dereferenced {
    ($($key:ty: $($form:ty),+;)+) => {
        $($(impl BatchKey<$key, Dereferenced> for $form {}
        impl BatchKey<$key, Dereferenced> for &$form {})+)+
    };
}

dereferenced! {
    str: String, Box<str>, Rc<str>, Arc<str>, Cow<'_, str>;
    String: Box<str>, Rc<str>, Arc<str>, Cow<'_, str>;
    [u8]: Vec<u8>, Box<[u8]>, Rc<[u8]>, Arc<[u8]>, Cow<'_, [u8]>;
    Vec<u8>: Box<[u8]>, Rc<[u8]>, Arc<[u8]>, Cow<'_, [u8]>;
}

impl<const N: usize> BatchKey<[u8], Dereferenced> for [u8; N] {}
impl<const N: usize> BatchKey<[u8], Dereferenced> for &[u8; N] {}
impl<const N: usize> BatchKey<Vec<u8>, Dereferenced> for [u8; N] {}
impl<const N: usize> BatchKey<Vec<u8>, Dereferenced> for &[u8; N] {}
