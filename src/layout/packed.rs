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

/// Hands on the words of these buckets.
#[inline(always)]
pub(crate) fn pack(buckets: impl Iterator<Item = [u32; SLOTS]>, slot_bits: u32, mut take: impl FnMut(u64)) {
    // What does not fit the word that it begins in.
    let (mut word, mut used, bits) = (0_u64, 0, 2 * slot_bits);
    buckets.for_each(|slots| {
        for two in [[slots[0], slots[1]], [slots[2], slots[3]]] {
            let two = u64::from(two[0]) | u64::from(two[1]) << slot_bits;
            word |= two << used;
            used += bits;
            if used >= u64::BITS {
                take(word);
                used -= u64::BITS;
                // What of them lies in the next word: nothing if the word ends with them.
                word = if used > 0 { two >> (bits - used) } else { 0 };
            }
        }
    });
    if used > 0 {
        take(word);
    }
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
            let mut words = Vec::new();
            pack(slots.as_chunks().0.iter().copied(), width, |word| words.push(word));
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
