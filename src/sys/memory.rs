//! Zeroed memory for the words and the stripes of a filter. Small buffers come from the allocator, and large ones are mapped: an
//! allocator reuses memory and has to zero it, which made the second large filter of a process take a hundred times as long to
//! build as the first, and all its memory at once. The buffers of a growing filter's tables, each too small for a huge page, lie
//! side by side in an [`Arena`].

use crate::sys::sync::{AtomicPtr, AtomicU64};

/// Types whose default value has only zero bytes.
///
/// # Safety
/// A value whose bytes are all zero is valid and equal to the default value, and needs no drop.
#[allow(unsafe_code)]
pub(crate) unsafe trait Zeroed: Default {}

#[allow(unsafe_code)]
// SAFETY: an atomic number has the layout of the number, and its default is 0. Models and schedules use no zeroed memory: `Default`
// creates each value.
unsafe impl Zeroed for AtomicU64 {}

#[allow(unsafe_code)]
// SAFETY: as above; the default is null.
unsafe impl<T> Zeroed for AtomicPtr<T> {}

/// Whether huge pages are advised for large buffers: fewer faults, and fewer TLB misses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum HugePages {
    /// From the size of a huge page on, where the system has them.
    #[default]
    Advised,
    Unadvised,
    /// Advised, and smaller buffers come from the allocator: for buffers that are written at once, reused memory is faster than the
    /// system's pages.
    Reused,
}

#[derive(Clone, Copy)]
pub(crate) enum Source<'a> {
    System(HugePages),
    Arena(&'a Arena),
}

impl From<HugePages> for Source<'_> {
    fn from(huge_pages: HugePages) -> Self {
        Source::System(huge_pages)
    }
}

pub(crate) use backing::{Arena, Buffer};

/// Returns an empty vector with this capacity; `None` if allocation fails.
pub(crate) fn reserved<T>(len: usize) -> Option<Vec<T>> {
    let mut vec = Vec::new();
    vec.try_reserve_exact(len).ok()?;
    Some(vec)
}

/// Returns `len` zeros; `None` if allocation fails.
pub(crate) fn zeros<T: Clone + Default>(len: usize) -> Option<Vec<T>> {
    let mut vec = reserved(len)?;
    vec.resize(len, T::default());
    Some(vec)
}

#[cfg(not(all(test, cuckoo_model)))]
// A lock around spare memory, no part of the protocol.
#[allow(clippy::disallowed_types)]
mod backing {
    use super::{HugePages, Source, Zeroed};
    #[cfg(all(feature = "shared", target_os = "linux"))]
    use crate::sys::mapping::FileMapping;
    use core::marker::PhantomData;
    use core::mem::ManuallyDrop;
    use core::ops::Deref;
    use core::ptr::{self, NonNull};
    use core::slice;
    #[cfg(feature = "mmap")]
    use memmap2::{MmapOptions, MmapRaw};
    use std::alloc::{Layout, alloc_zeroed, dealloc};
    #[cfg(feature = "mmap")]
    use std::sync::{Arc, Mutex, PoisonError};

    /// Bytes from which a buffer is mapped. A snapshot's header may announce more than arrives: a mapping costs only address space
    /// until it is touched.
    #[cfg(feature = "mmap")]
    const MAPPED_FROM: usize = 64 << 10;

    /// Bytes from which huge pages are advised, and the alignment of such buffers: the size of a huge page on x86-64 and on most of
    /// aarch64.
    #[cfg(feature = "mmap")]
    const HUGE_FROM: usize = 2 << 20;

    /// Bytes of an arena from which its buffers share pieces: a piece begun on a huge page takes memory ahead.
    #[cfg(feature = "mmap")]
    const SHARED_FROM: usize = 2 * HUGE_FROM;

    /// `len` values at a fixed address.
    #[repr(C)]
    pub(crate) struct Buffer<T> {
        first: NonNull<T>,
        len: usize,
        memory: Memory,
        values: PhantomData<T>,
    }

