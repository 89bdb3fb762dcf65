//! The Python package: filters of texts, bytes and numbers, whose keys come as Arrow arrays.
//!
//! ```text
//! keys     what Python gives, as a column of keys, and how they hash
//! many     a column to hashes, a block at a time; an answer for each key
//! filter   what all classes have in common; kinds, the filters in memory
//! mapped   filters in files; shared, in the memory of another process; layout, part: filters built on several machines
//! threads  long work without the interpreter's lock, that can be interrupted; forks; a pool for each process
//! sys      calls of Python's functions and foreign memory: the only `unsafe` code
//! ```

mod error;
mod files;
mod filter;
mod keys;
mod kinds;
mod layout;
mod many;
mod mapped;
mod part;
mod report;
#[cfg(target_os = "linux")]
mod shared;
mod sys;
mod threads;

use pyo3::prelude::*;

// The tests of threads run on an interpreter without a lock: see test.sh.
#[pymodule(gil_used = false)]
mod _native {
    #[pymodule_export]
    use crate::error::{RefusedError, SnapshotError};
    #[pymodule_export]
    use crate::filter::{Filter, Reader};
    #[pymodule_export]
    use crate::kinds::{CountingFilter, CuckooFilter, ExpiringFilter, TaggedFilter, delta};
    #[pymodule_export]
    use crate::layout::Layout;
    #[pymodule_export]
    use crate::mapped::MappedFilter;
    #[pymodule_export]
    use crate::part::{build_part, join};
    #[pymodule_export]
    use crate::report::{RemoveReport, Report};
    #[cfg(target_os = "linux")]
    #[pymodule_export]
    use crate::shared::SharedReader;
    use crate::{keys, threads};
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        keys::helper(module.py(), "arrays")?;
        threads::watch_forks(module)
    }
}
