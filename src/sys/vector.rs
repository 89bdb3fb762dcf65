//! Four fields of equal width in each of two sixteen bytes, compared with a pattern at once, in the lanes of vectors.

use super::isa::Avx2;

#[cfg(all(target_arch = "x86_64", not(miri)))]
pub(crate) use core::arch::x86_64::__m128i as Sixteen;

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
pub(crate) type Sixteen = u128;

/// How four fields, side by side from the lowest bit on, are moved to the highest bits of one lane of 32 bits each.
#[repr(C, align(32))]
pub(crate) struct Spread {
    /// Per byte of the lanes, the number of one of the sixteen, or 0x80 for a byte beyond them.
    bytes: [u8; 16],
    /// Per lane, the distance of its field from the highest bits.
    shifts: [u32; 4],
}

impl Spread {
    /// `width` is a multiple of 4 up to 32, so that a field lies in 4 bytes.
    const fn new(width: usize) -> Self {
        let mut spread = Spread { bytes: [0x80; 16], shifts: [0; 4] };
        let mut to = 0;
        while to < 16 {
            let begin = to / 4 * width;
            let from = begin / 8 + to % 4;
            if from < 16 {
                spread.bytes[to] = from as u8;
            }
            spread.shifts[to / 4] = (32 - width - begin % 8) as u32;
            to += 1;
        }
        spread
    }

    /// Returns the one for fields of this many bits: 4, 8, 12, and so on up to 32.
    #[inline(always)]
    pub(crate) fn of(width: u32) -> &'static Self {
        static SPREADS: [Spread; 8] = {
            let mut spreads = [const { Spread::new(4) }; 8];
            let mut fours = 1;
            while fours <= 8 {
                spreads[fours % 8] = Spread::new(4 * fours);
                fours += 1;
            }
            spreads
        };
        debug_assert!(width.is_multiple_of(4) && (4..=32).contains(&width), "{width} bits");
        &SPREADS[(width / 4 % 8) as usize]
    }
}

/// Returns whether the exclusive or of any field and the pattern is at most `most`. Both numbers are in the highest bits, and the
/// bits below them are arbitrary in the pattern, and 1 in `most`.
#[inline(always)]
#[allow(unsafe_code)]
#[cfg(all(target_arch = "x86_64", not(miri)))]
pub(crate) fn any_within(_: Avx2, fields: [Sixteen; 2], spread: &Spread, pattern: u32, most: u32) -> bool {
    use core::arch::x86_64::*;
    // SAFETY: 1. the first argument proves that the processor has these instructions; 2. both arrays have 16 bytes and are aligned to
    // 16, since the structure is aligned to 32 and they fill it.
    unsafe {
        let bytes = _mm_load_si128(spread.bytes.as_ptr().cast());
        let shifts = _mm_load_si128(spread.shifts.as_ptr().cast());
        let [pattern, most] = [pattern, most].map(|number| _mm_set1_epi32(number as i32));
        let difference = |fields| _mm_xor_si128(_mm_sllv_epi32(_mm_shuffle_epi8(fields, bytes), shifts), pattern);
        let least = _mm_min_epu32(difference(fields[0]), difference(fields[1]));
        _mm_movemask_epi8(_mm_cmpeq_epi32(_mm_min_epu32(least, most), least)) != 0
    }
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
pub(crate) fn any_within(avx2: Avx2, _: [Sixteen; 2], _: &Spread, _: u32, _: u32) -> bool {
    match avx2.0 {}
}

#[cfg(all(test, not(cuckoo_model)))]
mod tests {
    use super::*;
    use crate::sys::isa::{Avx2Function, Compiled};
    use crate::sys::memory::{Buffer, HugePages};
    use crate::sys::sync::AtomicU64;
    use crate::sys::unaligned::load_sixteen;
    use core::sync::atomic::Ordering;
    use proptest::prelude::*;

    struct Fields {
        bytes: [usize; 2],
        width: u32,
        pattern: u32,
        most: u32,
    }

    struct AnyWithin;

    impl Avx2Function<Buffer<AtomicU64>, Fields, bool> for AnyWithin {
        #[inline(always)]
        fn run(words: &Buffer<AtomicU64>, Fields { bytes, width, pattern, most }: Fields, avx2: Avx2) -> bool {
            any_within(avx2, bytes.map(|byte| load_sixteen(avx2, words, byte)), Spread::of(width), pattern, most)
        }
    }

    proptest! {
        #[test]
        fn fields_of_any_width_are_compared(
            content: [u64; 5],
            bytes in [0..=24_usize, 0..=24],
            fours in 1..=8_u32,
            chosen in 0..8_usize,
            apart: u32,
            bits in 0..=32_u32,
            below: u32,
        ) {
            let Some(any_within) = Compiled::for_avx2::<AnyWithin>() else { return Ok(()) };
            let words = Buffer::new(content.len(), HugePages::Unadvised).unwrap();
            (0..content.len()).for_each(|at| {
                let word: &AtomicU64 = words.at(at);
                word.store(content[at], Ordering::Relaxed);
            });
            let (width, all) = (4 * fours, content.map(u64::to_le_bytes).concat());
            let (mask, up) = (u32::MAX >> (32 - width), 32 - width);
            let fields: Vec<u32> = bytes.iter().flat_map(|&byte| {
                let sixteen = u128::from_le_bytes(all[byte..byte + 16].try_into().unwrap());
                (0..4).map(move |number| (sixteen >> (number * width)) as u32 & mask)
            }).collect();
            // Differences and limits of every magnitude.
            let [apart, most] = [apart, below].map(|number| (u64::from(number & mask) >> bits) as u32);
            let pattern = fields[chosen] ^ apart;
            let expected = fields.iter().any(|field| field ^ pattern <= most);
            let arbitrary = below & !(u32::MAX << up);
            let asked = Fields { bytes, width, pattern: pattern << up | arbitrary, most: most << up | !(u32::MAX << up) };
            prop_assert_eq!(any_within.call(&words, asked), expected);
        }
    }
}
