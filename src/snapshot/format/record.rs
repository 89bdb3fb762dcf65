//! A record: a head, followed by the words of a shard, or of a table of a growing filter. Records are in the order of their cells.

use super::{ALIGN, CHECKSUM, Fields, Header, PIECE, invalid, put_u32, put_u64};
use crate::error::{SnapshotError, SnapshotPlace};
use crate::layout::{Extent, MAX_EPOCH};
use crc32c::crc32c_append;

/// The first bytes of every record.
const MAGIC: [u8; 8] = *b"\xc0record\n";

/// The numbers of a head that do not follow from the header of the snapshot.
#[derive(Clone)]
pub(in crate::snapshot) struct Record {
    /// The cells of the words. A filter of fixed size has one cell per shard.
    pub(in crate::snapshot) extent: Extent,
    /// The number of slots in use.
    pub(in crate::snapshot) count: u64,
    /// The epoch of the copy of these words in an expiring filter, and the elapsed part of its tick in units of 2^-32.
    pub(in crate::snapshot) epoch: u64,
    pub(in crate::snapshot) passed: u32,
    /// The checksum of the words, zero padding included.
    pub(in crate::snapshot) sum: u32,
}

impl Record {
    /// Returns the checked numbers of the head, with their names. The shard of a growing filter is the initial one. The prefix has the
    /// bits with which the reserve of the keys of this table begins, as many as the depth.
    fn named(&self, header: &Header) -> [(&'static str, u64); 10] {
        let (plan, Extent { first_cell, depth, .. }) = (&header.plan, self.extent);
        let (table, [tag_bits, counter_bits]) = (plan.leaf(&self.extent), header.bits_beside());
        [
            ("number of the shard", (first_cell / plan.cells_at(0)) as u64),
            ("depth of the shard", depth.into()),
            ("prefix of the shard", (first_cell % plan.cells_at(0) / plan.cells_at(depth)) as u64),
            ("bits of a fingerprint", table.fingerprint_bits.into()),
            ("bits of a slot", table.slot_bits.into()),
            ("bits of a tag", tag_bits.into()),
            ("bits of a counter", counter_bits.into()),
            ("epoch", self.epoch),
            ("part of a tick", self.passed.into()),
            ("number of words", table.words.into()),
        ]
    }

    /// Returns the bytes of the head, with a checksum that continues that of the header.
    pub(in crate::snapshot) fn to_bytes(&self, header: &Header, origin: u32) -> [u8; PIECE] {
        let [shard, depth, prefix, fingerprint_bits, slot_bits, tag_bits, counter_bits, epoch, passed, words] =
            self.named(header).map(|(_, number)| number);
        let mut bytes = Vec::with_capacity(PIECE);
        bytes.extend(MAGIC);
        put_u64(&mut bytes, [shard]);
        put_u32(&mut bytes, [prefix as u32]);
        bytes.extend([depth, slot_bits, fingerprint_bits, tag_bits, counter_bits].map(|number| number as u8));
        bytes.extend([0; 3]);
        put_u32(&mut bytes, [passed as u32]);
        put_u64(&mut bytes, [epoch, self.count, words]);
        put_u32(&mut bytes, [self.sum]);
        bytes.extend(crc32c_append(origin, &bytes).to_le_bytes());
        bytes.try_into().expect("64 bytes")
    }

    /// Reads the head of a record that should begin with this cell. Its count and words are checked later.
    pub(in crate::snapshot) fn parse(
        bytes: &[u8; PIECE],
        header: &Header,
        origin: u32,
        first_cell: usize,
        place: SnapshotPlace,
    ) -> Result<Self, SnapshotError> {
        let (said, checksum) = bytes.split_at(PIECE - CHECKSUM);
        if crc32c_append(origin, said) != Fields(checksum).u32() {
            return Err(SnapshotError::Damaged { place });
        }
        let mut fields = Fields(said);
        if fields.bytes(MAGIC.len()) != MAGIC {
            return Err(invalid(place, "beginning of a record", "another one"));
        }
        let (shard, prefix) = (fields.u64(), fields.u32().into());
        let [depth, slot_bits, fingerprint_bits, tag_bits, counter_bits] = [(); 5].map(|()| fields.u8().into());
        if !fields.zeros(3) {
            return Err(invalid(place, "reserved bytes", "not 0"));
        }
        let passed = fields.u32();
        let [epoch, count, words] = [(); 3].map(|()| fields.u64());
        let (sum, plan) = (fields.u32(), &header.plan);
        // The depth of the head, if cells of that depth can begin here.
        let is_possible = |&depth: &u32| depth <= plan.reserve_bits && first_cell.is_multiple_of(plan.cells_at(depth));
        let known_depth = Some(depth as u32).filter(is_possible).unwrap_or(plan.reserve_bits);
        // The width of the head, if the table had doubled often enough and its tags lie in one word.
        let is_possible = |&dropped: &u32| dropped <= known_depth && plan.dropped_after(dropped) == dropped;
        let dropped = plan.fingerprint_bits.saturating_sub(fingerprint_bits as u32);
        let dropped = Some(dropped).filter(is_possible).unwrap_or(0);
        // An expiring filter may be at any epoch that leaves room for later ones.
        let (known_epoch, known_passed) = if header.life.is_some() { (epoch.min(MAX_EPOCH), passed) } else { (0, 0) };
        let extent = Extent { first_cell, depth: known_depth, dropped };
        let record = Record { extent, count, epoch: known_epoch, passed: known_passed, sum };
        let passed = passed.into();
        let found = [shard, depth, prefix, fingerprint_bits, slot_bits, tag_bits, counter_bits, epoch, passed, words];
        let differing = record.named(header).into_iter().zip(found).find(|((_, expected), found)| found != expected);
        differing.map_or(Ok(record), |((field, _), found)| Err(invalid(place, field, found)))
    }
}

/// Returns the bytes of this many words, zero padding included.
pub(in crate::snapshot) fn padded(words: usize) -> usize {
    (words * size_of::<u64>()).next_multiple_of(ALIGN)
}
