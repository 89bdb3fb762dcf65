//! Comparisons of a header with the requested filter, and with other headers.

use super::format::{Header, ensure, invalid};
use super::key_type::KeyType;
use super::read::SnapshotHeader;
use crate::error::{SnapshotError, SnapshotPlace};
use crate::filter::kind::Kind;
#[cfg(all(feature = "shared", target_os = "linux"))]
use crate::filter::kind::Plain;
use crate::filter::{Life, nanos};
use crate::hashing::{SavedHasher, probe};
use crate::layout::Tags;

impl SnapshotHeader {
    /// Returns the first difference between the filters of two headers, if any.
    pub(super) fn difference(&self, other: &Self) -> Option<&'static str> {
        let (one, other) = (&self.parsed, &other.parsed);
        let kind = |header: &Header| (header.kind, header.life.map(|life| life.renews));
        let [time, tick] = [|life: Life| life.time, |life: Life| life.tick];
        let probes = one.key_type.probes();
        [
            (kind(one) != kind(other), "kind"),
            (one.life.map(time) != other.life.map(time), "time to live"),
            (one.life.map(tick) != other.life.map(tick), "tick"),
            (!one.plan.places_alike(&other.plan) || one.capacity != other.capacity, "size"),
            (one.max_capacity != other.max_capacity, "largest capacity"),
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
        let keys = keys.ok_or_else(|| SnapshotError::NoSeeds { hasher: hasher.clone() })?;
        let refused = || invalid(SnapshotPlace::Header, "set of seeds", "one that the hasher refuses");
        S::from_seeds(keys).ok_or_else(refused)
    }

    /// Returns an error for another kind of filter.
    pub(super) fn check_kind(&self, requested: &'static str) -> Result<(), SnapshotError> {
        if self.parsed.kind == requested {
            return Ok(());
        }
        Err(SnapshotError::KindMismatch { saved: self.parsed.kind_in_words(), requested })
    }

    /// Returns an error if a tag or counter straddles words, or if the ticks are too short for the time to live.
    pub(super) fn check_slots(&self) -> Result<(), SnapshotError> {
        let (plan, [deadline_bits, _]) = (self.plan(), self.parsed.bits_beside());
        let fits = plan.tag_bits <= Tags::most_bits(plan.slot_bits);
        ensure(fits, "bits beside a fingerprint", plan.tag_bits)?;
        let Some(life) = self.parsed.life else { return Ok(()) };
        // One value is dead, and a part of the last tick may have passed.
        let [time, tick] = [life.time, life.tick].map(nanos);
        ensure(tick.saturating_mul((1 << deadline_bits) - 2) >= time, "tick", tick)
    }

    /// Returns an error if the kind, the hash function or the type of keys differs.
    pub(crate) fn check_filter<K: ?Sized + 'static, S: SavedHasher, T: Kind>(
        &self,
        hasher: &S,
    ) -> Result<(), SnapshotError> {
        self.check_kind(T::NAME)?;
        self.check_slots()?;
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

    /// Returns the hash function, if the header is that of a whole plain filter of fixed size, as in the file of a shared filter.
    #[cfg(all(feature = "shared", target_os = "linux"))]
    pub(crate) fn check_plain<K: ?Sized + 'static, S: SavedHasher>(&self) -> Result<S, SnapshotError> {
        let hasher = self.hasher()?;
        self.check_filter::<K, S, Plain>(&hasher)?;
        if self.plan().grows() {
            return Err(SnapshotError::KindMismatch { saved: self.parsed.kind_in_words(), requested: "plain" });
        }
        self.check_whole()?;
        Ok(hasher)
    }

    fn mismatch<S: SavedHasher>(&self) -> SnapshotError {
        SnapshotError::HasherMismatch { saved: self.parsed.hasher.clone(), given: S::NAME }
    }
}
