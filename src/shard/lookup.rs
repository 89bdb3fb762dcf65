//! Reads: the look-up without locks, and the exact count under them.

use super::Shard;
use crate::fail_point::{Step, reached};
use crate::geometry::Candidates;
use crate::stripe::Locked;
use crate::table::{Format, Matches};

impl Shard {
    /// The whole of a look-up, as the filter makes it of the two parts below.
    #[cfg(all(test, cuckoo_loom))]
    pub(crate) fn contains(&self, format: &Format, key: Candidates) -> bool {
        let once =
            if format.is_word() { self.look_once::<true>(format, key) } else { self.look_once::<false>(format, key) };
        once.unwrap_or_else(|| self.look_again(format, key))
    }

    /// Whether the class is present; `None` if a relocation came between, and the look-up has to begin again.
    ///
    /// `WORD` says that a bucket is known to be a word. It need not be said.
    ///
    /// A hit needs no check: the fingerprint was seen in one of its two buckets. A miss counts only if no relocation of
    /// the class came between; if one did, a writer has finished a move (H1, H2).
    #[inline]
    pub(crate) fn look_once<const WORD: bool>(&self, format: &Format, key: Candidates) -> Option<bool> {
        let version = self.stripes.version(key);
        if self.table.contains::<WORD>(format, key.fingerprint, key.first, key.second) {
            return Some(true);
        }
        self.stripes.is_still(key, version).then_some(false)
    }

    /// Looks until no relocation comes between.
    pub(crate) fn look_again(&self, format: &Format, key: Candidates) -> bool {
        loop {
            reached(Step::Repeated);
            if let Some(found) = self.look_once::<false>(format, key) {
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
