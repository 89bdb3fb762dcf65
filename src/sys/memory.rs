//! Zeroed memory for the words and the stripes of a filter: one run each, on fresh pages that the system supplies as they
//! are touched.
//!
//! A large run is mapped by the system itself. An allocator may hand out memory that was used before, and has to write
//! its zeros by hand: a second large filter of a process took a hundred times as long to build as the first, and all its
//! memory at once. Below [`MAPPED_FROM`] the allocator is used, which packs small filters; without the feature
//! `mmap`, always.

use crate::sys::sync::{AtomicU64, Flag};

/// Types of which memory of zeros holds a value, as `Default` makes it.
///
/// # Safety
/// A value whose bytes are all zero is valid and equal to the default one, and needs no drop.
#[allow(unsafe_code)]
pub(crate) unsafe trait Zeroed: Default {}

#[allow(unsafe_code)]
// SAFETY: an atomic number has the layout of the number, and the default one is 0. In models and schedules no memory of
// zeros is used: each value is made by `Default`.
unsafe impl Zeroed for AtomicU64 {}

#[allow(unsafe_code)]
// SAFETY: as above; it is a `false`.
unsafe impl Zeroed for Flag {}

/// Whether the system is asked to back large runs by huge pages: fewer faults, and fewer misses of the table that
/// translates addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum HugePages {
    /// From [`HUGE_FROM`] bytes on, where the system has them.
    #[default]
    Advised,
    /// As the system does without advice.
    Unadvised,
}

pub(crate) use backing::Run;

#[cfg(not(all(test, any(cuckoo_loom, cuckoo_shuttle))))]
mod backing {
    use super::{HugePages, Zeroed};
    use core::marker::PhantomData;
    use core::ptr::NonNull;
    use core::slice;
    #[cfg(feature = "mmap")]
    use memmap2::{MmapOptions, MmapRaw};
    use std::alloc::{Layout, alloc_zeroed, dealloc};

    /// Bytes from which a run is mapped. A snapshot's header announces memory that has not arrived yet: what is mapped costs
    /// address space until it is touched.
    #[cfg(feature = "mmap")]
    const MAPPED_FROM: usize = 64 << 10;

    /// Bytes from which huge pages are advised, and to which such a run is aligned: the size of a huge page on x86-64 and
    /// on most of aarch64.
    #[cfg(feature = "mmap")]
    const HUGE_FROM: usize = 2 << 20;

    /// `len` values, at one place for as long as the run lives.
    pub(crate) struct Run<T> {
        first: NonNull<T>,
        len: usize,
        /// Unmaps the memory when dropped; `None` where the allocator has it, or where there is none.
        #[cfg(feature = "mmap")]
        mapping: Option<MmapRaw>,
        values: PhantomData<T>,
    }

    #[allow(unsafe_code)]
    // SAFETY: a run owns its values, as a `Box<[T]>` does.
    unsafe impl<T: Send> Send for Run<T> {}

    #[allow(unsafe_code)]
    // SAFETY: as above.
    unsafe impl<T: Sync> Sync for Run<T> {}

    impl<T: Zeroed> Run<T> {
        /// `None` when the system refuses the memory.
        #[allow(unsafe_code)]
        pub(crate) fn new(len: usize, huge_pages: HugePages) -> Option<Self> {
            const { assert!(!core::mem::needs_drop::<T>()) };
            let layout = Layout::array::<T>(len).ok()?;
            #[cfg(feature = "mmap")]
            if layout.size() >= MAPPED_FROM {
                return Self::map(len, layout, huge_pages);
            }
            #[cfg(not(feature = "mmap"))]
            let _ = huge_pages;
            let first = if layout.size() == 0 {
                NonNull::dangling()
            } else {
                // SAFETY: the layout is not empty. What is allocated is zero, which `T: Zeroed` takes for values.
                NonNull::new(unsafe { alloc_zeroed(layout) })?.cast()
            };
            Some(Run {
                first,
                len,
                #[cfg(feature = "mmap")]
                mapping: None,
                values: PhantomData,
            })
        }

        #[cfg(feature = "mmap")]
        #[allow(unsafe_code)]
        fn map(len: usize, layout: Layout, huge_pages: HugePages) -> Option<Self> {
            let huge = huge_pages == HugePages::Advised && layout.size() >= HUGE_FROM;
            // The system aligns to small pages only; what stands before and behind is address space, never touched.
            let align = if huge { HUGE_FROM } else { layout.align() };
            let mapping: MmapRaw = MmapOptions::new().len(layout.size().checked_add(align)?).map_anon().ok()?.into();
            let start = mapping.as_mut_ptr();
            let offset = start.align_offset(align);
            debug_assert!(offset <= align);
            #[cfg(target_os = "linux")]
            if huge {
                // An advice that is refused leaves small pages, which are right as well.
                let _ = mapping.advise_range(memmap2::Advice::HugePage, offset, layout.size());
            }
            // SAFETY: 1. offset and size lie inside the mapping; 2. it is readable, writable and private; 3. fresh pages
            // are zero, which `T: Zeroed` takes for values; 4. the mapping lives as long as the run, at one address.
            let first = NonNull::new(unsafe { start.add(offset) })?.cast();
            Some(Run { first, len, mapping: Some(mapping), values: PhantomData })
        }
    }

