//! The kind of the filter of a snapshot: the contents of slots beside a fingerprint, and whether shards split. Kinds
//! combine; a plain filter has no flag.

use super::fields::{Fields, put_u64};
use super::invalid;
use crate::error::{SnapshotError, SnapshotPlace};
use core::ops::RangeInclusive;

const GROWING: u32 = 1;
const EXPIRING: u32 = 2;
const COUNTING: u32 = 4;
const TAGGED: u32 = 8;
const RENEWED: u32 = 16;

/// With fewer bits a live tag and a dead one are indistinguishable.
const TAG_BITS: RangeInclusive<u32> = 2..=16;

/// Bytes of the fields below.
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
#[derive(Clone, Copy, PartialEq)]
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
#[derive(Clone, Copy, PartialEq)]
#[cfg_attr(test, derive(Debug))]
pub(crate) struct Expiring {
    pub(in crate::snapshot) tag_bits: u32,
    /// Both in nanoseconds.
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
        let [reserve_bits, extension_bits] =
            self.growing.map_or([0; 2], |growing| [growing.reserve_bits, growing.extension_bits]);
        let bits = [reserve_bits, self.tag_bits(), self.counter_bits, extension_bits];
        bytes.extend(bits.map(|bits| bits as u8));
        bytes.extend([0; 4]);
        put_u64(
            bytes,
            [
                self.growing.map_or(0, |growing| growing.max_capacity),
                self.expiring.map_or(0, |expiring| expiring.time_to_live),
                self.expiring.map_or(0, |expiring| expiring.tick),
            ],
        );
    }

    /// Reads the fields of a filter with these flags, capacity and bits of a fingerprint. The fields of other kinds
    /// must be 0.
    pub(super) fn parse(
        fields: &mut Fields<'_>,
        flags: u32,
        capacity: u64,
        fingerprint_bits: u32,
    ) -> Result<Self, SnapshotError> {
        let [reserve_bits, tag_bits, counter_bits, extension_bits] = [(); 4].map(|()| u32::from(fields.u8()));
        let reserved = fields.zeros(4);
        let [max_capacity, time_to_live, tick] = [(); 3].map(|()| fields.u64());
        let refused = |field, found: u64| Err(invalid(SnapshotPlace::Header, field, found));
        let is = |kind| flags & kind != 0;
        let renews_nothing = is(RENEWED) && !(is(EXPIRING) && is(COUNTING));
        if flags > 2 * RENEWED - 1 || is(COUNTING) && is(TAGGED) || renews_nothing {
            return refused("kind of filter", flags.into());
        }
        let reserve_is_right =
            if is(GROWING) { (1..fingerprint_bits).contains(&reserve_bits) } else { reserve_bits == 0 };
        if !reserve_is_right {
            return refused("bits of the reserve", reserve_bits.into());
        }
        if if is(GROWING) { extension_bits >= reserve_bits } else { extension_bits != 0 } {
            return refused("bits that extend buckets", extension_bits.into());
        }
        if if is(GROWING) { max_capacity < capacity } else { max_capacity != 0 } {
            return refused("largest capacity", max_capacity);
        }
        if if is(EXPIRING) { !TAG_BITS.contains(&tag_bits) } else { tag_bits != 0 } {
            return refused("bits of a tag", tag_bits.into());
        }
        if if is(EXPIRING) { time_to_live == 0 } else { time_to_live != 0 } {
            return refused("time to live", time_to_live);
        }
        if if is(EXPIRING) { !(1..=time_to_live).contains(&tick) } else { tick != 0 } {
            return refused("tick", tick);
        }
        if (counter_bits > 0) != (is(COUNTING) || is(TAGGED)) {
            return refused("bits of a counter", counter_bits.into());
        }
        if !reserved {
            return Err(invalid(SnapshotPlace::Header, "reserved bytes", "not 0"));
        }
        Ok(Kind {
            growing: is(GROWING).then_some(GrowingFields { reserve_bits, extension_bits, max_capacity }),
            expiring: is(EXPIRING).then_some(Expiring { tag_bits, time_to_live, tick, renewed: is(RENEWED) }),
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Kinds valid for fingerprints of 4 bits or more and a capacity of at most 100.
    pub(in super::super) fn kinds() -> impl Strategy<Value = Kind> {
        let growing = (1..4_u32, 0..4_u32, 100..u64::MAX);
        let expiring = (2..9_u32, any::<u64>(), any::<u64>(), any::<bool>());
        (prop::option::of(growing), prop::option::of(expiring), 0..9_u32).prop_map(
            |(growing, expiring, counter_bits)| Kind {
                growing: growing.map(|(reserve_bits, extension_bits, max_capacity)| GrowingFields {
                    reserve_bits,
                    extension_bits: extension_bits.min(reserve_bits - 1),
                    max_capacity,
                }),
                expiring: expiring.map(|(tag_bits, a, b, renewed)| Expiring {
                    tag_bits,
                    time_to_live: a.max(b).max(1),
                    tick: a.min(b).max(1),
                    renewed: renewed && counter_bits > 0,
                }),
                counter_bits,
                tagged: false,
            },
        )
    }

    proptest! {
        #[test]
        fn a_kind_is_read_as_it_was_written(kind in kinds()) {
            let mut bytes = Vec::new();
            kind.put(&mut bytes);
            prop_assert_eq!(bytes.len(), BYTES);
            prop_assert_eq!(Kind::parse(&mut Fields(&bytes), kind.flags(), 100, 4).unwrap(), kind);
            // The fields of one kind are invalid for another.
            for flags in (0..8).filter(|flags| flags | 16 != kind.flags() | 16) {
                prop_assert!(Kind::parse(&mut Fields(&bytes), flags, 100, 4).is_err());
            }
        }
    }

    #[test]
    fn a_kind_has_a_name() {
        let growing = Some(GrowingFields { reserve_bits: 1, extension_bits: 0, max_capacity: 1 });
        let expiring = Some(Expiring { tag_bits: 3, time_to_live: 2, tick: 1, renewed: false });
        assert_eq!(Kind::default().name(), "plain");
        assert_eq!(Kind { growing, ..Kind::default() }.name(), "growing");
        let all = Kind { growing, expiring, counter_bits: 4, tagged: false };
        assert_eq!((all.name(), all.slot_bits(13)), ("growing and expiring and counting".into(), 20));
        assert_eq!(Kind { tagged: true, ..all }.name(), "growing and expiring and tagged");
    }
}
