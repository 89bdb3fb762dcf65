//! Relocation: making room for a key whose two buckets are full.

use super::{Admission, Shard};
use crate::error::InsertError;
use crate::fail_point::{Step, reached};
use crate::geometry::{Bucket, Candidates, Fingerprint, Geometry};
use crate::path::{Effort, Hop, Path, Search};
use crate::prefetch::Into;
use crate::stripe::Locked;
use crate::table::{Beside, Format, Reading, Slot};
use crate::tally::Event;

/// Paths that other writers may spoil before an insertion takes the whole shard for itself.
const ATTEMPTS: usize = 4;

impl Shard {
    /// Inserts into a full pair: searches without locks, carries the path out hop by hop, and only refuses when a
    /// search under all the shard's stripes finds nothing.
    #[cold]
    pub(super) fn insert_by_path(
        &self,
        geometry: &Geometry,
        format: &Format,
        key: Candidates,
        admission: Admission,
        effort: &mut Effort,
    ) -> Result<bool, InsertError> {
        let mut search = Search::new();
        for _ in 0..ATTEMPTS {
            let path = self.find_path(&mut search, *effort, geometry, format, key, Beside);
            let Some(path) = path else { break };
            if let Some(result) = self.carry_out(format, path, key, admission) {
                effort.learn(true);
                return result;
            }
        }
        self.alone(geometry, format).insert(&mut search, effort, key, admission)
    }

    /// Begins to fetch what a search for this key would look at first, if it takes one.
    #[inline]
    pub(crate) fn fetch_path(&self, geometry: &Geometry, format: &Format, key: Candidates) {
        let full = |bucket| !self.table.has_room(format, bucket, Beside);
        if full(key.first) && full(key.second) {
            self.fetch_alternates(geometry, format, key.first);
            self.fetch_alternates(geometry, format, key.second);
        }
    }

    /// Begins to fetch the other buckets of the fingerprints in this one.
    #[inline(always)]
    fn fetch_alternates(&self, geometry: &Geometry, format: &Format, bucket: Bucket) {
        let slots = self.table.slots(format, bucket, Beside);
        for fingerprint in slots.into_iter().filter_map(Fingerprint::from_slot) {
            self.table.prefetch(format, geometry.alternate(fingerprint, bucket), Into::L1);
        }
    }

    pub(super) fn find_path<'a, R: Reading>(
        &self,
        search: &'a mut Search,
        effort: Effort,
        geometry: &Geometry,
        format: &Format,
        key: Candidates,
        reading: R,
    ) -> Option<Path<'a>> {
        search.find(
            effort,
            [key.first, key.second],
            |bucket| self.table.slots(format, bucket, reading),
            |bucket| self.table.has_room(format, bucket, reading),
            |fingerprint, bucket| geometry.alternate(fingerprint, bucket),
            |bucket| {
                if !R::NEAR {
                    self.fetch_alternates(geometry, format, bucket);
                }
            },
        )
    }

    /// Moves the hole from the free end of the path to the pair of the key and fills it, each hop under its own locks.
    /// `None` if another writer spoiled the path: what was moved by then has moved rightly (H5).
    pub(crate) fn carry_out(
        &self,
        format: &Format,
        path: impl IntoIterator<Item = Hop>,
        key: Candidates,
        admission: Admission,
    ) -> Option<Result<bool, InsertError>> {
        let mut hops = path.into_iter().zip(1..).peekable();
        while let Some((hop, length)) = hops.next() {
            if hops.peek().is_none() {
                return self.last_hop(format, hop, length, key, admission).map(Ok);
            }
            if !self.hop(format, hop) {
                return None;
            }
        }
        // Room appeared in the pair itself while it was searched.
        self.place(format, key, admission)
    }

    /// A hop within the path, under the locks of its own pair.
    pub(crate) fn hop(&self, format: &Format, hop: Hop) -> bool {
        let locked = self.stripes.lock_pair(hop.from, hop.to);
        let moved = self.relocate(&locked, format, hop).is_some();
        if moved {
            locked.note(hop.from, Event::Relocated);
        }
        moved
    }

    /// The hop out of the pair of the key, and its insertion, in one critical section: nobody else gets the hole. The
    /// key is looked for, and so is room, as if there had been no search (H4, models unique_* and last_hop_*).
    fn last_hop(&self, format: &Format, hop: Hop, length: u64, key: Candidates, admission: Admission) -> Option<bool> {
        let locked = self.stripes.lock_three([key.first, key.second, hop.to]);
        if let Some(stored) = self.place_locked(&locked, format, key, admission) {
            return Some(stored);
        }
        let freed = self.relocate(&locked, format, hop)?;
        self.fill(&locked, format, freed, key);
        locked.note(key.first, Event::Path { length, relocated: 1 });
        Some(true)
    }

    /// Moves a copy of the fingerprint to its other bucket and returns the slot that it left: `None` if it is no longer
    /// there or the other has no room left (H4).
    ///
    /// Copy, bump, clear: at every moment the fingerprint stands in one bucket or in both, and a look-up that saw
    /// neither copy sees that the version changed (H1).
    pub(super) fn relocate(&self, locked: &Locked<'_, impl Sized>, format: &Format, hop: Hop) -> Option<Slot> {
        let old = self.table.find(locked, format, hop.fingerprint, hop.from).lowest(format)?;
        let new = self.table.find_empty(locked, format, hop.to).lowest(format)?;
        let class = Candidates { fingerprint: hop.fingerprint, first: hop.from, second: hop.to };
        self.table.store(locked, format, new, hop.fingerprint);
        reached(Step::Copied);
        locked.bump(class);
        self.table.clear(locked, format, old);
        Some(old)
    }
}

#[cfg(all(test, not(any(cuckoo_loom, cuckoo_shuttle))))]
mod tests {
    use super::*;
    use crate::CuckooFilter;
    use crate::fail_point::with_hook;
    use std::cell::RefCell;
    use std::collections::BTreeMap;
    use std::rc::Rc;

    /// Nobody spoils a path here, so each is carried out as it was found: after the look for room, one critical section
    /// for each hop, the last of which stores the key.
    #[test]
    fn a_path_takes_one_critical_section_a_hop() {
        let mut lengths = BTreeMap::new();
        for width in [8, 13, 16, 24] {
            let filter = CuckooFilter::<u64>::builder().capacity(2000).fingerprint_bits(width).build().unwrap();
            for hash in 0.. {
                let steps = Rc::new(RefCell::new(Vec::new()));
                let noted = Rc::clone(&steps);
                let before = filter.stats();
                let result = with_hook(move |step| noted.borrow_mut().push(step), || filter.insert_hash(hash));
                let times = |wanted| steps.borrow().iter().filter(|&&step| step == wanted).count();
                let (hops, after) = (times(Step::Copied), filter.stats());
                if result.is_err() {
                    assert_eq!((hops, filter.len()), (0, before.len));
                    break;
                }
                assert_eq!((times(Step::Locked), times(Step::Cleared)), (1 + hops, hops), "{:?}", steps.borrow());
                assert_eq!(after.relocations - before.relocations, hops as u64);
                assert_eq!(after.longest_path, before.longest_path.max(hops as u64));
                *lengths.entry(hops).or_insert(0) += 1;
            }
        }
        assert!(lengths.keys().any(|&hops| hops >= 3), "{lengths:?}");
    }
}
