//! Applying a delta to a filter in use.

use super::Name;
use super::format::{self, Change, End, MAGIC_LEN, NAME, Next};
use crate::error::{SnapshotError, SnapshotPlace};
use crate::filter::CuckooFilter;
use crate::filter::kind::Plain;
use crate::hashing::SavedHasher;
use crate::layout::{CellPlace, Geometry, Plan, SLOTS, Search, SearchBudget};
use crate::raw::{Bare, Exclusive, Fixed, Growing, Put, RawFilter};
use crate::snapshot::arriving::{exact, take};
use crate::snapshot::format::{PIECE, invalid as invalid_at, with_sum_of};
use crate::snapshot::read::{SnapshotHeader, SnapshotReader};
use core::fmt;
use crc32c::crc32c;
use std::io::Read;

/// The result of applying a delta.
#[derive(Clone, PartialEq, Eq)]
#[must_use = "it has the metadata of the newer snapshot"]
#[non_exhaustive]
pub struct DeltaReport {
    /// The number of removed copies.
    pub removed: usize,
    /// The number of inserted copies.
    pub inserted: usize,
    /// The [metadata](crate::Snapshot::metadata) of the newer snapshot.
    pub metadata: Vec<u8>,
}

impl fmt::Debug for DeltaReport {
    /// Shows the length of the metadata only.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeltaReport")
            .field("removed", &self.removed)
            .field("inserted", &self.inserted)
            .field("metadata", &format_args!("{} bytes", self.metadata.len()))
            .finish()
    }
}

impl<K: ?Sized, S> CuckooFilter<K, S> {
    /// Returns a hash of the contents, independent of their buckets. Of filters that were built alike, equal contents have equal
    /// digests, and different contents have equal digests with probability 2^-64. Digests give no protection against intent. The
    /// result is exact without concurrent writers.
    ///
    /// # Complexity
    /// Each slot once: some 30 ms for 10^7 keys.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::{CuckooFilter, StableHashBuilder};
    ///
    /// let build = || CuckooFilter::<u64, _>::with_capacity_and_hasher(1000, StableHashBuilder::with_seeds(1, 2));
    /// let (one, other) = (build(), build());
    /// (0..900).for_each(|key| one.insert(&key).unwrap());
    /// (0..900).rev().for_each(|key| other.insert(&key).unwrap());
    /// assert_eq!(one.digest(), other.digest());
    /// one.remove(&7);
    /// assert_ne!(one.digest(), other.digest());
    /// ```
    #[must_use]
    pub fn digest(&self) -> u64 {
        let mut digest = 0_u64;
        self.raw.each_class(|shard, class| digest = digest.wrapping_add(Name::of(class).digest(shard)));
        digest
    }
}

