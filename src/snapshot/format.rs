//! The bytes of a snapshot (DESIGN.md, "Snapshots"). Bytes in, values out; all numbers are little-endian.
//!
//! ```text
//! header | shard | shard | ... | trailer
//! ```

use super::key_type::KeyType;
use crate::error::{SnapshotError, SnapshotPlace};
use crate::layout::{FINGERPRINT_BITS, Plan};
use core::ops::Range;
use crc32c::{crc32c, crc32c_append};

/// The first bytes of every snapshot. The first is no text, so that a transfer as text shows.
pub(super) const MAGIC: [u8; 8] = *b"\xc0cuckoo\n";

/// The first bytes of the trailer.
const TRAILER_MAGIC: [u8; 8] = *b"\xc0/cuckoo";

/// Of what is written, and the only one that is read so far.
const VERSION: u32 = 1;

/// Bytes of the header before the hasher's name.
const FIXED: usize = 152;

/// Bytes of a checksum.
pub(super) const CHECKSUM: usize = 4;

/// Bytes before which nothing but the magic, the version and the length of the header stands.
pub(super) const PREFIX: usize = 16;

/// Bytes of a shard before its words.
pub(super) const SHARD_PREFIX: usize = 24;

/// Bytes of the trailer.
pub(super) const TRAILER: usize = 28;

/// Bytes of a hasher's name at the most.
pub(super) const MAX_NAME: usize = 64;

/// Bytes of metadata at the most.
pub(super) const MAX_METADATA: usize = 64 << 10;

/// The flag of a snapshot that keeps the keys of the hasher.
const WITH_KEYS: u32 = 1;

/// All that a snapshot says before its shards, the keys of the hasher included: only tests print it.
#[derive(Clone, PartialEq)]
#[cfg_attr(test, derive(Debug))]
pub(super) struct Header {
    pub(super) plan: Plan,
    /// The shards that follow.
    pub(super) part: Range<usize>,
    pub(super) capacity: usize,
    /// The rate that was asked for, if one was.
    pub(super) rate: Option<f64>,
    pub(super) key_type: KeyType,
    pub(super) hasher: String,
    pub(super) probe: [u64; 4],
    pub(super) keys: Option<[u64; 4]>,
    pub(super) metadata: Vec<u8>,
}

