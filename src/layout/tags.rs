//! Slots with a number below their fingerprint, the *tag*: comparisons of fingerprints and of times.
//!
//! ```text
//! 16 bits, 3 of them a tag:                      15 ....... 3 | 2 .. 0
//!                                                fingerprint    tag
//! 24 bits, 7 of them a tag, 4 of these a count:  23 ....... 7 | 6 .. 4 | 3 .. 0
//!                                                fingerprint    time     count
//! ```
//!
//! The *value* of a tag is the tag less the epoch, modulo 2^t: the number of epochs that a slot has left. 0 is dead, 1 to 2^t - 1
//! are alive. If the epoch never advances, a value is any number except 0.
//!
//! A tag may have a count of c bits below its time, stored less one. Its value is then the number of epochs left, times 2^c, plus
//! the stored count: the slot is dead if the value is below 2^c. With the time above the count, a lookup ignores the count: the
//! tags that are alive are contiguous, as without counts.

use super::geometry::Fingerprint;
use super::lanes::{Lanes, hits_less};
use super::plan::Plan;

/// The division of the tags of a filter, independent of the width of its slots.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tags {
    bits: u32,
    /// The mask of a tag, which is also the largest value.
    pub(crate) most: u32,
    /// Bits of the count below the time.
    count_bits: u32,
    /// The mask of the time.
    time: u32,
}

/// An upper bound of the number of ticks: one per nanosecond for 292 years.
pub(crate) const MAX_EPOCH: u64 = 1 << 63;

/// An epoch modulo the cycle of tags: the tag of a slot that is dead then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    dead: u32,
}

impl Tags {
    /// Returns the width of the widest tag in slots of this width. Slots and words begin at multiples of it, so a tag lies in one
    /// word, and is replaced by one store. With two stores, a lookup could see the halves of two live tags as a dead one, at an
    /// unchanged version.
    pub(crate) fn most_bits(slot_bits: u32) -> u32 {
        1 << slot_bits.trailing_zeros()
    }

    pub(crate) fn new(plan: &Plan) -> Self {
        let bits = plan.tag_bits;
        debug_assert!(bits > 0 && bits <= Tags::most_bits(plan.slot_bits));
        let (most, count_bits) = (u32::MAX >> (32 - bits), plan.count_bits);
        debug_assert!(count_bits < bits);
        Tags { bits, most, count_bits, time: most >> count_bits << count_bits }
    }

    #[inline(always)]
    pub(crate) fn moment(self, epoch: u64) -> Moment {
        Moment { dead: (epoch as u32) << self.count_bits & self.most }
    }

    /// Returns the number of epochs after which tags repeat.
    pub(crate) fn cycle(self) -> u64 {
        u64::from(self.most >> self.count_bits) + 1
    }

    #[inline(always)]
    pub(crate) fn epochs(self, value: u32) -> u32 {
        value >> self.count_bits
    }

    /// Returns the value of a slot with this many epochs left and a count of 1.
    pub(crate) fn value_for(self, epochs: u32) -> u32 {
        epochs << self.count_bits
    }

    /// Returns the count of a value, 0 for the value 0. Without a time, it is the value itself.
    #[inline(always)]
    pub(crate) fn count(self, value: u32) -> u32 {
        if self.count_bits == 0 || value == 0 { value } else { (value & !self.time) + 1 }
    }

    #[inline(always)]
    pub(crate) fn max_count(self) -> u32 {
        if self.count_bits == 0 { self.most } else { 1 << self.count_bits }
    }

    /// Returns the value `had` with the count of another value added. The time stays, or with `renews` becomes that of the other
    /// value if that is later.
    #[inline]
    pub(crate) fn sum(self, had: u32, more: u32, renews: bool) -> u32 {
        if self.count_bits == 0 {
            return had.saturating_add(more).min(self.most);
        }
        let counts = !self.time & self.most;
        let count = ((had & counts) + (more & counts) + 1).min(counts);
        let time = if renews { had.max(more) } else { had };
        time & self.time | count
    }

    /// Returns the value `had` with a count lower by 1; 0 if none is left. The largest count stays, since it may stand for a larger
    /// one.
    pub(crate) fn less_one(self, had: u32) -> u32 {
        match self.count(had) {
            count if count == self.max_count() => had,
            0 | 1 => 0,
            _ => had - 1,
        }
    }

    #[inline]
    pub(crate) fn tag(self, value: u32, moment: Moment) -> u32 {
        debug_assert!(self.epochs(value) > 0 && value <= self.most, "a value of {value}");
        (moment.dead + value) & self.most
    }

