//! Relocation: making room for a key whose buckets are full.

use super::bucket_array::{Optimistic, Reading};
use super::counters::Event;
use super::intent::{self, Intent};
use super::locks::{AllOfShard, Held};
use super::owner::Owner;
use super::pair::{IfPresent, Put};
use super::probe::Runs;
use super::shard::Shard;
use super::slots::Slots;
use super::stripe::EMPTIED;
use crate::error::InsertError;
use crate::layout::{
    Bucket, Class, Doubled, FOUR_HOPS, Fingerprint, Hop, Path, SLOTS, Search, SearchBudget, ShortPath, Slot, Steps,
    TWO_HOPS, find_short,
};
use crate::sys::isa::{Compiled, Function};
use crate::sys::prefetch::CacheLevel;
use crate::sys::steps::{Step, reached};
use crate::sys::unaligned;

/// [`find_short`] in a shard, from one number of a bucket to another.
struct FindShort<const FROM: usize, const TO: usize>;

/// The input of [`FindShort`].
type FindIn<'s, T, B> = (Class, <T as Slots>::Moment, Reading, &'s mut Steps<B>);

impl<'a, T: Slots, B: Runs, const FROM: usize, const TO: usize>
    Function<Shard<'a, T>, FindIn<'_, T, B>, Option<ShortPath>> for FindShort<FROM, TO>
{
    #[inline(always)]
    fn run(shard: &Shard<'a, T>, (class, moment, reading, steps): FindIn<'_, T, B>) -> Option<ShortPath> {
        // Copies stay in registers: after each read the compiler would reload anything else.
        let (array, alternates, format) = (shard.bucket_array(), *shard.alternates(), *shard.format());
        let slots = shard.slots;
        let room = move |run| slots.lowest_room(format.lanes, run, moment);
        let read = |bucket| {
            B::of(if unaligned::AVAILABLE && B::SLOTS == 4 {
                [array.run_at_once(format.begin(bucket)), 0]
            } else {
                array.runs(&format, bucket, reading)
            })
        };
        find_short(
            steps,
            FROM..TO,
            [class.first, class.second],
            read,
            |runs| shard.fingerprints(format.slots(runs.both()), moment),
            |runs| runs.any_of(room) != 0,
            |fingerprint, bucket| alternates.alternate(fingerprint, bucket),
        )
    }
}

