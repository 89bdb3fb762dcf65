//! Keys from Python, as a column.

use crate::error;
use crate::sys::{self, call, malformed};
use crate::threads::{MANY_KEYS, in_slices, pool};
use arrow_buffer::{ArrowNativeType, BooleanBufferBuilder, NullBuffer, ScalarBuffer};
use arrow_data::ArrayData;
use arrow_schema::DataType;
use concurrent_cuckoo_filter::{SavedHasher, StableHashBuilder};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyUnicodeEncodeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyCapsule, PyInt, PyList, PyString, PyTuple};
use std::hash::{BuildHasher, Hash, Hasher};
use std::ops::Range;

/// The type of the keys of a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyType {
    Str,
    Bytes,
    I64,
    U64,
}

/// The types, with their names in Python and in snapshots.
const TYPES: [(KeyType, &str, &str); 4] = [
    (KeyType::Str, "str", "str"),
    (KeyType::Bytes, "bytes", "[u8]"),
    (KeyType::I64, "i64", "i64"),
    (KeyType::U64, "u64", "u64"),
];

impl KeyType {
    fn parse(name: &str) -> PyResult<Self> {
        TYPES.iter().find(|names| names.1 == name).map(|names| names.0).ok_or_else(|| {
            PyValueError::new_err(format!(
                "key={name:?} was requested; \"str\", \"bytes\", \"i64\" and \"u64\" are possible"
            ))
        })
    }

    /// Returns the type with this name in a snapshot.
    pub(crate) fn saved_as(name: &str) -> PyResult<Self> {
        TYPES.iter().find(|names| names.2 == name).map(|names| names.0).ok_or_else(|| error::other_keys(name))
    }

    pub(crate) fn name(self) -> &'static str {
        TYPES[self as usize].1
    }

    pub(crate) fn saved(self) -> &'static str {
        TYPES[self as usize].2
    }
}

/// A key of any type, hashed like that type in Rust.
#[derive(Clone, Copy)]
pub(crate) enum Key<'a> {
    /// A `str`, valid UTF-8 or not.
    Text(&'a [u8]),
    Bytes(&'a [u8]),
    /// A `u64`, or an `i64`, which has the same bytes.
    Number(u64),
}

impl Hash for Key<'_> {
    #[inline(always)]
    fn hash<H: Hasher>(&self, state: &mut H) {
        match *self {
            // Like a `str` of these bytes.
            Key::Text(text) => {
                state.write(text);
                state.write_u8(0xff);
            }
            Key::Bytes(bytes) => bytes.hash(state),
            Key::Number(number) => state.write_u64(number),
        }
    }
}

/// The type of the keys of a filter, and their hash function.
#[derive(Clone)]
pub(crate) struct Hashing {
    pub(crate) key_type: KeyType,
    pub(crate) hasher: StableHashBuilder,
}

impl Hashing {
    pub(crate) fn new(key_type: &str, keys: Option<(u64, u64)>) -> PyResult<Self> {
        let hasher = keys
            .map_or_else(StableHashBuilder::default, |(first, second)| StableHashBuilder::with_seeds(first, second));
        Ok(Hashing { key_type: KeyType::parse(key_type)?, hasher })
    }

    /// The keys of the hash function.
    pub(crate) fn keys(&self) -> (u64, u64) {
        let [first, second, ..] = self.hasher.seeds().unwrap_or_default();
        (first, second)
    }

    /// Hashes one key.
    #[inline]
    pub(crate) fn one(&self, key: &Bound<'_, PyAny>) -> PyResult<u64> {
        let hash = |key: Key<'_>| self.hasher.hash_one(key);
        match self.key_type {
            KeyType::Str => match key.cast::<PyString>() {
                Ok(text) => Ok(hash(Key::Text(text.to_str()?.as_bytes()))),
                Err(_) => Err(self.wrong(key)),
            },
            KeyType::Bytes => match key.cast::<PyBytes>() {
                Ok(bytes) => Ok(hash(Key::Bytes(bytes.as_bytes()))),
                Err(_) => Err(self.wrong(key)),
            },
            KeyType::I64 => key.extract::<i64>().map(|number| hash(Key::Number(number as u64))),
            KeyType::U64 => key.extract::<u64>().map(|number| hash(Key::Number(number))),
        }
        .map_err(|error| self.told(key, error))
    }

