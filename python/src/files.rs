//! Files that are read.

use crate::error;
use crate::keys::helper;
use crate::sys::call;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};

/// Opens what can be read: a path, a URL, an open file, or bytes.
pub(crate) fn open(source: &Bound<'_, PyAny>) -> PyResult<Box<dyn Read + Send>> {
    let py = source.py();
    let source = call(&helper(py, "readable")?, (source,).into_pyobject(py)?)?;
    if source.is_instance_of::<PyBytes>() {
        return Ok(Box::new(Cursor::new(source.extract::<PyBackedBytes>()?)));
    }
    let path: PathBuf = source.extract()?;
    Ok(Box::new(BufReader::with_capacity(1 << 20, Interruptible::new(regular(&path)?))))
}

/// Opens a regular file.
pub(crate) fn regular(path: &Path) -> PyResult<File> {
    // To open a named pipe would be to wait for a writer.
    if !std::fs::metadata(path).map_err(|error| error::of_file(error, path))?.is_file() {
        return Err(PyOSError::new_err(format!("{path:?} is not a regular file")));
    }
    File::open(path).map_err(|error| error::of_file(error, path))
}

/// A reader that an interruption ends with an error.
pub(crate) struct Interruptible<R> {
    reader: R,
    /// Bytes before the next look.
    left: usize,
}

/// Bytes between two looks for an interruption: some hundredths of a second.
const BYTES_BETWEEN_LOOKS: usize = 16 << 20;

impl<R> Interruptible<R> {
    pub(crate) fn new(reader: R) -> Self {
        Interruptible { reader, left: BYTES_BETWEEN_LOOKS }
    }
}

impl<R: Read> Read for Interruptible<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            Python::attach(|py| py.check_signals()).map_err(io::Error::other)?;
            self.left = BYTES_BETWEEN_LOOKS;
        }
        let read = self.reader.read(buffer)?;
        self.left = self.left.saturating_sub(read);
        Ok(read)
    }
}
