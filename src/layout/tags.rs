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
use super::lanes::Lanes;
use super::plan::Plan;

/// The division of the tags of a filter. The width of its slots may differ from table to table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tags {
    bits: u32,
    /// The largest tag.
    most: u32,
}

/// No filter has made more ticks: one a nanosecond for 292 years.
pub(crate) const MAX_EPOCH: u64 = 1 << 63;

/// An epoch as far as tags know it: the tag of a slot that is dead then.
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

    pub(crate) fn new(plan: &Plan) -> Self {
        let bits = plan.tag_bits();
        debug_assert!(bits > 0 && bits <= Tags::most_bits(plan.slot_bits));
        Tags { bits, most: u32::MAX >> (32 - bits) }
    }

    /// The mask of a tag, which is the largest value, too.
    #[inline]
    pub(crate) fn most(self) -> u32 {
        self.most
    }

    #[inline(always)]
    pub(crate) fn moment(self, epoch: u64) -> Moment {
        Moment { dead: epoch as u32 & self.most }
    }

    /// The tag of this value.
    #[inline]
    pub(crate) fn tag(self, value: u32, moment: Moment) -> u32 {
        debug_assert!(0 < value && value <= self.most, "a value of {value}");
        (moment.dead + value) & self.most
    }

    /// What a slot holds.
    #[inline]
    pub(crate) fn slot(self, fingerprint: Fingerprint, value: u32, moment: Moment) -> u32 {
        fingerprint.get() << self.bits | self.tag(value, moment)
    }

    /// The value of a slot that is not empty.
    #[inline]
    pub(crate) fn value(self, slot: u32, moment: Moment) -> u32 {
        slot.wrapping_sub(moment.dead) & self.most
    }

    /// The fingerprint of a slot; `None` if it is empty or dead.
    #[inline]
    pub(crate) fn fingerprint(self, slot: u32, moment: Moment) -> Option<Fingerprint> {
        let fingerprint = Fingerprint::from_slot(slot >> self.bits)?;
        (self.value(slot, moment) != 0).then_some(fingerprint)
    }

    /// The factor that brings a fingerprint into every slot of a run, over tags of 0.
    #[inline(always)]
    pub(crate) fn unit(self, low: u64) -> u64 {
        low << self.bits
    }

    /// The complement of the dead tag in every slot of a run.
    ///
    /// A lookup compares tags with it: from the complement, the dead tag differs by 2^t - 1 and every other one by less. So
    /// the whole slots that are looked for differ by 0 to 2^t - 2, no others do, and [`Tags::minus`], which subtracts
    /// 2^t - 1 from each, borrows as subtracting 1 does where slots have no tag.
    #[inline(always)]
    pub(crate) fn alive(self, low: u64, moment: Moment) -> u64 {
        u64::from(!moment.dead & self.most).wrapping_mul(low)
    }

    /// `0 - (2^t - 1)` of each slot, for [`hits_less`](super::lanes::hits_less).
    #[inline(always)]
    pub(crate) fn minus(self, low: u64) -> u64 {
        low.wrapping_sub(low << self.bits)
    }

    /// The slots that have this fingerprint and are alive: the highest bit of each.
    #[inline(always)]
    pub(crate) fn live(self, lanes: Lanes, run: u64, fingerprint: Fingerprint, moment: Moment) -> u64 {
        let pattern = u64::from(fingerprint.get()).wrapping_mul(self.unit(lanes.low()));
        let tags = lanes.repeat(self.most);
        let difference = run ^ (pattern | lanes.repeat(moment.dead));
        // The bits of the tag are 0 in the first and all that there are in the second. So nothing but an equal fingerprint
        // borrows from the highest bit, with a borrow from the slot below too, and nothing but an equal tag does not
        // carry into it.
        let (fingerprint, tag) = (lanes.only(difference) & !tags, difference & tags);
        fingerprint.wrapping_sub(lanes.low()) & !fingerprint & (tag + (lanes.high() - lanes.low())) & lanes.high()
    }

    /// The slots that are empty or dead.
    #[inline(always)]
    pub(crate) fn room(self, lanes: Lanes, run: u64, moment: Moment) -> u64 {
        lanes.equal(run, 0) | self.with_dead_tag(lanes, run, moment)
    }

    /// The slots that are dead.
    #[inline(always)]
    pub(crate) fn dead(self, lanes: Lanes, run: u64, moment: Moment) -> u64 {
        self.with_dead_tag(lanes, run, moment) & !lanes.equal(run, 0)
    }

    /// The slots that are dead, and those that are empty where 0 is the dead tag.
    #[inline(always)]
    fn with_dead_tag(self, lanes: Lanes, run: u64, moment: Moment) -> u64 {
        lanes.equal(run & lanes.repeat(self.most), lanes.repeat(moment.dead))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::hits_less;
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
            let plan = Plan::one_shard(width, 2, 4).with_tags(bits);
            let (tags, lanes) = (Tags::new(&plan), Lanes::new(width));
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
            let low = lanes.low();
            let pattern = u64::from(wanted.get()).wrapping_mul(tags.unit(low)) | tags.alive(low, moment);
            let hits = hits_less(run, pattern, tags.minus(low)) & lanes.high();
            // The lowest of them exactly, and any.
            let alive = tags.live(lanes, run, wanted, moment);
            prop_assert_eq!(hits.trailing_zeros(), alive.trailing_zeros());
            prop_assert_eq!(named(alive), each(&|slot| has(slot) && !is_dead(slot)));
            prop_assert_eq!(named(tags.room(lanes, run, moment)), each(&|slot| slot == 0 || is_dead(slot)));
            prop_assert_eq!(named(tags.dead(lanes, run, moment)), each(&is_dead));
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
