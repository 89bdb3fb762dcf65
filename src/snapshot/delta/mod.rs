//! What has changed between two snapshots of one filter, for those who have the first.
//!
//! ```text
//! write    two snapshots, shard by shard: which classes have gone, which have come
//! apply    a delta that was read and checked as a whole, stored in a filter that serves
//! format   the bytes
//! ```
//!
//! A delta speaks of classes, not of words: a key that both snapshots have is in neither of its lists, wherever it was
//! relocated to meanwhile. So nothing that stays is touched, and lookups are right by the protocol of insertion and
//! removal. Nor does a class depend on the depth of its table, so that the two snapshots of a growing filter may differ in size.

mod apply;
mod format;
mod write;

pub use apply::DeltaReport;

use crate::layout::{Class, Extent, Mixed, Plan};

/// A class within the shard that it began in, the same whichever of its buckets and of the tables of the shard a copy lies in: the
/// lower bucket, and the whole fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Name {
    bucket: u32,
    fingerprint: u32,
}

impl Name {
    fn of(class: Class) -> Self {
        Name { bucket: class.first.min(class.second).get(), fingerprint: class.fingerprint.get() }
    }

    /// What one copy adds to the digest of a filter.
    fn digest(self, shard: usize) -> u64 {
        let key = u64::from(self.bucket) << 32 | u64::from(self.fingerprint);
        Mixed::of(Mixed::of(shard as u64).get() ^ key).get()
    }
}

/// What is compared at a time: a shard, or of a growing filter the cells of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    shard: usize,
    /// These bits, so many, are the first ones of the part of the reserve that chooses a cell.
    prefix: u32,
    bits: u32,
}

impl Piece {
    fn of(plan: &Plan, extent: &Extent) -> Self {
        let (first, cells) = (extent.first_cell % plan.cells_at(0), plan.cells_at(extent.depth));
        Piece {
            shard: extent.first_cell / plan.cells_at(0),
            prefix: (first / cells) as u32,
            bits: (plan.cells_at(0) / cells).ilog2(),
        }
    }

    /// The larger one of two that begin with the same cell.
    fn or(self, other: Piece) -> Piece {
        if other.bits < self.bits { other } else { self }
    }

    /// The first of its cells, and the one behind them; `None` if the filter of this plan has no such cells.
    fn cells(self, plan: &Plan) -> Option<[usize; 2]> {
        let cells = plan.cells_at(0).checked_shr(self.bits).filter(|&cells| cells > 0)?;
        let first = cells.checked_mul(self.prefix as usize).filter(|&first| first < plan.cells_at(0))?;
        let first = (self.shard < plan.shards).then(|| self.shard * plan.cells_at(0) + first)?;
        Some([first, first + cells])
    }
}