impl Header {
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(FIXED + self.hasher.len() + self.metadata.len() + CHECKSUM);
        let length = FIXED + self.hasher.len() + self.metadata.len() + CHECKSUM;
        bytes.extend(MAGIC);
        put_u32(&mut bytes, [VERSION, length as u32]);
        put_u64(&mut bytes, [self.plan.shards as u64, self.part.start as u64, self.part.len() as u64]);
        put_u32(
            &mut bytes,
            [self.plan.buckets, self.plan.fingerprint_bits, self.plan.stripe_shift, self.key_type.tag()],
        );
        put_u64(&mut bytes, [self.capacity as u64, self.rate.map_or(0, f64::to_bits)]);
        put_u64(&mut bytes, self.probe);
        put_u64(&mut bytes, self.keys.unwrap_or_default());
        let flags = if self.keys.is_some() { WITH_KEYS } else { 0 };
        put_u32(&mut bytes, [flags, self.hasher.len() as u32, self.metadata.len() as u32, 0]);
        debug_assert_eq!(bytes.len(), FIXED);
        bytes.extend(self.hasher.bytes());
        bytes.extend(&self.metadata);
        let checksum = crc32c(&bytes);
        put_u32(&mut bytes, [checksum]);
        bytes
    }

    /// The length of the header that begins with these bytes.
    pub(super) fn length(prefix: &[u8; PREFIX]) -> Result<usize, SnapshotError> {
        let mut fields = Fields(prefix);
        if fields.bytes(MAGIC.len()) != MAGIC {
            return Err(SnapshotError::NotASnapshot);
        }
        let version = fields.u32();
        if version != VERSION {
            return Err(SnapshotError::UnknownVersion { found: version, known: VERSION });
        }
        let length = fields.u32() as usize;
        if (FIXED + CHECKSUM..=FIXED + MAX_NAME + MAX_METADATA + CHECKSUM).contains(&length) {
            Ok(length)
        } else {
            Err(invalid("length of the header", length))
        }
    }

    /// Reads all of a header, of the length that it gives, and checks each field.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, SnapshotError> {
        let (bytes, checksum) = bytes.split_at(bytes.len() - CHECKSUM);
        if crc32c(bytes) != Fields(checksum).u32() {
            return Err(SnapshotError::Damaged { place: SnapshotPlace::Header });
        }
        let mut fields = Fields(&bytes[PREFIX..]);
        let [shards, first, here] = [fields.u64(), fields.u64(), fields.u64()];
        let [buckets, width, stripe_shift, tag] = [fields.u32(), fields.u32(), fields.u32(), fields.u32()];
        let [asked_for, rate] = [fields.u64(), fields.u64()];
        let probe = [fields.u64(), fields.u64(), fields.u64(), fields.u64()];
        let keys = [fields.u64(), fields.u64(), fields.u64(), fields.u64()];
        let [flags, name, metadata, reserved] = [fields.u32(), fields.u32(), fields.u32(), fields.u32()];

        if !FINGERPRINT_BITS.contains(&width) {
            return Err(invalid("bits of a fingerprint", width));
        }
        let plan =
            Plan::from_parts(shards, buckets, width, stripe_shift).map_err(|(field, found)| invalid(field, found))?;
        let end = first.checked_add(here).filter(|&end| here > 0 && end <= shards);
        let part = first as usize..end.ok_or_else(|| invalid("shards of this part", here))? as usize;
        let capacity = usize::try_from(asked_for).ok().filter(|&keys| keys <= plan.slots());
        let capacity = capacity.ok_or_else(|| invalid("capacity", asked_for))?;
        let asked = f64::from_bits(rate);
        if rate != 0 && !(asked > 0.0 && asked < 1.0) {
            return Err(invalid("false-positive rate", format!("{asked:?}")));
        }
        if flags > WITH_KEYS || flags == 0 && keys != [0; 4] {
            return Err(invalid("flags", flags));
        }
        if reserved != 0 {
            return Err(invalid("reserved field", reserved));
        }
        let key_type = KeyType::of_tag(tag).ok_or_else(|| invalid("key type", tag))?;
        let rest = fields.0;
        if name as usize > MAX_NAME || (name as usize).checked_add(metadata as usize) != Some(rest.len()) {
            return Err(invalid("length of the hasher's name", name));
        }
        if metadata as usize > MAX_METADATA {
            return Err(invalid("length of the metadata", metadata));
        }
        let (name, metadata) = rest.split_at(name as usize);
        let not_utf8 = |_| invalid("hasher's name", format!("\"{}\", not UTF-8", name.escape_ascii()));
        let hasher = core::str::from_utf8(name).map_err(not_utf8)?;
        Ok(Header {
            plan,
            part,
            capacity,
            rate: (rate != 0).then_some(asked),
            key_type,
            hasher: hasher.into(),
            probe,
            keys: (flags == WITH_KEYS).then_some(keys),
            metadata: metadata.into(),
        })
    }
}

/// What is wrong with bytes that are fewer than [`PREFIX`].
pub(super) fn too_short(bytes: &[u8]) -> SnapshotError {
    let magic = bytes.len().min(MAGIC.len());
    if bytes[..magic] == MAGIC[..magic] {
        SnapshotError::Truncated { place: SnapshotPlace::Header }
    } else {
        SnapshotError::NotASnapshot
    }
}

/// The checksum of a header, from which all others go on, so that a shard of another snapshot is out of place. It
/// leaves out the checksum that the header ends with: over both, it would be the same for every header.
pub(super) fn origin(header: &[u8]) -> u32 {
    crc32c(&header[..header.len() - CHECKSUM])
}

/// A field that no writer fills so.
fn invalid(field: &'static str, found: impl ToString) -> SnapshotError {
    SnapshotError::Invalid { place: SnapshotPlace::Header, field, found: found.to_string() }
}

/// What stands before the words of a shard.
pub(super) fn shard_prefix(number: usize, count: u64, words: usize) -> [u8; SHARD_PREFIX] {
    let mut bytes = [0; SHARD_PREFIX];
    for (field, to) in [number as u64, count, words as u64].into_iter().zip(bytes.chunks_exact_mut(8)) {
        to.copy_from_slice(&field.to_le_bytes());
    }
    bytes
}

/// The number of stored fingerprints in the shard that begins with these bytes.
pub(super) fn shard_count(prefix: &[u8; SHARD_PREFIX], number: usize, words: usize) -> Result<u64, SnapshotError> {
    let mut fields = Fields(prefix);
    let place = SnapshotPlace::Shard { number };
    let (found, count, length) = (fields.u64(), fields.u64(), fields.u64());
    if found != number as u64 {
        return Err(SnapshotError::Invalid { place, field: "number of the shard", found: found.to_string() });
    }
    if length != words as u64 {
        return Err(SnapshotError::Invalid { place, field: "number of words", found: length.to_string() });
    }
    Ok(count)
}

