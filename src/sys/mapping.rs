//! A file in memory, shared by processes: mapped at an address that suits huge pages, and absent in forked children.
//!
//! Other processes may store any bytes into it at any time, so its contents are accessible as atomic numbers only, of which every
//! value is valid. If the file is truncated, the system kills a process that reads beyond its end.

use super::memory::{Buffer, Zeroed};
use super::read_only::ReadOnly;
use super::sync::Flag;
use core::mem::ManuallyDrop;
use core::ptr::NonNull;
use memmap2::{MmapOptions, MmapRaw};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;

/// A huge page of x86-64, and of most of aarch64.
pub(crate) const HUGE: usize = 2 << 20;

/// The alignment of the end of a mapping.
const PAGE: usize = 4096;

pub(crate) struct FileMapping {
    /// Address space around the file, and the offset of the file in it. The rest is never touched.
    reserved: ManuallyDrop<MmapRaw>,
    before: usize,
    len: usize,
    /// For a mapping that can be written: a page with a flag that is set in this process, and not in its children.
    mark: Option<MmapRaw>,
}

#[allow(unsafe_code)]
fn advise(mapping: &MmapRaw, begin: usize, len: usize, advice: i32) -> io::Result<()> {
    assert!(begin.checked_add(len).is_some_and(|end| end <= mapping.len()), "advice for {len} bytes at {begin}");
    // SAFETY: 1. the range lies in the mapping; 2. no advice given in this file changes its contents in this process.
    let advised = unsafe { libc::madvise(mapping.as_mut_ptr().add(begin).cast(), len, advice) };
    if advised == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[allow(unsafe_code)]
fn flag(mark: &MmapRaw) -> &Flag {
    // SAFETY: 1. the page is readable, writable and aligned, and lives as long as the mark; 2. zero bytes are a flag that is not
    // set.
    unsafe { &*mark.as_ptr().cast() }
}

impl FileMapping {
    /// Maps a whole file of this length, so that a multiple of [`HUGE`] in the file is one in memory. Forked children do not
    /// inherit a mapping that can be written.
    #[allow(unsafe_code)]
    pub(crate) fn new(file: &File, len: usize, writable: bool) -> io::Result<Arc<Self>> {
        let len = len.checked_next_multiple_of(PAGE).filter(|&len| len > 0).ok_or(io::ErrorKind::FileTooLarge)?;
        let reserved = len.checked_add(HUGE).ok_or(io::ErrorKind::FileTooLarge)?;
        let reserved = MmapOptions::new().len(reserved).map_raw_read_only(file)?;
        let before = reserved.as_mut_ptr().align_offset(HUGE);
        let (at, protection) =
            (reserved.as_mut_ptr().wrapping_add(before), libc::PROT_READ | if writable { libc::PROT_WRITE } else { 0 });
        // SAFETY: the range lies in the reservation, to which nothing else refers, and which unmaps it.
        let mapped =
            unsafe { libc::mmap(at.cast(), len, protection, libc::MAP_SHARED | libc::MAP_FIXED, file.as_raw_fd(), 0) };
        if mapped == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let mark = if writable {
            advise(&reserved, 0, reserved.len(), libc::MADV_DONTFORK)?;
            let mark = MmapOptions::new().len(PAGE).map_anon()?.into();
            advise(&mark, 0, PAGE, libc::MADV_WIPEONFORK)?;
            flag(&mark).set(true);
            Some(mark)
        } else {
            None
        };
        Ok(Arc::new(FileMapping { reserved: ManuallyDrop::new(reserved), before, len, mark }))
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn at(&self, byte: usize) -> Option<NonNull<u8>> {
        (byte < self.len).then(|| NonNull::new(self.reserved.as_mut_ptr().wrapping_add(self.before + byte)))?
    }

    /// Returns whether this process is a forked child of the process that created the mapping; the child does not have it.
    pub(crate) fn is_forked(&self) -> bool {
        self.mark.as_ref().is_some_and(|mark| !flag(mark).is_set())
    }

    /// Returns values in a file that can be written; `None` if they exceed it.
    pub(crate) fn run<T: Zeroed>(self: &Arc<Self>, byte: usize, len: usize) -> Option<Buffer<T>> {
        assert!(self.mark.is_some(), "a mapping that can be written");
        Buffer::in_file(self, byte, len)
    }

    /// Returns words in any file; `None` if they exceed it.
    pub(crate) fn read_only(self: &Arc<Self>, byte: usize, len: usize) -> Option<ReadOnly> {
        Buffer::in_file(self, byte, len).map(ReadOnly::new)
    }

    /// Advises the system to put these bytes, which begin at a multiple of [`HUGE`], on huge pages.
    pub(crate) fn collapse(&self, begin: usize, len: usize) {
        /// Not in every libc yet.
        const MADV_COLLAPSE: i32 = 25;
        assert!(begin <= self.len && self.len - begin >= len, "{len} bytes at {begin} of {}", self.len);
        // Small pages are correct, too.
        let _ = advise(&self.reserved, self.before + begin, len / HUGE * HUGE, MADV_COLLAPSE);
    }
}

impl Drop for FileMapping {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        // In a forked child, the addresses are free or belong to something else.
        if !self.is_forked() {
            // SAFETY: dropped once, here.
            unsafe { ManuallyDrop::drop(&mut self.reserved) };
        }
    }
}

/// Allocates these bytes of a file, so that no store to them fails for lack of space later.
#[allow(unsafe_code)]
pub(crate) fn allocate(file: &File, begin: usize, len: usize) -> io::Result<()> {
    let too_large = |_| io::ErrorKind::FileTooLarge;
    let (mut done, mut piece) = (0, len);
    while done < len {
        let now = piece.min(len - done);
        let (offset, bytes) = ((begin + done).try_into().map_err(too_large)?, now.try_into().map_err(too_large)?);
        // SAFETY: the call touches no memory.
        if unsafe { libc::fallocate(file.as_raw_fd(), 0, offset, bytes) } == 0 {
            done += now;
            continue;
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
        // Some systems undo all of an allocation that a signal interrupts: a shorter one ends before the next signal.
        piece = now.div_ceil(2);
    }
    Ok(())
}

#[cfg(all(test, not(cuckoo_model)))]
mod tests {
    use super::*;
    use crate::sys::sync::AtomicU64;
    use core::sync::atomic::Ordering;

    #[test]
    #[cfg_attr(miri, ignore = "there are no files to map")]
    fn a_forked_child_has_no_mapping_that_can_be_written() {
        let path = std::env::temp_dir().join(format!("concurrent-cuckoo-filter.forked-{}", std::process::id()));
        let filter = crate::SharedFilter::create(&path, crate::CuckooFilter::<u64>::builder().capacity(100)).unwrap();
        let reader = crate::SharedReader::<crate::CuckooFilter<u64>>::open(&path).unwrap();
        filter.writer().unwrap().insert(&7).unwrap();
        let refused_there = in_forked_child(|| {
            let refused = matches!(filter.writer(), Err(crate::SharedError::Forked));
            refused && reader.contains(&7) && matches!(filter.close(), Err(crate::SharedError::Forked))
        });
        assert!(refused_there, "the child is refused, and its reader works");
        let second = crate::SharedFilter::<crate::CuckooFilter<u64>>::open(&path);
        std::fs::remove_file(&path).unwrap();
        assert!(second.is_ok(), "this process has dropped the filter, and the child has ended: {second:?}");
    }

    /// Returns the result of a forked child, which ends by itself.
    #[allow(unsafe_code)]
    fn in_forked_child(work: impl FnOnce() -> bool) -> bool {
        // SAFETY: the child calls nothing that waits for other threads, and ends without unwinding.
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

    #[test]
    #[cfg_attr(miri, ignore = "there are no files to map")]
    fn mappings_are_aligned_and_bounded() {
        let path = std::env::temp_dir().join(format!("concurrent-cuckoo-filter.shared-mapping-{}", std::process::id()));
        let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
        let reading = File::open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        allocate(&file, 0, 5000).unwrap();
        let [writer, reader] = [(&file, true), (&reading, false)].map(|(file, writable)| {
            let mapping = FileMapping::new(file, 5000, writable).unwrap();
            assert_eq!((mapping.len(), mapping.at(0).unwrap().align_offset(HUGE)), (8192, 0));
            mapping
        });
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
