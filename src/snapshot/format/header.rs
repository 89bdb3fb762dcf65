//! The header, before the records.

use super::{ALIGN, CHECKSUM, Fields, invalid as invalid_at, put_u32, put_u64};
use crate::error::{SnapshotError, SnapshotPlace};
use crate::filter::{Life, nanos};
use crate::layout::{FINGERPRINT_BITS, Plan};
use crate::snapshot::key_type::KeyType;
use core::ops::{Range, RangeInclusive};
use core::time::Duration;
use crc32c::crc32c;

/// The first bytes of every snapshot. The first byte is not valid in text, so a transfer in text mode is detected.
const MAGIC: [u8; 8] = *b"\xc0cuckoo\n";

/// The version that is written, and the only one that is read.
const VERSION: u32 = 2;

/// Bytes of the header before the names.
const FIXED: usize = 192;

/// The bytes of the magic, the version and the length of the header.
pub(in crate::snapshot) const PREFIX: usize = 16;

/// The maximum bytes of a name: of the hash function, and of the type of the keys.
pub(in crate::snapshot) const MAX_NAME: usize = 64;

pub(in crate::snapshot) const MAX_METADATA: usize = 64 << 10;

/// The flag of a snapshot that contains the seeds of the hash function.
const WITH_KEYS: u32 = 1;

/// The flags of the kind of a filter. A plain filter of fixed size has none.
const GROWING: u32 = 1;
const EXPIRING: u32 = 2;
const COUNTING: u32 = 4;
const TAGGED: u32 = 8;
const RENEWED: u32 = 16;

/// With fewer bits a live tag and a dead one are indistinguishable.
const DEADLINE_BITS: RangeInclusive<u32> = 2..=16;

/// Of a counter, or of the tag of a tagged filter.
const COUNTER_BITS: RangeInclusive<u32> = 1..=16;

/// The fields of a header, including the seeds of the hash function: only tests print it.
#[derive(Clone, PartialEq)]
#[cfg_attr(test, derive(Debug))]
pub(crate) struct Header {
    pub(in crate::snapshot) plan: Plan,
    /// "plain", "expiring", "counting" or "tagged".
    pub(in crate::snapshot) kind: &'static str,
    /// The time of a filter whose keys or counts die.
    pub(in crate::snapshot) life: Option<Life>,
    /// The shards whose records follow.
    pub(in crate::snapshot) part: Range<usize>,
    pub(in crate::snapshot) capacity: usize,
    /// The number of keys up to which the filter grows; the capacity in a filter of fixed size.
    pub(in crate::snapshot) max_capacity: u64,
    /// The requested rate, if any.
    pub(in crate::snapshot) rate: Option<f64>,
    /// The number of slots in use in these shards when the header was written. The trailer has the number that followed.
    pub(in crate::snapshot) stored: u64,
    pub(in crate::snapshot) key_type: KeyType,
    pub(in crate::snapshot) hasher: String,
    pub(in crate::snapshot) probe: [u64; 4],
    pub(in crate::snapshot) keys: Option<[u64; 4]>,
    pub(in crate::snapshot) metadata: Vec<u8>,
}

impl Header {
    /// Returns the capacity and the largest capacity.
    pub(in crate::snapshot) fn capacities(&self) -> [usize; 2] {
        [self.capacity, usize::try_from(self.max_capacity).unwrap_or(usize::MAX)]
    }

    /// Returns the bits of a deadline, and of a counter or of a tag of the user, in each slot.
    pub(in crate::snapshot) fn bits_beside(&self) -> [u32; 2] {
        let counter_bits = if self.life.is_some() { self.plan.count_bits } else { self.plan.tag_bits };
        [self.plan.tag_bits - counter_bits, counter_bits]
    }

    fn flags(&self) -> u32 {
        let flags = [
            (GROWING, self.plan.grows()),
            (EXPIRING, self.life.is_some()),
            (COUNTING, self.kind == "counting"),
            (TAGGED, self.kind == "tagged"),
            (RENEWED, self.life.is_some_and(|life| life.renews)),
        ];
        flags.into_iter().filter_map(|(flag, is_set)| is_set.then_some(flag)).sum()
    }

