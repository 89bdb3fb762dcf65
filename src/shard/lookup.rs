//! Reads: the look-up without locks, and the exact count under them.

use super::Shard;
use crate::fail_point::{Step, reached};
use crate::geometry::Candidates;
use crate::prefetch::Into;
use crate::stripe::{Locked, Watch};
use crate::table::{Format, Layout, Matches, Packing, Run, TwoRuns};

/// A look-up that knows where its words are and has not read them.
#[derive(Clone, Copy)]
pub(crate) struct Aim<'a, L: Layout> {
    version: Watch<'a>,
    first: L::Place<'a>,
    second: L::Place<'a>,
    pattern: u64,
}

impl<L: Layout> Aim<'_, L> {
    /// Begins to fetch the buckets. The version is not worth it: all versions together stay in a core's cache.
    #[inline(always)]
    pub(crate) fn fetch(self, into: Into) {
        L::fetch(self.first, into);
        L::fetch(self.second, into);
    }

    /// Whether the class is present; `None` if a relocation came between, and the look-up has to begin again.
    ///
    /// A hit needs no check: the fingerprint was seen in one of its two buckets. A miss counts only if no relocation of
    /// the class came between; if one did, a writer has finished a move (H1, H2).
    ///
    /// Both buckets are read whatever the first one says: their lines are fetched at the same time, and which of the
    /// two holds a key cannot be predicted.
    #[inline(always)]
    pub(crate) fn look(self, format: &Format) -> Option<bool> {
        let version = self.version.begin();
        let found = holds::<L>(self.first, format, self.pattern) | holds::<L>(self.second, format, self.pattern);
        // One branch, never taken but beside writers: whether a key is found cannot be predicted.
        let certain = found | self.version.is_still(version);
        certain.then_some(found)
    }
}

/// Reads a bucket.
#[inline(always)]
fn holds<L: Layout>(place: L::Place<'_>, format: &Format, pattern: u64) -> bool {
    let holds = L::holds(place, format, pattern);
    reached(Step::BucketRead);
    holds
}

impl Shard {
    /// As [`Shard::aim`] and [`Aim::look`] in one. Each address is worked out when it is needed: all of them at once
    /// take too many registers, 5 to 17 % of a look-up.
    #[inline]
    pub(crate) fn look_once<L: Layout>(&self, format: &Format, key: Candidates) -> Option<bool> {
        let version = self.stripes.watch(key).begin();
        let pattern = format.pattern(key.fingerprint);
        let holds = |bucket| holds::<L>(L::place(&self.table, format, bucket), format, pattern);
        if holds(key.first) | holds(key.second) {
            return Some(true);
        }
        self.stripes.watch(key).is_still(version).then_some(false)
    }

    /// Finds the words of a look-up.
    #[inline(always)]
    pub(crate) fn aim<L: Layout>(&self, format: &Format, key: Candidates) -> Aim<'_, L> {
        Aim {
            version: self.stripes.watch(key),
            first: L::place(&self.table, format, key.first),
            second: L::place(&self.table, format, key.second),
            pattern: format.pattern(key.fingerprint),
        }
    }

    /// Looks until no relocation comes between.
    pub(crate) fn look_again(&self, format: &Format, key: Candidates) -> bool {
        loop {
            reached(Step::Repeated);
            let once = match format.packing() {
                Packing::Word | Packing::Part | Packing::Run => self.look_once::<Run>(format, key),
                Packing::TwoRuns => self.look_once::<TwoRuns>(format, key),
            };
            if let Some(found) = once {
                return found;
            }
        }
    }

    /// Copies of the class. Takes the pair's locks: in the middle of a relocation both copies stand in the table.
    pub(crate) fn count(&self, format: &Format, key: Candidates) -> usize {
        let locked = self.stripes.lock_pair(key.first, key.second);
        self.copies(&locked, format, key) as usize
    }

    /// Copies of the class, under the pair's locks.
    #[inline]
    pub(super) fn copies(&self, locked: &Locked<'_, impl Sized>, format: &Format, key: Candidates) -> u32 {
        let [first, second] = self.find(locked, format, key);
        first.count(second, format)
    }

    /// The copies of the class in each of its buckets, under the pair's locks. Coinciding candidates are one bucket,
    /// searched once.
    #[inline]
    pub(super) fn find(&self, locked: &Locked<'_, impl Sized>, format: &Format, key: Candidates) -> [Matches; 2] {
        let first = self.table.find(locked, format, key.fingerprint, key.first);
        let second = self.table.find(locked, format, key.fingerprint, key.second);
        [first, if key.coincide() { second.none() } else { second }]
    }
}
