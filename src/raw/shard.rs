//! A shard: a view of a range of buckets with their stripes.

use super::bucket_array::BucketArray;
use super::locks::{Held, Locked, Stripes};
use super::shards::Shards;
use super::slots::{Bare, Slots};
use crate::layout::{Class, Format, Geometry};
use crate::sys::prefetch::CacheLevel;

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
        debug_assert!(number < self.plan().shards);
        Shard { shards: self, number, slots }
    }
}

impl<'a, T: Slots> Shard<'a, T> {
    #[inline(always)]
    pub(super) fn geometry(self) -> &'a Geometry {
        &self.shards.shape.geometry
    }

    #[inline(always)]
    pub(super) fn bucket_array(self) -> BucketArray<'a> {
        BucketArray::of(self.shards, self.number)
    }

    #[inline(always)]
    pub(super) fn format(self) -> &'a Format {
        &self.shards.shape.format
    }

    #[cfg(all(feature = "shared", target_os = "linux"))]
    pub(super) fn tag_bits(self) -> u32 {
        self.shards.plan().tag_bits()
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

    /// Prefetches the buckets of a key.
    #[inline(always)]
    pub(crate) fn fetch(self, class: Class, level: CacheLevel) {
        self.bucket_array().prefetch(class.first, level);
        self.bucket_array().prefetch(class.second, level);
    }

    /// Prefetches everything that a lookup reads.
    #[inline(always)]
    pub(super) fn fetch_for_lookup(self, class: Class) {
        self.fetch(class, CacheLevel::L1);
        self.stripes().of(class.first).version().fetch();
    }

    pub(crate) fn fetch_all(self) {
        self.bucket_array().prefetch_all();
    }

    pub(crate) fn word_bytes(self) -> usize {
        self.bucket_array().bytes()
    }

    /// The number of occupied slots. Stripes are read one after the other.
    pub(crate) fn len(self) -> u64 {
        self.stripes().total()
    }

    /// Asserts that each copy is counted in the stripe of its slot, in a shard without writers that was never loaded or
    /// cleared.
    #[cfg(test)]
    pub(crate) fn assert_counted_where_they_belong(self) {
        let moment = self.moment();
        let mut expected = vec![0; self.stripes().count()];
        self.classes(moment).for_each(|(class, _)| expected[self.stripes().number(class.first)] += 1);
        assert_eq!(self.stripes().counts(), expected, "each copy is counted in the stripe of its slot");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::InsertError;
    use crate::layout::{Bucket, Hop, Mixed, Plan};
    use crate::raw::counters::Totals;
    use crate::raw::flat::Flat;
    use crate::raw::owner::Fixed;
    use crate::raw::pair::Put;
    use crate::raw::probe::Positions;
    use crate::raw::stripe::Watch;
    use crate::sys::memory::HugePages;

    fn shards() -> Flat {
        Flat::new(&Plan::new(200, 13, Some(4)).unwrap(), HugePages::Unadvised).unwrap()
    }

    fn insert(shards: &Flat, class: Class) -> Result<u32, InsertError> {
        let Ok(result) = shards.at(0).insert(Fixed, class, Put::COPY);
        result
    }

    fn classes(shards: &Flat) -> impl Iterator<Item = Class> + use<'_> {
        (0..).map(|hash| shards.locate(Mixed::of(hash)).1)
    }

    /// Lookups of a class read the version of either of its buckets, depending on the hash of the key.
    #[test]
    fn versions_advance_where_a_copy_moves_or_stays_behind_a_cleared_slot() {
        let shards = shards();
        let shard = shards.at(0);
        let stripe_of = |bucket: Bucket| bucket.get() >> shards.shards.plan().stripe_shift;
        let key = classes(&shards).find(|key| stripe_of(key.first) != stripe_of(key.second)).unwrap();
        let advanced = |work: &dyn Fn()| {
            let watched = [key, key.turned()].map(|key| {
                let place = shards
                    .shards
                    .shape
                    .geometry
                    .locate_flat::<false>(shards.shards.shape.geometry.leading_to(key).unwrap());
                let version = shards.shards.version(shards.shards.shape.positions.stripe_offset(place));
                (version, version.begin())
            });
            assert!(watched.iter().all(|(watch, version)| watch.is_still(*version)));
            work();
            watched.map(|(watch, version)| !watch.is_still(version))
        };
        let store = || assert_eq!(insert(&shards, key), Ok(0));
        let remove = || assert_eq!(shard.remove(Fixed, key, None), Ok(1));
        assert_eq!(advanced(&store), [false; 2]);
        assert_eq!(advanced(&remove), [false; 2], "the only copy");
        store();
        let hop = Hop { fingerprint: key.fingerprint, from: key.first, to: key.second };
        assert_eq!(advanced(&|| assert!(shard.hop(hop))), [true; 2]);
        assert_eq!(advanced(&|| assert!(!shard.hop(hop))), [false; 2], "it is no longer there");
        store();
        assert_eq!(advanced(&remove), [true; 2], "one of two copies");
        assert_eq!(advanced(&|| assert_eq!(shard.remove_all(Fixed, key), Ok(1))), [false; 2]);
        store();
        store();
        assert_eq!(advanced(&|| assert_eq!(shard.remove_all(Fixed, key), Ok(2))), [true; 2]);
        assert_eq!(advanced(&|| shard.clear()), [true; 2]);
        assert_eq!(shard.len(), 0);
    }

    /// `len` beside churn depends on it.
    #[test]
    fn copies_are_counted_in_the_stripe_of_their_slot() {
        let shards = shards();
        let shard = shards.at(0);
        let check = || shard.assert_counted_where_they_belong();
        let mut keys = Vec::new();
        // Up to the first refusal, with relocations.
        for key in classes(&shards) {
            check();
            if insert(&shards, key).is_err() {
                break;
            }
            keys.push(key);
        }
        let mut totals = Totals::default();
        shard.stripes().add_totals_to(&mut totals);
        assert!(totals.relocations > 10, "{totals:?}");
        for (number, &key) in keys.iter().enumerate() {
            if number % 2 == 0 {
                assert_eq!(shard.remove(Fixed, key, None), Ok(1));
            } else if number % 3 == 0 {
                assert!(shard.remove_all(Fixed, key).is_ok());
            } else {
                shard.exclusive().remove(key, None);
            }
            check();
        }
    }

    #[test]
    fn counts_are_mended_after_an_interrupted_change_and_after_no_other() {
        let shards = shards();
        let shard = shards.at(0);
        let mend = |taken: u64| {
            let mut mended = false;
            shard.stripes().lock_all().mend_counts(|| {
                mended = true;
                Some(taken)
            });
            mended
        };
        let keys: Vec<_> = classes(&shards).take(150).collect();
        keys.iter().for_each(|&key| assert!(insert(&shards, key).is_ok()));
        assert_eq!(shard.remove(Fixed, keys[0], None), Ok(1));
        assert_eq!(shard.remove_all(Fixed, keys[1]), Ok(1));
        assert!(!mend(1000));
        assert_eq!(shard.len(), 148);
        shard.stripes().note_interrupted();
        assert!(mend(147));
        assert_eq!(shard.len(), 147);
        assert!(!mend(1000));
        shard.stripes().note_interrupted();
        shard.stripes().lock_all().mend_counts(|| None);
        assert_eq!(shard.len(), 147);
        shard.clear();
        assert!(!mend(1000));
        assert_eq!(shard.len(), 0);
    }

    #[test]
    fn a_store_where_there_is_room_leaves_the_other_stripe_to_other_writers() {
        let shards = shards();
        let shard = shards.at(0);
        let stripe_of = |bucket: Bucket| bucket.get() >> shards.shards.plan().stripe_shift;
        let key = classes(&shards).find(|key| stripe_of(key.first) != stripe_of(key.second)).unwrap();
        let other = shard.stripes().lock_one(key.second);
        for _ in 0..4 {
            assert_eq!(shard.insert_into(Fixed, key.first, key, 1), Ok(true));
        }
        assert_eq!(shard.insert_into(Fixed, key.first, key, 1), Ok(false), "the bucket is full");
        drop(other);
        assert_eq!((shard.count(Fixed, key), shard.len()), (Ok(4), 4));
    }
}
