//! Eight bytes at any byte, read in one instruction, concurrently with writers of the words that they lie in.
//!
//! The language has no name for such a read: its atomics are aligned, and two of different sizes or places may not
//! overlap. The processor has one. On x86-64 an ordinary load of 8 bytes inside an aligned word is single, one across
//! two words is at worst two loads, each of a part of one word, in some order; and loads are neither reordered with
//! each other nor with what follows. Inline assembly is outside of what the language's model says; what is asked of a
//! block is that its effect is one that the program could have had in that model. The effect of this one is that of
//! Acquire loads of the two words (or the one), from which the bytes are put together: a lookup that reads a bucket by
//! parts, as it does on other machines (H6, models `*_straddling_*`, `*_at_12_bits`).
//!
//! The proof of the protocol asks for less. Only the bits of the slot in flux change (H6), so a read that is torn
//! anywhere sees every other slot whole; and a read that has seen one bit of a slot cleared comes after the version that
//! was advanced before, since loads are not reordered.
//!
//! The block has neither `pure`, `readonly` nor `nomem`: to the compiler it may read and write any memory, so nothing is
//! moved across it, and the loads of the version before and behind it stay there.

use crate::sys::IS_MODEL;
use crate::sys::memory::Buffer;
use crate::sys::sync::AtomicU64;

/// Whether this machine has the read.
pub(crate) const AVAILABLE: bool = cfg!(all(target_arch = "x86_64", not(miri))) && !IS_MODEL;

/// Reads the 8 bytes that begin at this byte of the words, all of them within the run: a word to spare stands at its
/// end. Acquire.
#[inline(always)]
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[allow(unsafe_code)]
pub(crate) fn load(words: &Buffer<AtomicU64>, byte: usize) -> u64 {
    let first = words.start();
    debug_assert!({
        // In bounds, by the word that the last byte is in.
        words.at((byte + 7) >> 3);
        true
    });
    let bytes: u64;
    // SAFETY: 1. the 8 bytes lie in the run, whose pointer is to all of it; 2. they are initialised and stay allocated
    // while `words` is borrowed; 3. the effect is that of atomic loads, as said above; 4. no stack, no flags.
    unsafe {
        core::arch::asm!(
            "mov {bytes}, qword ptr [{first} + {byte}]",
            bytes = lateout(reg) bytes,
            first = in(reg) first,
            byte = in(reg) byte,
            options(nostack, preserves_flags)
        );
    }
    bytes
}

/// Never called where there is no such read.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
pub(crate) fn load(_: &Buffer<AtomicU64>, _: usize) -> u64 {
    unreachable!("only where AVAILABLE")
}
