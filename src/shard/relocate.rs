//! Relocation: making room for a key whose two buckets are full.

use super::{Admission, Shard};
use crate::error::InsertError;
use crate::fail_point::{Step, reached};
use crate::geometry::{Candidates, Geometry};
use crate::path::{Hop, Path, Search};
use crate::stripe::Locked;
use crate::table::{Format, Slot};

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
    ) -> Result<bool, InsertError> {
        let mut search = Search::new();
        for _ in 0..ATTEMPTS {
            let Some(path) = self.find_path(&mut search, geometry, format, key) else { break };
            if let Some(result) = self.carry_out(format, path, key, admission) {
                return result;
            }
        }
        self.insert_alone(&mut search, geometry, format, key, admission)
    }

    fn find_path<'a>(
        &self,
        search: &'a mut Search,
        geometry: &Geometry,
        format: &Format,
        key: Candidates,
    ) -> Option<Path<'a>> {
        search.find(
            [key.first, key.second],
            |bucket| self.table.slots(format, bucket),
            |bucket| self.table.has_room(format, bucket),
            |fingerprint, bucket| geometry.alternate(fingerprint, bucket),
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
        let mut hops = path.into_iter().peekable();
        while let Some(hop) = hops.next() {
            if hops.peek().is_none() {
                return self.last_hop(format, hop, key, admission).map(Ok);
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
        self.relocate(&locked, format, hop).is_some()
    }

    /// The hop out of the pair of the key, and its insertion, in one critical section: nobody else gets the hole. The
    /// key is looked for, and so is room, as if there had been no search (H4, models unique_* and last_hop_*).
    fn last_hop(&self, format: &Format, hop: Hop, key: Candidates, admission: Admission) -> Option<bool> {
        let locked = self.stripes.lock_three([key.first, key.second, hop.to]);
        if let Some(stored) = self.place_locked(&locked, format, key, admission) {
            return Some(stored);
        }
        let freed = self.relocate(&locked, format, hop)?;
        self.fill(&locked, format, freed, key);
        Some(true)
    }

    /// Inserts with all the shard's stripes locked, where nobody spoils the path. Only this may say that the shard is
    /// full.
    fn insert_alone(
        &self,
        search: &mut Search,
        geometry: &Geometry,
        format: &Format,
        key: Candidates,
        admission: Admission,
    ) -> Result<bool, InsertError> {
        let locked = self.stripes.lock_all();
        if let Some(stored) = self.place_locked(&locked, format, key, admission) {
            return Ok(stored);
        }
        if self.is_saturated(&locked, format, key) {
            return Err(InsertError::TooManyCopies);
        }
        for hop in self.find_path(search, geometry, format, key).into_iter().flatten() {
            let moved = self.relocate(&locked, format, hop);
            debug_assert!(moved.is_some(), "a path found under all locks is carried out under them");
        }
        self.place_locked(&locked, format, key, admission).ok_or(InsertError::Full)
    }

    /// Moves a copy of the fingerprint to its other bucket and returns the slot that it left: `None` if it is no longer
    /// there or the other has no room left (H4).
    ///
    /// Copy, bump, clear: at every moment the fingerprint stands in one bucket or in both, and a look-up that saw
    /// neither copy sees that the version changed (H1).
    fn relocate(&self, locked: &Locked<'_, impl Sized>, format: &Format, hop: Hop) -> Option<Slot> {
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
