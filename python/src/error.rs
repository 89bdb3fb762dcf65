//! Errors of the library as Python exceptions.

use concurrent_cuckoo_filter as ccf;
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyMemoryError, PyTypeError, PyValueError};
use pyo3::prelude::*;

create_exception!(
    concurrent_cuckoo_filter,
    SnapshotError,
    PyValueError,
    "A file is not a saved filter, is damaged, or is of another kind than requested."
);
create_exception!(concurrent_cuckoo_filter, RefusedError, PyException, "Some keys found no room; `report` lists them.");

/// Returns a `MemoryError` for a failed allocation, else an exception of this class.
macro_rules! told {
    ($name:ident, $error:ident, $class:ident) => {
        pub(crate) fn $name(error: ccf::$error) -> PyErr {
            let told = error.to_string();
            match error {
                ccf::$error::OutOfMemory { .. } => PyMemoryError::new_err(told),
                _ => $class::new_err(told),
            }
        }
    };
}

told!(build, BuildError, PyValueError);
told!(merge, MergeError, PyValueError);
told!(damaged, SnapshotError, SnapshotError);

/// Returns the error of a whole call. Keys that were refused for lack of room are in its report.
pub(crate) fn insert(error: ccf::InsertError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

pub(crate) fn snapshot(error: ccf::SnapshotError) -> PyErr {
    match error {
        // An interruption: a Python exception that passes through a reader.
        ccf::SnapshotError::Io(error) => error.downcast::<PyErr>().unwrap_or_else(PyErr::from),
        error => damaged(error),
    }
}

#[cfg(target_os = "linux")]
pub(crate) fn shared(error: ccf::SharedError) -> PyErr {
    match error {
        ccf::SharedError::Io(error) => error.into(),
        error => SnapshotError::new_err(error.to_string()),
    }
}

/// Returns the error for a method that the kind of filter lacks. The Python classes never call it.
pub(crate) fn other_filter() -> PyErr {
    PyTypeError::new_err("a filter of another kind is needed")
}

/// Returns the error for keys of an unsupported type.
pub(crate) fn other_keys(saved: &str) -> PyErr {
    SnapshotError::new_err(format!(
        "the filter was saved with keys of type {saved}; Python reads filters of str, [u8] (key=\"bytes\"), i64 and u64"
    ))
}
