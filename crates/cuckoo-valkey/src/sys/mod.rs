//! The C interface of the server. All unsafe code of the module is here.
#![allow(unsafe_code)]

pub(crate) mod alloc;
pub(crate) mod blocked;
pub(crate) mod data_type;
pub(crate) mod fork;
mod register;
pub(crate) mod timer;

use crate::value::Value;
use core::marker::PhantomData;
use core::panic::AssertUnwindSafe;
use std::borrow::Cow;
use std::ffi::{CStr, CString};
use std::os::raw::c_int;
use valkey_module::raw;

/// Calls a function of the server. Redis 7.0 has all of them.
macro_rules! api {
    ($name:ident($($argument:expr),* $(,)?)) => {
        (valkey_module::raw::$name.expect(stringify!($name)))($($argument),*)
    };
}
use api;

/// The error reply of a command.
#[derive(Debug)]
pub(crate) enum Failure {
    WrongArity,
    WrongType,
    Text(Cow<'static, str>),
}

impl<T: Into<Cow<'static, str>>> From<T> for Failure {
    fn from(text: T) -> Self {
        Failure::Text(text.into())
    }
}

/// Calls `work`, and returns `refused` if it panics: a panic must not unwind into C.
fn guarded<T>(refused: T, work: impl FnOnce() -> T) -> T {
    std::panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or(refused)
}

/// The server's state: `REDISMODULE_CTX_FLAGS_*`.
pub(crate) fn flags() -> u32 {
    // SAFETY: the function takes null for no context.
    unsafe { api!(RedisModule_GetContextFlags(core::ptr::null_mut())) as u32 }
}

pub(crate) fn is_primary() -> bool {
    flags() & raw::REDISMODULE_CTX_FLAGS_MASTER != 0
}

/// Whether the server is loading data from a file or a primary.
pub(crate) fn is_loading() -> bool {
    flags() & (raw::REDISMODULE_CTX_FLAGS_LOADING | raw::REDISMODULE_CTX_FLAGS_ASYNC_LOADING) != 0
}

/// Whether nothing may be replicated: clients or replicas are paused.
pub(crate) fn is_paused() -> bool {
    // SAFETY: the function has no requirements.
    unsafe { api!(RedisModule_AvoidReplicaTraffic()) != 0 }
}

/// Milliseconds since 1970.
pub(crate) fn now() -> i64 {
    // SAFETY: the function has no requirements.
    unsafe { api!(RedisModule_Milliseconds()) }
}

/// Milliseconds since some moment, by a clock that is never set.
pub(crate) fn elapsed() -> i64 {
    // SAFETY: the function has no requirements.
    unsafe { api!(RedisModule_MonotonicMicroseconds()) as i64 / 1000 }
}

/// A string of the server: an argument of a command, or the name of a key.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Text<'a>(*mut raw::RedisModuleString, PhantomData<&'a raw::RedisModuleString>);

impl<'a> Text<'a> {
    pub(crate) fn bytes(self) -> &'a [u8] {
        let mut len = 0;
        // SAFETY: 1. the string lives for `'a`; 2. the server returns its length, and does not change it in the meantime.
        unsafe {
            let first = api!(RedisModule_StringPtrLen(self.0, &raw mut len));
            core::slice::from_raw_parts(first.cast(), len)
        }
    }
}

/// An argument of a replicated command.
pub(crate) enum Argument<'a> {
    Given(Text<'a>),
    Made(String),
}

impl<'a> From<Text<'a>> for Argument<'a> {
    fn from(text: Text<'a>) -> Self {
        Argument::Given(text)
    }
}

impl<T: ToString> From<&T> for Argument<'_> {
    fn from(value: &T) -> Self {
        Argument::Made(value.to_string())
    }
}

/// Modes of keys. A server ignores those that it does not have.
const UNUSED: u32 = raw::REDISMODULE_OPEN_KEY_NOTOUCH | raw::REDISMODULE_OPEN_KEY_NOSTATS;

/// The context of a command or a callback.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a>(*mut raw::RedisModuleCtx, PhantomData<&'a raw::RedisModuleCtx>);

impl<'a> Context<'a> {
    /// # Safety
    /// The context must live for `'a`.
    const unsafe fn new(ctx: *mut raw::RedisModuleCtx) -> Self {
        Context(ctx, PhantomData)
    }

