//! Eight or sixteen bytes at any byte, read by one instruction, concurrently with writers of their words.
//!
//! The language has no such read: its atomics are aligned, and accesses of different sizes or places may not overlap. On x86-64, an
//! ordinary load of 8 bytes inside an aligned word is single; across words it is at worst several loads, each of a part of one
//! word, in some order; and loads are not reordered with each other or with later accesses. Inline assembly must have an effect
//! that the program could have had in the language's model. The effect of this block is that of Acquire loads of the words, one to
//! three, from which the bytes are assembled: a lookup that reads a bucket by parts, as on other processors (H6, models
//! `*_straddling_*`, `*_at_12_bits`).
//!
//! The proof of the protocol needs less. Only the bits of the slot in flux change (H6), so a torn read sees every other slot whole;
//! and a read that has seen one bit of a slot cleared comes after the bump of the version, since loads are not reordered.
//!
//! The block has neither `pure`, `readonly` nor `nomem`: to the compiler it may read and write any memory, so no load of the
//! version moves across it.

use crate::sys::IS_MODEL;
use crate::sys::isa::Avx2;
use crate::sys::memory::Buffer;
use crate::sys::sync::AtomicU64;
use crate::sys::vector::Sixteen;

pub(crate) const AVAILABLE: bool = cfg!(all(target_arch = "x86_64", not(miri))) && !IS_MODEL;

/// Loads bytes that begin at this one, by this instruction, into a register of this class.
#[cfg(all(target_arch = "x86_64", not(miri)))]
macro_rules! load {
    ($instruction:literal, $register:ident, $words:ident, $byte:ident, $size:literal) => {{
        let first = $words.start();
        debug_assert!({
            $words.at(($byte + $size - 1) >> 3);
            true
        });
        let bytes;
        // SAFETY: 1. the bytes lie in the buffer, to all of which the pointer leads; 2. they are initialised and stay allocated while
        // the words are borrowed; 3. the effect is that of atomic loads, as above; 4. no stack, no flags; 5. the processor has the
        // instruction: all have the first, and `Avx2` proves the second.
        unsafe {
            core::arch::asm!(
                $instruction,
                bytes = lateout($register) bytes,
                first = in(reg) first,
                byte = in(reg) $byte,
                options(nostack, preserves_flags)
            );
        }
        bytes
    }};
}

/// Reads the 8 bytes that begin at this byte of the words, all of them in the buffer: a spare word is its last one. Acquire.
#[inline(always)]
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[allow(unsafe_code)]
pub(crate) fn load(words: &Buffer<AtomicU64>, byte: usize) -> u64 {
    load!("mov {bytes}, qword ptr [{first} + {byte}]", reg, words, byte, 8)
}

/// As [`load`], of 16 bytes in up to three words.
#[inline(always)]
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[allow(unsafe_code)]
pub(crate) fn load_sixteen(_: Avx2, words: &Buffer<AtomicU64>, byte: usize) -> Sixteen {
    load!("vmovdqu {bytes}, xmmword ptr [{first} + {byte}]", xmm_reg, words, byte, 16)
}

/// Never called where the processor has no such read.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
pub(crate) fn load(_: &Buffer<AtomicU64>, _: usize) -> u64 {
    unreachable!("only where AVAILABLE")
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
pub(crate) fn load_sixteen(avx2: Avx2, _: &Buffer<AtomicU64>, _: usize) -> Sixteen {
    match avx2.0 {}
}
