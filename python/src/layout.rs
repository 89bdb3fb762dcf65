//! Where keys lie, for filters that are built on several machines.

use crate::error;
use crate::hashing::{Keyed, hashes, keyed, keys_of, made};
use crate::keys::{self, Column, KeyType};
use crate::threads::in_slices;
use arrow_array::{Array, Int32Array, UInt64Array};
use arrow_pyarrow::ToPyArrow;
use concurrent_cuckoo_filter::{self as ccf, BuildError, FilterPart, StableHashBuilder};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyRange};
use std::ops::Range;

type Of<K> = ccf::Layout<K, StableHashBuilder>;
type Part<K> = FilterPart<K, StableHashBuilder>;
pub(crate) type Parts = Keyed<Part<str>, Part<[u8]>, Part<i64>, Part<u64>>;

/// Where keys lie in a filter, without its memory: for a filter that is built in parts, on several machines.
///
/// It takes what `CuckooFilter` takes, and can be pickled. Each machine hashes the keys that it has (`hash`) and sends the
/// hashes, 8 bytes each, to the machine that builds their part (`part_of`); that one calls `build_part`; and `join` makes
/// one file of all parts.
///
/// >>> import os, tempfile
/// >>> from concurrent_cuckoo_filter import CuckooFilter, Layout, build_part, join
/// >>> layout = Layout(1_000_000)
/// >>> hashes = layout.hash([f"site-{number}.example" for number in range(10_000)])
/// >>> part = layout.part_of(hashes, 2)
/// >>> folder = tempfile.mkdtemp()
/// >>> paths = [os.path.join(folder, f"part-{number}") for number in range(2)]
/// >>> import pyarrow.compute as pc
/// >>> for number, path in enumerate(paths):
/// ...     _ = build_part(layout, number, 2, [hashes.filter(pc.equal(part, number))], path)
/// >>> join(paths, os.path.join(folder, "all"))
/// >>> "site-77.example" in CuckooFilter.load(os.path.join(folder, "all"))
/// True
#[pyclass(module = "concurrent_cuckoo_filter", frozen)]
pub(crate) struct Layout {
    layout: Keyed<Of<str>, Of<[u8]>, Of<i64>, Of<u64>>,
    capacity: usize,
    rate: f64,
}

#[pymethods]
impl Layout {
    #[new]
    #[pyo3(signature = (capacity, false_positive_rate = 0.001, *, key = "str", keys = None))]
    fn new(capacity: usize, false_positive_rate: f64, key: &str, keys: Option<(u64, u64)>) -> PyResult<Self> {
        let hasher =
            keys.map_or_else(StableHashBuilder::new, |(first, second)| StableHashBuilder::with_keys(first, second));
        let layout: Result<_, BuildError> = made!(KeyType::parse(key)?, K => {
            builder::<K>(capacity, false_positive_rate, hasher).layout()
        });
        Ok(Layout { layout: layout.map_err(error::build)?, capacity, rate: false_positive_rate })
    }

    /// For pickle.
    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<((usize, f64), Bound<'py, PyDict>)> {
        let named = PyDict::new(py);
        named.set_item("key", self.key())?;
        named.set_item("keys", self.keys())?;
        Ok(((self.capacity, self.rate), named))
    }

    /// Hashes keys, to a `pyarrow.UInt64Array`; the hash of a null is null. With `check_utf8=False` texts that are not
    /// UTF-8 are hashed as they are.
    ///
    /// >>> from concurrent_cuckoo_filter import Layout
    /// >>> Layout(1000, keys=(1, 2)).hash(["key", None])
    /// <pyarrow.lib.UInt64Array object at ...>
    /// [
    ///   10880162054320443295,
    ///   null
    /// ]
    #[pyo3(signature = (keys, *, check_utf8 = true))]
    fn hash<'py>(&self, py: Python<'py>, keys: &Bound<'py, PyAny>, check_utf8: bool) -> PyResult<Bound<'py, PyAny>> {
        let column = Column::new(self.layout.key_type(), keys)?;
        let mut all = vec![0; column.len()];
        in_slices(
            py,
            column.len(),
            |slice| keyed!(&self.layout, layout => hashes(layout, &column, slice.clone(), check_utf8, &mut all[slice])),
        )?;
        UInt64Array::new(all.into(), column.validity(0..column.len())).to_data().to_pyarrow(py)
    }