    #[cold]
    fn wrong(&self, key: &Bound<'_, PyAny>) -> PyErr {
        let found = key.get_type().name().map_or_else(|_| String::from("something else"), |name| name.to_string());
        PyTypeError::new_err(format!("a key of this filter is of type {}, not {found}", self.key_type.name()))
    }

    /// Replaces Python's error about a number by that of this package. Exceptions of the caller's `__index__` pass.
    #[cold]
    fn told(&self, key: &Bound<'_, PyAny>, error: PyErr) -> PyErr {
        let py = key.py();
        if error.is_instance_of::<PyOverflowError>(py) && key.is_instance_of::<PyInt>() {
            // Python prints up to 4300 digits by default.
            let shown = key.str().map_or_else(|_| String::from("the integer"), |text| text.to_string());
            return PyOverflowError::new_err(format!(
                "{shown} does not fit the {} keys of this filter",
                self.key_type.name()
            ));
        }
        match key.hasattr(intern!(py, "__index__")) {
            Ok(false) if error.is_instance_of::<PyTypeError>(py) => self.wrong(key),
            _ => error,
        }
    }
}

enum Values {
    /// Bytes of any layout. Positions are checked when they are used, because a producer may be wrong.
    Bytes(ArrayData),
    Numbers(ScalarBuffer<u64>),
    /// Values that have been hashed.
    Hashed(Vec<u64>),
    /// Values of a dictionary, each hashed once, and those that are not UTF-8, if that was checked.
    Dictionary {
        indices: ScalarBuffer<u32>,
        hashes: Vec<u64>,
        not_text: Vec<usize>,
    },
}

/// The values of an array, and the positions of its keys in the column.
struct Chunk {
    values: Values,
    places: Range<usize>,
}

/// Keys, in one array or several.
pub(crate) struct Column<'a> {
    hashing: &'a Hashing,
    /// Whether texts must be UTF-8.
    check_text: bool,
    /// Whether the texts of a large list are hashed on all cores.
    parallel: bool,
    chunks: Vec<Chunk>,
    valid: BooleanBufferBuilder,
    nulls: Option<NullBuffer>,
}

/// The number of Python values between two checks for an interruption.
const VALUES_BETWEEN_LOOKS: usize = 1 << 16;

impl<'a> Column<'a> {
    /// Takes keys in any form: an Arrow array or stream of any library, a numpy array, a list or another iterable.
    pub(crate) fn new(
        hashing: &'a Hashing,
        keys: &Bound<'_, PyAny>,
        check_text: bool,
        parallel: bool,
    ) -> PyResult<Self> {
        let py = keys.py();
        let mut column = Column::empty(hashing, check_text, parallel);
        if let Ok(list) = keys.cast_exact::<PyList>() {
            column.add_values(list)?;
        } else if let Ok(tuple) = keys.cast_exact::<PyTuple>() {
            column.add_values(&tuple.to_list())?;
        } else {
            let name = hashing.key_type.name();
            let given = call(&helper(py, "arrays")?, (keys, name).into_pyobject(py)?)?;
            match given.cast::<PyList>() {
                Ok(arrays) => arrays.iter().try_for_each(|array| column.add_array(&array))?,
                // In batches, so that no step takes longer than one.
                Err(_) => loop {
                    let batch = call(&given, PyTuple::empty(py))?;
                    let batch = batch.cast::<PyList>()?;
                    if batch.is_empty() {
                        break;
                    }
                    column.add_values(batch)?;
                },
            }
        }
        let nulls = NullBuffer::new(column.valid.finish());
        column.nulls = Some(nulls).filter(|nulls| nulls.null_count() > 0);
        Ok(column)
    }

    fn empty(hashing: &'a Hashing, check_text: bool, parallel: bool) -> Self {
        Column { hashing, check_text, parallel, chunks: vec![], valid: BooleanBufferBuilder::new(0), nulls: None }
    }

    pub(crate) fn len(&self) -> usize {
        self.chunks.last().map_or(0, |chunk| chunk.places.end)
    }

