//! A shard: some buckets with their stripes, a small filter of its own. The protocol lives here.
//!
//! | operation        | locks                       | bumps the version            | file   |
//! |------------------|-----------------------------|------------------------------|--------|
//! | look-up          | none                        | no                           | lookup |
//! | insert           | the pair                    | no                           | insert |
//! | ... by a path    | two stripes a hop, three at the last | at each relocation  | relocate |
//! | ... refused      | all of the shard            | no                           | relocate |
//! | count            | the pair                    | no                           | lookup |
//! | remove           | the pair                    | if copies of the class stay  | remove |
//! | many inserts, removes | all of the shard     | as each by itself            | alone  |
//! | clear            | all of the shard            | yes                          | remove |
//! | copy             | all of the shard            | no                           | copy   |
//!
//! Why this is enough is argued case by case in DESIGN.md, "The protocol".

mod alone;
mod change;
mod copy;
mod insert;
mod lookup;
mod relocate;
mod remove;

pub(crate) use alone::{Alone, KEYS_UNDER_LOCKS};
pub(crate) use change::Change;
pub(crate) use insert::Admission;
pub(crate) use lookup::Aim;

#[cfg(all(test, not(cuckoo_shuttle)))]
use crate::geometry::Geometry;
use crate::geometry::{Candidates, Plan};
use crate::prefetch::Into;
use crate::stripe::Stripes;
use crate::table::{Format, Table};
use crate::tally::Tallies;

/// The words and the stripes of a run of buckets.
pub(crate) struct Shard {
    table: Table,
    stripes: Stripes,
}

impl Shard {
    /// `None` when there is no memory.
    pub(crate) fn new(words: usize, stripes: usize, stripe_shift: u32) -> Option<Self> {
        Some(Shard { table: Table::new(words)?, stripes: Stripes::new(stripes, stripe_shift)? })
    }

    /// Memory behind a shard of this plan, in bytes; `None` if that overflows.
    pub(crate) fn heap_bytes_of(plan: &Plan) -> Option<usize> {
        Table::bytes_of(plan.words)?.checked_add(Stripes::bytes_of(plan.stripes)?)
    }

    /// Memory behind this value, in bytes.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.table.bytes() + self.stripes.bytes()
    }

    /// Memory of the words, in bytes.
    pub(crate) fn table_bytes(&self) -> usize {
        self.table.bytes()
    }

    /// Begins to fetch the buckets of a key.
    #[inline(always)]
    pub(crate) fn fetch(&self, format: &Format, key: Candidates, into: Into) {
        self.table.prefetch(format, key.first, into);
        self.table.prefetch(format, key.second, into);
    }

    /// Begins to fetch all buckets.
    pub(crate) fn fetch_all(&self) {
        self.table.prefetch_all();
    }

    /// Adds what has happened in each stripe.
    pub(crate) fn add_tallies_to(&self, tallies: &mut Tallies) {
        self.stripes.add_tallies_to(tallies);
    }

    /// Checks in which stripe each stored copy is counted, of a shard that nobody writes, and that was neither loaded nor
    /// cleared: of that, only the sum is kept.
    #[cfg(all(test, not(cuckoo_shuttle)))]
    pub(crate) fn assert_counted_where_they_belong(&self, geometry: &Geometry, format: &Format) {
        let expected = self.stripes.histogram(self.classes(geometry, format).map(Candidates::lower));
        assert_eq!(self.stripes.counts(), expected, "each copy is counted in the stripe of its class's lower bucket");
    }

    /// Stored fingerprints. Each stripe is read at a moment of its own.
    pub(crate) fn len(&self) -> u64 {
        self.stripes.total()
    }
}

#[cfg(all(test, not(any(cuckoo_loom, cuckoo_shuttle))))]
mod tests {
    use super::*;
    use crate::error::InsertError;
    use crate::geometry::{Bucket, Fingerprint};
    use crate::path::Hop;

    struct House {
        plan: Plan,
        geometry: Geometry,
        format: Format,
        shard: Shard,
    }

    fn house() -> House {
        let plan = Plan::new(200, 13, Some(4)).unwrap();
        let shard = Shard::new(plan.words, plan.stripes, plan.stripe_shift).unwrap();
        House { plan, geometry: Geometry::new(&plan), format: Format::new(plan.width), shard }
    }

    impl House {
        fn insert(&self, key: Candidates) -> Result<bool, InsertError> {
            self.shard.insert(&self.geometry, &self.format, key, Admission::Copies)
        }
    }