    #[inline]
    pub(crate) fn slot(self, fingerprint: Fingerprint, value: u32, moment: Moment) -> u32 {
        fingerprint.get() << self.bits | self.tag(value, moment)
    }

    #[inline]
    pub(crate) fn value(self, slot: u32, moment: Moment) -> u32 {
        slot.wrapping_sub(moment.dead) & self.most
    }

    /// Returns a slot that has its value at another moment.
    pub(crate) fn moved(self, slot: u32, from: Moment, to: Moment) -> u32 {
        slot & !self.most | (self.value(slot, from) + to.dead) & self.most
    }

    /// Returns the fingerprint of a slot; `None` if it is empty or dead.
    #[inline]
    pub(crate) fn fingerprint(self, slot: u32, moment: Moment) -> Option<Fingerprint> {
        let fingerprint = Fingerprint::from_slot(slot >> self.bits)?;
        (self.epochs(self.value(slot, moment)) != 0).then_some(fingerprint)
    }

    /// Returns the factor that repeats a fingerprint in every slot of a run, above tags of 0.
    #[inline(always)]
    pub(crate) fn unit(self, low: u64) -> u64 {
        low << self.bits
    }

    /// Returns the complement of the dead tag in every slot of a run.
    ///
    /// The dead tag differs from the complement by 2^t - 1, and every other tag by less. So the live slots of a fingerprint, and no
    /// others, differ from the pattern by 0 to 2^t - 2, and [`Tags::minus`], which subtracts 2^t - 1 from each slot, borrows as
    /// subtracting 1 does without tags. With a count of c bits below, all these numbers are multiplied by 2^c, and the difference
    /// of the counts is less than that.
    #[inline(always)]
    pub(crate) fn alive(self, low: u64, moment: Moment) -> u64 {
        u64::from(!moment.dead & self.time).wrapping_mul(low)
    }

    /// Returns `0 - (2^t - 1)` in each slot, times 2^c, for [`hits_less`](super::lanes::hits_less).
    #[inline(always)]
    pub(crate) fn minus(self, low: u64) -> u64 {
        (low << self.count_bits).wrapping_sub(low << self.bits)
    }

    /// Returns the highest bit of each live slot of this fingerprint.
    #[inline(always)]
    pub(crate) fn live(self, lanes: Lanes, run: u64, fingerprint: Fingerprint, moment: Moment) -> u64 {
        let pattern = u64::from(fingerprint.get()).wrapping_mul(self.unit(lanes.low));
        let (tags, times) = (lanes.repeat(self.most), lanes.repeat(self.time));
        let difference = run ^ (pattern | lanes.repeat(moment.dead));
        // The first has no bits of the tag, and the second only those of the time. So only an equal fingerprint borrows from the
        // highest bit, also with a borrow from the slot below, and only an equal time does not carry into it.
        let (fingerprint, time) = (lanes.only(difference) & !tags, difference & times);
        fingerprint.wrapping_sub(lanes.low) & !fingerprint & (time + (lanes.high - lanes.low)) & lanes.high
    }

    /// Returns the highest bit of each slot that is empty or dead; above the lowest of them, that of others may be set, too.
    #[inline(always)]
    pub(crate) fn lowest_room(self, lanes: Lanes, run: u64, moment: Moment) -> u64 {
        // 0 where the tag is that of dead slots. Its highest bit is never set, since no tag has that of a slot.
        let difference = (run & lanes.repeat(self.time)) ^ lanes.repeat(moment.dead);
        (hits_less(run, 0, lanes.minus_low) | difference.wrapping_add(lanes.minus_low)) & lanes.high
    }

    #[inline(always)]
    pub(crate) fn dead(self, lanes: Lanes, run: u64, moment: Moment) -> u64 {
        lanes.equal(run & lanes.repeat(self.time), lanes.repeat(moment.dead)) & !lanes.equal(run, 0)
    }
}

#[cfg(all(test, not(cuckoo_model)))]
mod tests {
    use super::*;
    use crate::layout::lanes::tests::{pack, slots_of};
    use proptest::prelude::*;

    fn formats() -> impl Strategy<Value = (u32, u32, u32)> {
        let all: Vec<_> = (4..=32u32)
            .flat_map(|width| (1..=Tags::most_bits(width).min(width.saturating_sub(4))).map(move |bits| (width, bits)))
            .flat_map(|(width, bits)| (0..bits.min(17)).map(move |counts| (width, bits, counts)))
            .collect();
        prop::sample::select(all)
    }

