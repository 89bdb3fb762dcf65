//! The changes between two snapshots of one filter, for replicas with the contents of the first.
//!
//! ```text
//! write    compares two snapshots, shard by shard: removed classes and inserted classes
//! apply    reads and checks a whole delta, and applies it to a filter in use
//! format   the bytes
//! ```
//!
//! A delta lists classes, not words: a key of both snapshots is in neither list, even if it was relocated in the meantime. Applying
//! a delta therefore leaves common keys untouched, and lookups are correct by the protocol of insertion and removal. A class does
//! not depend on the depth of its table, so the two snapshots of a growing filter may differ in size.

mod apply;
mod format;
mod write;

pub use apply::DeltaReport;

use crate::layout::{Class, Extent, Mixed, Plan};

/// A class within its initial shard, independent of the bucket and the table of a copy: the lower bucket and the whole fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Name {
    bucket: u32,
    fingerprint: u32,
}

impl Name {
    fn of(class: Class) -> Self {
        Name { bucket: class.first.min(class.second).get(), fingerprint: class.fingerprint.get() }
    }

    /// Returns the contribution of one copy to the digest of a filter.
    fn digest(self, shard: usize) -> u64 {
        let key = u64::from(self.bucket) << 32 | u64::from(self.fingerprint);
        Mixed::of(Mixed::of(shard as u64).get() ^ key).get()
    }
}

/// The unit of comparison: a shard, or the cells of a table of a growing filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    shard: usize,
    /// The first bits of the part of the reserve that selects a cell, and their number in `bits`.
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

    /// Returns the larger of two pieces that begin with the same cell.
    fn or(self, other: Piece) -> Piece {
        if other.bits < self.bits { other } else { self }
    }

    /// Returns the first cell and the cell after the last; `None` if the plan has no such cells.
    fn cells(self, plan: &Plan) -> Option<[usize; 2]> {
        let cells = plan.cells_at(0).checked_shr(self.bits).filter(|&cells| cells > 0)?;
        let first = cells.checked_mul(self.prefix as usize).filter(|&first| first < plan.cells_at(0))?;
        let first = (self.shard < plan.shards).then(|| self.shard * plan.cells_at(0) + first)?;
        Some([first, first + cells])
    }
}
