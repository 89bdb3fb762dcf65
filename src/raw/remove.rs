//! Removal.

use super::home::Home;
use super::locks::Locked;
use super::shard::Shard;
use crate::layout::Class;
use crate::sys::prefetch::CacheLevel;

impl Shard<'_> {
    /// Removes one copy of the class. A present class is always found: nothing moves it while its stripes are locked.
    #[inline]
    pub(crate) fn remove<H: Home>(self, home: H, class: Class) -> Result<bool, H::Again> {
        self.fetch(class, CacheLevel::L1);
        let change = self.begin_change();
        let removed = self.remove_fetched(home, class);
        change.end();
        removed
    }

    /// The same for a key whose buckets are on their way.
    #[inline(always)]
    pub(crate) fn remove_fetched<H: Home>(self, home: H, class: Class) -> Result<bool, H::Again> {
        let locked = self.stripes().lock_pair(class.first, class.second);
        home.check()?;
        Ok(self.remove_locked(&locked, class))
    }

    /// The same, under locks that cover the pair.
    #[inline(always)]
    pub(super) fn remove_locked(self, locked: &Locked<'_, impl Sized>, class: Class) -> bool {
        let [first, second] = self.find(locked, class);
        // Which bucket it is cannot be predicted: chosen without a branch.
        let Some(slot) = first.or(second).lowest(self.table().format()) else { return false };
        self.take(locked, slot, class, first.count(second, self.table().format()) > 1);
        true
    }

    /// Removes every copy of the class and says how many there were. Of several copies, all but the last stay behind a
    /// cleared slot for a moment.
    #[inline]
    pub(crate) fn remove_all<H: Home>(self, home: H, class: Class) -> Result<usize, H::Again> {
        let locked = self.stripes().lock_pair(class.first, class.second);
        home.check()?;
        let change = self.begin_change();
        let copies = self.copies(&locked, class) as usize;
        for left in (0..copies).rev() {
            let [first, second] = self.find(&locked, class);
            if let Some(slot) = first.or(second).lowest(self.table().format()) {
                self.take(&locked, slot, class, left > 0);
            }
        }
        change.end();
        Ok(copies)
    }
}