    #[test]
    fn a_value_is_a_time_and_a_count() {
        for (bits, count_bits) in [(4, 1), (7, 4), (8, 6)] {
            let tags = Tags::new(&Plan { count_bits, ..Plan::one_shard(32, 2, 4).with_tags(bits) });
            let most = 1_u32 << count_bits;
            assert_eq!((tags.cycle(), tags.max_count(), tags.count(0)), (1 << (bits - count_bits), most, 0));
            let value = |time: u32, count: u32| tags.value_for(time) + count - 1;
            let parts = |value: u32| (value / most, value % most + 1);
            for had in most..=tags.most {
                let (time, count) = parts(had);
                assert_eq!((tags.epochs(had), tags.count(had), value(time, count)), (time, count, had));
                let less = if count == most { had } else { [0, had - 1][usize::from(count > 1)] };
                assert_eq!(tags.less_one(had), less);
                for more in most..=tags.most {
                    let (other, added) = parts(more);
                    let sum = (count + added).min(most);
                    assert_eq!(tags.sum(had, more, false), value(time, sum));
                    assert_eq!(tags.sum(had, more, true), value(time.max(other), sum));
                }
            }
        }
        // A count alone is its value.
        let tags = Tags::new(&Plan::one_shard(16, 2, 4).with_tags(4));
        assert_eq!([0, 1, 15].map(|value| tags.count(value)), [0, 1, 15]);
        assert_eq!([(1, 1), (14, 1), (15, 3)].map(|(had, more)| tags.sum(had, more, true)), [2, 15, 15]);
        assert_eq!([1, 2, 14, 15].map(|had| tags.less_one(had)), [0, 1, 13, 15]);
        // A count of one bit is full at once.
        let tags = Tags::new(&Plan::one_shard(16, 2, 4).with_tags(1));
        assert_eq!(([0, 1].map(|value| tags.count(value)), tags.sum(1, 1, false), tags.less_one(1)), ([0, 1], 1, 1));
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
            (width, bits, count_bits) in formats(),
            // Few values near the ends of the range, so that equal slots, equal tags and borrows are common.
            picks in prop::collection::vec((0u32..5, 0u32..4), 4),
            (wanted, epoch) in (1u32..5, 0u64..4),
            counts: u32,
            above: u64,
        ) {
            let plan = Plan { count_bits, ..Plan::one_shard(width, 2, 4).with_tags(bits) };
            let (tags, lanes) = (Tags::new(&plan), Lanes::new(width));
            let all_ones = u32::MAX >> (32 - (width - bits));
            let fingerprint = |pick: u32| [0, 1, 2, all_ones, all_ones - 1][pick as usize];
            let (times, count_mask) = (tags.most >> count_bits, (1 << count_bits) - 1);
            let time = |pick: u32| [0, 1, times, times / 2][pick as usize];
            let slots: Vec<u32> = picks
                .iter()
                .take(slots_of(width) as usize)
                .zip([0, 7, 13, 25].map(|shift| counts >> shift & count_mask))
                .map(|(&(high, low), count)| {
                    if high == 0 { 0 } else { fingerprint(high) << bits | time(low) << count_bits | count }
                })
                .collect();
            let run = pack(width, &slots, above);
            let wanted = Fingerprint::from_slot(fingerprint(wanted)).unwrap();
            let epoch = u64::from(time(epoch as u32)) + 5 * tags.cycle();
            let moment = tags.moment(epoch);

            let is_dead =
                |slot: u32| slot != 0 && u64::from((slot & tags.most) >> count_bits) == epoch % tags.cycle();
            let has = |slot: u32| slot >> bits == wanted.get();
            let named = |hits: u64| (0..slots.len()).map(|at| hits >> (at as u32 * width + width - 1) & 1 == 1).collect::<Vec<_>>();
            let each = |is: &dyn Fn(u32) -> bool| slots.iter().map(|&slot| is(slot)).collect::<Vec<_>>();
            let low = lanes.low;
            let pattern = u64::from(wanted.get()).wrapping_mul(tags.unit(low)) | tags.alive(low, moment);
            let hits = hits_less(run, pattern, tags.minus(low)) & lanes.high;
            // The lowest of them exactly, and any.
            let alive = tags.live(lanes, run, wanted, moment);
            prop_assert_eq!(hits.trailing_zeros(), alive.trailing_zeros());
            prop_assert_eq!(named(alive), each(&|slot| has(slot) && !is_dead(slot)));
            let lowest = |named: Vec<bool>| named.iter().position(|&is| is);
            let room = each(&|slot| slot == 0 || is_dead(slot));
            prop_assert_eq!(lowest(named(tags.lowest_room(lanes, run, moment))), lowest(room));
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
