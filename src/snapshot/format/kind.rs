//! The kind of the filter of a snapshot: the contents of slots beside a fingerprint, and whether shards split. Kinds combine; a
//! plain filter has no flag.

use super::{Fields, invalid, put_u64};
use crate::error::{SnapshotError, SnapshotPlace};
use core::ops::RangeInclusive;

const GROWING: u32 = 1;
const EXPIRING: u32 = 2;
const COUNTING: u32 = 4;
const TAGGED: u32 = 8;
const RENEWED: u32 = 16;

/// With fewer bits a live tag and a dead one are indistinguishable.
const TAG_BITS: RangeInclusive<u32> = 2..=16;

pub(super) const BYTES: usize = 32;

#[derive(Clone, Copy, Default, PartialEq)]
#[cfg_attr(test, derive(Debug))]
pub(crate) struct Kind {
    pub(in crate::snapshot) growing: Option<GrowingFields>,
    pub(in crate::snapshot) expiring: Option<Expiring>,
    /// Bits of the counter in each slot, the lowest ones; 0 if nothing is counted.
    pub(in crate::snapshot) counter_bits: u32,
    /// The counter is a tag of the user plus one, and counts nothing.
    pub(in crate::snapshot) tagged: bool,
}

/// Shards split until they have spent the reserve.
#[derive(Clone, Copy, Default, PartialEq)]
#[cfg_attr(test, derive(Debug))]
pub(crate) struct GrowingFields {
    /// The upper bits of a fingerprint, which splits spend. The bits below are its core.
    pub(in crate::snapshot) reserve_bits: u32,
    /// The uppermost reserve bits, which extend the buckets of tables that are refilled.
    pub(in crate::snapshot) extension_bits: u32,
    /// The number of keys up to which the filter grows.
    pub(in crate::snapshot) max_capacity: u64,
}

/// Keys have deadlines: in each slot, below the fingerprint and above the counter, a tag.
#[derive(Clone, Copy, Default, PartialEq)]
#[cfg_attr(test, derive(Debug))]
pub(crate) struct Expiring {
    pub(in crate::snapshot) tag_bits: u32,
    pub(in crate::snapshot) time_to_live: u64,
    pub(in crate::snapshot) tick: u64,
    /// Each addition to a counter begins the time anew.
    pub(in crate::snapshot) renewed: bool,
}

impl Kind {
    pub(super) fn flags(&self) -> u32 {
        let growing = if self.growing.is_some() { GROWING } else { 0 };
        let expiring = self.expiring.map_or(0, |expiring| if expiring.renewed { EXPIRING | RENEWED } else { EXPIRING });
        let beside = if self.tagged { TAGGED } else { COUNTING };
        growing | expiring | if self.counter_bits > 0 { beside } else { 0 }
    }

    /// Returns the type of filters of this kind, for errors: "counting".
    pub(in crate::snapshot) fn filter(&self) -> &'static str {
        match (self.expiring, self.counter_bits) {
            (None, 0) => "plain",
            (Some(_), 0) => "expiring",
            (None, _) if self.tagged => "tagged",
            // No version writes it.
            (Some(_), _) if self.tagged => "expiring and tagged",
            _ => "counting",
        }
    }

    pub(in crate::snapshot) fn tag_bits(&self) -> u32 {
        self.expiring.map_or(0, |expiring| expiring.tag_bits)
    }

    /// Returns the bits of a slot of a shard that has not split.
    pub(super) fn slot_bits(&self, fingerprint_bits: u32) -> u32 {
        fingerprint_bits + self.tag_bits() + self.counter_bits
    }

    pub(super) fn put(&self, bytes: &mut Vec<u8>) {
        let (growing, expiring) = (self.growing.unwrap_or_default(), self.expiring.unwrap_or_default());
        let bits = [growing.reserve_bits, expiring.tag_bits, self.counter_bits, growing.extension_bits];
        bytes.extend(bits.map(|bits| bits as u8));
        bytes.extend([0; 4]);
        put_u64(bytes, [growing.max_capacity, expiring.time_to_live, expiring.tick]);
    }

    /// Reads the fields of a filter with these flags, capacity and bits of a fingerprint. The fields of other kinds must be 0.
    pub(super) fn parse(
        fields: &mut Fields<'_>,
        flags: u32,
        capacity: u64,
        fingerprint_bits: u32,
    ) -> Result<Self, SnapshotError> {
        let [reserve_bits, tag_bits, counter_bits, extension_bits] = [(); 4].map(|()| u32::from(fields.u8()));
        let reserved = fields.zeros(4);
        let [max_capacity, time_to_live, tick] = [(); 3].map(|()| fields.u64());
        let is = |kind| flags & kind != 0;
        let is_known = flags < 2 * RENEWED && !(is(COUNTING) && is(TAGGED));
        let (grows, expires, counts) = (is(GROWING), is(EXPIRING), is(COUNTING) || is(TAGGED));
        let or_zero = |has: bool, is_valid: bool, number: u64| if has { is_valid } else { number == 0 };
        let checks = [
            ("kind of filter", flags.into(), is_known && (!is(RENEWED) || expires && is(COUNTING))),
            (
                "bits of the reserve",
                reserve_bits.into(),
                or_zero(grows, (1..fingerprint_bits).contains(&reserve_bits), reserve_bits.into()),
            ),
            ("bits that extend buckets", extension_bits.into(), extension_bits < reserve_bits.max(1)),
            ("largest capacity", max_capacity, or_zero(grows, max_capacity >= capacity, max_capacity)),
            ("bits of a tag", tag_bits.into(), or_zero(expires, TAG_BITS.contains(&tag_bits), tag_bits.into())),
            ("time to live", time_to_live, expires == (time_to_live > 0)),
            ("tick", tick, or_zero(expires, (1..=time_to_live).contains(&tick), tick)),
            ("bits of a counter", counter_bits.into(), counts == (counter_bits > 0)),
        ];
        if let Some((field, found, _)) = checks.into_iter().find(|&(.., is_valid)| !is_valid) {
            return Err(invalid(SnapshotPlace::Header, field, found));
        }
        if !reserved {
            return Err(invalid(SnapshotPlace::Header, "reserved bytes", "not 0"));
        }
        Ok(Kind {
            growing: grows.then_some(GrowingFields { reserve_bits, extension_bits, max_capacity }),
            expiring: expires.then_some(Expiring { tag_bits, time_to_live, tick, renewed: is(RENEWED) }),
            counter_bits,
            tagged: is(TAGGED),
        })
    }

    /// Returns the kind for errors: "growing", "growing and expiring".
    pub(in crate::snapshot) fn name(&self) -> String {
        let names = [(GROWING, "growing"), (EXPIRING, "expiring"), (COUNTING, "counting"), (TAGGED, "tagged")];
        let names: Vec<_> = names.iter().filter(|(kind, _)| self.flags() & kind != 0).map(|&(_, name)| name).collect();
        if names.is_empty() { String::from("plain") } else { names.join(" and ") }
    }
}
