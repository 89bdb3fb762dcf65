//! Insertions and removals of many keys on one thread, in a window (`window`): the buckets of the next keys are
//! prefetched.

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
use crate::sys::prefetch::{CacheLevel, far_level};

/// Tables of up to this size are changed without a window. Tables twice as large are 20 % faster with one, tables half
/// as large 10 % slower.
const NEAR_TO_WRITERS: usize = 5 << 20;

/// The window in large tables, in keys.
const FAR_AHEAD: usize = 16;

/// The window in tables near to writers, where a longer one costs more than it gains.
const ONE_AHEAD: usize = 1;

/// The hashes of the keys of a batch, each drawn while earlier keys wait for their locks. Only the iterator behind it
/// depends on the user's types.
pub(crate) type Hashes<'a> = &'a mut dyn Iterator<Item = Mixed>;

/// The answers that a batch of insertions returns per key.
pub(crate) enum Answers<'a> {
    Nothing,
    /// Whether the key was stored.
    Stored(&'a mut [bool]),
    /// Whether the key was present.
    Present(&'a mut [bool]),
    /// The count of the key with this addition, or 0 if it was refused.
    Counts(&'a mut [u32], Counted),
}

/// The result of an addition of 1.
#[derive(Clone, Copy)]
pub(crate) struct Counted {
    pub(crate) tags: Tags,
    /// The count from which additions change nothing, and the result that they return then.
    pub(crate) limit: u32,
    pub(crate) at_limit: u32,
}

impl Counted {
    /// The result for a key whose previous value was `had`.
    #[inline(always)]
    pub(crate) fn after(self, had: u32) -> u32 {
        let count = self.tags.count(had);
        if count < self.limit { count + 1 } else { self.at_limit }
    }
}

/// The shards of a filter or of a part of one. `geometry` is that of the whole filter, and `first` the number of the
/// first shard of the part.
struct Places<'a, K: SlotKind> {
    flat: &'a Flat<K>,
    geometry: &'a Geometry,
    first: usize,
}

/// The outcomes of a batch of insertions.
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
        let BulkReport { present, ref refused, refused_unlisted, .. } = self.report;
        self.report.inserted = self.index - present - refused.len() - refused_unlisted;
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
        self.insert_each_of_part(self.geometry(), 0, hashes, put, max_listed, answers)
    }

    /// Like [`insert_each`](Self::insert_each), but the shards are those of a larger filter with this geometry, from
    /// `first` on.
    pub(crate) fn insert_each_of_part(
        &self,
        geometry: &Geometry,
        first: usize,
        hashes: Hashes<'_>,
        put: Put,
        max_listed: usize,
        answers: Answers<'_>,
    ) -> BulkReport {
        match self {
            RawFilter::Flat(flat) => Places { flat, geometry, first }.insert_each(hashes, put, max_listed, answers),
            // A growing filter has no parts.
            RawFilter::Growing(growing) => growing.insert_each(hashes, put, max_listed, answers),
        }
    }

    /// Removes keys one by one, each under its own locks: of each, the copy with this value or the one that dies first.
    /// Lists at most `max_listed` missing keys.
    pub(crate) fn remove_each(&self, hashes: Hashes<'_>, value: Option<u32>, max_listed: usize) -> RemoveReport {
        let (mut report, mut index) = (RemoveReport::default(), 0);
        let mut note = |had| {
            report.note(index, had != 0, max_listed);
            index += 1;
        };
        match self {
            RawFilter::Growing(growing) => growing.in_order(hashes, |place| note(growing.remove_fetched(place, value))),
            RawFilter::Flat(flat) if flat.is_near_to_writers() => {
                flat.places().remove_in_order::<ONE_AHEAD>(hashes, value, note);
            }
            RawFilter::Flat(flat) => flat.places().remove_in_order::<FAR_AHEAD>(hashes, value, note),
        }
        report
    }

    /// Calls `work` with each key and its companion, some keys after its buckets were prefetched.
    pub(crate) fn fetch_each<A>(&self, keys: impl Iterator<Item = (Mixed, A)>, mut work: impl FnMut(Mixed, A)) {
        let fetched = keys.inspect(|&(mixed, _)| self.prefetch(mixed));
        rolling::<FAR_AHEAD, _>(fetched, |_| {}, |(mixed, with)| work(mixed, with));
    }
}

impl<K: SlotKind> Flat<K> {
    fn places(&self) -> Places<'_, K> {
        Places { flat: self, geometry: &self.geometry, first: 0 }
    }

    fn is_near_to_writers(&self) -> bool {
        self.shards.word_bytes() <= NEAR_TO_WRITERS
    }
}

impl<'a, K: SlotKind> Places<'a, K> {
    fn insert_each(self, hashes: Hashes<'_>, put: Put, max_listed: usize, answers: Answers<'_>) -> BulkReport {
        let mut noted = Noted::new(max_listed, answers);
        match (put.if_present, self.flat.is_near_to_writers()) {
            (IfPresent::Another, true) => self.insert_in_order::<ONE_AHEAD, true>(hashes, put, &mut noted),
            (IfPresent::Another, false) => self.insert_in_order::<FAR_AHEAD, true>(hashes, put, &mut noted),
            (_, true) => self.insert_in_order::<ONE_AHEAD, false>(hashes, put, &mut noted),
            (_, false) => self.insert_in_order::<FAR_AHEAD, false>(hashes, put, &mut noted),
        }
        noted.report()
    }

    #[inline(never)]
    fn insert_in_order<const AHEAD: usize, const COPIES: bool>(
        self,
        hashes: Hashes<'_>,
        put: Put,
        noted: &mut Noted<'_>,
    ) {
        // A constant where the writer is compiled.
        let put = if COPIES { Put { if_present: IfPresent::Another, ..put } } else { put };
        let mut budget = SearchBudget::full();
        self.in_order::<AHEAD>(hashes, Shard::fetch_path, |shard, class| {
            let Ok(result) = shard.insert_fetched(Fixed, class, put, &mut budget);
            noted.note(result);
        });
    }

    #[inline(never)]
    fn remove_in_order<const AHEAD: usize>(self, hashes: Hashes<'_>, value: Option<u32>, mut note: impl FnMut(u32)) {
        let remove = |shard: Shard<'a, K::Slots<'a>>, class| {
            let Ok(had) = shard.remove_fetched(Fixed, class, value);
            note(had);
        };
        self.in_order::<AHEAD>(hashes, |_, _| {}, remove);
    }

    /// Calls `work` with the place of each key, in order, `AHEAD` keys after its buckets were prefetched. Half way
    /// through a window of several keys, `half_way` may prefetch more.
    #[inline(always)]
    fn in_order<const AHEAD: usize>(
        self,
        hashes: Hashes<'_>,
        half_way: impl Fn(Shard<'a, K::Slots<'a>>, Class),
        mut work: impl FnMut(Shard<'a, K::Slots<'a>>, Class),
    ) {
        let near = AHEAD == ONE_AHEAD || self.flat.shards.is_near();
        let level = if near { CacheLevel::L1 } else { far_level() };
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

    /// Calls `work` with the place of each key, in order, some keys after its buckets were prefetched. By then, they
    /// may be in another table.
    #[inline(always)]
    fn in_order(&self, hashes: Hashes<'_>, work: impl FnMut(CellPlace)) {
        let fetched = hashes.map(|mixed| self.cell_place(mixed)).inspect(|&place| self.fetch(place));
        rolling::<FAR_AHEAD, _>(fetched, |_| {}, work);
    }
}
