//! All `unsafe` code: calls of Python functions, the texts of a list, and arrays in the memory of other libraries.

use crate::keys::Capsules;
use arrow_array::ffi::{self, FFI_ArrowArray, FFI_ArrowSchema};
use arrow_data::ArrayData;
use pyo3::exceptions::PyValueError;
use pyo3::ffi::{
    Py_ssize_t, PyErr_Clear, PyList_GetItem, PyObject, PyObject_CallObject, PyUnicode_AsUTF8AndSize,
    PyUnicode_CheckExact,
};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use rayon::ThreadPool;
use std::hint::black_box;

/// Parks the thread when it is dropped.
struct Park;

impl Drop for Park {
    fn drop(&mut self) {
        loop {
            std::thread::park();
        }
    }
}

/// Calls a function that may run Python code or release the interpreter's lock.
///
/// Before Python 3.14, a thread that requests the lock while the interpreter ends is unwound by `pthread_exit`, and a foreign unwind that
/// reaches `extern "C"` aborts the process. Here it parks the thread, which no longer holds the lock, as PyO3 does in its own calls.
#[expect(unsafe_code, reason = "PyO3 declares the function as one that does not unwind")]
pub(crate) fn call<'py>(function: &Bound<'py, PyAny>, arguments: Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
    type Unwinding = unsafe extern "C-unwind" fn(*mut PyObject, *mut PyObject) -> *mut PyObject;
    let declared: unsafe extern "C" fn(_, _) -> _ = PyObject_CallObject;
    // SAFETY: 1. The two types differ in whether the callee may unwind, and a callee that does not may be called as one that does.
    let callee = unsafe { std::mem::transmute::<unsafe extern "C" fn(_, _) -> _, Unwinding>(declared) };
    // Otherwise the compiler would see through the pointer, and remove `park` from the unwind.
    let callee = black_box(callee);
    let park = Park;
    // SAFETY: 2. Both are live objects, and a `Bound` proves that this thread is attached.
    let result = unsafe { callee(function.as_ptr(), arguments.as_ptr()) };
    std::mem::forget(park);
    // SAFETY: 3. The function returns a new reference, or null with an exception set.
    unsafe { Bound::from_owned_ptr_or_err(function.py(), result) }
}

/// Reads an array from the capsules of its producer.
#[expect(unsafe_code, reason = "the C interface of Arrow is memory of another library, which has to be right about it")]
pub(crate) fn import((schema, array): &Capsules<'_>) -> PyResult<ArrayData> {
    let schema = schema.pointer_checked(Some(c"arrow_schema"))?.cast::<FFI_ArrowSchema>();
    let array = array.pointer_checked(Some(c"arrow_array"))?.cast::<FFI_ArrowArray>();
    // SAFETY: 4. The names of the capsules say what they point to, and they outlive this call. That buffers are as long as lengths
    // and offsets say is the contract of the interface, and every consumer relies on that. Other values do no harm
    // here: they are read through checked slices, and texts as bytes, never as `str`.
    let data = unsafe { ffi::from_ffi(FFI_ArrowArray::from_raw(array.as_ptr()), schema.as_ref()) };
    let mut data = data.map_err(|error| malformed(&error.to_string()))?;
    data.align_buffers();
    Ok(data)
}

pub(crate) fn malformed(how: &str) -> PyErr {
    PyValueError::new_err(format!("the Arrow array is malformed: {how}"))
}

/// The number of texts that are fetched from memory at once.
pub(crate) const TEXTS: usize = 128;

/// The number of texts that a thread of a pool hashes at a time.
const TEXTS_OF_A_TASK: usize = 4096;