    /// Returns the kind for errors: "growing", "growing and expiring".
    pub(in crate::snapshot) fn kind_in_words(&self) -> String {
        let names = [(GROWING, "growing"), (EXPIRING, "expiring"), (COUNTING, "counting"), (TAGGED, "tagged")];
        let names: Vec<_> = names.iter().filter(|(flag, _)| self.flags() & flag != 0).map(|&(_, name)| name).collect();
        if names.is_empty() { String::from("plain") } else { names.join(" and ") }
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let plan = &self.plan;
        let names = self.hasher.len() + self.key_type.name().len();
        let length = (FIXED + names + self.metadata.len() + CHECKSUM).next_multiple_of(ALIGN);
        let mut bytes = Vec::with_capacity(length);
        bytes.extend(MAGIC);
        put_u32(&mut bytes, [VERSION, length as u32]);
        put_u64(&mut bytes, [plan.shards as u64, self.part.start as u64, self.part.len() as u64]);
        put_u32(&mut bytes, [plan.buckets, plan.fingerprint_bits, plan.stripe_shift, self.flags()]);
        put_u64(&mut bytes, [self.capacity as u64, self.rate.map_or(0, f64::to_bits)]);
        put_u64(&mut bytes, self.probe);
        put_u64(&mut bytes, self.keys.unwrap_or_default());
        let flags = if self.keys.is_some() { WITH_KEYS } else { 0 };
        let lengths = [self.hasher.len(), self.metadata.len(), self.key_type.name().len()].map(|length| length as u32);
        put_u32(&mut bytes, [flags]);
        put_u32(&mut bytes, lengths);
        put_u64(&mut bytes, [self.stored]);
        let [deadline_bits, counter_bits] = self.bits_beside();
        bytes.extend([plan.reserve_bits, deadline_bits, counter_bits, plan.extension_bits].map(|bits| bits as u8));
        bytes.extend([0; 4]);
        let [time_to_live, tick] = self.life.map_or([0; 2], |life| [life.time, life.tick].map(nanos));
        put_u64(&mut bytes, [if plan.grows() { self.max_capacity } else { 0 }, time_to_live, tick]);
        debug_assert_eq!(bytes.len(), FIXED);
        bytes.extend(self.hasher.bytes());
        bytes.extend(self.key_type.name().bytes());
        bytes.extend(&self.metadata);
        bytes.resize(length - CHECKSUM, 0);
        let checksum = crc32c(&bytes);
        put_u32(&mut bytes, [checksum]);
        bytes
    }

    /// Returns the length of the header that begins with these bytes.
    pub(in crate::snapshot) fn length(prefix: &[u8; PREFIX]) -> Result<usize, SnapshotError> {
        let mut fields = Fields(prefix);
        if fields.bytes(MAGIC.len()) != MAGIC {
            return Err(SnapshotError::NotASnapshot);
        }
        let version = fields.u32();
        if version != VERSION {
            return Err(SnapshotError::UnknownVersion { found: version, known: VERSION });
        }
        let length = fields.u32() as usize;
        let longest = (FIXED + 2 * MAX_NAME + MAX_METADATA + CHECKSUM).next_multiple_of(ALIGN);
        let is_valid = length.is_multiple_of(ALIGN) && (FIXED + CHECKSUM..=longest).contains(&length);
        ensure(is_valid, "length of the header", length)?;
        Ok(length)
    }