/// `checksums` is the checksum of all that came before.
pub(super) fn trailer(shards: usize, count: u64, checksums: u32) -> [u8; TRAILER] {
    let mut bytes = [0; TRAILER];
    bytes[..8].copy_from_slice(&TRAILER_MAGIC);
    bytes[8..16].copy_from_slice(&(shards as u64).to_le_bytes());
    bytes[16..24].copy_from_slice(&count.to_le_bytes());
    let checksum = crc32c_append(checksums, &bytes[..24]);
    bytes[24..].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

/// Puts numbers at the end.
fn put_u32<const N: usize>(bytes: &mut Vec<u8>, numbers: [u32; N]) {
    bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
}

fn put_u64<const N: usize>(bytes: &mut Vec<u8>, numbers: [u64; N]) {
    bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
}

/// Takes fields from the front of bytes that are long enough.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn bytes(&mut self, count: usize) -> &'a [u8] {
        let (field, rest) = self.0.split_at(count);
        self.0 = rest;
        field
    }

    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.bytes(4).try_into().expect("4 bytes"))
    }

    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.bytes(8).try_into().expect("8 bytes"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn headers() -> impl Strategy<Value = Header> {
        let sizes =
            (0..400_000_usize, FINGERPRINT_BITS, prop::option::of(1..2000_usize), any::<[prop::sample::Index; 2]>());
        let asked = (prop::option::of(1e-9..0.9), 0..=16_u32, prop::option::of(any::<[u64; 4]>()), any::<[u64; 4]>());
        let texts =
            (prop::collection::vec(prop::char::range('a', 'z'), 0..=64), prop::collection::vec(any::<u8>(), 0..80));
        (sizes, asked, texts).prop_map(
            |((capacity, width, stripes, ends), (rate, tag, keys, probe), (name, metadata))| {
                let plan = Plan::new(capacity, width, stripes).unwrap();
                let [start, end] = ends.map(|end| end.index(plan.shards));
                Header {
                    plan,
                    part: start.min(end)..start.max(end) + 1,
                    capacity,
                    rate,
                    key_type: KeyType::of_tag(tag).unwrap(),
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

        /// Whatever stands there, under a checksum that matches.
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
            part: 1..2,
            capacity: 300_000,
            rate: Some(0.25),
            key_type: KeyType::of::<u64>(),
            hasher: "name".into(),
            probe: [1, 2, 3, 4],
            keys: Some([5, 6, 7, 8]),
            metadata: b"offset".into(),
        };
        let bytes = header.to_bytes();
        assert_eq!(bytes.len(), 152 + 4 + 6 + 4);
        assert_eq!(bytes[..8], *b"\xc0cuckoo\n");
        let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        assert_eq!([8, 12].map(u32_at), [1, 166]);
        assert_eq!([16, 24, 32].map(u64_at), [2, 1, 1]);
        assert_eq!([40, 44, 48, 52].map(u32_at), [plan.buckets, 13, plan.stripe_shift, 6]);
        assert_eq!([56, 64].map(u64_at), [300_000, 0.25_f64.to_bits()]);
        assert_eq!([72, 80, 88, 96, 104, 112, 120, 128].map(u64_at), [1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!([136, 140, 144, 148].map(u32_at), [1, 4, 6, 0]);
        assert_eq!(bytes[152..162], *b"nameoffset");
        assert_eq!(u32_at(162), crc32c(&bytes[..162]));
        assert_eq!(origin(&bytes), u32_at(162));
    }

    #[test]
    fn a_header_may_have_all_the_metadata_and_no_more() {
        let mut prefix = [0; PREFIX];
        prefix[..8].copy_from_slice(&MAGIC);
        prefix[8..12].copy_from_slice(&1_u32.to_le_bytes());
        let mut length = |length: usize| {
            prefix[12..].copy_from_slice(&(length as u32).to_le_bytes());
            Header::length(&prefix).ok()
        };
        let (least, most) = (152 + 4, 152 + 64 + (64 << 10) + 4);
        assert_eq!([least, most].map(&mut length), [Some(least), Some(most)]);
        assert_eq!([0, least - 1, most + 1, u32::MAX as usize].map(&mut length), [None; 4]);
    }
}
