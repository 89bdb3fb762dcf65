//! What Python gives as keys, as a column.

use crate::error;
use arrow_array::UInt64Array;
use arrow_buffer::{ArrowNativeType, BooleanBuffer, BooleanBufferBuilder, NullBuffer, ScalarBuffer};
use arrow_data::ArrayData;
use arrow_pyarrow::FromPyArrowUnchecked;
use arrow_schema::DataType;
use concurrent_cuckoo_filter::SnapshotHeader;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use std::ops::Range;

/// The type of the keys of a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyType {
    Str,
    Bytes,
    I64,
    U64,
}

impl KeyType {
    pub(crate) fn parse(name: &str) -> PyResult<Self> {
        match name {
            "str" => Ok(KeyType::Str),
            "bytes" => Ok(KeyType::Bytes),
            "i64" => Ok(KeyType::I64),
            "u64" => Ok(KeyType::U64),
            _ => Err(PyValueError::new_err(format!(
                "key={name:?} was asked for; \"str\", \"bytes\", \"i64\" and \"u64\" are possible"
            ))),
        }
    }

    /// The type of the keys of a snapshot.
    pub(crate) fn of(header: &SnapshotHeader) -> PyResult<Self> {
        Ok(match header.key_type() {
            "str" => KeyType::Str,
            "[u8]" => KeyType::Bytes,
            "i64" => KeyType::I64,
            "u64" => KeyType::U64,
            other => return Err(error::other_keys(other)),
        })
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            KeyType::Str => "str",
            KeyType::Bytes => "bytes",
            KeyType::I64 => "i64",
            KeyType::U64 => "u64",
        }
    }

    /// The function of `pyarrow` that makes the type that Python's own values are made into.
    fn arrow_type(self) -> &'static str {
        match self {
            KeyType::Str => "large_string",
            KeyType::Bytes => "large_binary",
            KeyType::I64 => "int64",
            KeyType::U64 => "uint64",
        }
    }

    /// Whether an array of this type is taken as it is.
    fn reads(self, data_type: &DataType) -> bool {
        match self {
            KeyType::Str => matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View),
            KeyType::Bytes => matches!(
                data_type,
                DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_)
            ),
            KeyType::I64 => *data_type == DataType::Int64,
            KeyType::U64 => *data_type == DataType::UInt64,
        }
    }

    /// Whether an array of this type can be turned into one that is, its values unchanged or refused.
    fn casts(self, data_type: &DataType) -> bool {
        match data_type {
            DataType::Null => true,
            DataType::Dictionary(_, values) => self.reads(values) || self.casts(values),
            DataType::RunEndEncoded(_, values) => self.reads(values.data_type()) || self.casts(values.data_type()),
            _ => matches!(self, KeyType::I64 | KeyType::U64) && data_type.is_integer(),
        }
    }
}

/// One key. Signed numbers are given as what has the same bytes.
#[derive(Clone, Copy)]
pub(crate) enum Key<'a> {
    Bytes(&'a [u8]),
    Number(u64),
}

/// Calls `then` with one key as Python has it.
pub(crate) fn one<T>(key_type: KeyType, key: &Bound<'_, PyAny>, then: impl FnOnce(Key<'_>) -> T) -> PyResult<T> {
    let wrong = || {
        let found = key.get_type().name().map_or_else(|_| String::from("something else"), |name| name.to_string());
        PyTypeError::new_err(format!("a key of this filter is of type {}, not {found}", key_type.name()))
    };
    let out_of_range =
        |_| PyOverflowError::new_err(format!("{key} does not fit the {} keys of this filter", key_type.name()));
    match key_type {
        KeyType::Str => Ok(then(Key::Bytes(key.cast::<PyString>().map_err(|_| wrong())?.to_str()?.as_bytes()))),
        KeyType::Bytes => Ok(then(Key::Bytes(key.cast::<PyBytes>().map_err(|_| wrong())?.as_bytes()))),
        KeyType::I64 | KeyType::U64 if !key.hasattr(intern!(key.py(), "__index__"))? => Err(wrong()),
        KeyType::I64 => Ok(then(Key::Number(key.extract::<i64>().map_err(out_of_range)? as u64))),
        KeyType::U64 => Ok(then(Key::Number(key.extract::<u64>().map_err(out_of_range)?))),
    }
}

/// Where the values of an array lie. Positions are checked where they are used: a producer may be wrong.
enum Values {
    Offsets32(ArrayData),
    Offsets64(ArrayData),
    Views(ArrayData),
    Fixed { size: usize, data: ArrayData },
    Numbers(ScalarBuffer<u64>),
}

/// An array.
struct Chunk {
    values: Values,
    nulls: Option<NullBuffer>,
    len: usize,
}

/// Keys, in one array or several.
pub(crate) struct Column {
    chunks: Vec<Chunk>,
    len: usize,
}

