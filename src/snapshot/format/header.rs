//! The header, before the records.

use super::fields::{Fields, put_u32, put_u64};
use super::kind::{self, GrowingFields, Kind};
use super::{ALIGN, CHECKSUM, invalid as invalid_at};
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

/// The maximum bytes of metadata.
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
    /// The number of slots in use in these shards when the header was written. The trailer has the number that
    /// followed.
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
        if length.is_multiple_of(ALIGN) && (FIXED + CHECKSUM..=longest).contains(&length) {
            Ok(length)
        } else {
            Err(invalid("length of the header", length))
        }
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

        if !FINGERPRINT_BITS.contains(&fingerprint_bits) {
            return Err(invalid("bits of a fingerprint", fingerprint_bits));
        }
        let kind = Kind::parse(&mut fields, kinds, asked_for, fingerprint_bits)?;
        let slot_bits = kind.slot_bits(fingerprint_bits);
        if !FINGERPRINT_BITS.contains(&slot_bits) {
            return Err(invalid("bits of a slot", slot_bits));
        }
        let mut plan = Plan::from_parts(shards, buckets, fingerprint_bits, slot_bits, stripe_shift)
            .map_err(|(field, found)| invalid(field, found))?;
        if kind.expiring.is_some() {
            plan.count_bits = kind.counter_bits;
        }
        if let Some(GrowingFields { reserve_bits, extension_bits, max_capacity }) = kind.growing {
            if !plan.extends(extension_bits) {
                return Err(invalid("bits that extend buckets", extension_bits));
            }
            let with_reserve = plan.with_reserve(reserve_bits, extension_bits);
            plan = with_reserve.ok_or_else(|| invalid("bits of the reserve", reserve_bits))?;
            if u128::from(max_capacity) > (plan.first_slots() as u128) << reserve_bits {
                return Err(invalid("largest capacity", max_capacity));
            }
        }
        let end = first.checked_add(here).filter(|&end| here > 0 && end <= shards);
        let part = first as usize..end.ok_or_else(|| invalid("shards of this part", here))? as usize;
        let capacity = usize::try_from(asked_for).ok().filter(|&keys| keys <= plan.first_slots());
        let capacity = capacity.ok_or_else(|| invalid("capacity", asked_for))?;
        let asked = f64::from_bits(rate);
        if rate != 0 && !(asked > 0.0 && asked < 1.0) {
            return Err(invalid("false-positive rate", format!("{asked:?}")));
        }
        if flags > WITH_KEYS || flags == 0 && keys != [0; 4] {
            return Err(invalid("flags", flags));
        }
        let [hasher, key_type, metadata] = [
            ("length of the hasher's name", hasher, MAX_NAME),
            ("length of the key type's name", key_type, MAX_NAME),
            ("length of the metadata", metadata, MAX_METADATA),
        ]
        .map(|(field, length, most)| match length as usize {
            length if length <= most => Ok(length),
            _ => Err(invalid(field, length)),
        });
        let [hasher, key_type, metadata] = [hasher?, key_type?, metadata?];
        let said = FIXED + hasher + key_type + metadata + CHECKSUM;
        let length = bytes.len() + CHECKSUM;
        if said.next_multiple_of(ALIGN) != length {
            return Err(invalid("length of the header", length));
        }
        let hasher = text(fields.bytes(hasher), "hasher's name")?;
        let key_type = text(fields.bytes(key_type), "key type's name")?;
        let metadata = fields.bytes(metadata);
        if !fields.zeros(length - said) {
            return Err(invalid("end of the header", "not 0"));
        }
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

/// Returns a name.
fn text<'a>(bytes: &'a [u8], field: &'static str) -> Result<&'a str, SnapshotError> {
    core::str::from_utf8(bytes).map_err(|_| invalid(field, format!("\"{}\", not UTF-8", bytes.escape_ascii())))
}

