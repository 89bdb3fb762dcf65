//! Tables of a snapshot that differ from each other: tables of several widths in a growing filter, and tables with their own epochs
//! in filters with values beside fingerprints.

use super::records::SPARE;
use crate::filter::hashing;
use crate::layout::{Bucket, CellPlace, Fingerprint, Format, Geometry, Mixed, Plan, SLOTS, Tags, hits_less};
use crate::raw::probe::{BucketLayout, BucketLayoutKind, Runs, with_layout};
use crate::raw::{BLOCK, Contains, LookupBatch, layout_of};
use crate::snapshot::Placed;
use crate::sys::bytes::Bytes;
use crate::sys::isa::{Compiled, Function};
use crate::sys::prefetch::{CacheLevel, level_for};
use arrayvec::ArrayVec;
use core::marker::PhantomData;
use std::collections::TryReserveError;

pub(super) struct Tables<'a> {
    pub(super) bytes: Bytes<'a>,
    geometry: Geometry,
    plan: Plan,
    tables: Vec<Table>,
    /// The number of the table of each cell of the directory. A filter of fixed size has one table per cell.
    cells: Vec<u32>,
    /// The tags beside fingerprints, if any.
    tags: Option<Tags>,
    find: Contains<Tables<'a>>,
}

struct Table {
    begin: u64,
    bucket_bits: u32,
    /// The number of bits by which bucket numbers are shorter than in fully refilled tables.
    refills_left: u32,
    /// The stored bits of a fingerprint.
    mask: u32,
    high: u64,
    /// The factor that repeats a fingerprint in every slot of a run, and the number that [`hits_less`] adds.
    unit: u64,
    minus: u64,
    format: Format,
    epoch: u64,
}

/// The place of a key: its table, fingerprint and buckets.
#[derive(Clone, Copy)]
struct Site<'t> {
    table: &'t Table,
    fingerprint: Fingerprint,
    begins: [u64; 2],
}

/// The searches for the fingerprint of a key or of a block of keys, with any tag, compiled for the layout of the widest tables.
struct FindAs<L>(PhantomData<L>);

impl<'t, L: BucketLayout> Function<Tables<'t>, Mixed, bool> for FindAs<L> {
    #[inline(always)]
    fn run(tables: &Tables<'t>, mixed: Mixed) -> bool {
        tables.site(mixed).finds::<L>(&tables.bytes)
    }
}

impl<'t, L: BucketLayout> Function<Tables<'t>, LookupBatch<'_>, ()> for FindAs<L> {
    /// Processes one block at a time, and fetches the lines of the next block meanwhile.
    #[inline(always)]
    fn run(tables: &Tables<'t>, (level, next, found): LookupBatch<'_>) {
        let bytes = &tables.bytes;
        let mut place = || {
            let mut mixed = [Mixed::default(); BLOCK];
            let count = next(&mut mixed);
            let sites: ArrayVec<Site<'_>, BLOCK> = mixed[..count].iter().map(|&mixed| tables.site(mixed)).collect();
            if let Some(level) = level {
                sites.iter().for_each(|site| site.fetch(bytes, level));
            }
            sites
        };
        let mut sites = place();
        for found in found.chunks_mut(BLOCK) {
            let coming = place();
            for (site, found) in sites.iter().zip(found) {
                *found = site.finds::<L>(bytes);
            }
            sites = coming;
        }
    }
}

impl Site<'_> {
    #[inline(always)]
    fn fetch(&self, bytes: &Bytes<'_>, level: CacheLevel) {
        self.begins.iter().for_each(|&begin| bytes.prefetch((begin / 8) as usize, level));
    }

    /// Returns whether a bucket contains the fingerprint. Except during one doubling, nearly all tables have equally many runs per
    /// bucket, one or two.
    #[inline(always)]
    fn finds<L: BucketLayout>(&self, bytes: &Bytes<'_>) -> bool {
        if L::Runs::SLOTS == 2 && self.table.bucket_bits > u64::BITS {
            self.finds_in::<L>(bytes)
        } else {
            self.finds_in::<L::Narrow>(bytes)
        }
    }

    #[inline(always)]
    fn finds_in<L: BucketLayout>(&self, bytes: &Bytes<'_>) -> bool {
        let (table, run_bits) = (self.table, self.table.bucket_bits / 2);
        let pattern = u64::from(self.fingerprint.get()).wrapping_mul(table.unit);
        let hits = |begin| {
            let runs = L::read_aligned(bytes, begin, run_bits);
            runs.any_of(|run| hits_less(run, pattern, table.minus))
        };
        (hits(self.begins[0]) | hits(self.begins[1])) & table.high != 0
    }
}

