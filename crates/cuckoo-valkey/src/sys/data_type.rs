//! The data type: callbacks of the server for values.

use super::alloc::Limit;
use super::{Context, Text, api, guarded};
use crate::pieces::{Joined, damaged};
use crate::value::{CHUNK, HEAD, Value, part_of_head};
use core::marker::PhantomData;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};
use std::ffi::CString;
use std::io;
use std::os::raw::{c_char, c_int, c_void};
use valkey_module::digest::Digest;
use valkey_module::{RedisBuffer, raw};

/// The name of the type in files: nine letters.
const NAME: &core::ffi::CStr = c"cuckoo-cf";
const VERSION: c_int = 1;

/// The size of a piece of a value in the server's files, in bytes.
const PIECE: usize = 1 << 20;

/// The maximum ratio of a value's memory to its bytes in a file.
const GROWN: usize = 8;

static TYPE: AtomicPtr<raw::RedisModuleType> = AtomicPtr::new(null_mut());

pub(super) fn this() -> *mut raw::RedisModuleType {
    TYPE.load(Ordering::Relaxed)
}

pub(super) fn register(context: Context<'_>) -> Result<(), String> {
    let mut methods = raw::RedisModuleTypeMethods {
        version: u64::from(raw::REDISMODULE_TYPE_METHOD_VERSION),
        rdb_load: Some(load),
        rdb_save: Some(save),
        aof_rewrite: Some(rewrite),
        mem_usage: Some(memory_usage),
        digest: Some(digest),
        free: Some(free),
        free_effort: Some(free_effort),
        copy: Some(copy),
        // SAFETY: the other fields are a number and functions, which may be null.
        ..unsafe { core::mem::zeroed() }
    };
    // SAFETY: the module is being loaded, and the server copies the methods.
    let made = unsafe { api!(RedisModule_CreateDataType(context.0, NAME.as_ptr(), VERSION, &raw mut methods)) };
    TYPE.store(made, Ordering::Relaxed);
    if made.is_null() { Err("the server refuses the data type".into()) } else { Ok(()) }
}

/// The value behind a pointer from the server.
///
/// # Safety
/// The pointer must come from this module.
unsafe fn value<'a>(value: *const c_void) -> &'a Value {
    // SAFETY: a `Box` that `Key::set`, `load` or `copy` made.
    unsafe { &*value.cast() }
}

/// The next piece of a value. `None` at the end of the input.
fn next_piece(io: *mut raw::RedisModuleIO) -> Option<RedisBuffer> {
    let mut len = 0;
    // SAFETY: the reader lives as long as its callback.
    let bytes = unsafe { api!(RedisModule_LoadStringBuffer(io, &raw mut len)) };
    (!bytes.is_null()).then(|| RedisBuffer::new(bytes, len))
}

/// Logs an error of reading or writing a value.
fn warn(io: *mut raw::RedisModuleIO, error: &io::Error) {
    let text = CString::new(error.to_string()).unwrap_or_default();
    // SAFETY: 1. the reader or writer lives as long as its callback; 2. the strings end in 0, and the format takes one.
    unsafe { api!(RedisModule_LogIOError(io, c"warning".as_ptr(), c"%s".as_ptr(), text.as_ptr())) };
}

/// Logs an error of writing a value, and makes the whole save fail: it would succeed otherwise, and leave a file that does not load.
fn fail(io: *mut raw::RedisModuleIO, error: &io::Error) {
    warn(io, error);
    // The API has no call for this. But a read from a file that is open for writing fails, and the server notes that as an error of
    // the value, because the module handles errors itself (`REDISMODULE_OPTIONS_HANDLE_IO_ERRORS`). `DEBUG OBJECT` saves to no file,
    // and would crash here.
    let _ = raw::load_unsigned(io);
}

/// Notes the key that is being loaded. The notification `loaded` would come without the database: a replica may load to the side.
fn note(io: *mut raw::RedisModuleIO) {
    // SAFETY: the reader lives as long as its callback, and the name as long as the reader.
    let (name, database) = unsafe { (api!(RedisModule_GetKeyNameFromIO(io)), api!(RedisModule_GetDbIdFromIO(io))) };
    if !name.is_null() {
        crate::ticks::loaded(database, Text(name.cast_mut(), PhantomData).bytes());
    }
}

