//! Conversion of the slots of a table between numbers and words.

use super::lanes::SLOTS;

/// Returns the slots in these words, bucket by bucket; 0 for an empty one.
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

/// Passes the words of these buckets to `take`.
#[cfg(test)]
pub(crate) fn pack(buckets: impl Iterator<Item = [u32; SLOTS]>, slot_bits: u32, take: impl FnMut(u64)) {
    let mut packer = Packer::new(2 * slot_bits, take);
    let two = |low: u32, high: u32| u64::from(low) | u64::from(high) << slot_bits;
    buckets.for_each(|slots| {
        packer.push(two(slots[0], slots[1]));
        packer.push(two(slots[2], slots[3]));
    });
    packer.end();
}

/// Packs pieces of equal width, and passes the words to `take`.
pub(crate) struct Packer<F> {
    bits: u32,
    take: F,
    word: u64,
    used: u32,
}

impl<F: FnMut(u64)> Packer<F> {
    /// `bits` is the width of a piece, 1 to 64.
    #[inline(always)]
    pub(crate) fn new(bits: u32, take: F) -> Self {
        Packer { bits, take, word: 0, used: 0 }
    }

    /// The piece must be 0 above its width.
    #[inline(always)]
    pub(crate) fn push(&mut self, piece: u64) {
        self.word |= piece << self.used;
        self.used += self.bits;
        if self.used >= u64::BITS {
            (self.take)(self.word);
            self.used -= u64::BITS;
            // The part of the piece in the next word, if any.
            self.word = if self.used > 0 { piece >> (self.bits - self.used) } else { 0 };
        }
    }

    #[inline(always)]
    pub(crate) fn end(mut self) {
        if self.used > 0 {
            (self.take)(self.word);
        }
    }
}

#[cfg(all(test, not(cuckoo_model)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn packing_has_an_inverse(width in 4u32..=32, slots in prop::collection::vec(any::<u32>(), 0..100)) {
            let mut slots: Vec<u32> = slots.iter().map(|slot| slot & (u32::MAX >> (32 - width))).collect();
            slots.resize(slots.len().next_multiple_of(SLOTS), 0);
            let mut words = Vec::new();
            pack(slots.as_chunks().0.iter().copied(), width, |word| words.push(word));
            prop_assert_eq!(words.len(), (slots.len() * width as usize).div_ceil(64));
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
