//! What Python gives as keys, as a column.

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

/// The types, with their names in Python and in snapshots, which have those of Rust.
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
                "key={name:?} was asked for; \"str\", \"bytes\", \"i64\" and \"u64\" are possible"
            ))
        })
    }

    /// The type of this name in a snapshot.
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

/// A key of any type, which hashes as its type does in Rust.
#[derive(Clone, Copy)]
pub(crate) enum Key<'a> {
    /// A `str`, whether it is UTF-8 or not.
    Text(&'a [u8]),
    Bytes(&'a [u8]),
    /// A `u64`, or an `i64`, which hashes by the same bytes.
    Number(u64),
}

impl Hash for Key<'_> {
    #[inline(always)]
    fn hash<H: Hasher>(&self, state: &mut H) {
        match *self {
            // As `CuckooFilter::hash_str_bytes`.
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
        let hasher =
            keys.map_or_else(StableHashBuilder::new, |(first, second)| StableHashBuilder::with_keys(first, second));
        Ok(Hashing { key_type: KeyType::parse(key_type)?, hasher })
    }

    /// The keys of the hash function.
    pub(crate) fn keys(&self) -> (u64, u64) {
        let [first, second, ..] = self.hasher.keys().unwrap_or_default();
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

    /// What Python says of a number, in the words of this package. Exceptions of the caller's own `__index__` pass.
    #[cold]
    fn told(&self, key: &Bound<'_, PyAny>, error: PyErr) -> PyErr {
        let py = key.py();
        if error.is_instance_of::<PyOverflowError>(py) && key.is_instance_of::<PyInt>() {
            return PyOverflowError::new_err(format!(
                "{key} does not fit the {} keys of this filter",
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
    /// Bytes of any layout. Positions are checked where they are used: a producer may be wrong.
    Bytes(ArrayData),
    Numbers(ScalarBuffer<u64>),
    /// Values that are hashed already.
    Hashed(Vec<u64>),
    /// Values of a dictionary, each of which was hashed once.
    Dictionary { indices: ScalarBuffer<u32>, hashes: Vec<u64> },
}

/// An array.
struct Chunk {
    values: Values,
    nulls: Option<NullBuffer>,
    len: usize,
}

/// Keys, in one array or several.
pub(crate) struct Column<'a> {
    hashing: &'a Hashing,
    /// Whether texts have to be UTF-8.
    check_text: bool,
    /// Whether the texts of a large list are hashed by all cores.
    parallel: bool,
    chunks: Vec<Chunk>,
    len: usize,
}

/// Python values between two looks for an interruption.
const VALUES_BETWEEN_LOOKS: usize = 1 << 16;

impl<'a> Column<'a> {
    /// Takes whatever holds keys: an array or a stream of Arrow, of any library; a numpy array; a list or another iterable.
    pub(crate) fn new(
        hashing: &'a Hashing,
        keys: &Bound<'_, PyAny>,
        check_text: bool,
        parallel: bool,
    ) -> PyResult<Self> {
        let py = keys.py();
        let mut column = Column { hashing, check_text, parallel, chunks: Vec::new(), len: 0 };
        if let Ok(list) = keys.cast_exact::<PyList>() {
            column.add_values(list)?;
        } else if let Ok(tuple) = keys.cast_exact::<PyTuple>() {
            column.add_values(&tuple.to_list())?;
        } else {
            let name = hashing.key_type.name();
            let given = call(&helper(py, "arrays")?, (keys, name).into_pyobject(py)?)?;
            match given.cast::<PyList>() {
                Ok(arrays) => arrays.iter().try_for_each(|array| column.add_array(&array))?,
                // Batches of values, so that no step is longer than one.
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
        Ok(column)
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    fn add(&mut self, values: Values, nulls: Option<NullBuffer>, len: usize) {
        self.len += len;
        self.chunks.push(Chunk { values, nulls: nulls.filter(|nulls| nulls.null_count() > 0), len });
    }

    /// Adds Python's own values.
    fn add_values(&mut self, list: &Bound<'_, PyList>) -> PyResult<()> {
        let (py, hashing) = (list.py(), self.hashing);
        // Without the interpreter's lock, other threads may change the list of the caller, but not this one.
        #[cfg(Py_GIL_DISABLED)]
        let list = &list.get_slice(0, list.len());
        let pool = if self.parallel && list.len() >= MANY_KEYS { Some(pool(py)?) } else { None };
        let (mut hashes, mut valid) = (Vec::with_capacity(list.len()), BooleanBufferBuilder::new(list.len()));
        // A number may be of a class of the caller's, whose code may change the list.
        while hashes.len() < list.len() {
            let begin = hashes.len();
            if hashing.key_type == KeyType::Str {
                hashes.resize(list.len().min(begin + VALUES_BETWEEN_LOOKS), 0);
                let hash = |text: &[u8]| hashing.hasher.hash_one(Key::Text(text));
                let hashed = sys::hash_texts(list, begin, &mut hashes[begin..], pool.as_deref(), hash);
                hashes.truncate(begin + hashed);
                valid.append_n(hashed, true);
            }
            // Up to the end of the block in which something else stands.
            for index in hashes.len()..list.len().min(hashes.len() + sys::TEXTS) {
                let value = list.get_item(index)?;
                let hash = if value.is_none() { Ok(0) } else { hashing.one(&value) };
                hashes.push(hash.map_err(|error| at(py, error, self.len + index))?);
                valid.append(!value.is_none());
            }
            py.check_signals()?;
        }
        let len = hashes.len();
        self.add(Values::Hashed(hashes), Some(NullBuffer::new(valid.finish())), len);
        Ok(())
    }

    /// Adds an array: the capsules of its values and, if they are a dictionary, those of its indices.
    fn add_array(&mut self, array: &Bound<'_, PyAny>) -> PyResult<()> {
        let (values, indices): (Capsules<'_>, Option<Capsules<'_>>) = array.extract()?;
        let data = sys::import(&values)?;
        let (nulls, len) = (data.nulls().cloned(), data.len());
        let values = match self.hashing.key_type {
            // Signed numbers are hashed by the same bytes.
            KeyType::I64 | KeyType::U64 => Values::Numbers(of_numbers(&data)),
            KeyType::Str | KeyType::Bytes => Values::Bytes(data),
        };
        let Some(indices) = indices else {
            self.add(values, nulls, len);
            return Ok(());
        };
        let mut distinct = Column { chunks: Vec::new(), len: 0, ..*self };
        distinct.add(values, None, len);
        let mut hashes = Vec::with_capacity(len);
        array.py().detach(|| distinct.for_each(0..len, |hash| hashes.push(hash)))?;
        let data = sys::import(&indices)?;
        let (nulls, len, indices) = (data.nulls().cloned(), data.len(), of_numbers(&data));
        self.add(Values::Dictionary { indices, hashes }, nulls, len);
        Ok(())
    }

    /// Fails if a text is not UTF-8, so that a call that stores keys stores all of them or none.
    pub(crate) fn check_all(&mut self, py: Python<'_>) -> PyResult<()> {
        if self.check_text && self.hashing.key_type == KeyType::Str {
            let column = &*self;
            in_slices(py, self.len, |slice| column.for_each(slice, |_| ()))?;
        }
        self.check_text = false;
        Ok(())
    }

    /// Which keys of the range are not null; `None` if all are.
    pub(crate) fn validity(&self, range: Range<usize>) -> Option<NullBuffer> {
        let parts = || self.parts(range.clone());
        let null = |(_, chunk, part): (usize, &Chunk, Range<usize>)| {
            chunk.nulls.as_ref().is_some_and(|nulls| nulls.slice(part.start, part.len()).null_count() > 0)
        };
        if !parts().any(null) {
            return None;
        }
        let mut valid = BooleanBufferBuilder::new(range.len());
        for (_, chunk, part) in parts() {
            match &chunk.nulls {
                Some(nulls) => valid.append_buffer(nulls.slice(part.start, part.len()).inner()),
                None => valid.append_n(part.len(), true),
            }
        }
        Some(NullBuffer::new(valid.finish()))
    }

    /// The arrays that have keys of the range: the number of keys before each, and its keys of the range.
    fn parts(&self, range: Range<usize>) -> impl Iterator<Item = (usize, &Chunk, Range<usize>)> {
        let mut end = 0;
        self.chunks.iter().filter_map(move |chunk| {
            let begin = end;
            end += chunk.len;
            let part = range.start.clamp(begin, end) - begin..range.end.clamp(begin, end) - begin;
            (!part.is_empty()).then_some((begin, chunk, part))
        })
    }

    /// Calls `work` with the hash of each key of the range in order; that of a null is any number. An error names the first key
    /// that is not UTF-8.
    pub(crate) fn for_each(&self, range: Range<usize>, mut work: impl FnMut(u64)) -> PyResult<()> {
        let hasher = &self.hashing.hasher;
        self.parts(range).try_for_each(|(before, chunk, part)| {
            let text = (self.check_text && self.hashing.key_type == KeyType::Str)
                .then_some(Text { before, nulls: chunk.nulls.as_ref() });
            match self.hashing.key_type {
                KeyType::Str => chunk.for_each(part, text, hasher, |text| Key::Text(text), &mut work),
                _ => chunk.for_each(part, None, hasher, |bytes| Key::Bytes(bytes), &mut work),
            }
        })
    }
}

/// The module that knows the libraries from which keys come.
pub(crate) fn helper<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    // Imported by the first call, which is that of the module itself.
    let module = MODULE.get_or_try_init(py, || py.import("concurrent_cuckoo_filter._glue").map(Bound::unbind))?;
    module.bind(py).getattr(name)
}

/// The same error, with the place of the key.
#[cold]
fn at(py: Python<'_>, error: PyErr, index: usize) -> PyErr {
    // Of text that is no Unicode: its surrogates.
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
        "key {index} is not valid UTF-8: take a filter with key=\"bytes\", or mend the texts before they are stored and \
         asked alike"
    ))
}

impl Chunk {
    #[inline]
    fn for_each(
        &self,
        range: Range<usize>,
        text: Option<Text<'_>>,
        hasher: &StableHashBuilder,
        key: impl Fn(&[u8]) -> Key<'_>,
        work: &mut impl FnMut(u64),
    ) -> PyResult<()> {
        let mut hash = |bytes: &[u8]| work(hasher.hash_one(key(bytes)));
        match &self.values {
            Values::Bytes(data) => match data.data_type() {
                DataType::Utf8 | DataType::Binary => by_offsets::<i32>(data, range, text, &mut hash),
                DataType::LargeUtf8 | DataType::LargeBinary => by_offsets::<i64>(data, range, text, &mut hash),
                DataType::Utf8View | DataType::BinaryView => by_views(data, range, text, &mut hash),
                other => Err(malformed(&format!("{other} was not asked for"))),
            },
            Values::Numbers(numbers) => {
                numbers[range].iter().for_each(|&number| work(hasher.hash_one(Key::Number(number))));
                Ok(())
            }
            Values::Hashed(hashes) => {
                hashes[range].iter().for_each(|&hash| work(hash));
                Ok(())
            }
            Values::Dictionary { indices, hashes } => {
                indices[range.clone()].iter().zip(range).try_for_each(|(&at, index)| {
                    match hashes.get(at as usize) {
                        Some(&hash) => work(hash),
                        None if self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(index)) => work(0),
                        None => return Err(malformed(&format!("the index {at} is beyond its dictionary"))),
                    }
                    Ok(())
                })
            }
        }
    }
}

/// How texts are checked.
#[derive(Clone, Copy)]
struct Text<'a> {
    /// Keys of the column before this array.
    before: usize,
    nulls: Option<&'a NullBuffer>,
}

impl Text<'_> {
    #[inline]
    fn check(self, index: usize, text: &[u8]) -> PyResult<()> {
        if std::str::from_utf8(text).is_ok() || self.nulls.is_some_and(|nulls| nulls.is_null(index)) {
            return Ok(());
        }
        Err(not_text(self.before + index))
    }
}

/// Texts that are checked by one look, which is much faster than one by one, and while they stay in the nearest cache.
const TEXTS_AT_ONCE: usize = 256;

fn by_offsets<O: ArrowNativeType>(
    data: &ArrayData,
    range: Range<usize>,
    text: Option<Text<'_>>,
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
        // Also where nothing is checked: what this brings into the cache is hashed nearly twice as fast.
        let ascii = std::hint::black_box(of(offsets[0], offsets[offsets.len() - 1]).is_ok_and(<[u8]>::is_ascii));
        let text = text.filter(|_| !ascii);
        for (index, ends) in range.zip(offsets.windows(2)) {
            let key = of(ends[0], ends[1])?;
            if let Some(text) = text {
                text.check(index, key)?;
            }
            work(key);
        }
    }
    Ok(())
}

/// A view has 16 bytes: the length, and up to 12 bytes of value, or 4 of them and where the value lies.
fn by_views(
    data: &ArrayData,
    range: Range<usize>,
    text: Option<Text<'_>>,
    work: &mut impl FnMut(&[u8]),
) -> PyResult<()> {
    let (views, buffers) = data.buffers().split_first().expect("an array of views has one buffer of views");
    for index in range {
        let view = &views.as_slice()[(data.offset() + index) * 16..][..16];
        let field = |at: usize| u32::from_le_bytes(view[at..at + 4].try_into().expect("4 bytes")) as usize;
        let length = field(0);
        let long = || buffers.get(field(8))?.get(field(12)..field(12) + length);
        let key = if length <= 12 { Some(&view[4..4 + length]) } else { long() };
        let key = match key {
            Some(key) => key,
            // A view of a null may be anything.
            None if data.is_null(index) => &[],
            None => return Err(malformed(&format!("value {index} lies outside its buffers"))),
        };
        if let Some(text) = text {
            text.check(index, key)?;
        }
        work(key);
    }
    Ok(())
}

/// The capsules of an array's schema and of the array.
pub(crate) type Capsules<'py> = (Bound<'py, PyCapsule>, Bound<'py, PyCapsule>);

fn of_numbers<T: ArrowNativeType>(data: &ArrayData) -> ScalarBuffer<T> {
    ScalarBuffer::new(data.buffers()[0].clone(), data.offset(), data.len())
}

/// The numbers that this function of the helper module makes of its arguments: `hashes` or `tags`.
pub(crate) fn numbers<'py, T: ArrowNativeType>(
    py: Python<'py>,
    function: &str,
    arguments: impl IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>, Error = PyErr>,
) -> PyResult<ScalarBuffer<T>> {
    let array: Capsules<'_> = call(&helper(py, function)?, arguments.into_pyobject(py)?)?.extract()?;
    Ok(of_numbers(&sys::import(&array)?))
}
