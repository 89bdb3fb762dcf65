//! The room with `unsafe` code: calls of Python's functions, the texts of a list, and arrays in the memory of other libraries.

use arrow_array::ffi::{self, FFI_ArrowArray, FFI_ArrowSchema};
use arrow_data::ArrayData;
use pyo3::exceptions::PyValueError;
use pyo3::ffi::{
    Py_ssize_t, PyErr_Clear, PyList_GetItem, PyObject, PyObject_CallObject, PyUnicode_AsUTF8AndSize,
    PyUnicode_CheckExact,
};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList, PyTuple};

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
/// A thread that asks for the lock while the interpreter ends is unwound by `pthread_exit` before Python 3.14, and a foreign
/// unwinding that reaches `extern "C"` aborts the process. Here it parks the thread, which no longer holds the lock, as
/// PyO3 does where it takes the lock itself.
#[expect(unsafe_code, reason = "PyO3 declares the function as one that does not unwind")]
pub(crate) fn call<'py>(function: &Bound<'py, PyAny>, arguments: Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
    type Unwinding = unsafe extern "C-unwind" fn(*mut PyObject, *mut PyObject) -> *mut PyObject;
    let declared: unsafe extern "C" fn(_, _) -> _ = PyObject_CallObject;
    // SAFETY: 1. The two types differ in whether the callee may unwind, and a callee that does not may be called as one that does.
    let callee = unsafe { std::mem::transmute::<unsafe extern "C" fn(_, _) -> _, Unwinding>(declared) };
    // The compiler would see through the pointer, and leave `park` out of the unwinding.
    let callee = std::hint::black_box(callee);
    let park = Park;
    // SAFETY: 2. Both are live objects, and a `Bound` proves that this thread is attached.
    let result = unsafe { callee(function.as_ptr(), arguments.as_ptr()) };
    std::mem::forget(park);
    // SAFETY: 3. The function returns a new reference, or null with an exception set.
    unsafe { Bound::from_owned_ptr_or_err(function.py(), result) }
}

/// Takes an array from the capsules of its producer.
#[expect(unsafe_code, reason = "the C interface of Arrow is memory of another library, which has to be right about it")]
pub(crate) fn import(schema: &Bound<'_, PyCapsule>, array: &Bound<'_, PyCapsule>) -> PyResult<ArrayData> {
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

/// Texts that are fetched from memory at once.
pub(crate) const TEXTS: usize = 128;

/// Calls `work` with the UTF-8 of the items of a list from `begin` to `end`, up to one that is no `str` or has none.
///
/// In lists whose texts lie anywhere in memory most of the time is spent waiting for them. So each of three loops over a block asks
/// for one line of memory per text, the header, the end, and the rest, and the processor waits for many of them at the same time.
/// Reads did better than prefetches, which were worth nothing beside other programs.
#[expect(
    unsafe_code,
    reason = "items are read without a reference to each, which would be two stores into each of them"
)]
pub(crate) fn texts(list: &Bound<'_, PyList>, begin: usize, end: usize, mut work: impl FnMut(&[u8])) {
    let end = end.min(list.len());
    let (mut items, mut texts) = ([std::ptr::null_mut(); TEXTS], [&[][..]; TEXTS]);
    for begin in (begin..end).step_by(TEXTS) {
        let count = TEXTS.min(end - begin);
        let (items, texts, mut are_texts) = (&mut items[..count], &mut texts[..count], true);
        for (index, item) in items.iter_mut().enumerate() {
            // SAFETY: 5. The list is live and this thread attached, and the index lies within it: `end` was its length, and nothing
            // that runs in this function changes it, as `work` is not given the interpreter.
            let (borrowed, text) = unsafe {
                let borrowed = PyList_GetItem(list.as_ptr(), (begin + index) as Py_ssize_t);
                (borrowed, PyUnicode_CheckExact(borrowed) != 0)
            };
            (*item, are_texts) = (borrowed, are_texts && text);
        }
        if !are_texts {
            return;
        }
        let mut ends = 0;
        for (item, text) in items.iter().zip(&mut *texts) {
            let mut len = 0;
            // SAFETY: 6. The item is a `str`, and the list keeps it alive. The function runs no code of Python, and returns `len` bytes
            // and a zero that live as long as the item, or null with an exception set, which is taken back. `texts` is written anew
            // before it is read again.
            unsafe {
                let bytes = PyUnicode_AsUTF8AndSize(*item, &mut len);
                if bytes.is_null() {
                    PyErr_Clear();
                    return;
                }
                *text = std::slice::from_raw_parts(bytes.cast::<u8>(), len as usize);
            }
            ends ^= text.last().copied().unwrap_or_default();
        }
        std::hint::black_box(ends);
        texts.iter().for_each(|text| work(text));
    }
}