impl<K: ?Sized + 'static, S: SavedHasher> CuckooFilter<K, S> {
    /// Applies a [delta](SnapshotReader::write_delta_since) while lookups proceed: a filter with the contents of the older
    /// snapshot, such as one loaded from it, then has the contents of the newer one.
    ///
    /// Keys of both snapshots are found at every moment; other keys change one at a time. A shard of a filter of fixed size is
    /// changed under all its locks, so other writers see its changes at once; a growing filter grows like under insertions. **No
    /// other writer may run**, since the filter would no longer have the contents that the delta requires.
    ///
    /// # Errors
    /// Before any change: if the delta is truncated or damaged, or belongs to another filter, hash function or type of keys; if the
    /// contents of the filter differ from the older snapshot, by its [digest](CuckooFilter::digest)
    /// ([`SnapshotError::DeltaMismatch`]). The filter is unchanged then. After some changes: if a key finds no room, which within
    /// the capacity is as rare as a refused insertion ([`SnapshotError::DeltaRefused`]), or if another writer interfered. Load the
    /// newer snapshot then.
    ///
    /// # Complexity
    /// Memory: that of the delta, allocated as it arrives. Each slot of the filter is read twice, for the digests; each change is a
    /// removal or an insertion.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::{CuckooFilter, SnapshotError, SnapshotReader, StableHashBuilder};
    ///
    /// let list = CuckooFilter::<u64, _>::with_capacity_and_hasher(1_000, StableHashBuilder::default());
    /// let (mut older, mut newer, mut delta) = (Vec::new(), Vec::new(), Vec::new());
    /// list.write_to(&mut older)?;
    /// list.insert(&7)?;
    /// list.write_to(&mut newer)?;
    /// SnapshotReader::new(&newer[..])?.write_delta_since(SnapshotReader::new(&older[..])?, &mut delta)?;
    ///
    /// let replica: CuckooFilter<u64, StableHashBuilder> = SnapshotReader::new(&older[..])?.into_filter()?;
    /// assert_eq!(replica.apply_delta(&delta[..])?.inserted, 1);
    /// assert!(replica.contains(&7));
    /// assert!(matches!(replica.apply_delta(&delta[..]), Err(SnapshotError::DeltaMismatch { .. })));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn apply_delta(&self, delta: impl Read) -> Result<DeltaReport, SnapshotError> {
        let delta = Delta::read(delta)?;
        delta.header.check_whole()?;
        delta.header.check_filter::<K, S, Plain>(self.hasher())?;
        if !delta.header.plan().places_alike(self.plan()) {
            return Err(SnapshotError::DeltaOfAnother { what: "size" });
        }
        let End { from, to, .. } = delta.end;
        delta.check(self.raw.geometry(), self.plan())?;
        let mismatch = |expected, found| SnapshotError::DeltaMismatch { expected, found };
        let found = self.digest();
        if found != from {
            return Err(mismatch(from, found));
        }
        let metadata = delta.header.metadata.clone();
        let mut report = DeltaReport { removed: 0, inserted: 0, metadata };
        for changed in &delta.changes {
            let shard = changed.change.piece.shard;
            let refused = || SnapshotError::DeltaRefused { shard };
            let mut writer = Writer::of(&self.raw, shard);
            let [removed, inserted] = changed.names();
            for place in changed.places(removed, self.raw.geometry(), self.plan()) {
                writer.remove(place).ok_or_else(refused)?;
                report.removed += 1;
            }
            for place in changed.places(inserted, self.raw.geometry(), self.plan()) {
                writer.insert(place).ok_or_else(refused)?;
                report.inserted += 1;
            }
        }
        let found = self.digest();
        if found == to { Ok(report) } else { Err(mismatch(to, found)) }
    }
}

