//! Removal.

use super::Shard;
use crate::geometry::Candidates;
use crate::prefetch::Into;
use crate::stripe::Locked;
use crate::table::Format;

impl Shard {
    /// Removes one copy of the class. A present class is always found: nobody moves it while its stripes are locked.
    #[inline]
    pub(crate) fn remove(&self, format: &Format, key: Candidates) -> bool {
        self.fetch(format, key, Into::L1);
        let change = self.begin_change();
        let removed = self.remove_fetched(format, key);
        change.end();
        removed
    }

    /// The same for a key whose buckets are on their way.
    #[inline(always)]
    pub(crate) fn remove_fetched(&self, format: &Format, key: Candidates) -> bool {
        let locked = self.stripes.lock_pair(key.first, key.second);
        self.remove_locked(&locked, format, key)
    }

    /// The same, under locks that cover the pair.
    #[inline(always)]
    pub(super) fn remove_locked(&self, locked: &Locked<'_, impl Sized>, format: &Format, key: Candidates) -> bool {
        let [first, second] = self.find(locked, format, key);
        // Which bucket it is cannot be predicted: chosen without a branch.
        let Some(slot) = first.or(second).lowest(format) else { return false };
        // To a look-up of another key of the class, the removal of a copy that it has not read yet, after the insertion
        // of one where it has read already, is a relocation. So where a copy stays behind the cleared slot, the version
        // is advanced first (H2, models equal_fingerprint_*).
        if first.count(second, format) > 1 {
            locked.bump(key);
        }
        self.table.clear(locked, format, slot);
        locked.count(key, |count| count.wrapping_sub(1));
        true
    }

    /// Removes every copy of the class and says how many there were. Of several copies, all but the last stay behind a
    /// cleared slot for a moment: the version is advanced as above.
    pub(crate) fn remove_all(&self, format: &Format, key: Candidates) -> usize {
        let change = self.begin_change();
        let locked = self.stripes.lock_pair(key.first, key.second);
        let copies = self.copies(&locked, format, key);
        if copies > 1 {
            locked.bump(key);
        }
        for bucket in [key.first, key.second] {
            while let Some(slot) = self.table.find(&locked, format, key.fingerprint, bucket).lowest(format) {
                self.table.clear(&locked, format, slot);
            }
        }
        locked.count(key, |count| count.wrapping_sub(u64::from(copies)));
        change.end();
        copies as usize
    }

    /// Removes everything. All stripes are locked and bumped first: a look-up that misses a class had a moment at which
    /// no copy of it was left (H7, models clear_*).
    pub(crate) fn clear(&self) {
        let change = self.begin_change();
        let locked = self.stripes.lock_all();
        locked.bump_all();
        self.table.clear_all(&locked);
        locked.count_nothing();
        change.end();
    }
}