    impl<T> Run<T> {
        /// Has the system supply the pages of these values now, for all will be written: one call costs less than a fault
        /// for each page.
        #[cfg_attr(not(all(target_os = "linux", feature = "mmap")), allow(unused_variables))]
        pub(crate) fn populate(&self, first: usize, count: usize) {
            #[cfg(all(target_os = "linux", feature = "mmap"))]
            if let Some(mapping) = &self.mapping {
                let offset = self.first.as_ptr() as usize - mapping.as_mut_ptr() as usize + first * size_of::<T>();
                // An advice that is refused leaves pages to be supplied as they are touched.
                let _ = mapping.advise_range(memmap2::Advice::PopulateWrite, offset, count * size_of::<T>());
            }
        }

        /// The value with this number. Every number comes from a plan of this very run: the product of a draw and a
        /// length that lies below the length. So release builds do not ask again; debug builds, the fuzzer's and
        /// AddressSanitizer's do.
        #[inline(always)]
        #[allow(unsafe_code)]
        pub(crate) fn at(&self, number: usize) -> &T {
            debug_assert!(number < self.len, "value {number} of {}", self.len);
            // SAFETY: `number < len` by what is said above; the values lie side by side and live as long as the run.
            unsafe { self.first.add(number).as_ref() }
        }

        /// The value that begins `offset` bytes behind the first one, as [`Run::at`].
        #[inline(always)]
        #[allow(unsafe_code)]
        pub(crate) fn at_byte(&self, offset: usize) -> &T {
            debug_assert!(offset.is_multiple_of(size_of::<T>()) && offset / size_of::<T>() < self.len);
            // SAFETY: a whole number of values, below `len`, as above.
            unsafe { self.first.byte_add(offset).as_ref() }
        }

        /// The first value and, by the same pointer, all others.
        #[inline(always)]
        #[cfg(target_arch = "x86_64")]
        pub(crate) fn start(&self) -> *const T {
            self.first.as_ptr()
        }

        /// `count` values from this number on, as [`Run::at`].
        #[inline(always)]
        #[allow(unsafe_code)]
        pub(crate) fn part(&self, begin: usize, count: usize) -> &[T] {
            debug_assert!(begin + count <= self.len, "values {begin} to {} of {}", begin + count, self.len);
            // SAFETY: `begin + count <= len`, as above.
            unsafe { slice::from_raw_parts(self.first.add(begin).as_ptr(), count) }
        }
    }

    impl<T> Drop for Run<T> {
        #[allow(unsafe_code)]
        fn drop(&mut self) {
            #[cfg(feature = "mmap")]
            if self.mapping.is_some() {
                return;
            }
            if let Ok(layout) = Layout::array::<T>(self.len)
                && layout.size() > 0
            {
                // SAFETY: allocated in `Run::new` with this layout, and not since.
                unsafe { dealloc(self.first.as_ptr().cast(), layout) };
            }
        }
    }
}

/// Values of models and schedules know the thread that made them, so memory of zeros is none.
#[cfg(all(test, any(cuckoo_loom, cuckoo_shuttle)))]
mod backing {
    use super::{HugePages, Zeroed};

    pub(crate) struct Run<T>(Box<[T]>);

    impl<T: Zeroed> Run<T> {
        pub(crate) fn new(len: usize, _: HugePages) -> Option<Self> {
            Some(Run((0..len).map(|_| T::default()).collect()))
        }
    }

    impl<T> Run<T> {
        pub(crate) fn populate(&self, _: usize, _: usize) {}

        pub(crate) fn at(&self, number: usize) -> &T {
            &self.0[number]
        }

        pub(crate) fn at_byte(&self, offset: usize) -> &T {
            &self.0[offset / size_of::<T>()]
        }

        pub(crate) fn start(&self) -> *const T {
            self.0.as_ptr()
        }

        pub(crate) fn part(&self, begin: usize, count: usize) -> &[T] {
            &self.0[begin..][..count]
        }
    }
}

impl<T> Run<T> {
    /// The bytes of `len` values; `None` if no address space holds them.
    pub(crate) fn bytes_of(len: usize) -> Option<usize> {
        len.checked_mul(size_of::<T>()).filter(|&bytes| isize::try_from(bytes).is_ok())
    }
}
