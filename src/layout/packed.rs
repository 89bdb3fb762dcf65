//! The slots of a table as plain numbers, and as the words in which they lie side by side.

use super::lanes::SLOTS;

/// The slots in these words, bucket by bucket, 0 being an empty one.
pub(crate) fn unpack(words: &[u64], slot_bits: u32, buckets: usize) -> impl Iterator<Item = [u32; SLOTS]> + '_ {
    let mask = u64::from(u32::MAX >> (32 - slot_bits));
    let slot = move |number: usize| {
        let begin = number * slot_bits as usize;
        let (word, shift) = (begin / 64, begin % 64);
        let above = if shift + slot_bits as usize > 64 { words[word + 1] << (64 - shift) } else { 0 };
        ((words[word] >> shift | above) & mask) as u32
    };
    (0..buckets).map(move |bucket| core::array::from_fn(|number| slot(bucket * SLOTS + number)))
}

/// The words of these slots.
pub(crate) fn pack(slots: impl Iterator<Item = u32>, slot_bits: u32) -> impl Iterator<Item = u64> {
    let mut slots = slots.fuse();
    // What does not fit the word that it begins in.
    let (mut word, mut used) = (0_u64, 0);
    core::iter::from_fn(move || {
        for slot in slots.by_ref() {
            let value = u64::from(slot);
            let packed = word | value << used;
            used += slot_bits;
            if used >= u64::BITS {
                used -= u64::BITS;
                // What of the slot lies in the next word: none of it if the word ends with the slot.
                word = if used > 0 { value >> (slot_bits - used) } else { 0 };
                return Some(packed);
            }
            word = packed;
        }
        (core::mem::take(&mut used) > 0).then(|| core::mem::take(&mut word))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_packed_is_unpacked(width in 4u32..=32, slots in prop::collection::vec(any::<u32>(), 0..100)) {
            let mut slots: Vec<u32> = slots.iter().map(|slot| slot & (u32::MAX >> (32 - width))).collect();
            slots.resize(slots.len().next_multiple_of(SLOTS), 0);
            let words: Vec<u64> = pack(slots.iter().copied(), width).collect();
            prop_assert_eq!(words.len(), (slots.len() * width as usize).div_ceil(64));
            // Slot by slot, bit by bit.
            for (number, slot) in slots.iter().enumerate() {
                for bit in 0..width as usize {
                    let at = number * width as usize + bit;
                    prop_assert_eq!(words[at / 64] >> (at % 64) & 1, u64::from(slot >> bit & 1));
                }
            }
            let unpacked: Vec<u32> = unpack(&words, width, slots.len() / SLOTS).flatten().collect();
            prop_assert_eq!(unpacked, slots);
        }
    }
}
