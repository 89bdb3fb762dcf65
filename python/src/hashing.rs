//! One value for each type of keys, and how each hashes.

use crate::keys::{Answers, Column, Key, KeyType};
use crate::threads::in_slices;
use arrow_array::{Array, BooleanArray};
use arrow_pyarrow::ToPyArrow;
use concurrent_cuckoo_filter::{CuckooFilter, Layout, MappedFilter, SavedHasher, StableHashBuilder};
use pyo3::prelude::*;
use std::ops::Range;

/// Keys that are hashed before they are asked for or stored: their hashes stay in the nearest cache.
const BLOCK: usize = 512;

/// The same thing for each type of keys.
pub(crate) enum Keyed<S, B, I, U> {
    Str(S),
    Bytes(B),
    I64(I),
    U64(U),
}

/// Does the same with whichever there is.
macro_rules! keyed {
    ($keyed:expr, $value:ident => $body:expr) => {
        match $keyed {
            $crate::hashing::Keyed::Str($value) => $body,
            $crate::hashing::Keyed::Bytes($value) => $body,
            $crate::hashing::Keyed::I64($value) => $body,
            $crate::hashing::Keyed::U64($value) => $body,
        }
    };
}

/// Makes one of each type with the same words, which may fail.
macro_rules! made {
    ($key_type:expr, $K:ident => $body:expr) => {
        match $key_type {
            $crate::keys::KeyType::Str => {
                type $K = str;
                $body.map($crate::hashing::Keyed::Str)
            }
            $crate::keys::KeyType::Bytes => {
                type $K = [u8];
                $body.map($crate::hashing::Keyed::Bytes)
            }
            $crate::keys::KeyType::I64 => {
                type $K = i64;
                $body.map($crate::hashing::Keyed::I64)
            }
            $crate::keys::KeyType::U64 => {
                type $K = u64;
                $body.map($crate::hashing::Keyed::U64)
            }
        }
    };
}

pub(crate) use {keyed, made};

impl<S, B, I, U> Keyed<S, B, I, U> {
    pub(crate) fn key_type(&self) -> KeyType {
        match self {
            Keyed::Str(_) => KeyType::Str,
            Keyed::Bytes(_) => KeyType::Bytes,
            Keyed::I64(_) => KeyType::I64,
            Keyed::U64(_) => KeyType::U64,
        }
    }
}

/// What hashes keys of its type.
pub(crate) trait Hashing {
    /// # Panics
    /// If the key is of another type: columns and single keys have been checked.
    fn hash_of(&self, key: Key<'_>) -> u64;
}

macro_rules! hashing {
    ($($what:ident: $key:ty, $pattern:pat => $value:ident . $method:ident($argument:expr);)+) => {
        $(
            impl Hashing for $what<$key, StableHashBuilder> {
                #[inline(always)]
                fn hash_of(&self, key: Key<'_>) -> u64 {
                    let $value = self;
                    match key {
                        $pattern => $value.$method($argument),
                        #[allow(unreachable_patterns)]
                        _ => unreachable!("keys were read as those of another type"),
                    }
                }
            }
        )+
    };
}

hashing! {
    CuckooFilter: str, Key::Bytes(text) => filter.hash_str_bytes(text);
    CuckooFilter: [u8], Key::Bytes(bytes) => filter.hash(bytes);
    CuckooFilter: i64, Key::Number(number) => filter.hash(&(number as i64));
    CuckooFilter: u64, Key::Number(number) => filter.hash(&number);
    MappedFilter: str, Key::Bytes(text) => filter.hash_str_bytes(text);
    MappedFilter: [u8], Key::Bytes(bytes) => filter.hash(bytes);
    MappedFilter: i64, Key::Number(number) => filter.hash(&(number as i64));
    MappedFilter: u64, Key::Number(number) => filter.hash(&number);
    Layout: str, Key::Bytes(text) => layout.hash_str_bytes(text);
    Layout: [u8], Key::Bytes(bytes) => layout.hash(bytes);
    Layout: i64, Key::Number(number) => layout.hash(&(number as i64));
    Layout: u64, Key::Number(number) => layout.hash(&number);
}

/// Hashes keys of a column, and calls `work` with blocks of hashes.
#[inline(always)]
fn in_blocks(
    by: &impl Hashing,
    column: &Column,
    range: Range<usize>,
    check_text: bool,
    mut work: impl FnMut(&[u64]),
) -> PyResult<()> {
    let (mut hashes, mut count) = ([0; BLOCK], 0);
    column.for_each(range, check_text, |key| {
        hashes[count] = by.hash_of(key);
        count += 1;
        if count == BLOCK {
            work(&hashes);
            count = 0;
        }
    })?;
    if count > 0 {
        work(&hashes[..count]);
    }
    Ok(())
}

/// Hashes keys of a column.
pub(crate) fn hashes(
    by: &impl Hashing,
    column: &Column,
    range: Range<usize>,
    check_text: bool,
    to: &mut [u64],
) -> PyResult<()> {
    let mut places = to.iter_mut();
    column.for_each(range, check_text, |key| {
        if let Some(place) = places.next() {
            *place = by.hash_of(key);
        }
    })
}

/// Says of each key of a column whether it is present, as `ask` says of hashes.
pub(crate) fn answers<'py>(
    py: Python<'py>,
    by: &(impl Hashing + Sync),
    column: &Column,
    check_utf8: bool,
    ask: impl Fn(&[u64], &mut [bool]) + Sync,
) -> PyResult<Bound<'py, PyAny>> {
    let mut answers = Answers::with_capacity(column.len());
    in_slices(py, column.len(), |slice| {
        let mut found = [false; BLOCK];
        in_blocks(by, column, slice, check_utf8, |hashes| {
            let found = &mut found[..hashes.len()];
            ask(hashes, found);
            answers.extend(found);
        })
    })?;
    BooleanArray::new(answers.finish(), column.validity(0..column.len())).to_data().to_pyarrow(py)
}

/// The keys of a hash function.
pub(crate) fn keys_of(hasher: &StableHashBuilder) -> (u64, u64) {
    let [first, second, ..] = hasher.keys().unwrap_or_default();
    (first, second)
}
