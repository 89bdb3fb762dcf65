//! Changes of many keys on one thread, in a window (`window`): the buckets of some are fetched from memory while the keys
//! before them are worked on. Lookups of many go in blocks (`block`).

use super::filter::RawFilter;
use super::flat::Flat;
use super::growing::Growing;
use super::owner::Fixed;
use super::pair::{IfPresent, Put};
use super::shard::Shard;
use super::slots::SlotKind;
use super::window::rolling;
use crate::error::InsertError;
use crate::layout::{CellPlace, Class, Geometry, Mixed, SearchBudget, Tags};
use crate::report::{BulkReport, RemoveReport};
use crate::sys::prefetch::CacheLevel;

/// Writers have no use for a window in tables up to this size. Measured: twice as large they are 20 % faster with one,
/// half as large 10 % slower.
const NEAR_TO_WRITERS: usize = 5 << 20;

/// Keys whose lines are on their way while a writer works on one.
const FAR_AHEAD: usize = 16;

/// The same in tables near to writers: a longer window costs more than it gains.
const ONE_AHEAD: usize = 1;

/// The hashes of keys in turn: each is asked for while those before it wait for their locks. The user's types are behind it, and
/// all else is compiled once.
pub(crate) type Hashes<'a> = &'a mut dyn Iterator<Item = Mixed>;

/// What a batch of insertions returns of each key.
pub(crate) enum Answers<'a> {
    Nothing,
    /// Whether it was stored.
    Stored(&'a mut [bool]),
    /// Whether it was present.
    Present(&'a mut [bool]),
    /// Its count with this time; 0 if it was refused.
    Counts(&'a mut [u32], Counted),
}

/// What the addition of 1 returns.
#[derive(Clone, Copy)]
pub(crate) struct Counted {
    pub(crate) tags: Tags,
    /// The count from which on nothing is added, and what is returned then.
    pub(crate) limit: u32,
    pub(crate) at_limit: u32,
}

impl Counted {
    /// Of a key that had this value.
    #[inline(always)]
    pub(crate) fn after(self, had: u32) -> u32 {
        let count = self.tags.count(had);
        if count < self.limit { count + 1 } else { self.at_limit }
    }
}

/// Where keys lie in a filter, or in a part of one: numbered like the shards of the whole filter, of which `first` is the first
/// that is there.
struct Places<'a, K: SlotKind> {
    flat: &'a Flat<K>,
    geometry: &'a Geometry,
    first: usize,
}

/// What became of the keys of a batch of insertions. At most `max_listed` refused ones are listed.
struct Noted<'a> {
    report: BulkReport,
    index: usize,
    max_listed: usize,
    answers: Answers<'a>,
}

impl<'a> Noted<'a> {
    fn new(max_listed: usize, answers: Answers<'a>) -> Self {
        Noted { report: BulkReport::default(), index: 0, max_listed, answers }
    }

    #[inline(always)]
    fn note(&mut self, result: Result<u32, InsertError>) {
        match &mut self.answers {
            Answers::Nothing => {}
            Answers::Stored(stored) => stored[self.index] = result == Ok(0),
            Answers::Present(present) => present[self.index] = result.as_ref().is_ok_and(|&had| had != 0),
            Answers::Counts(counts, counted) => {
                counts[self.index] = result.as_ref().map_or(0, |&had| counted.after(had));
            }
        }
        if result != Ok(0) {
            self.report.note(self.index, result.map(|had| had == 0), self.max_listed);
        }
        self.index += 1;
    }

    fn report(mut self) -> BulkReport {
        let BulkReport { present, ref rejected, rejected_unlisted, .. } = self.report;
        self.report.inserted = self.index - present - rejected.len() - rejected_unlisted;
        self.report
    }
}

impl<K: SlotKind> RawFilter<K> {
    /// Inserts keys one by one, each under its own locks. Lists at most `max_listed` refused keys.
    pub(crate) fn insert_each(
        &self,
        hashes: Hashes<'_>,
        put: Put,
        max_listed: usize,
        answers: Answers<'_>,
    ) -> BulkReport {
        match self {
            RawFilter::Flat(flat) => flat.places().insert_each(hashes, put, max_listed, answers),
            RawFilter::Growing(growing) => growing.insert_each(hashes, put, max_listed, answers),
        }
    }

    /// Like [`insert_each`](Self::insert_each), but the shards are those of a larger filter with this geometry, from `first` on.
    pub(crate) fn insert_each_of_part(
        &self,
        geometry: &Geometry,
        first: usize,
        hashes: Hashes<'_>,
        put: Put,
        answers: Answers<'_>,
    ) -> BulkReport {
        match self {
            RawFilter::Flat(flat) => Places { flat, geometry, first }.insert_each(hashes, put, usize::MAX, answers),
            // A growing filter has no parts.
            RawFilter::Growing(growing) => growing.insert_each(hashes, put, usize::MAX, answers),
        }
    }