    /// Look-ups of a class watch the stripe of either of its buckets, as the hash of the key has it.
    #[test]
    fn versions_advance_where_a_copy_moves_or_stays_behind_a_cleared_slot() {
        let house = house();
        let House { plan, geometry, format, shard } = &house;
        let stripe_of = |bucket: Bucket| bucket.get() >> plan.stripe_shift;
        let mut keys = (0..).map(|hash| geometry.locate(hash).1);
        let key = keys.find(|key| stripe_of(key.first) != stripe_of(key.second)).unwrap();
        let turned = Candidates { first: key.second, second: key.first, ..key };
        let advanced = |work: &dyn Fn()| {
            let watched = [key, turned].map(|key| (shard.stripes.watch(key), shard.stripes.watch(key).begin()));
            assert!(watched.iter().all(|(watch, version)| watch.is_still(*version)));
            work();
            watched.map(|(watch, version)| !watch.is_still(version))
        };
        let insert = || assert_eq!(house.insert(key), Ok(true));
        let remove = || assert!(shard.remove(format, key));
        assert_eq!(advanced(&insert), [false; 2]);
        assert_eq!(advanced(&remove), [false; 2], "the only copy");
        insert();
        let hop = Hop { fingerprint: key.fingerprint, from: key.first, to: key.second };
        assert_eq!(advanced(&|| assert!(shard.hop(format, hop))), [true; 2]);
        assert_eq!(advanced(&|| assert!(!shard.hop(format, hop))), [false; 2], "it is no longer there");
        insert();
        assert_eq!(advanced(&remove), [true; 2], "one of two copies");
        assert_eq!(advanced(&|| assert_eq!(shard.remove_all(format, key), 1)), [false; 2]);
        insert();
        insert();
        assert_eq!(advanced(&|| assert_eq!(shard.remove_all(format, key), 2)), [true; 2]);
        assert_eq!(advanced(&|| shard.clear()), [true; 2]);
        assert_eq!(shard.len(), 0);
    }

    /// Beside churn, `len` is only right if what an insertion adds and what the removal of the same copy takes away stand in
    /// stripes that belong together.
    #[test]
    fn copies_are_counted_in_the_stripe_that_is_said() {
        let house = house();
        let House { geometry, format, shard, .. } = &house;
        let check = || shard.assert_counted_where_they_belong(geometry, format);
        let mut keys = Vec::new();
        // Up to the first refusal, with relocations.
        for key in (0..).map(|hash| geometry.locate(hash).1) {
            check();
            if house.insert(key).is_err() {
                break;
            }
            keys.push(key);
        }
        let mut tallies = Tallies::default();
        shard.add_tallies_to(&mut tallies);
        assert!(tallies.relocations > 10, "{tallies:?}");
        for (number, &key) in keys.iter().enumerate() {
            if number % 2 == 0 {
                assert!(shard.remove(format, key));
            } else if number % 3 == 0 {
                shard.remove_all(format, key);
            } else {
                let alone = shard.alone(geometry, format);
                alone.remove(key);
            }
            check();
        }
    }

    #[test]
    fn memory_is_that_of_the_words_and_the_stripes() {
        let House { plan, shard, .. } = house();
        assert_eq!(Some(shard.heap_bytes()), Shard::heap_bytes_of(&plan));
        // One word to spare.
        assert_eq!(shard.table_bytes(), (plan.words + 1) * 8);
        let stripes = shard.heap_bytes() - shard.table_bytes();
        assert!(stripes >= plan.stripes * 64 && stripes % plan.stripes == 0, "{stripes} bytes of {}", plan.stripes);
    }

    #[test]
    fn counts_are_mended_after_an_interrupted_change_and_after_no_other() {
        let house = house();
        let House { geometry, format, shard, .. } = &house;
        let mend = |taken: u64| {
            let mut mended = false;
            shard.stripes.lock_all().mend_counts(|| {
                mended = true;
                Some(taken)
            });
            mended
        };
        let keys: Vec<_> = (0..150).map(|hash| geometry.locate(hash).1).collect();
        keys.iter().for_each(|&key| assert!(house.insert(key).is_ok()));
        assert!(shard.remove(format, keys[0]));
        assert_eq!(shard.remove_all(format, keys[1]), 1);
        assert!(!mend(1000));
        assert_eq!(shard.len(), 148);
        shard.stripes.note_interrupted();
        assert!(mend(147));
        assert_eq!(shard.len(), 147);
        assert!(!mend(1000));
        shard.stripes.note_interrupted();
        shard.stripes.lock_all().mend_counts(|| None);
        assert_eq!(shard.len(), 147);
        shard.clear();
        assert!(!mend(1000));
        assert_eq!(shard.len(), 0);
    }

    #[test]
    fn coinciding_candidates_are_one_bucket_whose_slots_count_once() {
        let house = house();
        let House { geometry, format, shard, .. } = &house;
        let bucket = geometry.all_buckets().nth(17).unwrap();
        let key = Candidates { fingerprint: Fingerprint::from_slot(5).unwrap(), first: bucket, second: bucket };
        for copies in 0..4 {
            assert_eq!((shard.count(format, key), shard.len()), (copies, copies as u64));
            assert_eq!(house.insert(key), Ok(true));
        }
        assert_eq!(house.insert(key), Err(InsertError::TooManyCopies));
        assert_eq!((shard.count(format, key), shard.len()), (4, 4));
        assert!(shard.remove(format, key));
        assert_eq!(shard.remove_all(format, key), 3);
        assert!(!shard.remove(format, key));
        assert_eq!((shard.count(format, key), shard.len()), (0, 0));
    }
}
