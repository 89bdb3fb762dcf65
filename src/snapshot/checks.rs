//! Comparisons of a header with the requested filter, and with other headers.

use super::format::{Expiring, Header, ensure};
use super::key_type::KeyType;
use super::read::SnapshotHeader;
use crate::error::SnapshotError;
#[cfg(all(feature = "shared", target_os = "linux"))]
use crate::filter::CuckooFilter;
use crate::filter::kind::Kind;
use crate::hashing::{SavedHasher, probe};
use crate::layout::Tags;

impl SnapshotHeader {
    /// Returns the first difference between the filters of two headers, if any.
    pub(super) fn difference(&self, other: &Self) -> Option<&'static str> {
        let (one, other) = (&self.parsed, &other.parsed);
        let probes = one.key_type.probes();
        [
            (!one.plan.places_alike(&other.plan) || one.capacity != other.capacity, "size"),
            (one.kind != other.kind, "kind"),
            (one.rate != other.rate, "false-positive rate"),
            (one.key_type != other.key_type, "type of the keys"),
            (one.hasher != other.hasher || one.probe[..probes] != other.probe[..probes], "hasher or its seeds"),
        ]
        .into_iter()
        .find_map(|(differs, what)| differs.then_some(what))
    }

    pub(super) fn check_whole(&self) -> Result<(), SnapshotError> {
        let (part, shards) = (self.parsed.part.clone(), self.parsed.plan.shards);
        if part.len() < shards { Err(SnapshotError::PartAlone { part, shards }) } else { Ok(()) }
    }

    /// Returns the hash function with the seeds in the snapshot.
    pub(crate) fn hasher<S: SavedHasher>(&self) -> Result<S, SnapshotError> {
        let Header { hasher, keys, .. } = &self.parsed;
        if hasher != S::NAME {
            return Err(self.mismatch::<S>());
        }
        keys.and_then(S::from_seeds).ok_or_else(|| SnapshotError::NoSeeds { hasher: hasher.clone() })
    }

    /// Returns an error for another kind of filter. All but "plain" are kinds with slots that hold more than fingerprints.
    pub(super) fn check_kind(&self, requested: &'static str) -> Result<(), SnapshotError> {
        let kind = self.parsed.kind;
        if kind.filter() == requested {
            return Ok(());
        }
        Err(SnapshotError::KindMismatch { saved: kind.name(), requested })
    }

    /// Returns an error if a tag or counter straddles words, or if the ticks are too short for the time to live. Refuses kinds that
    /// no version writes.
    pub(super) fn check_slots(&self) -> Result<(), SnapshotError> {
        let Header { plan, kind, .. } = &self.parsed;
        if kind.tagged && kind.expiring.is_some() {
            return Err(SnapshotError::KindMismatch { saved: kind.name(), requested: "plain" });
        }
        let fits = plan.tag_bits() <= Tags::most_bits(plan.slot_bits);
        ensure(fits, "bits beside a fingerprint", plan.tag_bits())?;
        let Some(Expiring { tag_bits, time_to_live, tick, .. }) = kind.expiring else { return Ok(()) };
        // One value is dead, and a part of the last tick may have passed.
        ensure(tick.saturating_mul((1 << tag_bits) - 2) >= time_to_live, "tick", tick)
    }

    /// Returns an error if the kind, the hash function or the type of keys differs.
    pub(super) fn check_filter<K: ?Sized + 'static, S: SavedHasher, T: Kind>(
        &self,
        by: &S,
    ) -> Result<(), SnapshotError> {
        self.check_kind(T::NAME)?;
        self.check_slots()?;
        self.check_hashing::<K, S>(by)
    }

    /// Returns an error if the hash function or the type of keys differs.
    pub(crate) fn check_hashing<K: ?Sized + 'static, S: SavedHasher>(&self, hasher: &S) -> Result<(), SnapshotError> {
        let (header, requested) = (&self.parsed, KeyType::of::<K>());
        if !header.key_type.may_be(&requested) {
            let saved = header.key_type.clone();
            return Err(SnapshotError::KeyTypeMismatch { saved: saved.in_words(), requested: requested.in_words() });
        }
        let probes = header.key_type.probes().max(requested.probes());
        if header.hasher != S::NAME || header.probe[..probes] != probe(hasher)[..probes] {
            return Err(self.mismatch::<S>());
        }
        Ok(())
    }

    fn mismatch<S: SavedHasher>(&self) -> SnapshotError {
        SnapshotError::HasherMismatch { saved: self.parsed.hasher.clone(), given: S::NAME }
    }
}

/// The description of a shared filter in its file: the header of a snapshot, without records.
#[cfg(all(feature = "shared", target_os = "linux"))]
pub(crate) struct Described<S> {
    pub(crate) plan: crate::layout::Plan,
    pub(crate) capacity: usize,
    pub(crate) rate: Option<f64>,
    pub(crate) hasher: S,
}

#[cfg(all(feature = "shared", target_os = "linux"))]
impl<S: SavedHasher> Described<S> {
    pub(crate) fn to_bytes<K: ?Sized + 'static>(filter: &CuckooFilter<K, S>) -> Result<Vec<u8>, SnapshotError> {
        Ok(filter.snapshot().header()?.to_bytes())
    }

    /// Reads and checks the description of a plain filter of fixed size.
    pub(crate) fn from_bytes<K: ?Sized + 'static>(bytes: &[u8]) -> Result<Self, SnapshotError> {
        let header = super::SnapshotReader::new(bytes)?.header;
        let hasher = header.hasher()?;
        header.check_kind("plain")?;
        header.check_hashing::<K, S>(&hasher)?;
        if header.parsed.plan.grows() {
            return Err(SnapshotError::KindMismatch { saved: header.parsed.kind.name(), requested: "plain" });
        }
        header.check_whole()?;
        let Header { plan, capacity, rate, .. } = header.parsed;
        Ok(Described { plan, capacity, rate, hasher })
    }
}