    /// Reads a whole header, and checks each field. The fields of other kinds must be 0.
    pub(in crate::snapshot) fn parse(bytes: &[u8]) -> Result<Self, SnapshotError> {
        let (bytes, checksum) = bytes.split_at(bytes.len() - CHECKSUM);
        if crc32c(bytes) != Fields(checksum).u32() {
            return Err(SnapshotError::Damaged { place: SnapshotPlace::Header });
        }
        let mut fields = Fields(&bytes[PREFIX..]);
        let [shards, first, here] = [(); 3].map(|()| fields.u64());
        let [buckets, fingerprint_bits, stripe_shift, kinds] = [(); 4].map(|()| fields.u32());
        let [asked_for, rate] = [fields.u64(), fields.u64()];
        let probe = [(); 4].map(|()| fields.u64());
        let keys = [(); 4].map(|()| fields.u64());
        let [flags, hasher, metadata, key_type] = [(); 4].map(|()| fields.u32());
        let stored = fields.u64();
        let [reserve_bits, deadline_bits, counter_bits, extension_bits] = [(); 4].map(|()| u32::from(fields.u8()));
        let reserved = fields.zeros(4);
        let [max_capacity, time_to_live, tick] = [(); 3].map(|()| fields.u64());

        let is = |flag| kinds & flag != 0;
        let (grows, expires, counts) = (is(GROWING), is(EXPIRING), is(COUNTING) || is(TAGGED));
        let is_known = kinds < 2 * RENEWED && (!is(TAGGED) || !is(COUNTING) && !expires);
        let or_zero = |has: bool, is_valid: bool, number: u64| if has { is_valid } else { number == 0 };
        let reserve_is_valid = or_zero(grows, (1..fingerprint_bits).contains(&reserve_bits), reserve_bits.into());
        let deadline_is_valid = or_zero(expires, DEADLINE_BITS.contains(&deadline_bits), deadline_bits.into());
        let counter_is_valid = or_zero(counts, COUNTER_BITS.contains(&counter_bits), counter_bits.into());
        for (is_valid, field, found) in [
            (FINGERPRINT_BITS.contains(&fingerprint_bits), "bits of a fingerprint", fingerprint_bits.into()),
            (is_known && (!is(RENEWED) || expires && is(COUNTING)), "kind of filter", kinds.into()),
            (reserve_is_valid, "bits of the reserve", reserve_bits.into()),
            (extension_bits < reserve_bits.max(1), "bits that extend buckets", extension_bits.into()),
            (or_zero(grows, max_capacity >= asked_for, max_capacity), "largest capacity", max_capacity),
            (deadline_is_valid, "bits of a tag", deadline_bits.into()),
            (expires == (time_to_live > 0), "time to live", time_to_live),
            (or_zero(expires, (1..=time_to_live).contains(&tick), tick), "tick", tick),
            (counter_is_valid, "bits of a counter", counter_bits.into()),
        ] {
            ensure(is_valid, field, found)?;
        }
        ensure(reserved, "reserved bytes", "not 0")?;
        let kind = match kinds & (EXPIRING | COUNTING | TAGGED) {
            0 => "plain",
            EXPIRING => "expiring",
            TAGGED => "tagged",
            _ => "counting",
        };
        let [time, tick] = [time_to_live, tick].map(Duration::from_nanos);
        let life = expires.then_some(Life { time, tick, renews: is(RENEWED) });

        let tag_bits = deadline_bits + counter_bits;
        let slot_bits = fingerprint_bits + tag_bits;
        ensure(FINGERPRINT_BITS.contains(&slot_bits), "bits of a slot", slot_bits)?;
        let fitting = Plan::slot_bits_for(fingerprint_bits, tag_bits).filter(|_| grows);
        let plan = Plan::from_parts(shards, buckets, fingerprint_bits, fitting.unwrap_or(slot_bits), stripe_shift)
            .map_err(|(field, found)| invalid(field, found))?;
        let mut plan = Plan { tag_bits, count_bits: if expires { counter_bits } else { 0 }, ..plan };
        if grows {
            let with_reserve = plan.with_reserve(reserve_bits, extension_bits);
            plan = with_reserve.map_err(|(field, found)| invalid(field, found))?;
            let most = (plan.first_slots() as u128) << reserve_bits;
            ensure(u128::from(max_capacity) <= most, "largest capacity", max_capacity)?;
        }
        let end = first.checked_add(here).filter(|&end| here > 0 && end <= shards);
        let part = first as usize..end.ok_or_else(|| invalid("shards of this part", here))? as usize;
        let capacity = usize::try_from(asked_for).ok().filter(|&keys| keys <= plan.first_slots());
        let capacity = capacity.ok_or_else(|| invalid("capacity", asked_for))?;
        let asked = f64::from_bits(rate);
        ensure(rate == 0 || asked > 0.0 && asked < 1.0, "false-positive rate", format!("{asked:?}"))?;
        ensure(flags == WITH_KEYS || flags == 0 && keys == [0; 4], "flags", flags)?;
        let length_of =
            |field, length: u32, most| ensure(length as usize <= most, field, length).map(|()| length as usize);
        let hasher = length_of("length of the hasher's name", hasher, MAX_NAME)?;
        let key_type = length_of("length of the key type's name", key_type, MAX_NAME)?;
        let metadata = length_of("length of the metadata", metadata, MAX_METADATA)?;
        let said = FIXED + hasher + key_type + metadata + CHECKSUM;
        let length = bytes.len() + CHECKSUM;
        ensure(said.next_multiple_of(ALIGN) == length, "length of the header", length)?;
        let hasher = text(fields.bytes(hasher), "hasher's name")?;
        let key_type = text(fields.bytes(key_type), "key type's name")?;
        let metadata = fields.bytes(metadata);
        ensure(fields.zeros(length - said), "end of the header", "not 0")?;
        Ok(Header {
            plan,
            kind,
            life,
            part,
            capacity,
            max_capacity: if grows { max_capacity } else { asked_for },
            rate: (rate != 0).then_some(asked),
            stored,
            key_type: KeyType::named(key_type),
            hasher: hasher.into(),
            probe,
            keys: (flags == WITH_KEYS).then_some(keys),
            metadata: metadata.into(),
        })
    }
}

