//! What the library says, as Python's exceptions.

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

/// An error of memory, or one of this class.
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

/// Of a whole call: keys that found no room are in its report.
pub(crate) fn insert(error: ccf::InsertError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

pub(crate) fn snapshot(error: ccf::SnapshotError) -> PyErr {
    match error {
        // An interruption is an error of Python's own, on its way through a reader.
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

/// Of a filter that has no such method. Python's classes do not ask for it.
pub(crate) fn other_filter() -> PyErr {
    PyTypeError::new_err("a filter of another kind is needed")
}

/// Of a base class, or one whose instances are opened.
pub(crate) fn no_constructor() -> PyErr {
    PyTypeError::new_err(
        "this class has no constructor: create a CuckooFilter, ExpiringFilter, CountingFilter or TaggedFilter, or open a file",
    )
}

/// Of keys that the package has no type for.
pub(crate) fn other_keys(saved: &str) -> PyErr {
    SnapshotError::new_err(format!(
        "the filter was saved with keys of type {saved}; Python reads filters of str, [u8] (key=\"bytes\"), i64 and u64"
    ))
}