    /// Adds values. `valid` has been filled with those that are not null.
    fn add(&mut self, values: Values) {
        self.chunks.push(Chunk { values, places: self.len()..self.valid.len() });
    }

    fn add_validity(&mut self, data: &ArrayData) {
        match data.nulls() {
            Some(nulls) => self.valid.append_buffer(nulls.inner()),
            None => self.valid.append_n(data.len(), true),
        }
    }

    /// Adds Python objects.
    fn add_values(&mut self, list: &Bound<'_, PyList>) -> PyResult<()> {
        let (py, hashing) = (list.py(), self.hashing);
        // Without a global lock, other threads may change the caller's list, but not this copy.
        #[cfg(Py_GIL_DISABLED)]
        let list = &list.get_slice(0, list.len());
        let pool = if self.parallel && list.len() >= MANY_KEYS { Some(pool(py)?) } else { None };
        let (mut hashes, before) = (Vec::with_capacity(list.len()), self.len());
        // A number may be of a class of the caller, whose code may change the list.
        while hashes.len() < list.len() {
            let begin = hashes.len();
            if hashing.key_type == KeyType::Str {
                hashes.resize(list.len().min(begin + VALUES_BETWEEN_LOOKS), 0);
                let hash = |text: &[u8]| hashing.hasher.hash_one(Key::Text(text));
                let hashed = sys::hash_texts(list, begin, &mut hashes[begin..], pool.as_deref(), hash);
                hashes.truncate(begin + hashed);
                self.valid.append_n(hashed, true);
            }
            // Up to the block that contains a value of another type.
            for index in hashes.len()..list.len().min(hashes.len() + sys::TEXTS) {
                let value = list.get_item(index)?;
                let hash = if value.is_none() { Ok(0) } else { hashing.one(&value) };
                hashes.push(hash.map_err(|error| at(py, error, before + index))?);
                self.valid.append(!value.is_none());
            }
            py.check_signals()?;
        }
        self.add(Values::Hashed(hashes));
        Ok(())
    }

    /// Adds an array, given by the capsules of its values and, if these are a dictionary, of its indices.
    fn add_array(&mut self, array: &Bound<'_, PyAny>) -> PyResult<()> {
        let (values, indices): (Capsules<'_>, Option<Capsules<'_>>) = array.extract()?;
        let data = sys::import(&values)?;
        let to_values = |data: ArrayData| match self.hashing.key_type {
            // Signed numbers have the same bytes.
            KeyType::I64 | KeyType::U64 => Values::Numbers(of_numbers(&data)),
            KeyType::Str | KeyType::Bytes => Values::Bytes(data),
        };
        let Some(indices) = indices else {
            let values = to_values(data.clone());
            self.add_validity(&data);
            self.add(values);
            return Ok(());
        };
        let mut distinct = Column::empty(self.hashing, self.check_text, false);
        let (mut hashes, mut not_text) = (Vec::with_capacity(data.len()), vec![]);
        distinct.valid.append_n(data.len(), true);
        distinct.add(to_values(data));
        array.py().detach(|| {
            let all = 0..distinct.len();
            let hashed = distinct.for_each(all.clone(), |hash| hashes.push(hash));
            if hashed.is_err() && distinct.check_text {
                // The error names the first key with such a value, if any.
                not_text = all.clone().filter(|&one| distinct.for_each(one..one + 1, |_| ()).is_err()).collect();
                hashes.clear();
                distinct.check_text = false;
                return distinct.for_each(all, |hash| hashes.push(hash));
            }
            hashed
        })?;
        let data = sys::import(&indices)?;
        self.add_validity(&data);
        self.add(Values::Dictionary { indices: of_numbers(&data), hashes, not_text });
        Ok(())
    }

    /// Fails if a text is not UTF-8, so that a call that stores keys stores all of them or none.
    pub(crate) fn check_all(&mut self, py: Python<'_>) -> PyResult<()> {
        if self.check_text && self.hashing.key_type == KeyType::Str {
            let column = &*self;
            in_slices(py, self.len(), |slice| column.for_each(slice, |_| ()))?;
        }
        self.check_text = false;
        Ok(())
    }