fn text<'a>(bytes: &'a [u8], field: &'static str) -> Result<&'a str, SnapshotError> {
    core::str::from_utf8(bytes).map_err(|_| invalid(field, format!("\"{}\", not UTF-8", bytes.escape_ascii())))
}

fn invalid(field: &'static str, found: impl ToString) -> SnapshotError {
    invalid_at(SnapshotPlace::Header, field, found)
}

/// Returns an error for an invalid field.
pub(in crate::snapshot) fn ensure(
    is_valid: bool,
    field: &'static str,
    found: impl ToString,
) -> Result<(), SnapshotError> {
    if is_valid { Ok(()) } else { Err(invalid(field, found)) }
}

/// Returns the error for fewer bytes than [`PREFIX`].
pub(in crate::snapshot) fn too_short(bytes: &[u8]) -> SnapshotError {
    let magic = bytes.len().min(MAGIC.len());
    if bytes[..magic] == MAGIC[..magic] {
        SnapshotError::Truncated { place: SnapshotPlace::Header }
    } else {
        SnapshotError::NotASnapshot
    }
}

/// Returns the checksum of a header, which all others continue, so that a record of another snapshot is detected. It excludes the
/// checksum at the end of the header: over both, it would be equal for every header.
pub(in crate::snapshot) fn origin(header: &[u8]) -> u32 {
    crc32c(&header[..header.len() - CHECKSUM])
}

#[cfg(all(test, not(cuckoo_model)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn headers() -> impl Strategy<Value = Header> {
        let sizes =
            (0..400_000_usize, FINGERPRINT_BITS, prop::option::of(1..2000_usize), any::<[prop::sample::Index; 2]>());
        let asked = (prop::option::of(1e-9..0.9), any::<u64>(), prop::option::of(any::<[u64; 4]>()), any::<[u64; 4]>());
        let name = || prop::collection::vec(prop::char::range('a', 'z'), 0..=64);
        let texts = (name(), name(), prop::collection::vec(any::<u8>(), 0..80));
        (sizes, asked, texts).prop_map(
            |((capacity, width, stripes, ends), (rate, stored, keys, probe), (name, key_type, metadata))| {
                let plan = Plan::new(capacity, width, stripes).unwrap();
                let [start, end] = ends.map(|end| end.index(plan.shards));
                Header {
                    plan,
                    kind: "plain",
                    life: None,
                    part: start.min(end)..start.max(end) + 1,
                    capacity,
                    max_capacity: capacity as u64,
                    rate,
                    stored,
                    key_type: KeyType::named(&key_type.into_iter().collect::<String>()),
                    hasher: name.into_iter().collect(),
                    probe,
                    keys,
                    metadata,
                }
            },
        )
    }

    proptest! {
        /// For arbitrary fields, under a checksum that matches.
        #[test]
        fn a_header_is_read_as_it_was_written_or_refused(
            header in headers(),
            changes in prop::collection::vec((any::<prop::sample::Index>(), 0..4_u32, any::<u32>()), 1..4),
        ) {
            let mut bytes = header.to_bytes();
            prop_assert_eq!(Header::length(bytes.first_chunk().unwrap()).unwrap(), bytes.len());
            prop_assert_eq!(Header::parse(&bytes).unwrap(), header);
            let end = bytes.len() - CHECKSUM;
            for (at, kind, random) in changes {
                let at = PREFIX + at.index((end - PREFIX) / 4) * 4;
                let value = [random, random % 100, 0, u32::MAX][kind as usize];
                bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
            }
            let checksum = crc32c(&bytes[..end]).to_le_bytes();
            bytes[end..].copy_from_slice(&checksum);
            if let Ok(header) = Header::parse(&bytes) {
                prop_assert_eq!(header.to_bytes(), bytes);
            }
        }
    }
}
