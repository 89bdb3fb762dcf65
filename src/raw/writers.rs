//! Single insertions and removals, compiled per instruction set.

use super::pair::Put;
use crate::error::InsertError;
use crate::layout::Mixed;
use crate::sys::isa::{Compiled, Function};

/// The single changes of a directory.
pub(super) trait Writes: Sized {
    /// See [`RawFilter::put`](super::RawFilter::put).
    fn put(&self, mixed: Mixed, put: Put) -> Result<u32, InsertError>;

    /// See [`RawFilter::remove_value`](super::RawFilter::remove_value).
    fn remove(&self, mixed: Mixed, value: Option<u32>) -> u32;
}

struct Insert<const UNIQUE: bool>;

struct Remove;

impl<D: Writes, const UNIQUE: bool> Function<D, Mixed, Result<u32, InsertError>> for Insert<UNIQUE> {
    #[inline(always)]
    fn run(directory: &D, mixed: Mixed) -> Result<u32, InsertError> {
        directory.put(mixed, if UNIQUE { Put::UNIQUE } else { Put::COPY })
    }
}

impl<D: Writes> Function<D, Mixed, u32> for Remove {
    #[inline(always)]
    fn run(directory: &D, mixed: Mixed) -> u32 {
        directory.remove(mixed, None)
    }
}

/// Inserts into bare slots, for this processor: a filter is made with a lookup for it, so it is known.
#[inline]
pub(super) fn insert<D: Writes, const UNIQUE: bool>(directory: &D, mixed: Mixed) -> Result<u32, InsertError> {
    Compiled::for_known_scalars::<Insert<UNIQUE>>().call(directory, mixed)
}

/// Removes from bare slots, for this processor.
#[inline]
pub(super) fn remove<D: Writes>(directory: &D, mixed: Mixed) -> bool {
    Compiled::for_known_scalars::<Remove>().call(directory, mixed) != 0
}
