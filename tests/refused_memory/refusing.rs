//! An allocator that fails on demand, or calls a function before it returns memory.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Forwards everything to the system's allocator, except the allocations that fail.
struct Refusing;

/// A number of allocations, and the function that is called after them.
type Meanwhile = (usize, fn());

pub(crate) static ARMED: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// Whether allocations of this thread can fail.
    pub(crate) static TAKES_PART: Cell<bool> = const { Cell::new(false) };
    /// The function that this thread calls once, at an allocation.
    pub(crate) static MEANWHILE: Cell<Option<Meanwhile>> = const { Cell::new(None) };
}

/// The number of allocations before the one that fails.
pub(crate) static LEFT: AtomicUsize = AtomicUsize::new(usize::MAX);
/// All allocations of at least this many bytes fail.
pub(crate) static LARGE: AtomicUsize = AtomicUsize::new(usize::MAX);
pub(crate) static REFUSED: AtomicUsize = AtomicUsize::new(0);

impl Refusing {
    fn refuses(size: usize) -> bool {
        if let Some((left, act)) = MEANWHILE.take() {
            match left.checked_sub(1) {
                Some(left) => MEANWHILE.set(Some((left, act))),
                None => act(),
            }
        }
        if !ARMED.load(Ordering::Relaxed) || !TAKES_PART.get() {
            return false;
        }
        let large = size >= LARGE.load(Ordering::Relaxed);
        let refused = large || LEFT.fetch_sub(1, Ordering::Relaxed) == 0;
        if refused {
            REFUSED.fetch_add(1, Ordering::Relaxed);
        }
        refused
    }
}

/// Forwards a call to the system's allocator, unless it is to fail.
macro_rules! unless_refused {
    ($size:expr, $call:expr) => {
        if Refusing::refuses($size) {
            std::ptr::null_mut()
        } else {
            // SAFETY: the caller's promises hold for this call, too.
            unsafe { $call }
        }
    };
}

// SAFETY: 1. every call is forwarded unchanged to the system's allocator; 2. or it returns null, which reports a failure.
unsafe impl GlobalAlloc for Refusing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        unless_refused!(layout.size(), System.alloc(layout))
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        unless_refused!(layout.size(), System.alloc_zeroed(layout))
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        unless_refused!(size, System.realloc(memory, layout, size))
    }
}

#[global_allocator]
static MEMORY: Refusing = Refusing;
