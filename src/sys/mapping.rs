//! A file in memory, shared by processes: mapped at an address that suits huge pages, and gone in a forked child.
//!
//! Other processes may store any bytes into it at any time. So what lies in it is only made known as atomic numbers, of which
//! every value is one. Where a file is truncated, the system ends the process that reads behind its end.

use super::memory::{Buffer, ReadOnly, Zeroed};
use super::sync::Flag;
use core::ptr::{self, NonNull};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;

/// A huge page of x86-64, and of most of aarch64.
pub(crate) const HUGE: usize = 2 << 20;

/// Where mappings end.
const PAGE: usize = 4096;

/// A whole file in memory.
pub(crate) struct FileMapping {
    pages: Pages,
    /// Of a mapping that can be written.
    mark: Option<Mark>,
}

/// Pages of address space that are unmapped when dropped.
struct Pages {
    first: NonNull<u8>,
    len: usize,
}

/// A page with a flag that is set in the process that made it, and not in its children.
struct Mark(Pages);

#[allow(unsafe_code)]
// SAFETY: addresses, which belong to no thread; what lies there is only made known as atomic numbers.
unsafe impl Send for Pages {}

#[allow(unsafe_code)]
// SAFETY: as above.
unsafe impl Sync for Pages {}

impl Pages {
    /// `len` bytes of the file, or of nothing: address space that cannot be touched.
    #[allow(unsafe_code)]
    fn map(at: *mut u8, len: usize, protection: i32, flags: i32, file: Option<&File>) -> io::Result<Self> {
        let descriptor = file.map_or(-1, AsRawFd::as_raw_fd);
        // SAFETY: 1. without MAP_FIXED the system chooses where nothing is; 2. with it, `at` is a part of a reservation that
        // the caller owns, and nothing else refers to.
        let first = unsafe { libc::mmap(at.cast(), len, protection, flags, descriptor, 0) };
        if first == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let first = NonNull::new(first.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Pages { first, len })
    }

    /// Advice for some of them.
    #[allow(unsafe_code)]
    fn advise(&self, begin: usize, len: usize, advice: i32) -> io::Result<()> {
        assert!(begin.checked_add(len).is_some_and(|end| end <= self.len), "advice for {len} bytes at {begin}");
        // SAFETY: 1. the range lies in these pages; 2. no advice that is given here changes what they hold, in this process.
        let advised = unsafe { libc::madvise(self.first.as_ptr().add(begin).cast(), len, advice) };
        if advised == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

impl Drop for Pages {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        // SAFETY: mapped by `map`, and nothing refers to them any more.
        unsafe { libc::munmap(self.first.as_ptr().cast(), self.len) };
    }
}

impl Mark {
    fn new() -> io::Result<Self> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let pages = Pages::map(ptr::null_mut(), PAGE, libc::PROT_READ | libc::PROT_WRITE, flags, None)?;
        pages.advise(0, PAGE, libc::MADV_WIPEONFORK)?;
        let mark = Mark(pages);
        mark.flag().set(true);
        Ok(mark)
    }

    #[allow(unsafe_code)]
    fn flag(&self) -> &Flag {
        // SAFETY: 1. a page that is readable, writable and aligned, and lives as long as the mark; 2. zero bytes are a flag
        // that is not set.
        unsafe { self.0.first.cast().as_ref() }
    }

    /// Whether this is the process that made it.
    fn is_own(&self) -> bool {
        self.flag().is_set()
    }
}

impl FileMapping {
    /// Maps the whole of a file of this length, such that a multiple of [`HUGE`] in the file is one in memory. A mapping that can
    /// be written is not there in forked children.
    #[allow(unsafe_code)]
    pub(crate) fn new(file: &File, len: usize, writable: bool) -> io::Result<Arc<Self>> {
        let mapped = len.checked_next_multiple_of(PAGE).filter(|&len| len > 0).ok_or(io::ErrorKind::FileTooLarge)?;
        let reserved = mapped.checked_add(HUGE).ok_or(io::ErrorKind::FileTooLarge)?;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let reserved = Pages::map(ptr::null_mut(), reserved, libc::PROT_NONE, flags, None)?;
        let before = reserved.first.align_offset(HUGE);
        let protection = libc::PROT_READ | if writable { libc::PROT_WRITE } else { 0 };
        // SAFETY: less than `HUGE` bytes into the reservation.
        let at = unsafe { reserved.first.add(before) };
        let pages = Pages::map(at.as_ptr(), mapped, protection, libc::MAP_SHARED | libc::MAP_FIXED, Some(file))?;
        // What is left of the reservation on both sides.
        let (first, behind) = (reserved.first, HUGE - before);
        core::mem::forget(reserved);
        let rest = [(first, before), (NonNull::new(at.as_ptr().wrapping_add(mapped)).unwrap_or(at), behind)];
        rest.into_iter().filter(|&(_, len)| len > 0).for_each(|(first, len)| drop(Pages { first, len }));
        let mark = if writable {
            pages.advise(0, mapped, libc::MADV_DONTFORK)?;
            Some(Mark::new()?)
        } else {
            None
        };
        Ok(Arc::new(FileMapping { pages, mark }))
    }

    pub(crate) fn len(&self) -> usize {
        self.pages.len
    }