impl<T: Slots> Shard<'_, T> {
    /// Prefetches the buckets that a search for this key would read first, if its pair is full.
    #[inline]
    pub(crate) fn fetch_path(self, class: Class) {
        let moment = self.moment();
        let full = |bucket| !self.bucket_array().matching(bucket, Optimistic, self.room(moment)).any();
        if full(class.first) && full(class.second) {
            self.fetch_alternates(class.first, moment);
            self.fetch_alternates(class.second, moment);
        }
    }

    /// Prefetches the other buckets of the fingerprints in this one.
    #[inline(always)]
    fn fetch_alternates(self, bucket: Bucket, moment: T::Moment) {
        let slots = self.bucket_array().slots(bucket, Optimistic);
        for fingerprint in slots.into_iter().filter_map(|slot| self.slots.fingerprint(slot, moment)) {
            self.bucket_array().prefetch(self.alternates().alternate(fingerprint, bucket), CacheLevel::L1);
        }
    }

    /// Searches a path of up to four hops.
    #[inline]
    pub(super) fn find_short_path(self, class: Class, moment: T::Moment, reading: Reading) -> Option<ShortPath> {
        if self.format().has_two_runs() {
            self.find_short_as::<[u64; 2]>(class, moment, reading)
        } else {
            self.find_short_as::<u64>(class, moment, reading)
        }
    }

    /// Scalars find paths of one or two hops sooner, and most have no more. Vectors search the other buckets faster.
    #[inline]
    fn find_short_as<B: Runs>(self, class: Class, moment: T::Moment, reading: Reading) -> Option<ShortPath> {
        let mut steps = Steps::<B>::new();
        FindShort::<0, TWO_HOPS>::run(&self, (class, moment, reading, &mut steps)).or_else(|| {
            Compiled::for_vectors::<FindShort<TWO_HOPS, FOUR_HOPS>>().call(&self, (class, moment, reading, &mut steps))
        })
    }

    /// The live fingerprints of these slots, or 0.
    #[inline(always)]
    pub(super) fn fingerprints(self, slots: [u32; SLOTS], moment: T::Moment) -> [u32; SLOTS] {
        let fingerprint = |at: usize| self.slots.fingerprint(slots[at], moment).map_or(0, Fingerprint::get);
        [fingerprint(0), fingerprint(1), fingerprint(2), fingerprint(3)]
    }

    /// Searches a path of relocations that makes room in the pair of the class. Returns `None` if there is none within
    /// the budget.
    pub(super) fn find_path<'a>(
        self,
        search: &'a mut Search,
        budget: SearchBudget,
        class: Class,
        moment: T::Moment,
        reading: Reading,
    ) -> Option<Path<'a>> {
        let (array, format) = (self.bucket_array(), *self.format());
        let room = |run| self.slots.lowest_room(format.lanes, run, moment) != 0;
        search.find(
            budget,
            [class.first, class.second],
            |bucket| array.runs(&format, bucket, reading),
            |runs| self.fingerprints(format.slots(runs), moment),
            |[low, high]| room(low) || format.has_two_runs() && room(high),
            |fingerprint, bucket| self.alternates().alternate(fingerprint, bucket),
        )
    }

    /// Whether there would be a path in the doubled table. The whole table is locked.
    pub(super) fn fits(
        self,
        doubled: &Doubled,
        budget: SearchBudget,
        class: Class,
        held: &Held<'_, AllOfShard<'_>, T::Moment>,
    ) -> bool {
        let now = |bucket| self.fingerprints(self.bucket_array().slots(bucket, (&held.locked).into()), held.moment);
        let mut search = Search::new();
        let path = search.find(
            budget,
            doubled.buckets(class),
            |bucket| doubled.contents(class, bucket, now),
            |slots| slots,
            |slots| slots.contains(&0),
            |fingerprint, bucket| doubled.alternate(fingerprint, bucket),
        );
        path.is_some()
    }

    /// Moves the hole from the free end of the path to the pair of the key and fills it, each hop under its own locks.
    /// Returns `None` if another writer spoiled the path: completed hops are whole relocations (H5).
    #[inline]
    pub(crate) fn relocate_along<H: Owner>(
        self,
        owner: H,
        path: impl IntoIterator<Item = Hop>,
        class: Class,
        put: Put,
    ) -> Result<Option<Result<u32, InsertError>>, H::Again> {
        let mut hops = path.into_iter().zip(1..).peekable();
        while let Some((hop, length)) = hops.next() {
            if hops.peek().is_none() {
                return Ok(self.last_hop(owner, hop, length, class, put)?.map(Ok));
            }
            if !self.hop(hop) {
                return Ok(None);
            }
        }
        // During the search, room appeared in the pair itself.
        self.insert_into_pair(owner, class, put)
    }

    /// Carries out an inner hop under the locks of its own pair. Does not check the owner: a fingerprint that went to
    /// another table is not found here.
    pub(crate) fn hop(self, hop: Hop) -> bool {
        let held = self.hold(self.stripes().lock_pair(hop.from, hop.to));
        let moved = self.relocate(&held, hop).is_some();
        if moved {
            held.locked.note(hop.from, Event::Relocated);
        }
        moved
    }

    /// Carries out the last hop and inserts the key in one critical section, so that no other writer gets the hole. A
    /// unique key is looked for again, and so is room (H4, models unique_*). Another copy decides nothing on the pair:
    /// it needs the locks of the hop alone, and takes the vacated slot (models last_hop_* and crossing_last_hops_*).
    #[inline]
    pub(super) fn last_hop<H: Owner>(
        self,
        owner: H,
        hop: Hop,
        length: u64,
        class: Class,
        put: Put,
    ) -> Result<Option<u32>, H::Again> {
        if put.if_present == IfPresent::Another {
            let held = self.hold(self.stripes().lock_pair(hop.from, hop.to));
            owner.check()?;
            return Ok(self.displace(&held, hop, length, class, put.value));
        }
        let held = self.hold(self.stripes().lock_three([class.first, class.second, hop.to]));
        owner.check()?;
        if let Some(had) = self.place(&held, class, put) {
            return Ok(Some(had));
        }
        Ok(self.displace(&held, hop, length, class, put.value))
    }

    #[inline(always)]
    fn displace(
        self,
        held: &Held<'_, impl Sized, T::Moment>,
        hop: Hop,
        length: u64,
        class: Class,
        value: u32,
    ) -> Option<u32> {
        let freed = self.relocate(held, hop)?;
        self.fill(held, freed, class, value);
        held.locked.note(hop.from, Event::Path { length, relocated: 1 });
        Some(0)
    }

    /// Moves a copy of the fingerprint to its other bucket and returns the vacated slot, or `None` if the fingerprint
    /// is gone or its other bucket is full (H4).
    ///
    /// Copy, bump, clear: the fingerprint always stands in at least one bucket, and a lookup that saw neither copy sees
    /// the bump (H1).
    #[inline(always)]
    pub(super) fn relocate(self, held: &Held<'_, impl Sized, T::Moment>, hop: Hop) -> Option<Slot> {
        let class = Class { fingerprint: hop.fingerprint, first: hop.from, second: hop.to };
        let old = self.find_in(held, class, hop.from).lowest(self.format())?;
        let new = self.room_in(held, hop.to)?;
        let holds = if T::TAGGED { self.bucket_array().value(&held.locked, old) } else { hop.fingerprint.get() };
        if held.locked.is_noted() {
            let [from, to] = [old, new].map(|slot| intent::number(self.format(), slot));
            held.locked.intend(hop.from, Intent::Relocate { from, to: to % SLOTS as u32, holds });
        }
        let was_empty = self.overwrite(held, new, holds);
        reached(Step::Copied);
        held.locked.bump(class);
        self.bucket_array().clear(&held.locked, old);
        if was_empty {
            held.locked.move_count(hop.from, hop.to);
        } else {
            // A dead slot is counted already.
            held.locked.count(hop.from, |count| count.wrapping_add(EMPTIED));
        }
        if held.locked.is_noted() {
            held.locked.fulfil(hop.from);
        }
        Some(old)
    }
}

