//! Slots with a number under their fingerprint, the *tag*: which of them are alive, dead, or of some fingerprint.
//!
//! ```text
//! 16 bits, 3 of them a tag:                      15 ....... 3 | 2 .. 0
//!                                                fingerprint    tag
//! 24 bits, 7 of them a tag, 4 of these a count:  23 ....... 7 | 6 .. 4 | 3 .. 0
//!                                                fingerprint    time     count
//! ```
//!
//! What a tag says depends on the epoch. Its *value* is the tag less the epoch, modulo 2^t: how many epochs a slot has
//! left. 0 is dead, 1 to 2^t - 1 are alive. Where the epoch never moves, a value is any number that is not 0.
//!
//! A tag may have a count of c bits under its time, stored less one. Its value is then the epochs that are left, times 2^c, and the
//! stored count: the slot is dead if the value is below 2^c. Time stands above the count, so that a lookup needs not know the count: the
//! tags that are alive are neighbours, as they are without counts.

use super::fingerprint::Fingerprint;
use super::lanes::Lanes;
use super::plan::Plan;

/// The division of the tags of a filter. The width of its slots may differ from table to table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tags {
    bits: u32,
    /// The largest tag.
    most: u32,
    /// Bits of the count under the time.
    count_bits: u32,
    /// The mask of the time.
    time: u32,
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
        let (most, count_bits) = (u32::MAX >> (32 - bits), plan.count_bits);
        debug_assert!(count_bits < bits);
        Tags { bits, most, count_bits, time: most >> count_bits << count_bits }
    }

    /// The mask of a tag, which is the largest value, too.
    #[inline]
    pub(crate) fn most(self) -> u32 {
        self.most
    }

    #[inline(always)]
    pub(crate) fn moment(self, epoch: u64) -> Moment {
        Moment { dead: (epoch as u32) << self.count_bits & self.most }
    }

    /// Epochs after which tags are the same again.
    pub(crate) fn cycle(self) -> u64 {
        u64::from(self.most >> self.count_bits) + 1
    }

    /// The epochs that a slot of this value has left.
    #[inline(always)]
    pub(crate) fn epochs(self, value: u32) -> u32 {
        value >> self.count_bits
    }

    /// The value of a slot that has this many epochs left and counts 1.
    pub(crate) fn value_for(self, epochs: u32) -> u32 {
        epochs << self.count_bits
    }

    /// The count of a value, 0 of none: the value itself where there is no time.
    #[inline(always)]
    pub(crate) fn count(self, value: u32) -> u32 {
        if self.count_bits == 0 || value == 0 { value } else { (value & !self.time) + 1 }
    }

    #[inline(always)]
    pub(crate) fn max_count(self) -> u32 {
        if self.count_bits == 0 { self.most } else { 1 << self.count_bits }
    }

    /// The value of a slot that had this one, when the count of another value is added. Its time stays, or is that of the other
    /// value if that is later and `renews`.
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

    /// The value of a slot that had this one, when 1 is taken from its count; 0 if nothing is left. A count that is full stays: it may
    /// stand for a larger one.
    pub(crate) fn less_one(self, had: u32) -> u32 {
        match self.count(had) {
            count if count == self.max_count() => had,
            0 | 1 => 0,
            _ => had - 1,
        }
    }

    /// The tag of this value.
    #[inline]
    pub(crate) fn tag(self, value: u32, moment: Moment) -> u32 {
        debug_assert!(self.epochs(value) > 0 && value <= self.most, "a value of {value}");
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
        (self.epochs(self.value(slot, moment)) != 0).then_some(fingerprint)
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
    /// 2^t - 1 from each, borrows as subtracting 1 does where slots have no tag. With a count of c bits below, all of this is
    /// times 2^c, and what the count differs by is less than that.
    #[inline(always)]
    pub(crate) fn alive(self, low: u64, moment: Moment) -> u64 {
        u64::from(!moment.dead & self.time).wrapping_mul(low)
    }

    /// `0 - (2^t - 1)` of each slot, times 2^c, for [`hits_less`](super::lanes::hits_less).
    #[inline(always)]
    pub(crate) fn minus(self, low: u64) -> u64 {
        (low << self.count_bits).wrapping_sub(low << self.bits)
    }

    /// The slots that have this fingerprint and are alive: the highest bit of each.
    #[inline(always)]
    pub(crate) fn live(self, lanes: Lanes, run: u64, fingerprint: Fingerprint, moment: Moment) -> u64 {
        let pattern = u64::from(fingerprint.get()).wrapping_mul(self.unit(lanes.low()));
        let (tags, times) = (lanes.repeat(self.most), lanes.repeat(self.time));
        let difference = run ^ (pattern | lanes.repeat(moment.dead));
        // The bits of the tag are 0 in the first, and those of the time all that there are in the second. So nothing but an equal
        // fingerprint borrows from the highest bit, with a borrow from the slot below too, and nothing but an equal time does
        // not carry into it.
        let (fingerprint, time) = (lanes.only(difference) & !tags, difference & times);
        fingerprint.wrapping_sub(lanes.low()) & !fingerprint & (time + (lanes.high() - lanes.low())) & lanes.high()
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
        lanes.equal(run & lanes.repeat(self.time), lanes.repeat(moment.dead))
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

    /// Every width with every tag and every count that it may have.
    fn formats() -> impl Strategy<Value = (u32, u32, u32)> {
        let all: Vec<_> = (4..=32u32)
            .flat_map(|width| (1..=Tags::most_bits(width).min(width.saturating_sub(4))).map(move |bits| (width, bits)))
            .flat_map(|(width, bits)| (0..bits.min(17)).map(move |counts| (width, bits, counts)))
            .collect();
        prop::sample::select(all)
    }

    /// What a value means is what two numbers would.
    #[test]
    fn a_value_is_a_time_and_a_count() {
        for (bits, count_bits) in [(4, 1), (7, 4), (8, 6), (16, 8)] {
            let tags = Tags::new(&Plan { count_bits, ..Plan::one_shard(32, 2, 4).with_tags(bits) });
            let (times, most) = (1..1_u32 << (bits - count_bits), 1_u32 << count_bits);
            assert_eq!((tags.cycle(), tags.max_count()), (1 << (bits - count_bits), most));
            assert_eq!(tags.count(0), 0);
            let value = |time: u32, count: u32| tags.value_for(time) + count - 1;
            let few = |all: core::ops::RangeInclusive<u32>| {
                let end = *all.end();
                all.filter(move |&number| number < 5 || number + 2 > end)
            };
            for (time, count) in times.clone().flat_map(|time| few(1..=most).map(move |count| (time, count))) {
                let had = value(time, count);
                assert_eq!((tags.epochs(had), tags.count(had)), (time, count));
                let less = if count == most {
                    had
                } else if count == 1 {
                    0
                } else {
                    value(time, count - 1)
                };
                assert_eq!(tags.less_one(had), less);
                for (other, more) in
                    few(1..=times.end - 1).flat_map(|time| few(1..=most).map(move |count| (time, count)))
                {
                    let sum = (count + more).min(most);
                    assert_eq!(tags.sum(had, value(other, more), false), value(time, sum));
                    assert_eq!(tags.sum(had, value(other, more), true), value(time.max(other), sum));
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
            let (times, count_mask) = (tags.most() >> count_bits, (1 << count_bits) - 1);
            let time = |pick: u32| [0, 1, times, times / 2][pick as usize];
            // An empty slot is 0 in all its bits.
            let slots: Vec<u32> = picks
                .iter()
                .take(slots_of_a_run(width) as usize)
                .zip([0, 7, 13, 25].map(|shift| counts >> shift & count_mask))
                .map(|(&(high, low), count)| {
                    if high == 0 { 0 } else { fingerprint(high) << bits | time(low) << count_bits | count }
                })
                .collect();
            let used = slots.len() as u32 * width;
            let above = if used == 64 { 0 } else { above << used };
            let run = slots.iter().enumerate().fold(above, |run, (at, &slot)| run | u64::from(slot) << (at as u32 * width));
            let wanted = Fingerprint::from_slot(fingerprint(wanted)).unwrap();
            let epoch = u64::from(time(epoch as u32)) + 5 * tags.cycle();
            let moment = tags.moment(epoch);

            let is_dead =
                |slot: u32| slot != 0 && u64::from((slot & tags.most()) >> count_bits) == epoch % tags.cycle();
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