fn invalid(field: &'static str, found: impl ToString) -> SnapshotError {
    invalid_at(SnapshotPlace::Header, field, found)
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

/// Returns the checksum of a header, which all others continue, so that a record of another snapshot is detected. It
/// excludes the checksum at the end of the header: over both, it would be equal for every header.
pub(in crate::snapshot) fn origin(header: &[u8]) -> u32 {
    crc32c(&header[..header.len() - CHECKSUM])
}

#[cfg(test)]
mod tests {
    use super::super::kind::Expiring;
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
        #[test]
        fn a_header_is_read_as_it_was_written(header in headers()) {
            let bytes = header.to_bytes();
            let length = Header::length(bytes.first_chunk().unwrap()).unwrap();
            prop_assert_eq!(length, bytes.len());
            prop_assert_eq!(Header::parse(&bytes).unwrap(), header);
        }

        /// For arbitrary fields, under a checksum that matches.
        #[test]
        fn a_header_is_refused_or_is_one_that_would_be_written(
            header in headers(),
            changes in prop::collection::vec((any::<prop::sample::Index>(), 0..4_u32, any::<u32>()), 1..4),
        ) {
            let mut bytes = header.to_bytes();
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

    /// Other versions read these bytes, and write them.
    #[test]
    fn each_field_has_its_place() {
        let plan = Plan::new(300_000, 13, Some(1)).unwrap();
        let header = Header {
            plan,
            kind: Kind::default(),
            part: 1..2,
            capacity: 300_000,
            rate: Some(0.25),
            stored: 9,
            key_type: KeyType::of::<u64>(),
            hasher: "name".into(),
            probe: [1, 2, 3, 4],
            keys: Some([5, 6, 7, 8]),
            metadata: b"offset".into(),
        };
        let bytes = header.to_bytes();
        assert_eq!(bytes.len(), 256);
        assert_eq!(bytes[..8], *b"\xc0cuckoo\n");
        let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        assert_eq!([8, 12].map(u32_at), [2, 256]);
        assert_eq!([16, 24, 32].map(u64_at), [2, 1, 1]);
        assert_eq!([40, 44, 48, 52].map(u32_at), [plan.buckets, 13, plan.stripe_shift, 0]);
        assert_eq!([56, 64].map(u64_at), [300_000, 0.25_f64.to_bits()]);
        assert_eq!([72, 80, 88, 96, 104, 112, 120, 128].map(u64_at), [1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!([136, 140, 144, 148].map(u32_at), [1, 4, 6, 3]);
        assert_eq!([152, 160, 168, 176, 184].map(u64_at), [9, 0, 0, 0, 0]);
        assert_eq!(bytes[192..205], *b"nameu64offset");
        assert_eq!(bytes[205..252], [0; 47]);
        assert_eq!(u32_at(252), crc32c(&bytes[..252]));
        assert_eq!(origin(&bytes), u32_at(252));
        let kind = Kind {
            growing: Some(GrowingFields { reserve_bits: 5, extension_bits: 0, max_capacity: 4_800_000 }),
            expiring: Some(Expiring { tag_bits: 3, time_to_live: 12_000, tick: 2_000, renewed: true }),
            counter_bits: 6,
            tagged: false,
        };
        let bytes = Header { plan: Plan { slot_bits: 22, ..plan }, kind, ..header }.to_bytes();
        assert_eq!((bytes[52], &bytes[160..163]), (23, &[5, 3, 6][..]));
        let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        assert_eq!([168, 176, 184].map(u64_at), [4_800_000, 12_000, 2_000]);
        assert!(Header::parse(&bytes).unwrap().kind == kind);
    }

    #[test]
    fn a_header_may_have_all_the_metadata_and_no_more() {
        let mut prefix = [0; PREFIX];
        prefix[..8].copy_from_slice(&MAGIC);
        prefix[8..12].copy_from_slice(&2_u32.to_le_bytes());
        let mut length = |length: usize| {
            prefix[12..].copy_from_slice(&(length as u32).to_le_bytes());
            Header::length(&prefix).ok()
        };
        let (least, most) = (256, 192 + 2 * 64 + (64 << 10) + 64);
        assert_eq!([least, most].map(&mut length), [Some(least), Some(most)]);
        let others = [0, 192, least - 1, least + 32, most + 64, u32::MAX as usize];
        assert_eq!(others.map(&mut length), [None; 6]);
    }
}
