//! The header, before the records.

use super::kind::{self, GrowingFields, Kind};
use super::{ALIGN, CHECKSUM, Fields, invalid as invalid_at, put_u32, put_u64};
use crate::error::{SnapshotError, SnapshotPlace};
use crate::layout::{FINGERPRINT_BITS, Plan};
use crate::snapshot::key_type::KeyType;
use core::ops::Range;
use crc32c::crc32c;

/// The first bytes of every snapshot. The first byte is not valid in text, so a transfer in text mode is detected.
const MAGIC: [u8; 8] = *b"\xc0cuckoo\n";

/// The version that is written, and the only one that is read.
const VERSION: u32 = 2;

/// Bytes of the header before the names.
const FIXED: usize = 160 + kind::BYTES;

/// The bytes of the magic, the version and the length of the header.
pub(in crate::snapshot) const PREFIX: usize = 16;

/// The maximum bytes of a name: of the hash function, and of the type of the keys.
pub(in crate::snapshot) const MAX_NAME: usize = 64;

pub(in crate::snapshot) const MAX_METADATA: usize = 64 << 10;

/// The flag of a snapshot that contains the seeds of the hash function.
const WITH_KEYS: u32 = 1;

/// The fields of a header, including the seeds of the hash function: only tests print it.
#[derive(Clone, PartialEq)]
#[cfg_attr(test, derive(Debug))]
pub(crate) struct Header {
    pub(in crate::snapshot) plan: Plan,
    pub(in crate::snapshot) kind: Kind,
    /// The shards whose records follow.
    pub(in crate::snapshot) part: Range<usize>,
    pub(in crate::snapshot) capacity: usize,
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
    /// Returns the largest capacity, equal to the capacity for a filter of fixed size.
    pub(in crate::snapshot) fn max_capacity(&self) -> usize {
        self.kind.growing.map_or(self.capacity, |growing| usize::try_from(growing.max_capacity).unwrap_or(usize::MAX))
    }

    pub(in crate::snapshot) fn to_bytes(&self) -> Vec<u8> {
        let names = self.hasher.len() + self.key_type.name().len();
        let length = (FIXED + names + self.metadata.len() + CHECKSUM).next_multiple_of(ALIGN);
        let mut bytes = Vec::with_capacity(length);
        bytes.extend(MAGIC);
        put_u32(&mut bytes, [VERSION, length as u32]);
        put_u64(&mut bytes, [self.plan.shards as u64, self.part.start as u64, self.part.len() as u64]);
        put_u32(&mut bytes, [self.plan.buckets, self.plan.fingerprint_bits, self.plan.stripe_shift, self.kind.flags()]);
        put_u64(&mut bytes, [self.capacity as u64, self.rate.map_or(0, f64::to_bits)]);
        put_u64(&mut bytes, self.probe);
        put_u64(&mut bytes, self.keys.unwrap_or_default());
        let flags = if self.keys.is_some() { WITH_KEYS } else { 0 };
        let lengths = [self.hasher.len(), self.metadata.len(), self.key_type.name().len()].map(|length| length as u32);
        put_u32(&mut bytes, [flags]);
        put_u32(&mut bytes, lengths);
        put_u64(&mut bytes, [self.stored]);
        self.kind.put(&mut bytes);
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

    /// Reads a whole header, and checks each field.
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

        ensure(FINGERPRINT_BITS.contains(&fingerprint_bits), "bits of a fingerprint", fingerprint_bits)?;
        let kind = Kind::parse(&mut fields, kinds, asked_for, fingerprint_bits)?;
        let slot_bits = kind.slot_bits(fingerprint_bits);
        ensure(FINGERPRINT_BITS.contains(&slot_bits), "bits of a slot", slot_bits)?;
        let mut plan = Plan::from_parts(shards, buckets, fingerprint_bits, slot_bits, stripe_shift)
            .map_err(|(field, found)| invalid(field, found))?;
        if kind.expiring.is_some() {
            plan.count_bits = kind.counter_bits;
        }
        if let Some(GrowingFields { reserve_bits, extension_bits, max_capacity }) = kind.growing {
            ensure(plan.extends(extension_bits), "bits that extend buckets", extension_bits)?;
            let with_reserve = plan.with_reserve(reserve_bits, extension_bits);
            plan = with_reserve.ok_or_else(|| invalid("bits of the reserve", reserve_bits))?;
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
            part,
            capacity,
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

#[cfg(test)]
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
                    kind: Kind::default(),
                    part: start.min(end)..start.max(end) + 1,
                    capacity,
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
