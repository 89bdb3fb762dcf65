//! The Python package: filters of texts, bytes and numbers, whose keys come as Arrow arrays.
//!
//! ```text
//! keys     what Python gives, as a column of keys
//! hashing  a column to hashes, a block at a time
//! filter   CuckooFilter; mapped, MappedFilter: the same in a file; layout, part: filters built on several machines
//! threads  long work without the interpreter's lock, that can be interrupted; a pool for each process
//! ```

mod error;
mod files;
mod filter;
mod hashing;
mod keys;
mod layout;
mod mapped;
mod part;
mod report;
mod threads;

use pyo3::prelude::*;

#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::error::{RefusedError, SnapshotError};
    #[pymodule_export]
    use crate::filter::CuckooFilter;
    #[pymodule_export]
    use crate::layout::Layout;
    #[pymodule_export]
    use crate::mapped::MappedFilter;
    #[pymodule_export]
    use crate::part::{build_part, join};
    #[pymodule_export]
    use crate::report::{RemoveReport, Report};
}
