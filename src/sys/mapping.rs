//! A file that is mapped into memory, to be read.
//!
//! Other processes may write to the file, or cut it off, while it is mapped. So no reference to its bytes is ever made: for
//! the language these are bytes that never change while it lives. They are read by volatile loads: the memory is none of the
//! program's allocations, so a load is that of whatever stands there at that moment, and races with nothing that the
//! language knows of. What is read has eight bytes of any value, which is a number.
//!
//! Bytes behind the end of a file that was cut off are not there, and the system ends the process that reads them. That
//! is not undefined, and cannot be prevented.

use super::bytes::Bytes;
use super::prefetch::{CacheLevel, prefetch_at};
use core::fmt;
use core::ptr;
use memmap2::{MmapOptions, MmapRaw};
use std::fs::File;
use std::io;

/// The bytes of a file that is mapped: of a [`MappedFilter`](crate::MappedFilter).
pub struct Mapping {
    /// Unmaps the memory when dropped; `None` for an empty file, which cannot be mapped.
    mapped: Option<MmapRaw>,
    first: *const u8,
    len: usize,
}

#[allow(unsafe_code)]
// SAFETY: the memory is only read, from any thread, and belongs to the value.
unsafe impl Send for Mapping {}

#[allow(unsafe_code)]
// SAFETY: as above.
unsafe impl Sync for Mapping {}

/// Eight bytes at any place.
#[repr(C, packed)]
#[derive(Clone, Copy)]
struct Eight(u64);

impl Mapping {
    /// Maps all of a file, as long as it is now.
    pub(crate) fn of(file: &File) -> io::Result<Self> {
        let len = usize::try_from(file.metadata()?.len()).map_err(|_| io::ErrorKind::FileTooLarge)?;
        if len == 0 {
            return Ok(Mapping { mapped: None, first: ptr::null(), len });
        }
        let mapped = MmapOptions::new().len(len).map_raw_read_only(file)?;
        Ok(Mapping { first: mapped.as_ptr(), mapped: Some(mapped), len })
    }
}

impl Bytes for Mapping {
    fn len(&self) -> usize {
        self.len
    }

    fn number_at(&self, at: usize) -> u64 {
        assert!(at < self.len && self.len - at >= size_of::<Eight>(), "8 bytes at {at} of {}", self.len);
        self.number_within(at)
    }

    #[inline(always)]
    #[allow(unsafe_code)]
    fn number_within(&self, at: usize) -> u64 {
        debug_assert!(at < self.len && self.len - at >= size_of::<Eight>(), "8 bytes at {at} of {}", self.len);
        // SAFETY: 1. the 8 bytes lie in the mapping, which lives as long as `self`; 2. it is readable; 3. `Eight` takes any
        // place and any bytes; 4. a volatile load may race with writes of others, as said above.
        let Eight(number) = unsafe { ptr::read_volatile(self.first.add(at).cast::<Eight>()) };
        u64::from_le(number)
    }

    fn copy_from(&self, at: usize, to: &mut [u8]) {
        assert!(at <= self.len && self.len - at >= to.len(), "{} bytes at {at} of {}", to.len(), self.len);
        let mut at = at;
        let mut eights = to.chunks_exact_mut(size_of::<Eight>());
        for eight in &mut eights {
            eight.copy_from_slice(&self.number_at(at).to_le_bytes());
            at += size_of::<Eight>();
        }
        for byte in eights.into_remainder() {
            #[allow(unsafe_code)]
            // SAFETY: as in `number_at`, of one byte.
            let read = unsafe { ptr::read_volatile(self.first.add(at)) };
            *byte = read;
            at += 1;
        }
    }

    #[inline(always)]
    fn fetch(&self, at: usize, level: CacheLevel) {
        prefetch_at(self.first.wrapping_add(at), level);
    }
}

impl fmt::Debug for Mapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mapping").field("len", &self.len).field("mapped", &self.mapped.is_some()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    /// At every place, the last ones among them, and never beyond.
    #[test]
    #[cfg_attr(miri, ignore = "there are no files to map")]
    fn what_is_read_is_what_the_file_holds() {
        let path = std::env::temp_dir().join(format!("concurrent-cuckoo-filter.mapping-{}", std::process::id()));
        let held: Vec<u8> = (0..4103_u32).map(|number| ((number * 7) >> 3) as u8).collect();
        File::create(&path).unwrap().write_all(&held).unwrap();
        let mapping = Mapping::of(&File::open(&path).unwrap()).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(Bytes::len(&mapping), held.len());
        for at in 0..held.len() - 7 {
            assert_eq!(mapping.number_at(at), (&held[..]).number_at(at), "at {at}");
        }
        for (at, len) in [(0, held.len()), (1, 15), (4096, 7), (4102, 1), (4103, 0)] {
            let mut copied = vec![0; len];
            mapping.copy_from(at, &mut copied);
            assert_eq!(copied, held[at..][..len]);
        }
        for at in [held.len() - 7, held.len() - 1, held.len(), held.len() + 1, usize::MAX - 3, usize::MAX] {
            assert!(std::panic::catch_unwind(|| mapping.number_at(at)).is_err(), "at {at}");
        }
        assert!(std::panic::catch_unwind(|| mapping.copy_from(4102, &mut [0; 2])).is_err());
    }

    #[test]
    #[cfg_attr(miri, ignore = "there are no files to map")]
    fn an_empty_file_has_no_bytes() {
        let path = std::env::temp_dir().join(format!("concurrent-cuckoo-filter.mapping-empty-{}", std::process::id()));
        let mapping = Mapping::of(&File::create_new(&path).unwrap()).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(Bytes::len(&mapping), 0);
        mapping.copy_from(0, &mut []);
        assert!(std::panic::catch_unwind(|| mapping.number_at(0)).is_err());
    }
}
