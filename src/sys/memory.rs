//! Zeroed memory for the words and the stripes of a filter: one run each, on fresh pages that the system supplies as they
//! are touched. The runs of a growing filter's tables, each too small for a huge page, stand side by side in an [`Arena`].
//!
//! A large run is mapped by the system itself. An allocator may hand out memory that was used before, and has to write
//! its zeros by hand: a second large filter of a process took a hundred times as long to build as the first, and all its
//! memory at once. Below [`MAPPED_FROM`] the allocator is used, which packs small filters; without the feature
//! `mmap`, always.

use crate::sys::prefetch::{CacheLevel, prefetch};
use crate::sys::sync::{AtomicPtr, AtomicU64, Flag, ReadWord};
use crate::sys::unaligned;

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
// SAFETY: as above; it is null.
unsafe impl<T> Zeroed for AtomicPtr<T> {}

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
    /// As advised. Runs that are too small for it come from the allocator: for what is written at once, memory that was
    /// used before is there sooner than the system's pages.
    Reused,
}

/// Where a run's memory comes from.
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

/// Words that are only read, as they may lie on pages that this process cannot write.
#[repr(transparent)]
pub(crate) struct ReadOnly(Buffer<AtomicU64>);

impl ReadOnly {
    #[cfg(all(feature = "shared", target_os = "linux"))]
    pub(super) fn new(words: Buffer<AtomicU64>) -> Self {
        ReadOnly(words)
    }

    /// These words, for a reader of its own.
    #[cfg(all(test, cuckoo_loom))]
    #[allow(unsafe_code)]
    pub(crate) fn over(words: &Buffer<AtomicU64>) -> &Self {
        // SAFETY: `ReadOnly` has the layout of what it holds, and asks less of it.
        unsafe { &*core::ptr::from_ref(words).cast() }
    }

    #[inline(always)]
    pub(crate) fn at(&self, number: usize) -> ReadWord<'_> {
        ReadWord::of(self.0.at(number))
    }

    /// The eight bytes from this one on, where [`unaligned::AVAILABLE`].
    #[inline(always)]
    pub(crate) fn eight(&self, byte: usize) -> u64 {
        unaligned::load(&self.0, byte)
    }

    /// Begins to fetch the line of a word.
    #[inline(always)]
    pub(crate) fn fetch(&self, number: usize, level: CacheLevel) {
        prefetch(self.0.at(number), level);
    }
}

#[cfg(not(all(test, any(cuckoo_loom, cuckoo_shuttle))))]
// A lock around spare memory, no part of the protocol.
#[allow(clippy::disallowed_types)]
mod backing {
    use super::{HugePages, Source, Zeroed};
    #[cfg(all(feature = "shared", target_os = "linux"))]
    use crate::sys::mapping::FileMapping;
    use core::marker::PhantomData;
    use core::mem::ManuallyDrop;
    use core::ops::Deref;
    #[cfg(feature = "mmap")]
    use core::ops::Range;
    use core::ptr::{self, NonNull};
    use core::slice;
    #[cfg(feature = "mmap")]
    use memmap2::{MmapOptions, MmapRaw};
    use std::alloc::{Layout, alloc_zeroed, dealloc};
    #[cfg(feature = "mmap")]
    use std::sync::{Arc, Mutex, PoisonError};

    /// Bytes from which a run is mapped. A snapshot's header announces memory that has not arrived yet: what is mapped costs
    /// address space until it is touched.
    #[cfg(feature = "mmap")]
    const MAPPED_FROM: usize = 64 << 10;

    /// Bytes from which huge pages are advised, and to which such a run is aligned: the size of a huge page on x86-64 and
    /// on most of aarch64.
    #[cfg(feature = "mmap")]
    const HUGE_FROM: usize = 2 << 20;

    /// Bytes of an arena from which its runs stand side by side: the huge page that the last ones begin is memory that is
    /// taken ahead.
    #[cfg(feature = "mmap")]
    const SHARED_FROM: usize = 2 * HUGE_FROM;

    /// `len` values, at one place for as long as the run lives.
    #[repr(C)]
    pub(crate) struct Buffer<T> {
        first: NonNull<T>,
        len: usize,
        memory: Memory,
        values: PhantomData<T>,
    }