#[cfg(all(test, not(cuckoo_model)))]
mod tests {
    use super::*;
    use crate::CuckooFilter;
    use crate::layout::Mixed;
    use crate::raw::owner::Fixed;
    use crate::sys::steps::steps_of;
    use std::collections::BTreeMap;

    /// Without other writers, each path is carried out as it was found: in one critical section per hop, of which the
    /// last stores the key, or in one for all of them with the shard locked. Either is counted.
    #[test]
    fn a_path_takes_one_critical_section_per_hop() {
        for (width, alone) in [(8, false), (13, false), (16, false), (24, false), (16, true)] {
            let filter = CuckooFilter::<u64>::builder().capacity(2000).fingerprint_bits(width).build().unwrap();
            let mut lengths = BTreeMap::new();
            for hash in 0.. {
                let insert = || {
                    if !alone {
                        return filter.hashed().insert(&hash);
                    }
                    let (shard, class) = filter.raw.flat().locate(Mixed::of(hash));
                    let (mut search, mut budget) = (Search::new(), SearchBudget::full());
                    let Ok(result) = shard.exclusive().insert(Fixed, &mut search, &mut budget, class, Put::COPY);
                    result.map(|_| ())
                };
                let before = filter.stats();
                let (steps, result) = steps_of(insert);
                let times = |wanted| steps.iter().filter(|&&step| step == wanted).count();
                let (hops, after) = (times(Step::Copied), filter.stats());
                if result.is_err() {
                    assert_eq!((hops, filter.len()), (0, before.len));
                    assert_eq!(filter.raw.totals().refused_full, 1);
                    break;
                }
                let sections = if alone { 1 } else { hops.max(1) };
                assert_eq!((times(Step::Locked), times(Step::Cleared)), (sections, hops), "{steps:?}");
                assert_eq!(after.relocations - before.relocations, hops as u64);
                assert_eq!(after.longest_path, before.longest_path.max(hops as u64));
                *lengths.entry(hops).or_insert(0) += 1;
            }
            assert!(width < 13 || lengths.keys().any(|&hops| hops >= 3), "{lengths:?}");
        }
    }
}