    /// Removes keys one by one, each under its own locks: of each, the copy with this value or the one that dies first. Lists at
    /// most `max_listed` missing keys.
    pub(crate) fn remove_each(&self, hashes: Hashes<'_>, value: Option<u32>, max_listed: usize) -> RemoveReport {
        let (mut report, mut index) = (RemoveReport::default(), 0);
        let mut note = |had| {
            report.note(index, had != 0, max_listed);
            index += 1;
        };
        match self {
            RawFilter::Growing(growing) => growing.in_order(hashes, |place| note(growing.remove_fetched(place, value))),
            RawFilter::Flat(flat) => {
                let remove = |shard: Shard<'_, K::Slots<'_>>, class| {
                    let Ok(had) = shard.remove_fetched(Fixed, class, value);
                    note(had);
                };
                flat.places().in_order(hashes, |_, _| {}, remove);
            }
        }
        report
    }

    /// Prefetches everything that a lookup of this class reads.
    #[inline]
    pub(crate) fn prefetch(&self, mixed: Mixed) {
        match self {
            RawFilter::Flat(flat) => flat.at_owner(mixed, |shard, _, class| Ok(shard.fetch_for_lookup(class))),
            RawFilter::Growing(growing) => growing.prefetch(mixed),
        }
    }

    /// Calls `work` with each key and its companion, some keys after its buckets were prefetched.
    pub(crate) fn fetch_each<A>(&self, keys: impl Iterator<Item = (Mixed, A)>, mut work: impl FnMut(Mixed, A)) {
        let fetched = keys.inspect(|&(mixed, _)| self.prefetch(mixed));
        rolling::<FAR_AHEAD, _>(fetched, |_| {}, |(mixed, with)| work(mixed, with));
    }
}

impl<K: SlotKind> Flat<K> {
    fn places(&self) -> Places<'_, K> {
        Places { flat: self, geometry: self.geometry(), first: 0 }
    }
}

impl<'a, K: SlotKind> Places<'a, K> {
    fn insert_each(self, hashes: Hashes<'_>, put: Put, max_listed: usize, answers: Answers<'_>) -> BulkReport {
        let (mut noted, mut budget) = (Noted::new(max_listed, answers), SearchBudget::full());
        let mut insert = |shard: Shard<'a, K::Slots<'a>>, class, put| {
            let Ok(result) = shard.insert_fetched(Fixed, class, put, &mut budget);
            noted.note(result);
        };
        if put.if_present == IfPresent::Another {
            // A constant where the writer is compiled.
            let copy = |value| Put { value, if_present: IfPresent::Another };
            self.in_order(hashes, Shard::fetch_path, |shard, class| insert(shard, class, copy(put.value)));
        } else {
            self.in_order(hashes, Shard::fetch_path, |shard, class| insert(shard, class, put));
        }
        noted.report()
    }

    fn in_order(
        self,
        hashes: Hashes<'_>,
        half_way: impl Fn(Shard<'a, K::Slots<'a>>, Class),
        work: impl FnMut(Shard<'a, K::Slots<'a>>, Class),
    ) {
        if self.flat.shards.table_bytes() <= NEAR_TO_WRITERS {
            self.in_window::<ONE_AHEAD>(hashes, half_way, work);
        } else {
            self.in_window::<FAR_AHEAD>(hashes, half_way, work);
        }
    }

    /// Calls `work` with the place of each key, in order, `AHEAD` keys after its buckets were prefetched. Half way through a
    /// window of several keys, `half_way` may prefetch more.
    #[inline(never)]
    fn in_window<const AHEAD: usize>(
        self,
        hashes: Hashes<'_>,
        half_way: impl Fn(Shard<'a, K::Slots<'a>>, Class),
        mut work: impl FnMut(Shard<'a, K::Slots<'a>>, Class),
    ) {
        let near = AHEAD == ONE_AHEAD || self.flat.shards.is_near();
        let level = if near { CacheLevel::L1 } else { CacheLevel::L2 };
        let fetched = hashes.map(|mixed| {
            let (number, class) = self.geometry.locate(mixed);
            let shard = self.flat.at(number - self.first);
            shard.fetch(class, level);
            (shard, class)
        });
        let half_way = |&(shard, class): &(Shard<'a, K::Slots<'a>>, Class)| {
            if AHEAD > ONE_AHEAD {
                half_way(shard, class);
            }
        };
        let change = self.flat.shards.begin_change();
        rolling::<AHEAD, _>(fetched, half_way, |(shard, class)| work(shard, class));
        change.end();
    }
}

impl<K: SlotKind> Growing<K> {
    fn insert_each(&self, hashes: Hashes<'_>, put: Put, max_listed: usize, answers: Answers<'_>) -> BulkReport {
        let (mut noted, mut budget) = (Noted::new(max_listed, answers), SearchBudget::full());
        let mut insert = |place, put| noted.note(self.insert_fetched(place, put, &mut budget));
        if put.if_present == IfPresent::Another {
            self.in_order(hashes, |place| insert(place, Put { if_present: IfPresent::Another, ..put }));
        } else {
            self.in_order(hashes, |place| insert(place, put));
        }
        noted.report()
    }

    /// Calls `work` with the place of each key, in order, some keys after its buckets were prefetched. By then, they may be in
    /// another table.
    #[inline(always)]
    fn in_order(&self, hashes: Hashes<'_>, work: impl FnMut(CellPlace)) {
        let fetched = hashes.map(|mixed| self.cell_place(mixed)).inspect(|&place| self.fetch(place, CacheLevel::L1));
        rolling::<FAR_AHEAD, _>(fetched, |_| {}, work);
    }
}