    /// Returns which keys of the range are not null, or `None` if none is null.
    pub(crate) fn validity(&self, range: Range<usize>) -> Option<NullBuffer> {
        let nulls = self.nulls.as_ref()?.slice(range.start, range.len());
        Some(nulls).filter(|nulls| nulls.null_count() > 0)
    }

    /// Calls `work` with the hashes of the keys of the range in order, and with any number for a null. The error names the first key that
    /// is not UTF-8.
    pub(crate) fn for_each(&self, range: Range<usize>, mut work: impl FnMut(u64)) -> PyResult<()> {
        for chunk in &self.chunks {
            let Range { start, end } = chunk.places;
            let part = range.start.clamp(start, end) - start..range.end.clamp(start, end) - start;
            if part.is_empty() {
                continue;
            }
            match self.hashing.key_type {
                KeyType::Str => self.in_chunk(chunk, part, |text| Key::Text(text), &mut work)?,
                _ => self.in_chunk(chunk, part, |bytes| Key::Bytes(bytes), &mut work)?,
            }
        }
        Ok(())
    }

    #[inline]
    fn in_chunk(
        &self,
        chunk: &Chunk,
        range: Range<usize>,
        key: impl Fn(&[u8]) -> Key<'_>,
        work: &mut impl FnMut(u64),
    ) -> PyResult<()> {
        let (hasher, before) = (&self.hashing.hasher, chunk.places.start);
        let is_null = |index| self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(before + index));
        let check_text = self.check_text && self.hashing.key_type == KeyType::Str;
        let check = |index, text: &[u8]| {
            if std::str::from_utf8(text).is_ok() || is_null(index) { Ok(()) } else { Err(not_text(before + index)) }
        };
        let check = check_text.then_some(&check as &dyn Fn(usize, &[u8]) -> PyResult<()>);
        let mut hash = |bytes: &[u8]| work(hasher.hash_one(key(bytes)));
        match &chunk.values {
            Values::Bytes(data) => match data.data_type() {
                DataType::Utf8 | DataType::Binary => by_offsets::<i32>(data, range, check, &mut hash),
                DataType::LargeUtf8 | DataType::LargeBinary => by_offsets::<i64>(data, range, check, &mut hash),
                DataType::Utf8View | DataType::BinaryView => one_by_one(viewed(data), range, check, &mut hash),
                DataType::FixedSizeBinary(width) => {
                    one_by_one(of_width(data, *width as usize), range, check, &mut hash)
                }
                other => Err(malformed(&format!("{other} is not supported"))),
            },
            Values::Numbers(numbers) => {
                numbers[range].iter().for_each(|&number| work(hasher.hash_one(Key::Number(number))));
                Ok(())
            }
            Values::Hashed(hashes) => {
                hashes[range].iter().for_each(|&hash| work(hash));
                Ok(())
            }
            Values::Dictionary { indices, hashes, not_text: broken } => {
                for index in range {
                    let value = indices[index] as usize;
                    match hashes.get(value) {
                        Some(_) if broken.binary_search(&value).is_ok() && !is_null(index) => {
                            return Err(not_text(before + index));
                        }
                        Some(&hash) => work(hash),
                        None if is_null(index) => work(0),
                        None => {
                            return Err(malformed(&format!("the index {} is beyond its dictionary", indices[index])));
                        }
                    }
                }
                Ok(())
            }
        }
    }
}

/// Returns the helper module, which converts the keys of other libraries.
pub(crate) fn helper<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    // Imported by the first call, which the package makes.
    let module = MODULE.get_or_try_init(py, || py.import("concurrent_cuckoo_filter._glue").map(Bound::unbind))?;
    module.bind(py).getattr(name)
}

/// Adds the position of the key to the error.
#[cold]
fn at(py: Python<'_>, error: PyErr, index: usize) -> PyErr {
    // For texts with surrogates, which are not Unicode.
    if error.is_instance_of::<PyUnicodeEncodeError>(py) {
        return not_text(index);
    }
    if error.is_instance_of::<PyTypeError>(py) || error.is_instance_of::<PyOverflowError>(py) {
        return PyErr::from_type(error.get_type(py), format!("key {index}: {}", error.value(py)));
    }
    error
}