impl Column {
    /// Takes whatever holds keys: an array or a stream of Arrow, of any library; a numpy array; a list or another iterable.
    pub(crate) fn new(key_type: KeyType, keys: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = keys.py();
        let pyarrow = py.import(intern!(py, "pyarrow"))?;
        if keys.is_instance_of::<PyString>() || keys.is_instance_of::<PyBytes>() {
            return Err(PyTypeError::new_err("one key was given where a list of keys is needed: write [key]"));
        }
        let has = |name| keys.hasattr(name);
        let chunks = if has("__arrow_c_stream__")? {
            let chunked = pyarrow.call_method1(intern!(py, "chunked_array"), (keys,))?;
            chunked.getattr(intern!(py, "chunks"))?.try_iter()?.collect::<PyResult<Vec<_>>>()?
        } else if has("__arrow_c_array__")? || has("__array__")? {
            let array = pyarrow.call_method1(intern!(py, "array"), (keys,))?;
            if array.hasattr(intern!(py, "chunks"))? {
                array.getattr(intern!(py, "chunks"))?.try_iter()?.collect::<PyResult<Vec<_>>>()?
            } else {
                vec![array]
            }
        } else {
            vec![from_values(key_type, &pyarrow, keys)?]
        };
        let chunks = chunks.iter().map(|array| Chunk::new(key_type, &pyarrow, array)).collect::<PyResult<Vec<_>>>()?;
        let len = chunks.iter().map(|chunk| chunk.len).sum();
        Ok(Column { chunks, len })
    }

    pub(crate) fn len(&self) -> usize {
        self.len
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

    /// Calls `work` with each key of the range in order, nulls included: what stands there is some value. An error names the
    /// first key that is none.
    pub(crate) fn for_each(
        &self,
        range: Range<usize>,
        check_text: bool,
        mut work: impl FnMut(Key<'_>),
    ) -> PyResult<()> {
        self.parts(range).try_for_each(|(before, chunk, part)| chunk.for_each(part, check_text, before, &mut work))
    }
}

/// Python's own values. They are told to be of the type of the keys, so that numbers are not guessed to be of another.
fn from_values<'py>(
    key_type: KeyType,
    pyarrow: &Bound<'py, PyModule>,
    keys: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = keys.py();
    let iterator = keys.try_iter().map_err(|_| {
        PyTypeError::new_err(format!(
            "keys come as an Arrow array, a numpy array or a list, not as {}",
            keys.get_type().name().map_or_else(|_| String::from("this"), |name| name.to_string())
        ))
    })?;
    let values = iterator.collect::<PyResult<Vec<_>>>()?;
    // pyarrow would take an integer for text, and text for bytes.
    for (index, value) in values.iter().enumerate() {
        if !value.is_none() {
            one(key_type, value, |_| ()).map_err(|error| at(py, error, index))?;
        }
    }
    let arrow_type = pyarrow.call_method0(key_type.arrow_type())?;
    pyarrow.call_method1(intern!(py, "array"), (values, arrow_type))
}

/// The same error, with the place of the key.
fn at(py: Python<'_>, error: PyErr, index: usize) -> PyErr {
    // Of text that is no Unicode: its surrogates.
    if error.is_instance_of::<pyo3::exceptions::PyUnicodeEncodeError>(py) {
        return not_text(index);
    }
    PyErr::from_type(error.get_type(py), format!("key {index}: {}", error.value(py)))
}

fn not_text(index: usize) -> PyErr {
    PyValueError::new_err(format!(
        "key {index} is not valid UTF-8: take a filter with key=\"bytes\", or mend the texts before they are stored and \
         asked alike"
    ))
}

impl Chunk {
    fn new(key_type: KeyType, pyarrow: &Bound<'_, PyModule>, array: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = array.py();
        let data = import(array)?;
        if key_type.reads(data.data_type()) {
            return Ok(Chunk::of(data));
        }
        if !key_type.casts(data.data_type()) {
            return Err(PyTypeError::new_err(format!(
                "an array of {} was given to a filter of {} keys: cast it, or take a filter with another `key`",
                array.getattr(intern!(py, "type"))?,
                key_type.name()
            )));
        }
        let arrow_type = pyarrow.call_method0(key_type.arrow_type())?;
        Ok(Chunk::of(import(&array.call_method1(intern!(py, "cast"), (arrow_type,))?)?))
    }

    fn of(data: ArrayData) -> Self {
        let (len, nulls) = (data.len(), data.nulls().filter(|nulls| nulls.null_count() > 0).cloned());
        let values = match data.data_type() {
            DataType::Utf8 | DataType::Binary => Values::Offsets32(data),
            DataType::LargeUtf8 | DataType::LargeBinary => Values::Offsets64(data),
            DataType::Utf8View | DataType::BinaryView => Values::Views(data),
            &DataType::FixedSizeBinary(size) => Values::Fixed { size: size as usize, data },
            // Signed numbers are hashed by the same bytes.
            _ => Values::Numbers(ScalarBuffer::new(data.buffers()[0].clone(), data.offset(), len)),
        };
        Chunk { values, nulls, len }
    }

