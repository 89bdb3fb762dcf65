//! Slots with a number under their fingerprint, the *tag*: which of them are alive, dead, or of some fingerprint.
//!
//! ```text
//! 16 bits, 3 of them a tag:    15 ....... 3 | 2 .. 0
//!                              fingerprint    tag
//! ```
//!
//! What a tag says depends on the epoch. Its *value* is the tag less the epoch, modulo 2^t: how many epochs a slot has
//! left. 0 is dead, 1 to 2^t - 1 are alive. Where the epoch never moves, a value is any number that is not 0.

use super::fingerprint::Fingerprint;
use super::lanes::{Lanes, hits_less};

/// The masks for one width of slots and tags.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tags {
    lanes: Lanes,
    bits: u32,
    /// The largest tag.
    most: u32,
    /// Of each slot of a run, the lowest bit of the fingerprint.
    unit: u64,
    /// Of each slot of a run, the bits of the tag, and all others.
    tags: u64,
    fingerprints: u64,
    /// `0 - tags`.
    minus_tags: u64,
}

/// An epoch as far as tags know it: the tag of what is dead then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    dead: u32,
}

impl Tags {
    /// The widest tag in slots of this width. Slots begin at multiples of it, and so do words: a tag lies in one word,
    /// and another one takes its place by one store. By two, a lookup could see the halves of two live tags as a dead one,
    /// at an unchanged version.
    pub(crate) fn most_bits(slot_bits: u32) -> u32 {
        1 << slot_bits.trailing_zeros()
    }

    pub(crate) fn new(slot_bits: u32, bits: u32) -> Self {
        debug_assert!(bits > 0 && bits <= Tags::most_bits(slot_bits) && bits + 4 <= slot_bits);
        let lanes = Lanes::new(slot_bits);
        let most = u32::MAX >> (32 - bits);
        let tags = lanes.repeat(most);
        let fingerprints = lanes.repeat(u32::MAX >> (32 - slot_bits)) & !tags;
        Tags { lanes, bits, most, unit: lanes.low() << bits, tags, fingerprints, minus_tags: tags.wrapping_neg() }
    }

    /// The mask of a tag, which is the largest value, too.
    #[inline]
    pub(crate) fn most(self) -> u32 {
        self.most
    }

    #[inline(always)]
    pub(crate) fn moment(self, epoch: u64) -> Moment {
        Moment { dead: epoch as u32 & self.most() }
    }

    /// The tag of this value.
    #[inline]
    pub(crate) fn tag(self, value: u32, moment: Moment) -> u32 {
        debug_assert!(0 < value && value <= self.most(), "a value of {value}");
        (moment.dead + value) & self.most()
    }

    /// What a slot holds.
    #[inline]
    pub(crate) fn slot(self, fingerprint: Fingerprint, value: u32, moment: Moment) -> u32 {
        fingerprint.get() << self.bits | self.tag(value, moment)
    }

    /// The value of a slot that is not empty.
    #[inline]
    pub(crate) fn value(self, slot: u32, moment: Moment) -> u32 {
        slot.wrapping_sub(moment.dead) & self.most()
    }

    /// The fingerprint of a slot; `None` if it is empty or dead.
    #[inline]
    pub(crate) fn fingerprint(self, slot: u32, moment: Moment) -> Option<Fingerprint> {
        let fingerprint = Fingerprint::from_slot(slot >> self.bits)?;
        (self.value(slot, moment) != 0).then_some(fingerprint)
    }

    /// A fingerprint in every slot of a run, over tags of 0.
    #[inline(always)]
    pub(crate) fn pattern(self, fingerprint: Fingerprint) -> u64 {
        u64::from(fingerprint.get()).wrapping_mul(self.unit)
    }

    /// As [`hits`](super::lanes::hits), of the slots that are alive and have the fingerprint of the pattern.
    ///
    /// A tag is compared with the complement of the dead one: from that, the dead tag differs by 2^t - 1 and every other one
    /// by less. So the whole slots that are looked for differ by 0 to 2^t - 2, no others do, and subtracting 2^t - 1 from
    /// each borrows as subtracting 1 does where slots are compared that have no tag.
    #[inline(always)]
    pub(crate) fn hits(self, run: u64, pattern: u64, moment: Moment) -> u64 {
        hits_less(run, pattern | self.lanes.repeat(!moment.dead & self.most), self.minus_tags)
    }

    /// The highest bit of each slot.
    #[inline(always)]
    pub(crate) fn high(self) -> u64 {
        self.lanes.high()
    }

    /// The slots that have the fingerprint of the pattern and are alive: the highest bit of each.
    #[inline(always)]
    pub(crate) fn live(self, run: u64, pattern: u64, moment: Moment) -> u64 {
        let Tags { lanes, tags, fingerprints, .. } = self;
        let difference = run ^ (pattern | lanes.repeat(moment.dead));
        // The bits of the tag are 0 in the first and all that there are in the second. So nothing but an equal fingerprint
        // borrows from the highest bit, with a borrow from the slot below too, and nothing but an equal tag does not
        // carry into it.
        let (fingerprint, tag) = (difference & fingerprints, difference & tags);
        fingerprint.wrapping_sub(lanes.low()) & !fingerprint & (tag + (lanes.high() - lanes.low())) & lanes.high()
    }

    /// The slots that are empty or dead.
    #[inline(always)]
    pub(crate) fn room(self, run: u64, moment: Moment) -> u64 {
        self.lanes.equal(run, 0) | self.with_dead_tag(run, moment)
    }

