//! A shard: a view of a range of buckets with their stripes.

use super::bucket_array::BucketArray;
use super::locks::{Held, Locked, Stripes};
use super::shards::Shards;
use super::slots::{Bare, Slots};
use crate::layout::{Alternates, Class, Fingerprint, Format, Plan};
use crate::sys::prefetch::{CacheLevel, prefetch};

/// The words and stripes of a shard, and the kind of its slots.
#[derive(Clone, Copy)]
pub(crate) struct Shard<'a, T: Slots = Bare> {
    shards: &'a Shards,
    number: usize,
    pub(super) slots: T,
}

impl Shards {
    #[inline(always)]
    pub(crate) fn at<T: Slots>(&self, number: usize, slots: T) -> Shard<'_, T> {
        debug_assert!(number < self.plan.shards);
        Shard { shards: self, number, slots }
    }
}

impl<'a, T: Slots> Shard<'a, T> {
    #[inline(always)]
    pub(super) fn alternates(self) -> &'a Alternates {
        &self.shards.alternates
    }

    #[inline(always)]
    pub(super) fn bucket_array(self) -> BucketArray<'a> {
        BucketArray::of(self.shards, self.number)
    }

    #[inline(always)]
    pub(super) fn format(self) -> &'a Format {
        &self.shards.format
    }

    /// The plan of all shards, or of a table.
    pub(super) fn plan(self) -> &'a Plan {
        &self.shards.plan
    }

    #[inline(always)]
    pub(super) fn stripes(self) -> Stripes<'a> {
        Stripes::new(self.shards, self.number)
    }

    /// Reads the epoch for locked stripes.
    #[inline(always)]
    pub(super) fn hold<G>(self, locked: Locked<'a, G>) -> Held<'a, G, T::Moment> {
        Held { moment: self.moment(), locked }
    }

    /// The moment of the present epoch. Without locks, a hint that decides only the next step.
    #[inline(always)]
    pub(super) fn moment(self) -> T::Moment {
        self.slots.moment(self.slots.now())
    }

    /// A function that returns the slots of a run that are empty or dead, of which only the lowest is exact.
    #[inline(always)]
    pub(super) fn room(self, moment: T::Moment) -> impl Fn(u64) -> u64 + Copy {
        let lanes = &self.format().lanes;
        move |run| self.slots.lowest_room(*lanes, run, moment)
    }

    /// A function that returns the slots of a run with this fingerprint that are alive.
    #[inline(always)]
    pub(super) fn live(self, fingerprint: Fingerprint, moment: T::Moment) -> impl Fn(u64) -> u64 + Copy {
        let lanes = &self.format().lanes;
        move |run| self.slots.live(*lanes, run, fingerprint, moment)
    }

    /// Prefetches the buckets of a key.
    #[inline(always)]
    pub(crate) fn fetch(self, class: Class, level: CacheLevel) {
        self.bucket_array().prefetch(class.first, level);
        self.bucket_array().prefetch(class.second, level);
    }

    pub(crate) fn fetch_all(self) {
        // Most machines have cache lines of 8 words.
        self.bucket_array().words().chunks(8).for_each(|line| prefetch(&line[0], CacheLevel::L2));
    }

    pub(crate) fn word_bytes(self) -> usize {
        self.shards.plan.words as usize * size_of::<u64>()
    }

    /// The number of occupied slots. Stripes are read one after the other.
    pub(crate) fn len(self) -> u64 {
        self.stripes().total_and(0)
    }

    /// Asserts that each copy is counted in the stripe of its slot, in a shard without writers that was never loaded or
    /// cleared.
    #[cfg(all(test, cuckoo_loom))]
    pub(crate) fn assert_counted_where_they_belong(self) {
        let (moment, mut expected) = (self.moment(), vec![0; self.stripes().count()]);
        let live = self.contents().filter(|&(_, slot)| self.slots.fingerprint(slot, moment).is_some());
        live.for_each(|(bucket, _)| expected[self.stripes().number(bucket)] += 1);
        let counts: Vec<_> =
            self.stripes().each().iter().map(|stripe| super::stripe::occupied(stripe.count())).collect();
        assert_eq!(counts, expected, "each copy is counted in the stripe of its slot");
    }
}

#[cfg(all(test, not(cuckoo_model)))]
mod tests {
    use crate::layout::{Mixed, Plan};
    use crate::raw::flat::Flat;
    use crate::raw::owner::Fixed;
    use crate::raw::pair::Put;
    use crate::sys::memory::HugePages;

    #[test]
    fn counts_are_mended_after_an_interrupted_change_and_after_no_other() {
        let flat: Flat = Flat::new(&Plan::new(200, 13, Some(4)).unwrap(), HugePages::Unadvised).unwrap();
        let shard = flat.at(0);
        let interrupted = shard.stripes().interrupted();
        let mend = |taken| {
            shard.stripes().lock_all().mend_counts(|| taken);
            shard.len()
        };
        for hash in 0..150 {
            assert_eq!(shard.insert(Fixed, flat.locate(Mixed::of(hash)).1, Put::COPY), Ok(Ok(0)));
        }
        assert_eq!(mend(Some(1000)), 150);
        interrupted.set(true);
        assert_eq!([Some(147), Some(1000)].map(mend), [147; 2]);
        interrupted.set(true);
        assert_eq!(mend(None), 147);
    }
}