/// A value is stored as a number, its head, the pieces of a snapshot, and an empty piece. The number is 1 while chunks are
/// arriving.
unsafe extern "C" fn load(io: *mut raw::RedisModuleIO, version: c_int) -> *mut c_void {
    let loaded = guarded(Err(damaged("the module failed")), || {
        if version != VERSION {
            return Err(damaged("a filter of another version of the module"));
        }
        let arriving = raw::load_unsigned(io).is_ok_and(|number| number == 1);
        let head = next_piece(io).ok_or(io::ErrorKind::UnexpectedEof)?;
        let mut end = false;
        let mut next = || {
            let piece = (!end).then(|| next_piece(io)).flatten()?;
            end = piece.as_ref().is_empty();
            (!end).then_some(piece)
        };
        if super::is_loading() && !arriving {
            // From a file or a primary: streamed, without a second copy.
            return Value::read(head.as_ref(), Limit::None, Joined::new(next));
        }
        // From a client (`RESTORE`): the announced sizes are not trusted, so all bytes arrive before the filter is
        // allocated.
        let pieces: Vec<_> = core::iter::from_fn(&mut next).collect();
        if !end {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let bytes = pieces.iter().map(|piece| piece.as_ref().len()).sum::<usize>();
        if arriving {
            return Value::arriving(head.as_ref(), pieces.iter().map(|piece| piece.as_ref().to_vec()));
        }
        let mut pieces = pieces.into_iter();
        let limit = Limit::Bytes(bytes * GROWN + PIECE);
        Value::read(head.as_ref(), limit, Joined::new(|| pieces.next()))
    });
    match loaded {
        Ok(value) => {
            if value.expires() {
                guarded((), || note(io));
            }
            Box::into_raw(Box::new(value)).cast()
        }
        Err(error) => {
            warn(io, &error);
            null_mut()
        }
    }
}

unsafe extern "C" fn save(io: *mut raw::RedisModuleIO, this: *mut c_void) {
    // SAFETY: a value of this type.
    let this = unsafe { value(this) };
    let saved = guarded(Err(damaged("the module failed")), || {
        raw::save_unsigned(io, this.is_arriving().into());
        raw::save_slice(io, &this.head()?);
        this.write(PIECE, |bytes| raw::save_slice(io, bytes))
    });
    match saved {
        Ok(()) => raw::save_slice(io, &[]),
        // What `DUMP` returns lacks the empty piece, and is refused by `RESTORE`.
        Err(error) => fail(io, &error),
    }
}

/// Emits the commands that restore the value.
unsafe extern "C" fn rewrite(io: *mut raw::RedisModuleIO, key: *mut raw::RedisModuleString, this: *mut c_void) {
    // SAFETY: a value of this type.
    let this = unsafe { value(this) };
    let put = |at: usize, bytes: &[u8]| {
        // SAFETY: the writer lives as long as this call; a key, a number, and bytes with their length.
        unsafe {
            api!(RedisModule_EmitAOF(
                io,
                c"CF.LOADCHUNK".as_ptr(),
                c"slb".as_ptr(),
                key,
                at as std::os::raw::c_longlong,
                bytes.as_ptr().cast::<c_char>(),
                bytes.len(),
            ));
        }
    };
    let written = guarded(Err(damaged("the module failed")), || {
        let head = this.head()?;
        for begin in (0..head.len()).step_by(CHUNK) {
            let (end, part) = part_of_head(&head, begin);
            put(end, part);
        }
        let mut at = HEAD;
        this.write(CHUNK, |bytes| {
            at += bytes.len();
            put(at, bytes);
        })
    });
    if let Err(error) = written {
        fail(io, &error);
    }
}

unsafe extern "C" fn memory_usage(this: *const c_void) -> usize {
    // SAFETY: a value of this type.
    let this = unsafe { value(this) };
    guarded(0, || this.memory_usage())
}

unsafe extern "C" fn free_effort(_: *mut raw::RedisModuleString, this: *const c_void) -> usize {
    // SAFETY: a value of this type.
    let this = unsafe { value(this) };
    // The server frees values of an effort above 64 on a background thread: 1 MiB and more.
    guarded(1, || this.memory_usage() >> 14)
}

unsafe extern "C" fn digest(digest: *mut raw::RedisModuleDigest, this: *mut c_void) {
    // SAFETY: a value of this type.
    let this = unsafe { value(this) };
    let mut digest = Digest::new(digest);
    let added = guarded(Err(damaged("the module failed")), || {
        digest.add_string_buffer(&this.head()?);
        this.write(PIECE, |bytes| digest.add_string_buffer(bytes))
    });
    if let Err(error) = added {
        digest.add_string_buffer(error.to_string().as_bytes());
    }
    digest.end_sequence();
}

unsafe extern "C" fn copy(
    _: *mut raw::RedisModuleString,
    _: *mut raw::RedisModuleString,
    this: *const c_void,
) -> *mut c_void {
    // SAFETY: a value of this type.
    let this = unsafe { value(this) };
    let copied = guarded(None, || this.try_clone().ok());
    copied.map_or(null_mut(), |copy| Box::into_raw(Box::new(copy)).cast())
}

unsafe extern "C" fn free(this: *mut c_void) {
    // SAFETY: made from a `Box`, and freed once.
    guarded((), || drop(unsafe { Box::from_raw(this.cast::<Value>()) }));
}