    /// The part of each of these hashes, of `parts` parts, as a `pyarrow.Int32Array`.
    fn part_of<'py>(&self, py: Python<'py>, hashes: &Bound<'py, PyAny>, parts: usize) -> PyResult<Bound<'py, PyAny>> {
        check_parts(parts)?;
        let hashes = keys::hashes(hashes)?;
        let part = |hash: &u64| keyed!(&self.layout, layout => layout.part_of_hash(*hash, parts)) as i32;
        let all: Vec<i32> = py.detach(|| hashes.values().iter().map(part).collect());
        Int32Array::new(all.into(), hashes.nulls().cloned()).to_data().to_pyarrow(py)
    }

    /// The shards of a part, of `parts` parts.
    ///
    /// >>> from concurrent_cuckoo_filter import Layout
    /// >>> Layout(2_500_000).part(1, 3)
    /// range(3, 6)
    fn part<'py>(&self, py: Python<'py>, number: usize, parts: usize) -> PyResult<Bound<'py, PyRange>> {
        let Range { start, end } = self.shards_of(number, parts)?;
        PyRange::new(py, start as isize, end as isize)
    }

    /// The number of shards, of equal size: no more parts than that can be built.
    #[getter]
    fn shards(&self) -> usize {
        keyed!(&self.layout, layout => layout.shards())
    }

    /// Bytes of memory of the whole filter.
    #[getter]
    fn nbytes(&self) -> PyResult<usize> {
        let bytes = keyed!(&self.layout, layout => {
            builder_like(layout, self.capacity, self.rate).memory_usage()
        });
        bytes.map_err(error::build)
    }

    /// The number of keys that was asked for.
    #[getter]
    fn capacity(&self) -> usize {
        self.capacity
    }

    /// The rate that was asked for.
    #[getter]
    fn false_positive_rate(&self) -> f64 {
        self.rate
    }

    /// The type of the keys.
    #[getter]
    fn key(&self) -> &'static str {
        self.layout.key_type().name()
    }

    /// The keys of the hash function.
    #[getter]
    fn keys(&self) -> (u64, u64) {
        keyed!(&self.layout, layout => keys_of(layout.hasher()))
    }

    fn __repr__(&self) -> String {
        format!("<Layout of {} keys in {} shards, key={:?}>", self.capacity, self.shards(), self.key())
    }
}

impl Layout {
    fn shards_of(&self, number: usize, parts: usize) -> PyResult<Range<usize>> {
        check_parts(parts)?;
        if number >= parts {
            return Err(PyValueError::new_err(format!(
                "part {number} of {parts} was asked for; they are numbered from 0"
            )));
        }
        Ok(keyed!(&self.layout, layout => layout.part(number, parts)))
    }

    /// An empty part.
    pub(crate) fn build(&self, number: usize, parts: usize) -> PyResult<Parts> {
        let shards = self.shards_of(number, parts)?;
        let (first, second) = self.keys();
        let hasher = StableHashBuilder::with_keys(first, second);
        let part: Result<Parts, BuildError> = made!(self.layout.key_type(), K => {
            builder::<K>(self.capacity, self.rate, hasher).build_shards(shards)
        });
        part.map_err(error::build)
    }
}

fn builder<K: ?Sized>(capacity: usize, rate: f64, hasher: StableHashBuilder) -> ccf::Builder<K, StableHashBuilder> {
    ccf::CuckooFilter::<K>::builder().capacity(capacity).false_positive_rate(rate).hasher(hasher)
}

fn builder_like<K: ?Sized>(layout: &Of<K>, capacity: usize, rate: f64) -> ccf::Builder<K, StableHashBuilder> {
    builder::<K>(capacity, rate, layout.hasher().clone())
}

fn check_parts(parts: usize) -> PyResult<()> {
    if (1..=i32::MAX as usize).contains(&parts) {
        return Ok(());
    }
    Err(PyValueError::new_err(format!("{parts} parts were asked for; 1 to {} are possible", i32::MAX)))
}