/// Hashes the UTF-8 of the items of a list from `begin` on into `to`, and returns the number of hashed items. It stops at the block of an
/// item that is not exactly a `str`, or has no UTF-8. With a pool, its threads read and hash texts while this thread collects the next
/// ones.
///
/// The texts of a large list are scattered in memory, and most of the time is latency. So three loops over a block each read one cache
/// line per text, of the header, the end and the rest, and the processor waits for many of them at once. Reads were faster than
/// prefetches.
pub(crate) fn hash_texts(
    list: &Bound<'_, PyList>,
    begin: usize,
    to: &mut [u64],
    pool: Option<&ThreadPool>,
    hash: impl Fn(&[u8]) -> u64 + Sync,
) -> usize {
    let count = to.len().min(list.len().saturating_sub(begin));
    let (to, hash) = (&mut to[..count], &hash);
    let hash_all = move |texts: &[&[u8]], to: &mut [u64]| {
        for (texts, to) in texts.chunks(TEXTS).zip(to.chunks_mut(TEXTS)) {
            black_box(texts.iter().fold(0, |ends, text| ends ^ text.last().copied().unwrap_or_default()));
            texts.iter().zip(to).for_each(|(text, to)| *to = hash(text));
        }
    };
    match pool {
        None => in_groups(list, begin, to, TEXTS, |texts, to| hash_all(&texts, to)),
        Some(pool) => pool.in_place_scope(|scope| {
            in_groups(list, begin, to, TEXTS_OF_A_TASK, |texts, to| scope.spawn(move |_| hash_all(&texts, to)))
        }),
    }
}

/// Calls `work` with the UTF-8 of `size` items at a time, and the slice for their hashes.
fn in_groups<'a>(
    list: &'a Bound<'_, PyList>,
    begin: usize,
    to: &'a mut [u64],
    size: usize,
    work: impl Fn(Vec<&'a [u8]>, &'a mut [u64]),
) -> usize {
    let mut done = 0;
    for to in to.chunks_mut(size) {
        let (mut texts, count) = (Vec::with_capacity(to.len()), to.len());
        while texts.len() < count && add_block(list, begin + done + texts.len(), count - texts.len(), &mut texts) {}
        let found = texts.len();
        work(texts, &mut to[..found]);
        done += found;
        if found < count {
            break;
        }
    }
    done
}

/// Adds the UTF-8 of the next block of items, of at most `count`, if all of them have it.
#[expect(
    unsafe_code,
    reason = "items are read without a reference to each, which would be two stores into each of them"
)]
fn add_block<'a>(list: &'a Bound<'_, PyList>, begin: usize, count: usize, texts: &mut Vec<&'a [u8]>) -> bool {
    let (mut items, before) = ([std::ptr::null_mut(); TEXTS], texts.len());
    let items = &mut items[..count.min(TEXTS)];
    let mut are_texts = true;
    for (index, item) in items.iter_mut().enumerate() {
        // SAFETY: 5. The list is live, this thread is attached, and the index is below its length: `hash_texts` has read the length, and
        // nothing that runs before it returns changes the list. The hash function has no access to the interpreter, and without a global
        // lock no other thread has the list.
        let (borrowed, text) = unsafe {
            let borrowed = PyList_GetItem(list.as_ptr(), (begin + index) as Py_ssize_t);
            (borrowed, PyUnicode_CheckExact(borrowed) != 0)
        };
        (*item, are_texts) = (borrowed, are_texts && text);
    }
    for item in items.iter().take_while(|_| are_texts) {
        let mut len = 0;
        // SAFETY: 6. The item is a `str`, and the list keeps it alive. The function runs no code of Python, and returns `len` bytes and a
        // zero that live as long as the item, or null with an exception set, which is cleared.
        unsafe {
            let bytes = PyUnicode_AsUTF8AndSize(*item, &mut len);
            if bytes.is_null() {
                PyErr_Clear();
                are_texts = false;
                break;
            }
            texts.push(std::slice::from_raw_parts(bytes.cast::<u8>(), len as usize));
        }
    }
    if !are_texts {
        texts.truncate(before);
    }
    are_texts
}
