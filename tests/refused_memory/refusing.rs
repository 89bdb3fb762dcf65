//! An allocator that refuses memory on demand, or does something else before it returns some.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Passes everything on to the system, but what it refuses.
struct Refusing;

/// After how many allocations to do what.
type Meanwhile = (usize, fn());

pub(crate) static ARMED: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// Whether this thread is one of those that are refused anything.
    pub(crate) static TAKES_PART: Cell<bool> = const { Cell::new(false) };
    /// What this thread does, once, when it allocates after so many allocations.
    pub(crate) static MEANWHILE: Cell<Option<Meanwhile>> = const { Cell::new(None) };
}

/// Allocations before the one that is refused.
pub(crate) static LEFT: AtomicUsize = AtomicUsize::new(usize::MAX);
/// Allocations of this many bytes and more are all refused.
pub(crate) static LARGE: AtomicUsize = AtomicUsize::new(usize::MAX);
/// How many were.
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

/// Passes on to the system's allocator what is not refused.
macro_rules! unless_refused {
    ($size:expr, $call:expr) => {
        if Refusing::refuses($size) {
            std::ptr::null_mut()
        } else {
            // SAFETY: the call is the caller's, with the caller's promises.
            unsafe { $call }
        }
    };
}

// SAFETY: 1. every call is passed on to the system's allocator as it came; 2. or it returns null, which is how an
// allocator says no.
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
