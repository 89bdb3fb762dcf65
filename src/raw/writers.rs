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

/// Inserts into bare slots, for this processor: a filter is made with a lookup for it, so it is known.
#[inline]
pub(super) fn insert<D: Writes, const UNIQUE: bool>(directory: &D, mixed: Mixed) -> Result<u32, InsertError> {
    Compiled::<Insert<D>>::for_known_scalars::<Writer<UNIQUE>>().call(directory, mixed)
}

/// Removes from bare slots, for this processor.
#[inline]
pub(super) fn remove<D: Writes>(directory: &D, mixed: Mixed) -> bool {
    Compiled::<Remove<D>>::for_known_scalars::<Writer>().call(directory, mixed) != 0
}