impl<'a> Tables<'a> {
    /// Creates the tables, in the order of their cells, which cover the directory.
    pub(super) fn new(bytes: Bytes<'a>, plan: &Plan, placed: &[Placed]) -> Result<Self, TryReserveError> {
        let (mut tables, mut cells) = (Vec::new(), Vec::new());
        tables.try_reserve_exact(placed.len())?;
        cells.try_reserve_exact(plan.shards * plan.cells_at(0))?;
        for (number, &Placed { first, extent, epoch }) in placed.iter().enumerate() {
            cells.resize(extent.first_cell + plan.cells_at(extent.depth), number as u32);
            let refills_left = plan.extension_bits - plan.level(&extent);
            let plan = plan.leaf(&extent);
            assert!(
                first + plan.words as usize * size_of::<u64>() + SPARE <= bytes.len(),
                "a trailer follows the last table"
            );
            let format = Format::new(plan.slot_bits);
            let unit = format.lanes.low << plan.tag_bits;
            tables.push(Table {
                begin: 8 * first as u64,
                bucket_bits: format.bucket_bits as u32,
                refills_left,
                mask: u32::MAX >> (u32::BITS - plan.fingerprint_bits),
                high: format.lanes.high,
                unit,
                minus: unit.wrapping_neg(),
                format,
                epoch,
            });
        }
        assert_eq!(cells.len(), plan.shards * plan.cells_at(0), "a table for each cell");
        let find = with_layout!(layout_of(plan), L => Compiled::for_scalars::<FindAs<L>>());
        let tags = (plan.tag_bits > 0).then(|| Tags::new(plan));
        Ok(Tables { bytes, geometry: Geometry::new(plan), plan: *plan, tables, cells, tags, find })
    }

    #[inline(always)]
    fn site(&self, mixed: Mixed) -> Site<'_> {
        let CellPlace { cell, class } = self.geometry.any_place(mixed);
        let table = &self.tables[self.cells[cell] as usize];
        let number = |bucket: Bucket| u64::from(bucket.get() >> table.refills_left);
        let begin = |bucket: Bucket| table.begin + number(bucket) * u64::from(table.bucket_bits);
        let fingerprint = class.fingerprint.lower(table.mask);
        Site { table, fingerprint, begins: [begin(class.first), begin(class.second)] }
    }

    /// Returns whether the key is present at this epoch.
    #[inline]
    pub(super) fn contains(&self, mixed: Mixed, now: u64) -> bool {
        self.find.call(self, mixed) && self.is_alive(mixed, now)
    }

    /// Returns whether a copy of a key whose fingerprint was found is alive at this epoch.
    fn is_alive(&self, mixed: Mixed, now: u64) -> bool {
        self.tags.is_none() || !self.values(mixed, now).is_empty()
    }

    /// Sets for each key whether it is present at this epoch.
    pub(super) fn contains_each<T>(&self, keys: &[T], mixed: impl Fn(&T) -> Mixed, now: u64, found: &mut [bool]) {
        let find: Compiled<_, LookupBatch<'_>, ()> =
            with_layout!(layout_of(&self.plan), L => Compiled::for_vectors::<FindAs<L>>());
        find.call(self, (level_for(self.bytes.len()), &mut hashing(keys, &mixed), found));
        if self.tags.is_some() {
            for (key, found) in keys.iter().zip(found).filter(|(_, found)| **found) {
                *found = self.is_alive(mixed(key), now);
            }
        }
    }

    fn tags(&self) -> Tags {
        self.tags.expect("only kinds with tags have values")
    }

    /// Returns the count of the key at this epoch.
    pub(super) fn count(&self, mixed: Mixed, now: u64) -> u32 {
        self.values(mixed, now).into_iter().map(|value| self.tags().count(value)).max().unwrap_or(0)
    }

    /// Returns the values of the copies of the key that are alive at this epoch, in the state in which their table was written.
    pub(super) fn values(&self, mixed: Mixed, now: u64) -> ArrayVec<u32, { 2 * SLOTS }> {
        let tags = self.tags();
        let Site { table, fingerprint, begins } = self.site(mixed);
        let (moment, age) = (tags.moment(table.epoch), now.saturating_sub(table.epoch));
        let alive = |slot: u32| {
            let value = tags.value(slot, moment);
            let is_alive = tags.fingerprint(slot, moment) == Some(fingerprint) && u64::from(tags.epochs(value)) > age;
            is_alive.then_some(value)
        };
        let slot_bits = table.format.slot_bits;
        let runs = with_layout!(BucketLayoutKind::of(slot_bits), L => begins.map(|begin| {
            let begin = if L::UNIT { begin / 64 } else { begin };
            L::read_aligned(&self.bytes, begin, 2 * slot_bits).both()
        }));
        runs.into_iter().flat_map(|runs| table.format.slots(runs)).filter_map(alive).collect()
    }
}