    pub(crate) struct View<'a, T>(ManuallyDrop<Buffer<T>>, PhantomData<&'a Buffer<T>>);

    impl<T> Deref for View<'_, T> {
        type Target = Buffer<T>;

        #[inline(always)]
        fn deref(&self) -> &Buffer<T> {
            &self.0
        }
    }

    #[cfg(feature = "mmap")]
    type Memory = Option<Arc<Mapped>>;
    #[cfg(not(feature = "mmap"))]
    type Memory = ();

    #[cfg(feature = "mmap")]
    enum Mapped {
        Private(MmapRaw),
        #[cfg(all(feature = "shared", target_os = "linux"))]
        File(#[expect(dead_code, reason = "kept until the last buffer is dropped")] Arc<FileMapping>),
    }

    /// Memory for buffers that are created one after another: from a few megabytes on, parts of pieces large enough for huge pages.
    /// A piece is freed with its last buffer.
    pub(crate) struct Arena {
        huge_pages: HugePages,
        #[cfg(feature = "mmap")]
        piece: Mutex<Piece>,
    }

    /// The last piece of an arena, if any, where its unused part begins, and the bytes of all buffers.
    #[cfg(feature = "mmap")]
    #[derive(Default)]
    struct Piece {
        memory: Memory,
        unused: usize,
        taken: usize,
    }

    #[allow(unsafe_code)]
    // SAFETY: a buffer owns its values, as a `Box<[T]>` does.
    unsafe impl<T: Send> Send for Buffer<T> {}

    #[allow(unsafe_code)]
    // SAFETY: as above.
    unsafe impl<T: Sync> Sync for Buffer<T> {}

    impl<T: Zeroed> Buffer<T> {
        /// Returns `None` if allocation fails.
        pub(crate) fn new<'a>(len: usize, source: impl Into<Source<'a>>) -> Option<Self> {
            const { assert!(!core::mem::needs_drop::<T>()) };
            let layout = Layout::array::<T>(len).ok()?;
            let (first, memory) = match source.into() {
                Source::System(huge_pages) => zeroed(layout, huge_pages)?,
                Source::Arena(arena) => arena.zeroed(layout)?,
            };
            // The memory is zero: by `T: Zeroed`, values.
            Some(Buffer { first: first.cast(), len, memory, values: PhantomData })
        }
    }

    #[cfg(all(feature = "shared", target_os = "linux"))]
    impl<T: Zeroed> Buffer<T> {
        /// Returns values in a file, from this byte on; `None` if they exceed it or are not aligned. No value may be stored in a
        /// read-only mapping.
        pub(in crate::sys) fn in_file(mapping: &Arc<FileMapping>, byte: usize, len: usize) -> Option<Self> {
            const { assert!(!core::mem::needs_drop::<T>()) };
            let layout = Layout::array::<T>(len).ok()?;
            let end = byte.checked_add(layout.size())?;
            let first = mapping.at(byte).filter(|first| end <= mapping.len() && first.cast::<T>().is_aligned())?;
            // Any bytes are a value of the types that implement `Zeroed`, the lock included.
            let memory = Some(Arc::new(Mapped::File(Arc::clone(mapping))));
            Some(Buffer { first: first.cast(), len, memory, values: PhantomData })
        }
    }

    #[allow(unsafe_code)]
    fn zeroed(layout: Layout, huge_pages: HugePages) -> Option<(NonNull<u8>, Memory)> {
        #[cfg(feature = "mmap")]
        if layout.size() >= if huge_pages == HugePages::Reused { HUGE_FROM } else { MAPPED_FROM } {
            return map(layout, huge_pages);
        }
        #[cfg(not(feature = "mmap"))]
        let _ = huge_pages;
        if layout.size() == 0 {
            return Some((NonNull::new(ptr::without_provenance_mut(layout.align()))?, Memory::default()));
        }
        // SAFETY: the layout is not empty.
        Some((NonNull::new(unsafe { alloc_zeroed(layout) })?, Memory::default()))
    }

    #[cfg(feature = "mmap")]
    #[allow(unsafe_code)]
    fn map(layout: Layout, huge_pages: HugePages) -> Option<(NonNull<u8>, Memory)> {
        let huge = huge_pages != HugePages::Unadvised && layout.size() >= HUGE_FROM;
        // The system aligns to small pages only. The rest is address space, never touched.
        let align = if huge { HUGE_FROM } else { layout.align() };
        let mapping: MmapRaw = MmapOptions::new().len(layout.size().checked_add(align)?).map_anon().ok()?.into();
        let start = mapping.as_mut_ptr();
        let offset = start.align_offset(align);
        debug_assert!(offset <= align);
        #[cfg(target_os = "linux")]
        if huge {
            // Small pages are correct, too.
            let _ = mapping.advise_range(memmap2::Advice::HugePage, offset, layout.size());
        }
        // SAFETY: 1. offset and size lie inside the mapping; 2. it is readable, writable and private; 3. fresh pages are zero; 4.
        // the mapping lives as long as the returned `Memory`, at one address.
        let first = NonNull::new(unsafe { start.add(offset) })?;
        Some((first, Some(Arc::new(Mapped::Private(mapping)))))
    }

    impl Arena {
        pub(crate) fn new(huge_pages: HugePages) -> Self {
            Arena {
                huge_pages,
                #[cfg(feature = "mmap")]
                piece: Mutex::default(),
            }
        }

        #[cfg(not(feature = "mmap"))]
        fn zeroed(&self, layout: Layout) -> Option<(NonNull<u8>, Memory)> {
            zeroed(layout, self.huge_pages)
        }

        /// Returns a part of the last piece, or of a new one. No other lock is taken under this one.
        #[cfg(feature = "mmap")]
        #[allow(unsafe_code)]
        fn zeroed(&self, layout: Layout) -> Option<(NonNull<u8>, Memory)> {
            let mut piece = self.piece.lock().unwrap_or_else(PoisonError::into_inner);
            let taken = piece.taken.checked_add(layout.size())?;
            if taken < SHARED_FROM {
                piece.taken = taken;
                drop(piece);
                return zeroed(layout, self.huge_pages);
            }
            let align = layout.align().max(64);
            let end = piece.unused.checked_next_multiple_of(align)?.checked_add(layout.size())?;
            if private(&piece.memory).is_none_or(|mapping| mapping.len() < end) {
                // An eighth of the present size. The system supplies pages as they are touched.
                let bytes = layout.size().max(taken / 8).checked_next_multiple_of(HUGE_FROM)?;
                let (first, memory) = map(Layout::from_size_align(bytes, align).ok()?, self.huge_pages)?;
                let begin = first.as_ptr() as usize - private(&memory)?.as_mut_ptr() as usize;
                (piece.memory, piece.unused) = (memory, begin);
            }
            let begin = piece.unused.next_multiple_of(align);
            (piece.unused, piece.taken) = (begin + layout.size(), taken);
            // SAFETY: 1. the part lies inside the mapping, as checked above; 2. each part is returned once, so its fresh pages are
            // zero; 3. the mapping lives as long as the returned `Memory`, at one address.
            let first = NonNull::new(unsafe { private(&piece.memory)?.as_mut_ptr().add(begin) })?;
            Some((first, piece.memory.clone()))
        }
    }

    /// Returns the mapping, unless it maps a file.
    #[cfg(feature = "mmap")]
    fn private(memory: &Memory) -> Option<&MmapRaw> {
        match memory.as_deref()? {
            Mapped::Private(mapping) => Some(mapping),
            #[cfg(all(feature = "shared", target_os = "linux"))]
            Mapped::File(_) => None,
        }
    }

    impl<T> Buffer<T> {
        /// Returns a copy whose address a function reads once: after an atomic load or inline assembly, the compiler reads the
        /// address of a reference again.
        #[inline(always)]
        #[allow(unsafe_code)]
        pub(crate) fn view(&self) -> View<'_, T> {
            // SAFETY: the copy is never dropped, and borrows the original.
            View(ManuallyDrop::new(unsafe { ptr::read(self) }), PhantomData)
        }

        /// Makes the system supply the pages of these values, which will all be written: one call is faster than a fault per page.
        #[cfg_attr(not(all(target_os = "linux", feature = "mmap")), allow(unused_variables))]
        pub(crate) fn populate(&self, first: usize, count: usize) {
            #[cfg(all(target_os = "linux", feature = "mmap"))]
            if let Some(mapping) = private(&self.memory) {
                let offset = self.first.as_ptr() as usize - mapping.as_mut_ptr() as usize + first * size_of::<T>();
                // If this fails, pages are supplied as they are touched.
                let _ = mapping.advise_range(memmap2::Advice::PopulateWrite, offset, count * size_of::<T>());
            }
        }

        /// Returns a value by its number, which comes from the plan of this buffer: a draw from its length. Release builds
        /// therefore do not check it; debug builds, fuzzing and AddressSanitizer do.
        #[inline(always)]
        #[allow(unsafe_code)]
        pub(crate) fn at(&self, number: usize) -> &T {
            debug_assert!(number < self.len, "value {number} of {}", self.len);
            // SAFETY: `number < len`, as above; the values are contiguous and live as long as the buffer.
            unsafe { self.first.add(number).as_ref() }
        }

        /// Returns the value at a byte offset. See [`Buffer::at`].
        #[inline(always)]
        #[allow(unsafe_code)]
        pub(crate) fn at_byte(&self, offset: usize) -> &T {
            debug_assert!(offset.is_multiple_of(size_of::<T>()) && offset / size_of::<T>() < self.len);
            // SAFETY: the offset is that of a value below `len`, as in `at`.
            unsafe { self.first.byte_add(offset).as_ref() }
        }

        #[inline(always)]
        #[cfg(target_arch = "x86_64")]
        pub(crate) fn start(&self) -> *const T {
            self.first.as_ptr()
        }

        /// Returns `count` values from this number on. See [`Buffer::at`].
        #[inline(always)]
        #[allow(unsafe_code)]
        pub(crate) fn part(&self, begin: usize, count: usize) -> &[T] {
            debug_assert!(begin + count <= self.len, "values {begin} to {} of {}", begin + count, self.len);
            // SAFETY: `begin + count <= len`, as in `at`.
            unsafe { slice::from_raw_parts(self.first.add(begin).as_ptr(), count) }
        }
    }

    impl<T> Drop for Buffer<T> {
        #[allow(unsafe_code)]
        fn drop(&mut self) {
            #[cfg(feature = "mmap")]
            if self.memory.is_some() {
                return;
            }
            if let Ok(layout) = Layout::array::<T>(self.len)
                && layout.size() > 0
            {
                // SAFETY: allocated in `Buffer::new` with this layout, and not since.
                unsafe { dealloc(self.first.as_ptr().cast(), layout) };
            }
        }
    }
}