    /// A copy of a run.
    pub(crate) struct View<'a, T>(ManuallyDrop<Buffer<T>>, PhantomData<&'a Buffer<T>>);

    impl<T> Deref for View<'_, T> {
        type Target = Buffer<T>;

        #[inline(always)]
        fn deref(&self) -> &Buffer<T> {
            &self.0
        }
    }

    /// What keeps memory allocated: the mapping that it is part of, or nothing where the allocator has it.
    #[derive(Clone, Default)]
    struct Memory {
        #[cfg(feature = "mmap")]
        mapping: Option<Arc<Mapped>>,
    }

    /// A mapping that ends with the last run in it.
    #[cfg(feature = "mmap")]
    enum Mapped {
        Private(MmapRaw),
        #[cfg(all(feature = "shared", target_os = "linux"))]
        File(#[expect(dead_code, reason = "kept until the last run is dropped")] Arc<FileMapping>),
    }

    /// Memory for runs that come one after the other and stay: from a few megabytes on, parts of larger pieces, of which
    /// huge pages can be had. A part is not used again before the whole piece is given back, with its last run.
    pub(crate) struct Arena {
        huge_pages: HugePages,
        #[cfg(feature = "mmap")]
        piece: Mutex<Piece>,
    }

    /// The last piece of an arena, if there is one, and the part of it that is left.
    #[cfg(feature = "mmap")]
    #[derive(Default)]
    struct Piece {
        memory: Memory,
        left: Range<usize>,
        /// Bytes of all runs of the arena.
        taken: usize,
    }

    #[allow(unsafe_code)]
    // SAFETY: a run owns its values, as a `Box<[T]>` does.
    unsafe impl<T: Send> Send for Buffer<T> {}

    #[allow(unsafe_code)]
    // SAFETY: as above.
    unsafe impl<T: Sync> Sync for Buffer<T> {}

    impl<T: Zeroed> Buffer<T> {
        /// `None` when the system refuses the memory.
        pub(crate) fn new<'a>(len: usize, source: impl Into<Source<'a>>) -> Option<Self> {
            const { assert!(!core::mem::needs_drop::<T>()) };
            let layout = Layout::array::<T>(len).ok()?;
            let (first, memory) = match source.into() {
                Source::System(huge_pages) => zeroed(layout, huge_pages)?,
                Source::Arena(arena) => arena.zeroed(layout)?,
            };
            // What is there is zero, which `T: Zeroed` takes for values.
            Some(Buffer { first: first.cast(), len, memory, values: PhantomData })
        }
    }

    #[cfg(all(feature = "shared", target_os = "linux"))]
    impl<T: Zeroed> Buffer<T> {
        /// Values in a file, from this byte on; `None` if they are not all in it, or not aligned there. Of a file that cannot be
        /// written no value may be stored.
        pub(in crate::sys) fn in_file(mapping: &Arc<FileMapping>, byte: usize, len: usize) -> Option<Self> {
            const { assert!(!core::mem::needs_drop::<T>()) };
            let layout = Layout::array::<T>(len).ok()?;
            let end = byte.checked_add(layout.size())?;
            let first = mapping.at(byte).filter(|first| end <= mapping.len() && first.cast::<T>().is_aligned())?;
            // What is there are numbers, of which the bytes may have any value: those of `Zeroed` types are such (the lock, too).
            let memory = Memory { mapping: Some(Arc::new(Mapped::File(Arc::clone(mapping)))) };
            Some(Buffer { first: first.cast(), len, memory, values: PhantomData })
        }
    }

    /// Memory of zeros. `None` when the system refuses it.
    #[allow(unsafe_code)]
    fn zeroed(layout: Layout, huge_pages: HugePages) -> Option<(NonNull<u8>, Memory)> {
        #[cfg(feature = "mmap")]
        if layout.size() >= if huge_pages == HugePages::Reused { HUGE_FROM } else { MAPPED_FROM } {
            return map(layout, huge_pages);
        }
        #[cfg(not(feature = "mmap"))]
        let _ = huge_pages;
        if layout.size() == 0 {
            return Some((NonNull::new(core::ptr::without_provenance_mut(layout.align()))?, Memory::default()));
        }
        // SAFETY: the layout is not empty.
        Some((NonNull::new(unsafe { alloc_zeroed(layout) })?, Memory::default()))
    }

    #[cfg(feature = "mmap")]
    #[allow(unsafe_code)]
    fn map(layout: Layout, huge_pages: HugePages) -> Option<(NonNull<u8>, Memory)> {
        let huge = huge_pages != HugePages::Unadvised && layout.size() >= HUGE_FROM;
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
        // SAFETY: 1. offset and size lie inside the mapping; 2. it is readable, writable and private; 3. fresh pages are
        // zero; 4. the mapping lives as long as what is returned with it, at one address.
        let first = NonNull::new(unsafe { start.add(offset) })?;
        Some((first, Memory { mapping: Some(Arc::new(Mapped::Private(mapping))) }))
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

        /// A part of the last piece, or the beginning of a new one. No other lock is taken under this one.
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
            if piece.left.start.checked_next_multiple_of(align)?.checked_add(layout.size())? > piece.left.end {
                // Address space ahead, an eighth of what there is; the system supplies pages as they are touched.
                let bytes = layout.size().max(taken / 8).checked_next_multiple_of(HUGE_FROM)?;
                let (first, memory) = map(Layout::from_size_align(bytes, align).ok()?, self.huge_pages)?;
                let begin = first.as_ptr() as usize - memory.start() as usize;
                (piece.memory, piece.left) = (memory, begin..begin + bytes);
            }
            let begin = piece.left.start.next_multiple_of(align);
            (piece.left.start, piece.taken) = (begin + layout.size(), taken);
            // SAFETY: 1. the part lies inside the mapping, as asked above; 2. it is given away once, so it is zero as the
            // system supplies it; 3. the mapping lives as long as what is returned with it, at one address.
            let first = NonNull::new(unsafe { piece.memory.start().add(begin) })?;
            Some((first, piece.memory.clone()))
        }
    }

    #[cfg(feature = "mmap")]
    impl Memory {
        /// The mapping, if it is no file's.
        fn private(&self) -> Option<&MmapRaw> {
            match self.mapping.as_deref()? {
                Mapped::Private(mapping) => Some(mapping),
                #[cfg(all(feature = "shared", target_os = "linux"))]
                Mapped::File(_) => None,
            }
        }

        /// Where the mapping begins; null if there is none.
        fn start(&self) -> *mut u8 {
            self.private().map_or(core::ptr::null_mut(), |mapping| mapping.as_mut_ptr())
        }
    }

    impl<T> Buffer<T> {
        /// The same run, of which a function reads where it is once: behind an atomic load or inline assembly the compiler
        /// reads it anew.
        #[inline(always)]
        #[allow(unsafe_code)]
        pub(crate) fn view(&self) -> View<'_, T> {
            // SAFETY: 1. the copy is of what is there; 2. it is never dropped, nor used after what it is a copy of.
            View(ManuallyDrop::new(unsafe { ptr::read(self) }), PhantomData)
        }

        /// Has the system supply the pages of these values now, for all will be written: one call costs less than a fault
        /// for each page.
        #[cfg_attr(not(all(target_os = "linux", feature = "mmap")), allow(unused_variables))]
        pub(crate) fn populate(&self, first: usize, count: usize) {
            #[cfg(all(target_os = "linux", feature = "mmap"))]
            if let Some(mapping) = self.memory.private() {
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

        /// The value that begins `offset` bytes behind the first one, as [`Buffer::at`].
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

        /// `count` values from this number on, as [`Buffer::at`].
        #[inline(always)]
        #[allow(unsafe_code)]
        pub(crate) fn part(&self, begin: usize, count: usize) -> &[T] {
            debug_assert!(begin + count <= self.len, "values {begin} to {} of {}", begin + count, self.len);
            // SAFETY: `begin + count <= len`, as above.
            unsafe { slice::from_raw_parts(self.first.add(begin).as_ptr(), count) }
        }
    }

    impl<T> Drop for Buffer<T> {
        #[allow(unsafe_code)]
        fn drop(&mut self) {
            #[cfg(feature = "mmap")]
            if self.memory.mapping.is_some() {
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

/// Values of models and schedules know the thread that made them, so memory of zeros is none.
#[cfg(all(test, any(cuckoo_loom, cuckoo_shuttle)))]
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
    /// The bytes of `len` values; `None` if no address space holds them.
    pub(crate) fn bytes_of(len: usize) -> Option<usize> {
        len.checked_mul(size_of::<T>()).filter(|&bytes| isize::try_from(bytes).is_ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::Ordering;

    /// Of sizes of tables and stripes, and of more than a piece; the last run gives a piece back, whatever becomes of the arena.
    #[test]
    #[cfg_attr(miri, ignore = "millions of words")]
    fn runs_of_an_arena_are_zero_and_do_not_overlap() {
        let arena = Arena::new(HugePages::Advised);
        let run = |len| Buffer::<AtomicU64>::new(len, Source::Arena(&arena));
        let mut lens: Vec<usize> = (0..120).flat_map(|number| [10_000 - 40 * number, 128, 1]).collect();
        lens.extend([1 << 20, 9_000, 1 << 18, 7]);
        let runs: Vec<_> = lens.iter().map(|&len| run(len).expect("memory")).collect();
        assert!(run(1 << 58).is_none() && run(usize::MAX).is_none());
        let last = run(1000).expect("memory, after what was refused");
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