    pub(crate) fn database(self) -> i32 {
        // SAFETY: the context lives.
        unsafe { api!(RedisModule_GetSelectedDb(self.0)) }
    }

    /// Selects a database. Returns false if it does not exist.
    pub(crate) fn select(self, database: i32) -> bool {
        // SAFETY: the context lives.
        unsafe { api!(RedisModule_SelectDb(self.0, database)) == raw::REDISMODULE_OK as c_int }
    }

    /// Whether the client may be blocked. A client in a transaction or a script may not.
    pub(crate) fn may_block(self) -> bool {
        let not = raw::REDISMODULE_CTX_FLAGS_DENY_BLOCKING
            | raw::REDISMODULE_CTX_FLAGS_MULTI
            | raw::REDISMODULE_CTX_FLAGS_LUA;
        // SAFETY: the context lives.
        unsafe { api!(RedisModule_GetContextFlags(self.0)) as u32 & not == 0 }
    }

    pub(crate) fn warn(self, text: &str) {
        let text = CString::new(text.replace('\0', "?")).unwrap_or_default();
        // SAFETY: 1. null is no context; 2. the strings end in 0, and the format takes one.
        unsafe { api!(RedisModule_Log(self.0, c"warning".as_ptr(), c"%s".as_ptr(), text.as_ptr())) };
    }