    fn for_each(
        &self,
        range: Range<usize>,
        check_text: bool,
        before: usize,
        work: &mut impl FnMut(Key<'_>),
    ) -> PyResult<()> {
        match &self.values {
            Values::Offsets32(data) => by_offsets::<i32>(data, range, self.text(check_text, before), work),
            Values::Offsets64(data) => by_offsets::<i64>(data, range, self.text(check_text, before), work),
            Values::Views(data) => by_views(data, range, self.text(check_text, before), work),
            Values::Fixed { size, data } => {
                let bytes = data.buffers()[0].as_slice();
                for index in range.map(|index| index + data.offset()) {
                    work(Key::Bytes(&bytes[index * size..][..*size]));
                }
                Ok(())
            }
            Values::Numbers(numbers) => {
                numbers[range].iter().for_each(|&number| work(Key::Number(number)));
                Ok(())
            }
        }
    }

    fn text(&self, check: bool, before: usize) -> Text<'_> {
        Text { check, before, nulls: self.nulls.as_ref() }
    }
}

/// How texts are checked.
#[derive(Clone, Copy)]
struct Text<'a> {
    check: bool,
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
    mut text: Text<'_>,
    work: &mut impl FnMut(Key<'_>),
) -> PyResult<()> {
    let bytes = data.buffers()[1].as_slice();
    text.check &= matches!(data.data_type(), DataType::Utf8 | DataType::LargeUtf8);
    for begin in range.clone().step_by(TEXTS_AT_ONCE) {
        let range = begin..range.end.min(begin + TEXTS_AT_ONCE);
        let offsets = &data.buffer::<O>(0)[range.start..=range.end];
        let all = &bytes[offsets[0].as_usize()..offsets[offsets.len() - 1].as_usize()];
        let one_by_one = text.check && !all.is_ascii();
        for (index, ends) in range.zip(offsets.windows(2)) {
            let key = &bytes[ends[0].as_usize()..ends[1].as_usize()];
            if one_by_one {
                text.check(index, key)?;
            }
            work(Key::Bytes(key));
        }
    }
    Ok(())
}

/// A view has 16 bytes: the length, and up to 12 bytes of value, or 4 of them and where the value lies.
fn by_views(data: &ArrayData, range: Range<usize>, mut text: Text<'_>, work: &mut impl FnMut(Key<'_>)) -> PyResult<()> {
    let (views, buffers) = data.buffers().split_first().expect("an array of views has one buffer of views");
    text.check &= *data.data_type() == DataType::Utf8View;
    for index in range {
        let view = &views.as_slice()[(data.offset() + index) * 16..][..16];
        let field = |at: usize| u32::from_le_bytes(view[at..at + 4].try_into().expect("4 bytes")) as usize;
        let length = field(0);
        let key =
            if length <= 12 { &view[4..4 + length] } else { &buffers[field(8)].as_slice()[field(12)..][..length] };
        if text.check {
            text.check(index, key)?;
        }
        work(Key::Bytes(key));
    }
    Ok(())
}

/// Takes an array as its producer says it is.
#[expect(unsafe_code, reason = "the C interface of Arrow is memory of another library, which has to be right about it")]
fn import(array: &Bound<'_, PyAny>) -> PyResult<ArrayData> {
    // SAFETY: that buffers are as long as lengths and offsets say is the contract of the C interface, and every consumer
    // of it relies on that. What is left to be wrong does no harm here: values are read through checked slices, and texts
    // as bytes, never as `str`.
    unsafe { ArrayData::from_pyarrow_bound_unchecked(array) }
}

/// Hashes that were made by `Layout.hash`, or what `view` made of them.
pub(crate) fn hashes(array: &Bound<'_, PyAny>) -> PyResult<UInt64Array> {
    let wrong =
        || PyTypeError::new_err("hashes come as an Arrow array of type uint64 or int64 without nulls: see Layout.hash");
    let data = if array.hasattr("__arrow_c_array__")? { import(array)? } else { return Err(wrong()) };
    if !matches!(data.data_type(), DataType::UInt64 | DataType::Int64) || data.null_count() > 0 {
        return Err(wrong());
    }
    Ok(UInt64Array::new(ScalarBuffer::new(data.buffers()[0].clone(), data.offset(), data.len()), None))
}

/// Answers as bits.
pub(crate) struct Answers(Vec<u64>, usize);

impl Answers {
    pub(crate) fn with_capacity(len: usize) -> Self {
        Answers(Vec::with_capacity(len.div_ceil(64)), 0)
    }

    /// Adds a block. All but the last one are multiples of 64 long.
    pub(crate) fn extend(&mut self, found: &[bool]) {
        debug_assert!(self.1.is_multiple_of(64));
        self.1 += found.len();
        self.0.extend(found.chunks(64).map(|found| {
            found.iter().enumerate().fold(0, |word, (bit, &found)| word | u64::from(found) << bit).to_le()
        }));
    }

    pub(crate) fn finish(self) -> BooleanBuffer {
        BooleanBuffer::new(self.0.into(), 0, self.1)
    }
}
