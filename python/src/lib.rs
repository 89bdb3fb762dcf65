//! The native part of the Python package: filters of strings, bytes and integers, with keys from Arrow arrays.
//!
//! ```text
//! keys     keys of any form as one column, and their hashes
//! many     operations on columns in blocks, with a result per key
//! kinds    the filters in memory; parts: filters built on several machines
//! filter   the base class of all filters; building, loading and opening them
//! threads  long, interruptible work without the GIL; forks; a thread pool per process
//! sys      calls of Python functions, and foreign memory: the only `unsafe` code
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

// test.sh runs the tests of threads on an interpreter without a global lock.
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