    pub(crate) fn open(self, name: Text<'_>) -> Key<'a> {
        self.opened(name, raw::REDISMODULE_READ)
    }

    pub(crate) fn open_to_write(self, name: Text<'_>) -> Key<'a> {
        self.opened(name, raw::REDISMODULE_READ | raw::REDISMODULE_WRITE)
    }

    /// Opens a key for reading, which does not count as a use of it: neither for eviction nor, from Redis 7.2 on, in statistics.
    pub(crate) fn look_at(self, name: Text<'_>) -> Key<'a> {
        self.opened(name, raw::REDISMODULE_READ | UNUSED)
    }

    /// Opens a key for writing, which does not count as a use of it.
    pub(crate) fn open_to_tick(self, name: Text<'_>) -> Key<'a> {
        self.opened(name, raw::REDISMODULE_READ | raw::REDISMODULE_WRITE | UNUSED)
    }

    fn opened(self, name: Text<'_>, mode: u32) -> Key<'a> {
        // SAFETY: context and name live.
        unsafe { Key::of(api!(RedisModule_OpenKey(self.0, name.0, mode as c_int))) }
    }

    /// Calls `work` with these bytes as a string of the server.
    pub(crate) fn with_text<T>(self, bytes: &[u8], work: impl FnOnce(Text<'_>) -> T) -> T {
        let text = made(bytes);
        let result = work(Text(text, PhantomData));
        // SAFETY: made above, and not used after this.
        unsafe { api!(RedisModule_FreeString(core::ptr::null_mut(), text)) };
        result
    }

    /// Replicates the current command unchanged.
    pub(crate) fn replicate_verbatim(self) {
        // SAFETY: the context lives.
        unsafe { api!(RedisModule_ReplicateVerbatim(self.0)) };
    }

    pub(crate) fn replicate(self, command: &CStr, arguments: &[Argument<'_>]) {
        let mut texts: Vec<_> = arguments
            .iter()
            .map(|argument| match argument {
                Argument::Given(text) => text.0,
                Argument::Made(text) => made(text.as_bytes()),
            })
            .collect();
        // SAFETY: 1. the context lives; 2. `v` takes an array of strings and its length, and the server retains the
        // strings that it needs; 3. the strings made above are freed once.
        unsafe {
            api!(RedisModule_Replicate(self.0, command.as_ptr(), c"v".as_ptr(), texts.as_mut_ptr(), texts.len()));
            for (argument, text) in arguments.iter().zip(texts) {
                if let Argument::Made(_) = argument {
                    api!(RedisModule_FreeString(core::ptr::null_mut(), text));
                }
            }
        }
    }
}

fn made(bytes: &[u8]) -> *mut raw::RedisModuleString {
    // SAFETY: the bytes are copied.
    unsafe { api!(RedisModule_CreateString(core::ptr::null_mut(), bytes.as_ptr().cast(), bytes.len())) }
}

/// Replies, sent in the order of the calls.
impl Context<'_> {
    pub(crate) fn reply_failure(self, failure: Failure) {
        let text: Cow<'static, CStr> = match failure {
            Failure::WrongArity => {
                // SAFETY: the context lives.
                unsafe { api!(RedisModule_WrongArity(self.0)) };
                return;
            }
            Failure::WrongType => c"WRONGTYPE Operation against a key holding the wrong kind of value".into(),
            Failure::Text(text) => CString::new(text.replace(['\r', '\n', '\0'], " ")).unwrap_or_default().into(),
        };
        // SAFETY: the context lives, and the text ends in 0.
        unsafe { api!(RedisModule_ReplyWithError(self.0, text.as_ptr())) };
    }
}

macro_rules! replies {
    ($($(#[$doc:meta])? $name:ident($($value:ident: $type:ty)?) => $function:ident($($argument:expr),*);)*) => {
        impl Context<'_> {
            $($(#[$doc])?
            pub(crate) fn $name(self $(, $value: $type)?) {
                // SAFETY: the context lives, a text ends in 0, and the server copies bytes.
                unsafe { api!($function(self.0 $(, $argument)*)) };
            })*
        }
    };
}

replies! {
    reply_ok() => RedisModule_ReplyWithSimpleString(c"OK".as_ptr());
    /// Replies with a Boolean in RESP3, 0 or 1 in RESP2.
    reply_bool(value: bool) => RedisModule_ReplyWithBool(value.into());
    reply_integer(value: i64) => RedisModule_ReplyWithLongLong(value);
    reply_double(value: f64) => RedisModule_ReplyWithDouble(value);
    reply_bytes(bytes: &[u8]) => RedisModule_ReplyWithStringBuffer(bytes.as_ptr().cast(), bytes.len());
    reply_null() => RedisModule_ReplyWithNull();
    /// Begins an array of `len` replies.
    reply_array(len: usize) => RedisModule_ReplyWithArray(len as _);
    /// Begins `len` pairs of replies: a map in RESP3, an array in RESP2.
    reply_map(len: usize) => RedisModule_ReplyWithMap(len as _);
}

pub(crate) struct Key<'a> {
    key: *mut raw::RedisModuleKey,
    /// Looked up once: null if the key is empty, and `None` if it holds another type.
    value: Option<*mut Value>,
    lives: PhantomData<&'a raw::RedisModuleCtx>,
}

impl Key<'_> {
    /// # Safety
    /// The key must be open, or null, which is an empty key.
    unsafe fn of(key: *mut raw::RedisModuleKey) -> Self {
        // SAFETY: the requirement is the caller's; the functions accept null.
        let value = unsafe {
            if api!(RedisModule_ModuleTypeGetType(key)) == data_type::this() {
                Some(api!(RedisModule_ModuleTypeGetValue(key)).cast())
            } else {
                let is_empty = api!(RedisModule_KeyType(key)) == raw::REDISMODULE_KEYTYPE_EMPTY as c_int;
                is_empty.then_some(core::ptr::null_mut())
            }
        };
        Key { key, value, lives: PhantomData }
    }

    pub(crate) fn get(&mut self) -> Result<Option<&mut Value>, Failure> {
        let value = self.value.ok_or(Failure::WrongType)?;
        // SAFETY: 1. a value of this type was made from a `Box` by `Key::set` or a callback of the type; 2. it lives while the key is
        // open: commands run on one thread, and only they change it; 3. no second key of this name is open.
        Ok(unsafe { value.as_mut() })
    }

    /// Replaces the value of the key, which keeps its time limit.
    pub(crate) fn set(&mut self, value: Value) {
        if let Ok(Some(replaced)) = self.get() {
            *replaced = value;
            return;
        }
        let value = Box::into_raw(Box::new(value));
        // SAFETY: 1. the key is open for writing; 2. the server now owns the value, and the type's `free` drops it.
        let set = unsafe { api!(RedisModule_ModuleTypeSetValue(self.key, data_type::this(), value.cast())) };
        debug_assert_eq!(set, raw::REDISMODULE_OK as c_int);
        self.value = Some(value);
    }
}

impl Drop for Key<'_> {
    fn drop(&mut self) {
        // SAFETY: opened once, and not used after this; null is allowed.
        unsafe { api!(RedisModule_CloseKey(self.key)) };
    }
}
