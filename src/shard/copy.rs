//! A shard's contents as plain words, for snapshots and merging.

use super::Shard;
use crate::geometry::{Candidates, Fingerprint, Geometry, Plan};
use crate::stripe::Stripes;
use crate::table::{Beside, Format, Table};

impl Shard {
    /// Copies the words, as many as `words` has, and says how many fingerprints are stored in them. All stripes are
    /// locked: copied stripe by stripe, a fingerprint could move from one that is not yet copied to one that is (H7,
    /// models copy_*). Look-ups go on.
    pub(crate) fn copy_to(&self, geometry: &Geometry, format: &Format, words: &mut [u64]) -> u64 {
        let locked = self.stripes.lock_all();
        // Readers refuse a shard of which the count is wrong.
        locked.mend_counts(|| self.occupied(geometry, format));
        self.table.copy_to(&locked, words);
        self.stripes.total()
    }

    /// A shard with these words, in which so many fingerprints are stored. `None` when there is no memory.
    pub(crate) fn of_words(plan: &Plan, words: impl ExactSizeIterator<Item = u64>, count: u64) -> Option<Self> {
        let table = Table::of_words(words)?;
        Some(Shard { table, stripes: Stripes::with_total(plan.stripes, plan.stripe_shift, count)? })
    }

    /// Gives other words to a shard that nobody else knows.
    pub(crate) fn fill_with(&self, words: &[u64]) {
        self.table.fill_with(words.iter().copied());
    }

    /// Counts the slots that are taken, of a shard that nobody writes. `None` if anything stands behind the last
    /// bucket.
    pub(crate) fn occupied(&self, geometry: &Geometry, format: &Format) -> Option<u64> {
        self.table.occupied(format, geometry.all_buckets())
    }

    /// Each copy of each class, of a shard that nobody writes.
    pub(crate) fn classes(&self, geometry: &Geometry, format: &Format) -> impl Iterator<Item = Candidates> {
        geometry.all_buckets().flat_map(move |first| {
            let fingerprints = self.table.slots(format, first, Beside).into_iter().filter_map(Fingerprint::from_slot);
            fingerprints.map(move |fingerprint| {
                let second = geometry.alternate(fingerprint, first);
                Candidates { fingerprint, first, second }
            })
        })
    }
}
