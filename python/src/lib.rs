//! The Python package: filters of strings, bytes and integers, with keys from Arrow arrays.
//!
//! ```text
//! keys     keys of any form as one column, and their hashes
//! many     operations on columns, a block at a time; an answer per key
//! filter   the base classes; kinds: the filters in memory
//! mapped   filters in files; shared: in the memory of another process; parts: filters built on several machines
//! threads  long, interruptible work without the GIL; forks; a thread pool per process
//! sys      calls of Python's functions, and foreign memory: the only `unsafe` code
//! ```

mod error;
mod files;
mod filter;
mod keys;
mod kinds;
mod many;
mod mapped;
mod parts;
mod report;
#[cfg(target_os = "linux")]
mod shared;
mod sys;
mod threads;

use pyo3::prelude::*;

// The tests of threads run on an interpreter without a lock: see test.sh.
#[pymodule(gil_used = false)]
mod _native {
    #[cfg(target_os = "linux")]
    #[pymodule_export]
    use crate::shared::SharedReader;
    #[pymodule_export]
    use crate::{
        error::{RefusedError, SnapshotError},
        filter::{Filter, Reader},
        kinds::{CountingFilter, CuckooFilter, ExpiringFilter, TaggedFilter, delta},
        mapped::MappedFilter,
        parts::{Layout, build_part, join},
        report::{RemoveReport, Report},
    };
    use crate::{keys, threads};
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        keys::helper(module.py(), "arrays")?;
        threads::watch_forks(module)
    }
}
