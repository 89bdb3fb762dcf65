//! A part of a filter, from hashes to a file.

use crate::error;
use crate::files::Interruptible;
use crate::keys;
use crate::layout::{Layout, Part};
use crate::report::Report;
use crate::threads::{detached, in_slices};
use concurrent_cuckoo_filter::{PartError, SnapshotReader};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

/// Builds part `part` of `parts` from hashes, and writes it to a file. It allocates the memory of this part only, and runs on the calling
/// thread.
///
/// `batches` is an iterable of arrays of hashes from `layout.hash`, all of this part (see `layout.part_of`). With `unique=True`, repeated
/// keys are stored once.
///
/// Raises `RefusedError` with a report if keys found no room, and writes no file then.
#[pyfunction]
#[pyo3(signature = (layout, part, parts, batches, path, *, unique = true))]
pub(crate) fn build_part(
    py: Python<'_>,
    layout: &Bound<'_, Layout>,
    part: usize,
    parts: usize,
    batches: &Bound<'_, PyAny>,
    path: PathBuf,
    unique: bool,
) -> PyResult<Report> {
    let built = layout.get().build(part, parts)?;
    let (mut report, mut before) = (Report::default(), 0);
    for batch in batches.try_iter()? {
        let hashes = keys::numbers::<u64>(py, "hashes", (batch?,))?;
        in_slices(py, hashes.len(), |slice| {
            let at = before + slice.start;
            insert(&built, &hashes[slice], unique, &mut report, at)
        })?;
        before += hashes.len();
    }
    let report = error::unless_refused(py, report)?;
    let snapshot = built.snapshot().key_type(layout.get().hashing.key_type.saved());
    detached(py, || snapshot.save(path)).map_err(error::snapshot)?;
    Ok(report)
}

/// Joins the files of all parts, in any order, into one file for `CuckooFilter.load`, which replaces an older one. One shard is in memory
/// at a time, so the filter may be larger than memory.
///
/// Raises `SnapshotError` if a part is missing, repeated or of another filter, and `OSError` for an error of the file system. An older file
/// stays then.
#[pyfunction]
pub(crate) fn join(py: Python<'_>, parts: Vec<PathBuf>, path: PathBuf) -> PyResult<()> {
    py.detach(|| {
        let open = |part: &PathBuf| {
            let file = File::open(part).map_err(|error| error::of_file(error, part))?;
            Ok(BufReader::with_capacity(1 << 16, Interruptible::new(file)))
        };
        let parts = parts.iter().map(open).collect::<PyResult<Vec<_>>>()?;
        SnapshotReader::join_to_file(parts, path).map(drop).map_err(error::snapshot)
    })
}

fn insert(part: &Part, hashes: &[u64], unique: bool, report: &mut Report, at: usize) -> PyResult<()> {
    let stored = if unique {
        part.insert_unique_batch(hashes, &mut vec![false; hashes.len()])
    } else {
        part.insert_batch(hashes)
    };
    let other_part = |error: PartError| PyValueError::new_err(error.to_string());
    report.add(stored.map_err(other_part)?, |index| at + index);
    Ok(())
}
