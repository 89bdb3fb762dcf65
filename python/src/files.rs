//! Files, and their bytes in memory.

use crate::error;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use std::fs::File;
use std::io::{self, BufReader, Cursor, Read, Write};
use std::path::PathBuf;

/// A source of bytes: a path, or the bytes that the helper module reads from a URL or an open file.
#[derive(FromPyObject)]
pub(crate) enum Source {
    Bytes(PyBackedBytes),
    Path(PathBuf),
}

impl Source {
    pub(crate) fn open(self) -> PyResult<Box<dyn Read + Send>> {
        match self {
            Source::Bytes(bytes) => Ok(Box::new(Cursor::new(bytes))),
            Source::Path(path) => {
                Ok(Box::new(BufReader::with_capacity(1 << 20, Interruptible::new(File::open(path)?))))
            }
        }
    }

    /// Opens the source with all bytes in memory, for work that must not call Python.
    pub(crate) fn read(self, py: Python<'_>) -> PyResult<Box<dyn Read + Send>> {
        if let Source::Bytes(_) = self {
            return self.open();
        }
        let (mut file, mut bytes) = (self.open()?, Vec::new());
        py.detach(|| file.read_to_end(&mut bytes)).map_err(|error| error::snapshot(error.into()))?;
        Ok(Box::new(Cursor::new(bytes)))
    }
}

/// Bytes for Python. Unlike those to a `Vec`, writes fail, and do not abort, when memory runs out.
#[derive(Default)]
pub(crate) struct Written(Vec<u8>);

impl Written {
    pub(crate) fn to_python<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        PyBytes::new_with(py, self.0.len(), |to| {
            to.copy_from_slice(&self.0);
            Ok(())
        })
    }
}

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_reserve(bytes.len())?;
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A reader that fails when the call is interrupted.
pub(crate) struct Interruptible<R> {
    reader: R,
    /// The number of bytes before the next check.
    left: usize,
}

/// The number of bytes between two checks for an interruption: some hundredths of a second.
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
