//! Allocates Rust's memory from the server, so that `INFO memory` and `maxmemory` count it. Unlike the allocator of
//! `valkey-module`, this one respects the requested alignment, and returns null where the server would abort.

use super::api;
use core::cell::Cell;
use core::sync::atomic::{AtomicPtr, Ordering};
use std::alloc::{GlobalAlloc, Layout};
use std::os::raw::c_void;
use valkey_module::raw;

/// The alignment of every server allocation, including servers that store the size of a block in front of it.
const KEPT: usize = 8;

/// The size in bytes from which a block counts as large. Limits apply to large blocks only: tables of filters and buffers of
/// snapshots, whose failed allocation is an error. The standard library aborts if a smaller allocation fails. So smaller tables
/// are limited like values of the server, by its check of `maxmemory` before each command.
const LARGE: usize = 64 << 10;

/// A limit on large allocations of the calling thread.
#[derive(Clone, Copy)]
pub(crate) enum Limit {
    None,
    Bytes(usize),
    /// The memory that `maxmemory` leaves on a primary, or without `maxmemory` that of the machine.
    MaxMemory,
}

thread_local! {
    static LIMIT: Cell<Limit> = const { Cell::new(Limit::None) };
    /// Whether a limit refused an allocation since the last call of [`limited_and_refused`].
    static REFUSED: Cell<bool> = const { Cell::new(false) };
}

/// As [`limited`], and returns whether the limit refused an allocation. A filter may succeed without it: it grows later.
pub(crate) fn limited_and_refused<T>(limit: Limit, work: impl FnOnce() -> T) -> (T, bool) {
    REFUSED.set(false);
    (limited(limit, work), REFUSED.get())
}

/// Calls `work` with this limit.
pub(crate) fn limited<T>(limit: Limit, work: impl FnOnce() -> T) -> T {
    struct Restore(Limit);
    impl Drop for Restore {
        fn drop(&mut self) {
            LIMIT.set(self.0);
        }
    }
    let _restore = Restore(LIMIT.replace(limit));
    work()
}

/// `RedisModule_TryCalloc`, which Redis 7.0 does not have and `valkey-module` does not bind.
static TRY_CALLOC: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());

/// Looks up functions without bindings.
pub(super) fn init() {
    let mut function: *mut c_void = core::ptr::null_mut();
    // SAFETY: 1. the module is being loaded, as `GetApi` requires; 2. the server writes a pointer, or leaves it null.
    unsafe { api!(RedisModule_GetApi(c"RedisModule_TryCalloc".as_ptr(), (&raw mut function).cast())) };
    TRY_CALLOC.store(function, Ordering::Relaxed);
}

/// Subtracts a large block from the limit, to which its release adds it. Returns false if the limit is exceeded.
fn within_limit(size: usize) -> bool {
    let left = match LIMIT.get() {
        Limit::None => return true,
        Limit::Bytes(left) => left,
        Limit::MaxMemory => match room() {
            None => return true,
            Some(room) => room,
        },
    };
    match left.checked_sub(size) {
        None => {
            REFUSED.set(true);
            false
        }
        Some(left) => {
            LIMIT.set(Limit::Bytes(left));
            true
        }
    }
}

/// The bytes that `maxmemory` leaves, or without it those that the machine has: the system may grant more, and end the server when they
/// are touched. `None` on replicas and while data is loaded: the server does not enforce `maxmemory` there.
fn room() -> Option<usize> {
    use raw::{REDISMODULE_CTX_FLAGS_LOADING, REDISMODULE_CTX_FLAGS_MAXMEMORY, REDISMODULE_CTX_FLAGS_SLAVE};
    let flags = super::flags();
    let loaded = REDISMODULE_CTX_FLAGS_LOADING | REDISMODULE_CTX_FLAGS_SLAVE;
    if flags & loaded != 0 {
        return None;
    }
    if flags & REDISMODULE_CTX_FLAGS_MAXMEMORY == 0 {
        // SAFETY: any names are valid.
        let [pages, size] =
            [libc::_SC_PHYS_PAGES, libc::_SC_PAGESIZE].map(|name| unsafe { libc::sysconf(name) } as usize);
        return Some(pages.saturating_mul(size));
    }
    // SAFETY: 1. only the thread that runs commands has this limit; 2. both functions take no context; 3. the names end
    // in 0; 4. `info` is freed once, after its last use.
    let [used, most] = unsafe {
        let info = api!(RedisModule_GetServerInfo(core::ptr::null_mut(), c"memory".as_ptr()));
        let fields = [c"used_memory", c"maxmemory"].map(|name| {
            let mut error = 0;
            api!(RedisModule_ServerInfoGetFieldUnsigned(info, name.as_ptr(), &raw mut error))
        });
        api!(RedisModule_FreeServerInfo(core::ptr::null_mut(), info));
        fields
    };
    Some(usize::try_from(most.saturating_sub(used)).unwrap_or(usize::MAX))
}

