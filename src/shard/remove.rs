//! Removal.

use super::Shard;
use crate::geometry::Candidates;
use crate::stripe::Locked;
use crate::table::Format;

impl Shard {
    /// Removes one copy of the class. A present class is always found: nobody moves it while its stripes are locked.
    pub(crate) fn remove(&self, format: &Format, key: Candidates) -> bool {
        let locked = self.stripes.lock_pair(key.first, key.second);
        let copies = self.copies(&locked, format, key);
        if copies == 0 {
            return false;
        }
        self.remove_copies(&locked, format, key, copies, 1);
        true
    }

    /// Removes every copy of the class and says how many there were.
    pub(crate) fn remove_all(&self, format: &Format, key: Candidates) -> usize {
        let locked = self.stripes.lock_pair(key.first, key.second);
        let copies = self.copies(&locked, format, key);
        self.remove_copies(&locked, format, key, copies, copies);
        copies as usize
    }

    /// Removes `removed` of the `copies` copies of the class.
    ///
    /// To a look-up of another key of the class, the removal of a copy that it has not read yet, after the insertion of
    /// one where it has read already, is a relocation. So where a copy stays behind a cleared slot, if only until the
    /// next one is cleared, the version is advanced first (H2, models equal_fingerprint_*).
    fn remove_copies(&self, locked: &Locked, format: &Format, key: Candidates, copies: u32, removed: u32) {
        if copies > 1 {
            locked.bump(key);
        }
        for _ in 0..removed {
            let held = [key.first, key.second]
                .into_iter()
                .find_map(|bucket| Some((bucket, self.table.find(locked, format, key.fingerprint, bucket)?)));
            if let Some((bucket, slot)) = held {
                self.table.clear(locked, format, bucket, slot);
            }
        }
        locked.count(key, |count| count - u64::from(removed));
    }

    /// Removes everything. All stripes are locked and bumped first: a look-up that misses a class had a moment at which
    /// no copy of it was left (H7, models clear_*).
    pub(crate) fn clear(&self) {
        let locked = self.stripes.lock_all();
        locked.bump_all();
        self.table.clear_all(&locked);
        locked.count_nothing();
    }
}