    /// The slots that are not empty.
    #[inline(always)]
    pub(crate) fn taken(self, run: u64) -> u64 {
        !self.lanes.equal(run, 0) & self.lanes.high()
    }

    /// The slots that are dead.
    #[inline(always)]
    pub(crate) fn dead(self, run: u64, moment: Moment) -> u64 {
        self.with_dead_tag(run, moment) & !self.lanes.equal(run, 0)
    }

    /// The slots that are dead, and those that are empty where 0 is the dead tag.
    #[inline(always)]
    fn with_dead_tag(self, run: u64, moment: Moment) -> u64 {
        self.lanes.equal(run & self.tags, u64::from(moment.dead).wrapping_mul(self.lanes.low()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Plan;
    use proptest::prelude::*;

    fn slots_of_a_run(width: u32) -> u32 {
        if width <= 16 { 4 } else { 2 }
    }

    /// Every width with every tag that it may have.
    fn formats() -> impl Strategy<Value = (u32, u32)> {
        let all: Vec<_> = (4..=32u32)
            .flat_map(|width| (1..=Tags::most_bits(width).min(width.saturating_sub(4))).map(move |bits| (width, bits)))
            .collect();
        prop::sample::select(all)
    }

    #[test]
    fn a_tag_lies_in_one_word_wherever_its_slot_begins() {
        for width in 4..=32u32 {
            let most = Tags::most_bits(width);
            for bits in 1..=32 {
                let in_one_word = (0..64).all(|slot| (slot * width) % 64 + bits <= 64);
                assert_eq!(bits <= most, in_one_word, "{bits} bits of {width}");
            }
        }
    }

    #[test]
    fn the_narrowest_slot_for_a_fingerprint_and_a_tag() {
        for (fingerprint, tag, slot) in
            [(13, 2, 16), (13, 3, 16), (12, 4, 16), (14, 2, 16), (15, 3, 20), (8, 8, 16), (13, 8, 24), (6, 6, 16)]
        {
            assert_eq!(Plan::slot_bits_for(fingerprint, tag), Some(slot), "{fingerprint} and {tag}");
        }
        assert_eq!(Plan::slot_bits_for(8, 2), Some(10));
        assert_eq!(Plan::slot_bits_for(28, 4), Some(32));
        assert_eq!(Plan::slot_bits_for(29, 4), None);
    }

    proptest! {
        #[test]
        fn agree_with_a_loop_over_the_slots(
            (width, bits) in formats(),
            // Few values near the ends of the range, so that equal slots, equal tags and borrows are common.
            picks in prop::collection::vec((0u32..5, 0u32..4), 4),
            (wanted, epoch) in (1u32..5, 0u64..4),
            above: u64,
        ) {
            let tags = Tags::new(width, bits);
            let all_ones = u32::MAX >> (32 - (width - bits));
            let fingerprint = |pick: u32| [0, 1, 2, all_ones, all_ones - 1][pick as usize];
            let tag = |pick: u32| [0, 1, tags.most(), tags.most() / 2][pick as usize];
            // An empty slot is 0 in all its bits.
            let slots: Vec<u32> = picks
                .iter()
                .take(slots_of_a_run(width) as usize)
                .map(|&(high, low)| if high == 0 { 0 } else { fingerprint(high) << bits | tag(low) })
                .collect();
            let used = slots.len() as u32 * width;
            let above = if used == 64 { 0 } else { above << used };
            let run = slots.iter().enumerate().fold(above, |run, (at, &slot)| run | u64::from(slot) << (at as u32 * width));
            let wanted = Fingerprint::from_slot(fingerprint(wanted)).unwrap();
            let epoch = u64::from(tag(epoch as u32)) + 5 * (u64::from(tags.most()) + 1);
            let moment = tags.moment(epoch);

            let is_dead = |slot: u32| slot != 0 && u64::from(slot & tags.most()) == epoch & u64::from(tags.most());
            let has = |slot: u32| slot >> bits == wanted.get();
            let named = |hits: u64| (0..slots.len()).map(|at| hits >> (at as u32 * width + width - 1) & 1 == 1).collect::<Vec<_>>();
            let each = |is: &dyn Fn(u32) -> bool| slots.iter().map(|&slot| is(slot)).collect::<Vec<_>>();
            let pattern = tags.pattern(wanted);
            // The lowest of them exactly, and any.
            let alive = tags.live(run, pattern, moment);
            prop_assert_eq!((tags.hits(run, pattern, moment) & tags.high()).trailing_zeros(), alive.trailing_zeros());
            prop_assert_eq!(named(tags.live(run, pattern, moment)), each(&|slot| has(slot) && !is_dead(slot)));
            prop_assert_eq!(named(tags.room(run, moment)), each(&|slot| slot == 0 || is_dead(slot)));
            prop_assert_eq!(named(tags.dead(run, moment)), each(&is_dead));
            prop_assert_eq!(named(tags.taken(run)), each(&|slot| slot != 0));
            for &slot in &slots {
                let fingerprint = tags.fingerprint(slot, moment);
                prop_assert_eq!(fingerprint.is_none(), slot == 0 || is_dead(slot));
                if let Some(fingerprint) = fingerprint {
                    prop_assert_eq!(tags.slot(fingerprint, tags.value(slot, moment), moment), slot);
                }
            }
        }
    }
}
