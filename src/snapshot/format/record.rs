//! A record: a head, followed by the words of a shard, or of a table of a growing filter. Records are in the order of their cells.

use super::{ALIGN, CHECKSUM, Fields, Header, PIECE, invalid};
use crate::error::{SnapshotError, SnapshotPlace};
use crate::layout::{Extent, MAX_EPOCH};
use crc32c::crc32c_append;

/// The first bytes of every record.
const MAGIC: [u8; 8] = *b"\xc0record\n";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::snapshot) struct Record {
    /// The number of the shard; in a growing filter, of the initial shard.
    pub(in crate::snapshot) base: u64,
    /// The bits with which the reserve of the keys of this table begins; their number is `depth`.
    pub(in crate::snapshot) prefix: u32,
    pub(in crate::snapshot) depth: u8,
    pub(in crate::snapshot) slot_bits: u8,
    /// The stored bits, without the bits spent when the table was created.
    pub(in crate::snapshot) fingerprint_bits: u8,
    pub(in crate::snapshot) tag_bits: u8,
    pub(in crate::snapshot) counter_bits: u8,
    /// The epoch of the copy of these words in an expiring filter, and the elapsed part of its tick in units of 2^-32.
    pub(in crate::snapshot) epoch: u64,
    pub(in crate::snapshot) passed: u32,
    /// The number of slots in use.
    pub(in crate::snapshot) count: u64,
    pub(in crate::snapshot) words: u64,
    /// The checksum of the words, zero padding included.
    pub(in crate::snapshot) sum: u32,
}

impl Record {
    /// Returns the head of these cells of a filter with this header, at epoch 0 and without a checksum. A filter of fixed size has one
    /// cell per shard.
    pub(in crate::snapshot) fn of(header: &Header, extent: &Extent, count: u64) -> Self {
        let (plan, [tag_bits, counter_bits]) = (&header.plan, header.bits_beside());
        let table = plan.leaf(extent);
        let reserve = extent.first_cell % plan.cells_at(0);
        Record {
            base: (extent.first_cell / plan.cells_at(0)) as u64,
            prefix: (reserve / plan.cells_at(extent.depth)) as u32,
            depth: extent.depth as u8,
            slot_bits: table.slot_bits as u8,
            fingerprint_bits: table.fingerprint_bits as u8,
            tag_bits: tag_bits as u8,
            counter_bits: counter_bits as u8,
            epoch: 0,
            passed: 0,
            count,
            words: table.words.into(),
            sum: 0,
        }
    }

    /// Returns the bytes of the head, with a checksum that continues that of the header.
    pub(in crate::snapshot) fn to_bytes(&self, origin: u32) -> [u8; PIECE] {
        let mut bytes = Vec::with_capacity(PIECE);
        bytes.extend(MAGIC);
        bytes.extend(self.base.to_le_bytes());
        bytes.extend(self.prefix.to_le_bytes());
        bytes.extend([self.depth, self.slot_bits, self.fingerprint_bits, self.tag_bits, self.counter_bits]);
        bytes.extend([0; 3]);
        bytes.extend(self.passed.to_le_bytes());
        bytes.extend([self.epoch, self.count, self.words].iter().flat_map(|field| field.to_le_bytes()));
        bytes.extend(self.sum.to_le_bytes());
        bytes.extend(crc32c_append(origin, &bytes).to_le_bytes());
        bytes.try_into().expect("64 bytes")
    }

    /// Reads a head, and checks only its checksum, magic and reserved bytes.
    pub(in crate::snapshot) fn parse(
        bytes: &[u8; PIECE],
        origin: u32,
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
        let (base, prefix) = (fields.u64(), fields.u32());
        let [depth, slot_bits, fingerprint_bits, tag_bits, counter_bits] = [(); 5].map(|()| fields.u8());
        if !fields.zeros(3) {
            return Err(invalid(place, "reserved bytes", "not 0"));
        }
        let passed = fields.u32();
        let [epoch, count, words] = [(); 3].map(|()| fields.u64());
        let sum = fields.u32();
        Ok(Record {
            base,
            prefix,
            depth,
            slot_bits,
            fingerprint_bits,
            tag_bits,
            counter_bits,
            epoch,
            passed,
            count,
            words,
            sum,
        })
    }

    /// Returns the cells of this record if it may begin with this cell. Its count and words are checked later.
    pub(in crate::snapshot) fn check(
        &self,
        header: &Header,
        first_cell: usize,
        place: SnapshotPlace,
    ) -> Result<Extent, SnapshotError> {
        let named = |record: &Record| {
            [
                ("number of the shard", record.base),
                ("depth of the shard", record.depth.into()),
                ("prefix of the shard", record.prefix.into()),
                ("bits of a fingerprint", record.fingerprint_bits.into()),
                ("bits of a slot", record.slot_bits.into()),
                ("bits of a tag", record.tag_bits.into()),
                ("bits of a counter", record.counter_bits.into()),
                ("epoch", record.epoch),
                ("part of a tick", record.passed.into()),
                ("number of words", record.words),
            ]
        };
        let plan = &header.plan;
        // The depth of the head, if cells of that depth can begin here.
        let depth = u32::from(self.depth);
        let depth_is_right = depth <= plan.reserve_bits && first_cell.is_multiple_of(plan.cells_at(depth));
        let depth = if depth_is_right { depth } else { plan.reserve_bits };
        // The width of the head, if the table had doubled often enough and its tags lie in one word.
        let dropped = plan.fingerprint_bits.saturating_sub(self.fingerprint_bits.into());
        let is_possible = dropped <= depth && plan.dropped_after(dropped) == dropped;
        let extent = Extent { first_cell, depth, dropped: if is_possible { dropped } else { 0 } };
        // An expiring filter may be at any epoch that leaves room for later ones.
        let (epoch, passed) = if header.life.is_some() { (self.epoch.min(MAX_EPOCH), self.passed) } else { (0, 0) };
        let expected = named(&Record { epoch, passed, ..Record::of(header, &extent, self.count) });
        let differing = named(self).into_iter().zip(expected).find(|(found, expected)| found != expected);
        differing.map_or(Ok(extent), |((field, found), _)| Err(invalid(place, field, found)))
    }
}

/// Returns the bytes of this many words, zero padding included.
pub(in crate::snapshot) fn padded(words: usize) -> usize {
    (words * size_of::<u64>()).next_multiple_of(ALIGN)
}