struct ServerAllocator;

#[global_allocator]
static ALLOCATOR: ServerAllocator = ServerAllocator;

impl ServerAllocator {
    /// Allocates zeros, or returns null. Pages of a large block take no memory before they are used.
    fn zeros(size: usize) -> *mut u8 {
        let calloc = TRY_CALLOC.load(Ordering::Relaxed);
        if !calloc.is_null() {
            // SAFETY: the server returned this pointer for a function of this type.
            let calloc: unsafe extern "C" fn(usize, usize) -> *mut c_void = unsafe { core::mem::transmute(calloc) };
            // SAFETY: any size is valid.
            return unsafe { calloc(1, size) }.cast();
        }
        // SAFETY: any size is valid.
        let start: *mut u8 = unsafe { api!(RedisModule_TryAlloc(size)) }.cast();
        if start.is_null() {
            return start;
        }
        if size < LARGE {
            // SAFETY: `size` bytes were allocated.
            unsafe { start.write_bytes(0, size) };
            return start;
        }
        // The server ends where `Calloc` fails. The block shows that there is room.
        // SAFETY: 1. the block is freed once; 2. any size is valid.
        unsafe {
            api!(RedisModule_Free(start.cast()));
            api!(RedisModule_Calloc(1, size)).cast()
        }
    }

    /// Allocates memory with this layout, or returns null.
    ///
    /// # Safety
    /// The requirements of [`GlobalAlloc::alloc`].
    unsafe fn take(layout: Layout, zeroed: bool) -> *mut u8 {
        if layout.size() >= LARGE && !within_limit(layout.size()) {
            return core::ptr::null_mut();
        }
        let align = if layout.align() > KEPT { layout.align() } else { 0 };
        // SAFETY: the bindings are set once, before the first allocation.
        let (Some(alloc), Some(size)) = (unsafe { raw::RedisModule_TryAlloc }, layout.size().checked_add(align)) else {
            return core::ptr::null_mut();
        };
        // SAFETY: any size is valid.
        let start = if zeroed { Self::zeros(size) } else { unsafe { alloc(size) }.cast() };
        if start.is_null() {
            REFUSED.set(true);
        }
        if align == 0 || start.is_null() {
            return start;
        }
        let offset = align - start as usize % align;
        debug_assert!(offset >= KEPT);
        // SAFETY: 1. `offset` is at most `align`, so `layout.size()` bytes follow; 2. it is a multiple of 8 above 0, since
        // `start` and `align` are multiples of 8, so a pointer fits in front.
        unsafe {
            let place = start.add(offset);
            place.cast::<*mut u8>().sub(1).write(start);
            place
        }
    }
}

// SAFETY: 1. blocks are aligned: the server's are multiples of 8, and blocks of larger alignment are shifted; 2. they
// are freed by the pointer that the server returned; 3. nothing here unwinds or allocates in Rust.
unsafe impl GlobalAlloc for ServerAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the requirements are the caller's.
        unsafe { Self::take(layout, false) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the requirements are the caller's.
        unsafe { Self::take(layout, true) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        if layout.size() >= LARGE
            && let Limit::Bytes(left) = LIMIT.get()
        {
            LIMIT.set(Limit::Bytes(left.saturating_add(layout.size())));
        }
        // SAFETY: `take` stores the start of a shifted block directly in front of it.
        let start = if layout.align() > KEPT { unsafe { place.cast::<*mut u8>().sub(1).read() } } else { place };
        // SAFETY: the server allocated the block, and it was not freed before.
        unsafe { api!(RedisModule_Free(start.cast())) };
    }
}