/// The writer of the changes of a shard.
#[expect(clippy::large_enum_variant, reason = "a single value on the stack")]
enum Writer<'a> {
    Shard(Exclusive<'a, Bare>, Search, SearchBudget),
    Tables(&'a Growing, SearchBudget),
}

impl<'a> Writer<'a> {
    fn of(raw: &'a RawFilter, shard: usize) -> Self {
        match raw {
            RawFilter::Flat(flat) => Writer::Shard(flat.at(shard).exclusive(), Search::new(), SearchBudget::full()),
            RawFilter::Growing(growing) => Writer::Tables(growing, SearchBudget::full()),
        }
    }

    /// Removes one copy; `None` if there is none.
    fn remove(&self, place: CellPlace) -> Option<()> {
        let had = match self {
            Writer::Shard(exclusive, ..) => exclusive.remove(place.class, None),
            Writer::Tables(growing, _) => growing.remove_fetched(place, None),
        };
        (had != 0).then_some(())
    }

    /// Inserts one copy; `None` if there is no room.
    fn insert(&mut self, place: CellPlace) -> Option<()> {
        let stored = match self {
            Writer::Shard(exclusive, search, budget) => {
                let Ok(stored) = exclusive.insert(Fixed, search, budget, place.class, Put::COPY);
                stored
            }
            Writer::Tables(growing, budget) => {
                growing.insert_doubling(place, Put::COPY, growing.plan.reserve_bits, budget)
            }
        };
        stored.ok().map(|_| ())
    }
}

struct Delta {
    header: SnapshotHeader,
    changes: Vec<Changed>,
    end: End,
}

/// The changes of a piece of the filter, and the range of its cells.
struct Changed {
    change: Change,
    cells: [usize; 2],
    bytes: Vec<u8>,
}

impl Delta {
    /// Reads the whole delta, and checks its checksums.
    fn read(mut reader: impl Read) -> Result<Self, SnapshotError> {
        let mut head = Vec::with_capacity(PIECE);
        reader.by_ref().take(PIECE as u64).read_to_end(&mut head)?;
        format::check_head(&head)?;
        let SnapshotReader { mut reader, header, origin, .. } = SnapshotReader::new(reader)?;
        let plan = *header.plan();
        let (mut changes, mut checksums) = (Vec::<Changed>::new(), origin);
        loop {
            let mut head = [0; PIECE];
            let (magic, rest) = head.split_at_mut(MAGIC_LEN);
            // If the file ends before the magic, the error names the trailer.
            exact(&mut reader, magic, SnapshotPlace::Trailer)?;
            let place = Next::place(magic, changes.len());
            exact(&mut reader, rest, place)?;
            let change = match Next::parse(&head, place, origin, checksums)? {
                Next::End(end) if end.changes == changes.len() as u64 => return Ok(Delta { header, changes, end }),
                Next::End(_) => return Err(SnapshotError::Damaged { place }),
                Next::Change(change) => change,
            };
            let ended = changes.last().map_or(0, |before| before.cells[1]);
            let cells = change.piece.cells(&plan).filter(|&[first, _]| first >= ended);
            // As many tables as there may be of these cells, full.
            let slots = |[first, end]: [usize; 2]| u64::from(plan.buckets) * SLOTS as u64 * (end - first) as u64;
            let Some((cells, len)) = cells.and_then(|cells| Some((cells, change.len(slots(cells))?))) else {
                return Err(invalid(change.piece.shard, "number of the shard, or of its changes"));
            };
            let place = SnapshotPlace::Shard { number: change.piece.shard };
            let mut bytes = Vec::new();
            take(&mut reader, len, &mut bytes, place)?;
            if crc32c(&bytes) != change.sum {
                return Err(SnapshotError::Damaged { place });
            }
            checksums = with_sum_of(checksums, &head);
            changes.push(Changed { change, cells, bytes });
        }
    }

    /// Returns an error if a class is impossible, or if the digests of the classes do not lead from the digest of the older
    /// snapshot to that of the newer one.
    fn check(&self, geometry: &Geometry, plan: &Plan) -> Result<(), SnapshotError> {
        let mut digest = self.end.from;
        for changed in &self.changes {
            let shard = changed.change.piece.shard;
            let [removed, inserted] = changed.names();
            let places = changed.places(removed, geometry, plan).chain(changed.places(inserted, geometry, plan));
            let len = (changed.change.removed + changed.change.inserted) as usize;
            if places.count() != len || changed.bytes[len * NAME..].iter().any(|&byte| byte != 0) {
                return Err(invalid(shard, "class"));
            }
            let sum = |bytes| format::names(bytes).map(|name| name.digest(shard)).fold(0, u64::wrapping_add);
            digest = digest.wrapping_sub(sum(removed)).wrapping_add(sum(inserted));
        }
        if digest != self.end.to {
            return Err(invalid_at(SnapshotPlace::Trailer, "digest", format!("{digest:016x}")));
        }
        Ok(())
    }
}

impl Changed {
    /// Returns the names of the removed and of the inserted classes.
    fn names(&self) -> [&[u8]; 2] {
        let (removed, inserted) = (self.change.removed as usize * NAME, self.change.inserted as usize * NAME);
        let (removed, rest) = self.bytes.split_at(removed);
        [removed, &rest[..inserted]]
    }

    /// Returns the places of the classes named by some bytes, without classes that are impossible or belong to another piece.
    fn places(&self, bytes: &[u8], geometry: &Geometry, plan: &Plan) -> impl Iterator<Item = CellPlace> {
        let place = |name: Name| geometry.cell_place_at(plan, self.change.piece.shard, name.fingerprint, name.bucket);
        let is_here = |place: &CellPlace, name| {
            Name::of(place.class) == name && (self.cells[0]..self.cells[1]).contains(&place.cell)
        };
        format::names(bytes).filter_map(move |name| place(name).filter(|place| is_here(place, name)))
    }
}

fn invalid(shard: usize, field: &'static str) -> SnapshotError {
    invalid_at(SnapshotPlace::Shard { number: shard }, field, "another one")
}