    /// The address of a byte; `None` if it is not there.
    #[allow(unsafe_code)]
    pub(super) fn at(&self, byte: usize) -> Option<NonNull<u8>> {
        // SAFETY: within the pages.
        (byte < self.len()).then(|| unsafe { self.pages.first.add(byte) })
    }

    /// Whether this process is a forked child of the one that made the mapping, which has none.
    pub(crate) fn is_forked(&self) -> bool {
        self.mark.as_ref().is_some_and(|mark| !mark.is_own())
    }

    /// Values of a file that can be written. `None` if they are not all there.
    pub(crate) fn run<T: Zeroed>(self: &Arc<Self>, byte: usize, len: usize) -> Option<Buffer<T>> {
        assert!(self.mark.is_some(), "a mapping that can be written");
        Buffer::in_file(self, byte, len)
    }

    /// Words of any file. `None` if they are not all there.
    pub(crate) fn read_only(self: &Arc<Self>, byte: usize, len: usize) -> Option<ReadOnly> {
        Buffer::in_file(self, byte, len).map(ReadOnly::new)
    }

    /// Has the system put these bytes, which begin at a multiple of [`HUGE`], on huge pages. Where it cannot, pages stay as they are.
    pub(crate) fn collapse(&self, begin: usize, len: usize) {
        /// Not in every libc yet.
        const MADV_COLLAPSE: i32 = 25;
        let _ = self.pages.advise(begin, len / HUGE * HUGE, MADV_COLLAPSE);
    }
}

impl Drop for FileMapping {
    fn drop(&mut self) {
        if self.is_forked() {
            // Nothing is there, or something else by now: no pages are left to unmap.
            self.pages.len = 0;
        }
    }
}

/// Allocates these bytes of a file, so that no store to them fails for want of room later.
#[allow(unsafe_code)]
pub(crate) fn allocate(file: &File, begin: usize, len: usize) -> io::Result<()> {
    let too_large = |_| io::ErrorKind::FileTooLarge;
    let (begin, len) = (begin.try_into().map_err(too_large)?, len.try_into().map_err(too_large)?);
    loop {
        // SAFETY: a call that touches no memory.
        if unsafe { libc::fallocate(file.as_raw_fd(), 0, begin, len) } == 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::sync::AtomicU64;
    use core::sync::atomic::Ordering;

    /// A child has neither the mapping nor a reason to unmap it.
    #[test]
    #[cfg_attr(miri, ignore = "there are no files to map")]
    fn a_forked_child_has_no_mapping_that_can_be_written() {
        let path = std::env::temp_dir().join(format!("concurrent-cuckoo-filter.forked-{}", std::process::id()));
        let filter = crate::SharedFilter::create(&path, crate::CuckooFilter::<u64>::builder().capacity(100)).unwrap();
        let reader = crate::SharedReader::<crate::CuckooFilter<u64>>::open(&path).unwrap();
        filter.writer().unwrap().insert(&7).unwrap();
        let told = in_forked_child(|| {
            let refused = matches!(filter.writer(), Err(crate::SharedError::Forked));
            refused && reader.contains(&7) && matches!(filter.close(), Err(crate::SharedError::Forked))
        });
        assert!(told, "refused in the child, whose reader goes on");
        let second = crate::SharedFilter::<crate::CuckooFilter<u64>>::open(&path);
        std::fs::remove_file(&path).unwrap();
        assert!(second.is_ok(), "this process has dropped it, and the child has ended: {second:?}");
    }

    /// What a child says, which ends by itself.
    #[allow(unsafe_code)]
    fn in_forked_child(work: impl FnOnce() -> bool) -> bool {
        // SAFETY: the child calls nothing that waits for threads that it does not have, and ends without unwinding.
        unsafe {
            match libc::fork() {
                0 => libc::_exit(i32::from(!work())),
                child => {
                    drop(work);
                    let mut status = -1;
                    assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
                    status == 0
                }
            }
        }
    }

    /// The words of both mappings of one file are the same ones; both begin at a multiple of a huge page.
    #[test]
    #[cfg_attr(miri, ignore = "there are no files to map")]
    fn what_one_mapping_stores_another_reads() {
        let path = std::env::temp_dir().join(format!("concurrent-cuckoo-filter.shared-mapping-{}", std::process::id()));
        let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
        let reading = File::open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        file.set_len(5000).unwrap();
        allocate(&file, 0, 5000).unwrap();
        let (writer, reader) =
            (FileMapping::new(&file, 5000, true).unwrap(), FileMapping::new(&reading, 5000, false).unwrap());
        for mapping in [&writer, &reader] {
            assert_eq!((mapping.len(), mapping.at(0).unwrap().align_offset(HUGE)), (8192, 0));
            assert!(!mapping.is_forked());
        }
        let (stored, read) = (writer.run::<AtomicU64>(8, 1023).unwrap(), reader.read_only(0, 1024).unwrap());
        assert!(writer.run::<AtomicU64>(8, 1024).is_none() && writer.run::<AtomicU64>(4, 1).is_none());
        assert!(reader.read_only(8192, 0).is_none() && reader.read_only(usize::MAX, 1).is_none());
        drop(writer);
        stored.at(7).store(77, Ordering::Relaxed);
        assert_eq!((read.at(8).load(), read.at(7).load()), (77, 0));
        assert!(FileMapping::new(&reading, 5000, true).is_err(), "a file that is open for reading");
        assert!(FileMapping::new(&file, 0, true).is_err() && FileMapping::new(&file, usize::MAX, true).is_err());
    }
}
