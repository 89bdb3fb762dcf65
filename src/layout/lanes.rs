//! Comparison of all slots of a run at once, in one 64-bit register (SWAR).
//!
//! A *run* is 2 or 4 whole slots in the low bits of a `u64`, with any bits above. A bucket of 4 slots is one run of 4 up to 16 bits
//! per slot, and two runs of 2 above. A slot of a run is named by its lowest bit.
//!
//! ```text
//! width 13:  63 ... 52 | 51 .. 39 | 38 .. 26 | 25 .. 13 | 12 .. 0
//!            any bits    slot 39    slot 26    slot 13    slot 0
//! ```

pub(crate) const SLOTS: usize = 4;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Lanes {
    /// The lowest bit of each slot of the run.
    pub(crate) low: u64,
    pub(crate) minus_low: u64,
    /// The highest bit of each slot of the run.
    pub(crate) high: u64,
    width: u32,
    /// The lowest bit of the highest slot of the run.
    highest: u32,
}

impl Lanes {
    pub(crate) fn new(width: u32) -> Self {
        debug_assert!((4..=32).contains(&width));
        let slots = if width <= 16 { 4 } else { 2 };
        let low = repeated(1, slots, width.into());
        Lanes { low, minus_low: low.wrapping_neg(), high: low << (width - 1), width, highest: (slots - 1) * width }
    }

    /// Returns the fingerprint in every slot of a run. `repeat(0)` is the pattern of empty slots.
    #[inline]
    pub(crate) fn repeat(self, fingerprint: u32) -> u64 {
        u64::from(fingerprint).wrapping_mul(self.low)
    }

    /// Returns the highest bit of each slot that equals the pattern's, exactly.
    #[inline]
    pub(crate) fn equal(self, run: u64, pattern: u64) -> u64 {
        let difference = run ^ pattern;
        // The sum carries into the highest bit of a slot exactly if a lower bit of the difference is set, and never beyond it.
        let below_high = self.high - self.low;
        let differs = ((difference & below_high) + below_high) | difference;
        !differs & self.high
    }

    /// Returns the highest bit of each slot in which this bit is set.
    #[inline]
    pub(crate) fn with_bit(self, run: u64, bit: u32) -> u64 {
        run << (self.width - 1 - bit) & self.high
    }

    #[inline]
    pub(crate) fn whole(self, highest: u64) -> u64 {
        // The product is a sum of masks side by side.
        (highest >> (self.width - 1)).wrapping_mul(u64::from(u32::MAX >> (32 - self.width)))
    }

    #[inline]
    pub(crate) fn only(self, run: u64) -> u64 {
        run & self.whole(self.high)
    }

    #[inline]
    pub(crate) fn narrowed(self, run: u64, to: u32) -> u64 {
        let (dropped, mask) = (self.width - to, u64::from(u32::MAX >> (32 - to)));
        let slot = |number: u32| run >> (number * dropped) & mask << (number * to);
        let two = slot(0) | slot(1);
        if self.highest == self.width { two } else { two | slot(2) | slot(3) }
    }

    #[inline]
    pub(crate) fn lowest(self, equal: u64) -> u32 {
        equal.trailing_zeros() + 1 - self.width
    }

    /// Returns the number of equal slots in up to four runs: a product adds them up in its highest slot.
    #[inline]
    pub(crate) fn count(self, equal: [u64; 4]) -> u32 {
        let ones = equal.map(|equal| equal >> (self.width - 1));
        let sum = ones[0] + ones[1] + ones[2] + ones[3];
        (sum.wrapping_mul(self.low) >> self.highest) as u32 & 0xf
    }
}

/// Returns a number in each slot of a run of 2 or 4 slots, without a product, which is slow in vectors.
#[inline(always)]
pub(crate) fn repeated(value: u64, slots: u32, width: u64) -> u64 {
    let two = value | value << width;
    if slots == 2 { two } else { two | two << (2 * width) }
}

/// Sets the highest bit of each slot that equals the pattern's. Above an equal slot, the highest bit of an unequal one may be set,
/// too. The other bits are arbitrary.
///
/// `minus_low` is the negated lowest bit of each slot, or of tags, their mask: a sum has an instruction with three operands, and a
/// difference does not.
#[inline(always)]
pub(crate) fn hits_less(run: u64, pattern: u64, minus_low: u64) -> u64 {
    let difference = run ^ pattern;
    difference.wrapping_add(minus_low) & !difference
}

/// Returns the number of slots in use in these bytes; `None` if any bit after the last bucket is set.
pub(crate) fn occupied_in(bytes: &[u8], width: u32, buckets: usize) -> Option<u64> {
    let end = buckets * SLOTS * width as usize;
    let mut behind = bytes.get(end / 8..)?.iter();
    if behind.next().is_some_and(|byte| byte >> (end % 8) != 0) || behind.any(|&byte| byte != 0) {
        return None;
    }
    // Runs of as many whole slots as fit 8 bytes, from any bit of the first byte; each eighth slot begins at a byte.
    Some(match width {
        4 | 8 | 16 | 32 => occupied_in_rows::<1>(bytes, 8, 64 / width, width),
        5..=7 => occupied_in_rows::<4>(bytes, 2 * width, 4, width),
        ..16 => occupied_in_rows::<2>(bytes, width, 4, width),
        31 => occupied_in_rows::<8>(bytes, width, 1, width),
        _ => occupied_in_rows::<4>(bytes, width, 2, width),
    })
}

