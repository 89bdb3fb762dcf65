//! The bytes of a slice or of a mapped file, read in place.
//!
//! Other processes may write to a mapped file or truncate it. So no reference to its bytes is created, since the language assumes
//! that referenced bytes do not change. They are read by volatile loads: the memory is none of the program's allocations, so a load
//! returns its present contents, and races with nothing that the language knows. Any eight bytes are a valid number. If the file is
//! truncated, the system kills a process that reads beyond its end, which is not undefined behaviour.

use super::prefetch::{CacheLevel, prefetch_at};
use core::marker::PhantomData;
use core::ptr;
#[cfg(feature = "mmap")]
use memmap2::{MmapOptions, MmapRaw};
#[cfg(feature = "mmap")]
use std::{fs::File, io};

/// Bytes at a fixed address: during `'a`, or for a file as long as this lives.
pub(crate) struct Bytes<'a> {
    first: *const u8,
    len: usize,
    /// Unmaps a file when dropped; `None` for an empty file, which cannot be mapped.
    #[cfg(feature = "mmap")]
    _mapped: Option<MmapRaw>,
    slice: PhantomData<&'a [u8]>,
}

#[allow(unsafe_code)]
// SAFETY: the memory is only read, from any thread, and is borrowed as long as the value lives or belongs to it.
unsafe impl Send for Bytes<'_> {}

#[allow(unsafe_code)]
// SAFETY: as above.
unsafe impl Sync for Bytes<'_> {}

#[repr(C, packed)]
#[derive(Clone, Copy)]
struct Eight(u64);

impl<'a> From<&'a [u8]> for Bytes<'a> {
    fn from(slice: &'a [u8]) -> Self {
        Bytes {
            first: slice.as_ptr(),
            len: slice.len(),
            #[cfg(feature = "mmap")]
            _mapped: None,
            slice: PhantomData,
        }
    }
}

impl Bytes<'_> {
    #[cfg(feature = "mmap")]
    pub(crate) fn map(file: &File) -> io::Result<Self> {
        let len = usize::try_from(file.metadata()?.len()).map_err(|_| io::ErrorKind::FileTooLarge)?;
        if len == 0 {
            return Ok(Bytes::from(&[][..]));
        }
        let mapped = MmapOptions::new().len(len).map_raw_read_only(file)?;
        Ok(Bytes { first: mapped.as_ptr(), len, _mapped: Some(mapped), slice: PhantomData })
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Reads eight bytes as a little-endian number.
    ///
    /// # Panics
    /// If they exceed the end.
    pub(crate) fn eight(&self, at: usize) -> u64 {
        assert!(self.holds(at, size_of::<Eight>()), "8 bytes at {at} of {}", self.len);
        self.eight_within(at)
    }

    /// As [`Bytes::eight`], for offsets that the caller has checked when it parsed the snapshot: release builds do not check them;
    /// debug builds, fuzzing and AddressSanitizer do.
    #[inline(always)]
    #[allow(unsafe_code)]
    pub(crate) fn eight_within(&self, at: usize) -> u64 {
        debug_assert!(self.holds(at, size_of::<Eight>()), "8 bytes at {at} of {}", self.len);
        // SAFETY: 1. the 8 bytes lie in the slice or the mapping, which lives as long as `self`; 2. they are readable; 3. `Eight`
        // allows any alignment and any bytes; 4. a volatile load may race with writes of other processes, as above.
        let Eight(number) = unsafe { ptr::read_volatile(self.first.add(at).cast::<Eight>()) };
        u64::from_le(number)
    }

    /// # Panics
    /// If the bytes exceed the end.
    pub(crate) fn copy_from(&self, at: usize, to: &mut [u8]) {
        assert!(self.holds(at, to.len()), "{} bytes at {at} of {}", to.len(), self.len);
        let (eights, rest) = to.as_chunks_mut();
        let behind = at + size_of::<Eight>() * eights.len();
        for (number, eight) in eights.iter_mut().enumerate() {
            *eight = self.eight_within(at + size_of::<Eight>() * number).to_le_bytes();
        }
        for (number, byte) in rest.iter_mut().enumerate() {
            #[allow(unsafe_code)]
            // SAFETY: as in `eight_within`, of one byte.
            let read = unsafe { ptr::read_volatile(self.first.add(behind + number)) };
            *byte = read;
        }
    }

    #[inline(always)]
    pub(crate) fn prefetch(&self, at: usize, level: CacheLevel) {
        prefetch_at(self.first.wrapping_add(at), level);
    }

    fn holds(&self, at: usize, count: usize) -> bool {
        at <= self.len && self.len - at >= count
    }
}

#[cfg(all(test, not(cuckoo_model)))]
mod tests {
    use super::*;

    fn assert_read(bytes: &Bytes<'_>, held: &[u8]) {
        assert_eq!(bytes.len(), held.len());
        for (at, eight) in held.windows(8).enumerate() {
            assert_eq!(bytes.eight(at).to_le_bytes(), eight, "at {at}");
        }
        for (at, len) in [(0, held.len()), (1, 15), (4096, 7), (4102, 1), (4103, 0)] {
            let mut copied = vec![0; len];
            bytes.copy_from(at, &mut copied);
            assert_eq!(copied, held[at..][..len]);
        }
        for at in [held.len() - 7, held.len() - 1, held.len(), held.len() + 1, usize::MAX - 3, usize::MAX] {
            assert!(std::panic::catch_unwind(|| bytes.eight(at)).is_err(), "at {at}");
        }
        assert!(std::panic::catch_unwind(|| bytes.copy_from(4102, &mut [0; 2])).is_err());
    }

    fn held() -> Vec<u8> {
        (0..4103_u32).map(|number| ((number * 7) >> 3) as u8).collect()
    }

    #[test]
    fn every_byte_of_a_slice_is_read() {
        assert_read(&Bytes::from(&held()[..]), &held());
    }

    #[test]
    #[cfg(feature = "mmap")]
    #[cfg_attr(miri, ignore = "there are no files to map")]
    fn an_empty_file_has_no_bytes() {
        let path = std::env::temp_dir().join(format!("concurrent-cuckoo-filter.mapping-empty-{}", std::process::id()));
        let bytes = Bytes::map(&File::create_new(&path).unwrap()).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(bytes.len(), 0);
        bytes.copy_from(0, &mut []);
        assert!(std::panic::catch_unwind(|| bytes.eight(0)).is_err());
    }
}
