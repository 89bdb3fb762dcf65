//! Tables of a snapshot that differ from each other: those of a filter that grows, of several widths, and those of filters whose slots
//! hold more than a fingerprint, each with an epoch of its own.

use super::records::SPARE;
use crate::layout::{Fingerprint, Format, Geometry, Mixed, Moment, Plan, SLOTS, Tags, hits};
use crate::raw::{LayoutKind, rolling, runs_at};
use crate::snapshot::Placed;
use crate::sys::bytes::Bytes;
use crate::sys::prefetch::{CacheLevel, level_for};
use arrayvec::ArrayVec;
use std::collections::TryReserveError;

/// Keys whose lines are on their way while one is looked at.
const AHEAD: usize = 16;

/// All tables of a filter.
pub(super) struct Tables {
    geometry: Geometry,
    grows: bool,
    tables: Vec<Table>,
    /// By cell of the directory, the number of the table that holds it. A filter of fixed size has as many tables as cells.
    cells: Vec<u32>,
    /// The tags beside fingerprints, unless there are none.
    tags: Option<Tags>,
    level: Option<CacheLevel>,
}

struct Table {
    /// Where its words begin, in bits.
    begin: u64,
    format: Format,
    layout: LayoutKind,
    /// The bits of a fingerprint that are stored.
    mask: u32,
    /// The epoch by which its tags are meant.
    epoch: u64,
}

/// Where a key is looked for.
struct Site<'t> {
    table: &'t Table,
    fingerprint: Fingerprint,
    /// In bits.
    begins: [u64; 2],
}

impl Tables {
    /// Of tables in the order of their cells, which together are all that there are.
    pub(super) fn new(bytes: &Bytes<'_>, plan: &Plan, placed: &[Placed]) -> Result<Self, TryReserveError> {
        let (mut tables, mut cells) = (Vec::new(), Vec::new());
        tables.try_reserve_exact(placed.len())?;
        cells.try_reserve_exact(plan.shards * plan.cells_at(0))?;
        for (number, &Placed { first, extent, epoch }) in placed.iter().enumerate() {
            cells.resize(extent.first_cell + plan.cells_at(extent.depth), number as u32);
            let plan = if plan.grows() { plan.leaf(extent.dropped) } else { *plan };
            assert!(
                first + plan.words * size_of::<u64>() + SPARE <= bytes.len(),
                "a trailer stands behind the last one"
            );
            tables.push(Table {
                begin: 8 * first as u64,
                format: Format::new(plan.slot_bits),
                layout: LayoutKind::of(plan.slot_bits),
                mask: u32::MAX >> (u32::BITS - plan.fingerprint_bits),
                epoch,
            });
        }
        assert_eq!(cells.len(), plan.shards * plan.cells_at(0), "a table for each cell");
        let (beside, level) = (plan.slot_bits - plan.fingerprint_bits, level_for(bytes.len()));
        let tags = (beside > 0).then(|| Tags::new(plan));
        Ok(Tables { geometry: Geometry::new(plan), grows: plan.grows(), tables, cells, tags, level })
    }

    pub(super) fn count(&self) -> usize {
        self.tables.len()
    }

    /// What stands beside fingerprints.
    pub(super) fn tags(&self) -> Option<Tags> {
        self.tags
    }

    #[inline(always)]
    fn site(&self, mixed: Mixed) -> Site<'_> {
        let (cell, class) = if self.grows {
            let aim = self.geometry.aim(mixed);
            (aim.cell, aim.class)
        } else {
            self.geometry.locate(mixed)
        };
        let table = &self.tables[self.cells[cell] as usize];
        let begin = |bucket| table.begin + table.format.begin(bucket);
        let fingerprint = class.fingerprint.lower(table.mask);
        Site { table, fingerprint, begins: [begin(class.first), begin(class.second)] }
    }

    #[inline(always)]
    fn runs(&self, bytes: &Bytes<'_>, site: &Site<'_>) -> [[u64; 2]; 2] {
        let (layout, run_bits) = (site.table.layout, 2 * site.table.format.slot_bits());
        runs_at(layout, bytes, site.begins, run_bits)
    }

    /// The value of each copy of the key that is alive at this epoch.
    fn values_in(&self, bytes: &Bytes<'_>, tags: Tags, site: &Site<'_>, now: u64) -> ArrayVec<u32, { 2 * SLOTS }> {
        let Site { table, fingerprint, .. } = *site;
        let (moment, age) = (tags.moment(table.epoch), now.saturating_sub(table.epoch));
        let is_alive = |slot: &u32, moment: Moment| {
            tags.fingerprint(*slot, moment) == Some(fingerprint)
                && u64::from(tags.epochs(tags.value(*slot, moment))) > age
        };
        let slots = self.runs(bytes, site).into_iter().flat_map(|runs| table.format.slots(runs));
        slots.filter(|slot| is_alive(slot, moment)).map(|slot| tags.value(slot, moment)).collect()
    }

    #[inline(always)]
    fn holds(&self, bytes: &Bytes<'_>, site: &Site<'_>, now: u64) -> bool {
        if let Some(tags) = self.tags {
            return !self.values_in(bytes, tags, site, now).is_empty();
        }
        let lanes = &site.table.format.lanes;
        let pattern = lanes.repeat(site.fingerprint.get());
        let any =
            self.runs(bytes, site).into_iter().flatten().fold(0, |any, run| any | hits(run, pattern, lanes.low()));
        any & lanes.high() != 0
    }

    /// Whether the key is present at this epoch.
    pub(super) fn contains(&self, bytes: &Bytes<'_>, mixed: Mixed, now: u64) -> bool {
        self.holds(bytes, &self.site(mixed), now)
    }

    /// The same of many keys, whose lines are fetched ahead.
    pub(super) fn contains_each(
        &self,
        bytes: &Bytes<'_>,
        keys: impl Iterator<Item = Mixed>,
        now: u64,
        found: &mut [bool],
    ) {
        self.each(bytes, keys, found, |site| self.holds(bytes, site, now));
    }

    /// The value of each copy of the key that is alive at this epoch, as of when its table was written.
    pub(super) fn values(&self, bytes: &Bytes<'_>, mixed: Mixed, now: u64) -> ArrayVec<u32, { 2 * SLOTS }> {
        self.tags.map_or_else(ArrayVec::new, |tags| self.values_in(bytes, tags, &self.site(mixed), now))
    }

    /// What `look` answers for each key, where its lines are fetched before.
    fn each<A>(
        &self,
        bytes: &Bytes<'_>,
        keys: impl Iterator<Item = Mixed>,
        answers: &mut [A],
        look: impl Fn(&Site<'_>) -> A,
    ) {
        let fetched = keys.map(|mixed| self.site(mixed)).inspect(|site| {
            if let Some(level) = self.level {
                site.begins.iter().for_each(|&begin| bytes.prefetch((begin / 8) as usize, level));
            }
        });
        let mut answers = answers.iter_mut();
        rolling::<AHEAD, _>(
            fetched,
            |_| {},
            |site| {
                if let Some(answer) = answers.next() {
                    *answer = look(&site);
                }
            },
        );
    }
}
