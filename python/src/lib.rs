//! The native part of the Python package: filters of strings, bytes and integers, with keys from Arrow arrays.
//!
//! ```text
//! keys     keys of any form as one column, and their hashes
//! many     operations on columns, a block at a time; an answer per key
//! kinds    the filters in memory; parts: filters built on several machines
//! filter   the base class of all filters, and how they are built, loaded and opened
//! threads  long, interruptible work without the GIL; forks; a thread pool per process
//! sys      calls of Python's functions, and foreign memory: the only `unsafe` code
//! ```

mod error;
mod files;
mod filter;
mod keys;
mod kinds;
mod many;
mod parts;
mod sys;
mod threads;

use pyo3::prelude::*;

// The tests of threads run on an interpreter without a lock: see test.sh.
#[pymodule(gil_used = false)]
mod _native {
    #[cfg(target_os = "linux")]
    #[pymodule_export]
    use crate::filter::open_shared;
    use crate::keys;
    #[pymodule_export]
    use crate::{
        error::{RefusedError, SnapshotError},
        filter::{Config, Reader, build, delta, load, open_mapped},
        kinds::Kind,
        parts::{Layout, build_part, join},
        threads::{after_fork_in_child, after_fork_in_parent, before_fork},
    };
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        keys::helper(module.py(), "arrays").map(drop)
    }
}
