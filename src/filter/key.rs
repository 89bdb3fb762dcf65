//! The forms in which keys of batches are given.

use core::borrow::Borrow;
use core::hash::Hash;
use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;

/// A key of a batch or of an iterator, for a filter of `K`: a borrowed form of `K`, or a reference to one. A filter of `u64` takes `u64`
/// and `&u64`; a filter of `String` or `str` takes `String`, `&str`, references to them, and `Box<str>`, `Rc<str>`, `Arc<str>` and
/// `Cow<str>`; a filter of bytes takes the same forms of `[u8]`, and arrays.
///
/// `Form` is inferred. It says which implementation holds, of several that the compiler could not tell apart otherwise. No other crate needs
/// to implement this trait: everything that implements [`Hash`] and that `K` borrows as has it already.
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
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no key for a filter of `{K}`",
    label = "neither a borrowed form of `{K}`, nor a reference to one",
    note = "a filter of `String` takes `String`, `&String` and `&str`; a filter of `str` takes `&str` alone",
    note = "for keys that are hashes already, use `filter.hashed()`"
)]
pub trait BatchKey<K: ?Sized, Form>: Hash {}

/// The [form](BatchKey) of a key that is given by value.
#[derive(Debug)]
pub enum Owned {}

/// The [form](BatchKey) of a key that is given by reference.
#[derive(Debug)]
pub enum Reference {}

/// The [form](BatchKey) of a text or of bytes that `K` does not borrow as.
#[derive(Debug)]
pub enum Dereferenced {}

impl<K: ?Sized + Borrow<Q>, Q: Hash> BatchKey<K, Owned> for Q {}

impl<K: ?Sized + Borrow<Q>, Q: ?Sized + Hash> BatchKey<K, Reference> for &Q {}

// All of them hash as what they dereference to.
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