#[cold]
fn not_text(index: usize) -> PyErr {
    PyValueError::new_err(format!(
        "key {index} is not valid UTF-8: use a filter with key=\"bytes\", or repair the strings before they are \
         stored and queried"
    ))
}

/// Fails if the text at this index is not UTF-8.
type Check<'a> = Option<&'a dyn Fn(usize, &[u8]) -> PyResult<()>>;

/// The number of texts that are checked at once, which is much faster than one by one, while they stay in the nearest cache.
const TEXTS_AT_ONCE: usize = 256;

fn by_offsets<O: ArrowNativeType>(
    data: &ArrayData,
    range: Range<usize>,
    check: Check<'_>,
    work: &mut impl FnMut(&[u8]),
) -> PyResult<()> {
    let bytes = data.buffers()[1].as_slice();
    for begin in range.clone().step_by(TEXTS_AT_ONCE) {
        let range = begin..range.end.min(begin + TEXTS_AT_ONCE);
        let offsets = &data.buffer::<O>(0)[range.start..=range.end];
        let of = |from: O, to: O| {
            let wrong = || malformed(&format!("a value from {from:?} to {to:?} in {} bytes", bytes.len()));
            bytes.get(from.as_usize()..to.as_usize()).ok_or_else(wrong)
        };
        // Also if nothing is checked: texts in the cache are hashed nearly twice as fast.
        let ascii = std::hint::black_box(of(offsets[0], offsets[offsets.len() - 1]).is_ok_and(<[u8]>::is_ascii));
        let check = check.filter(|_| !ascii);
        for (index, ends) in range.zip(offsets.windows(2)) {
            let key = of(ends[0], ends[1])?;
            if let Some(check) = check {
                check(index, key)?;
            }
            work(key);
        }
    }
    Ok(())
}

fn one_by_one<'a>(
    value: impl Fn(usize) -> Option<&'a [u8]>,
    range: Range<usize>,
    check: Check<'_>,
    work: &mut impl FnMut(&[u8]),
) -> PyResult<()> {
    for index in range {
        let key = value(index).ok_or_else(|| malformed(&format!("value {index} lies outside its buffers")))?;
        if let Some(check) = check {
            check(index, key)?;
        }
        work(key);
    }
    Ok(())
}

/// Returns the values of an array of views. A view has 16 bytes: the length, and either up to 12 bytes of the value, or 4 bytes of it
/// and its position.
fn viewed<'a>(data: &'a ArrayData) -> impl Fn(usize) -> Option<&'a [u8]> {
    let (views, buffers) = data.buffers().split_first().expect("an array of views has one buffer of views");
    let views = views.as_slice();
    move |index| {
        let view = &views[(data.offset() + index) * 16..][..16];
        let field = |at: usize| u32::from_le_bytes(view[at..at + 4].try_into().expect("4 bytes")) as usize;
        let length = field(0);
        let long = || buffers.get(field(8))?.get(field(12)..field(12) + length);
        let value = if length <= 12 { Some(&view[4..4 + length]) } else { long() };
        // The view of a null has no meaning.
        value.or_else(|| data.is_null(index).then_some(&[]))
    }
}

/// Returns the values of an array with this number of bytes per value.
fn of_width<'a>(data: &'a ArrayData, width: usize) -> impl Fn(usize) -> Option<&'a [u8]> {
    let values = data.buffers()[0].as_slice();
    move |index| values.get((data.offset() + index) * width..)?.get(..width)
}

/// The capsules of the schema of an array and of the array.
pub(crate) type Capsules<'py> = (Bound<'py, PyCapsule>, Bound<'py, PyCapsule>);

fn of_numbers<T: ArrowNativeType>(data: &ArrayData) -> ScalarBuffer<T> {
    ScalarBuffer::new(data.buffers()[0].clone(), data.offset(), data.len())
}

/// Returns the numbers in the array of these capsules.
pub(crate) fn imported<T: ArrowNativeType>(capsules: &Bound<'_, PyAny>) -> PyResult<ScalarBuffer<T>> {
    Ok(of_numbers(&sys::import(&capsules.extract()?)?))
}