/// In models and schedules, values are registered with the checker, so zeroed memory is invalid.
#[cfg(all(test, cuckoo_model))]
mod backing {
    use super::{HugePages, Source, Zeroed};

    pub(crate) struct Buffer<T>(Box<[T]>);

    pub(crate) struct Arena;

    impl Arena {
        pub(crate) fn new(_: HugePages) -> Self {
            Arena
        }
    }

    impl<T: Zeroed> Buffer<T> {
        pub(crate) fn new<'a>(len: usize, _: impl Into<Source<'a>>) -> Option<Self> {
            Some(Buffer((0..len).map(|_| T::default()).collect()))
        }
    }

    impl<T> Buffer<T> {
        pub(crate) fn view(&self) -> &Self {
            self
        }

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

impl<T> Buffer<T> {
    /// Returns the bytes of `len` values; `None` if they exceed the address space.
    pub(crate) fn bytes_of(len: usize) -> Option<usize> {
        len.checked_mul(size_of::<T>()).filter(|&bytes| isize::try_from(bytes).is_ok())
    }
}

#[cfg(all(test, not(cuckoo_model)))]
mod tests {
    use super::*;
    use core::sync::atomic::Ordering;

    /// With the sizes of tables and stripes, and larger than a piece. A piece outlives its arena.
    #[test]
    #[cfg_attr(miri, ignore = "millions of words")]
    fn buffers_of_an_arena_are_zero_and_do_not_overlap() {
        let arena = Arena::new(HugePages::Advised);
        let run = |len| Buffer::<AtomicU64>::new(len, Source::Arena(&arena));
        let mut lens: Vec<usize> = (0..120).flat_map(|number| [10_000 - 40 * number, 128, 1]).collect();
        lens.extend([1 << 20, 9_000, 1 << 18, 7]);
        let runs: Vec<_> = lens.iter().map(|&len| run(len).expect("memory")).collect();
        assert!(run(1 << 58).is_none() && run(usize::MAX).is_none());
        let last = run(1000).expect("memory, after a refusal");
        drop(arena);
        for (number, (run, &len)) in (1..).zip(runs.iter().zip(&lens)) {
            run.populate(0, len);
            assert!(run.part(0, len).iter().all(|word| word.swap(number, Ordering::Relaxed) == 0), "{len} words");
        }
        for (number, (run, &len)) in (1..).zip(runs.iter().zip(&lens)) {
            assert!(run.part(0, len).iter().all(|word| word.load(Ordering::Relaxed) == number), "{len} words");
        }
        drop(runs);
        assert!(last.part(0, 1000).iter().all(|word| word.load(Ordering::Relaxed) == 0));
    }
}
