//! Single insertions and removals, compiled per instruction set.

use super::pair::Put;
use crate::error::InsertError;
use crate::layout::Mixed;
use crate::sys::isa::{Compiled, Function, Of};

/// The single changes of a directory.
pub(super) trait Writes: Sized {
    /// See [`RawFilter::put`](super::RawFilter::put).
    fn put(&self, mixed: Mixed, put: Put) -> Result<u32, InsertError>;

    /// See [`RawFilter::remove_value`](super::RawFilter::remove_value).
    fn remove(&self, mixed: Mixed, value: Option<u32>) -> u32;
}

type Insert<D> = Of<D, Mixed, Result<u32, InsertError>>;
type Remove<D> = Of<D, Mixed, u32>;

/// The compiled writers of a directory.
pub(super) struct Writers<D> {
    pub(super) insert: Compiled<Insert<D>>,
    pub(super) insert_unique: Compiled<Insert<D>>,
    pub(super) remove: Compiled<Remove<D>>,
}

struct Writer<const UNIQUE: bool = false>;

impl<D: Writes, const UNIQUE: bool> Function<Insert<D>> for Writer<UNIQUE> {
    #[inline(always)]
    fn run(directory: &D, mixed: Mixed) -> Result<u32, InsertError> {
        directory.put(mixed, if UNIQUE { Put::UNIQUE } else { Put::COPY })
    }
}

impl<D: Writes> Function<Remove<D>> for Writer {
    #[inline(always)]
    fn run(directory: &D, mixed: Mixed) -> u32 {
        directory.remove(mixed, None)
    }
}

impl<D: Writes> Writers<D> {
    pub(super) fn new() -> Self {
        Writers {
            insert: Compiled::for_scalars::<Writer>(),
            insert_unique: Compiled::for_scalars::<Writer<true>>(),
            remove: Compiled::for_scalars::<Writer>(),
        }
    }
}