/// Returns the number of slots in use in rows of `step` bytes, with `RUNS` runs of `slots` slots each.
fn occupied_in_rows<const RUNS: usize>(bytes: &[u8], step: u32, slots: u32, width: u32) -> u64 {
    let step = step as usize;
    // The last rows are copied, since the 8 bytes of their last run may exceed the end.
    let rows = (bytes.len() / step).saturating_sub(1);
    let rest = &bytes[rows * step..];
    let mut last = [0; 80];
    last[..rest.len()].copy_from_slice(rest);
    [(bytes, rows), (&last, 2)].map(|(bytes, rows)| whole_rows::<RUNS>(bytes, rows, step, slots, width)).iter().sum()
}

/// As [`occupied_in_rows`], where 8 bytes can be read at each run.
fn whole_rows<const RUNS: usize>(bytes: &[u8], rows: usize, step: usize, slots: u32, width: u32) -> u64 {
    let low = (0..slots).fold(0, |low, slot| low | 1_u64 << (slot * width));
    let below_high = (low << (width - 1)) - low;
    // As in `Lanes::equal`.
    let is_occupied = |run: u64| (((run & below_high) + below_high) | run) >> (width - 1) & low;
    let run_bits = slots as usize * width as usize;
    let span = (RUNS - 1) * run_bits / 8 + 8;
    // Each slot of a sum counts one per run.
    let most = ((1 << width.min(8)) - 1) / RUNS;
    let mut occupied = 0;
    for first in (0..rows).step_by(most) {
        let bytes = &bytes[first * step..][..(most.min(rows - first) - 1) * step + span];
        let (mut sum, mut from) = (0, 0);
        // Both loops in a form that the compiler vectorises.
        if RUNS == 1 {
            let words = bytes.as_chunks().0.iter();
            sum = words.map(|&word| is_occupied(u64::from_le_bytes(word))).sum();
            from = bytes.len();
        }
        while from + span <= bytes.len() {
            let row = &bytes[from..from + span];
            for begin in (0..RUNS).map(|run| run * run_bits) {
                let run = u64::from_le_bytes(row[begin / 8..][..8].try_into().expect("8 bytes"));
                sum += is_occupied(run >> (begin % 8));
            }
            from += step;
        }
        occupied += (0..slots).map(|slot| sum >> (slot * width) & (u64::MAX >> (64 - width))).sum::<u64>();
    }
    occupied
}

#[cfg(all(test, not(cuckoo_model)))]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    pub(in crate::layout) fn slots_of(width: u32) -> u32 {
        if width <= 16 { 4 } else { 2 }
    }

    fn mask(width: u32) -> u32 {
        u32::MAX >> (32 - width)
    }

    /// Packs the slots, with `above` in the remaining bits.
    pub(in crate::layout) fn pack(width: u32, slots: &[u32], above: u64) -> u64 {
        let used = slots_of(width) * width;
        let above = if used == 64 { 0 } else { above << used };
        slots.iter().enumerate().fold(above, |run, (i, &slot)| run | u64::from(slot) << (i as u32 * width))
    }

    proptest! {
        #[test]
        fn slots_in_use_are_counted(width in 4u32..=32, mut picks in prop::collection::vec(0u64..4, 0..2000)) {
            picks.truncate(picks.len() / SLOTS * SLOTS);
            let slot = |&pick: &u64| [0, 1, 1 << (width - 1), mask(width)][pick as usize];
            let mut bytes = Vec::new();
            let buckets = picks.as_chunks::<SLOTS>().0.iter();
            super::super::packed::pack(buckets.map(|picks| picks.each_ref().map(slot)), width, |word| bytes.extend(word.to_le_bytes()));
            let occupied = picks.iter().filter(|&&pick| pick != 0).count();
            let buckets = picks.len() / SLOTS;
            prop_assert_eq!(occupied_in(&bytes, width, buckets), Some(occupied as u64));
            for bit in picks.len() * width as usize..8 * bytes.len() {
                bytes[bit / 8] ^= 1 << (bit % 8);
                prop_assert_eq!(occupied_in(&bytes, width, buckets), None, "bit {}", bit);
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
        }

        #[test]
        fn slots_with_a_bit_are_selected_and_narrowed(
            width in 5u32..=32,
            slots in prop::collection::vec(any::<u32>(), 4),
            bit in 0u32..32,
            to in 0u32..32,
            above: u64,
        ) {
            let (bit, to, lanes) = (bit % width, 4 + to % (width - 4), Lanes::new(width));
            let slots: Vec<u32> = slots.iter().take(slots_of(width) as usize).map(|slot| slot & mask(width)).collect();
            let run = pack(width, &slots, above);
            let goes = lanes.with_bit(run, bit);
            let gone: Vec<u32> = slots.iter().map(|&slot| if slot >> bit & 1 == 1 { slot } else { 0 }).collect();
            prop_assert_eq!(lanes.only(run), pack(width, &slots, 0));
            prop_assert_eq!(run & lanes.whole(goes), pack(width, &gone, 0));
            let narrowed: Vec<u32> = gone.iter().map(|slot| slot & mask(to)).collect();
            prop_assert_eq!(lanes.narrowed(run & lanes.whole(goes), to), pack(to, &narrowed, 0));
        }
    }
}
