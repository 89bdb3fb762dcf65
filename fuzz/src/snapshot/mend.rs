//! Snapshots made right again after they were changed.

use crc32c::crc32c_append;
use testkit::format::{HEAD, Layout, header_length, records, seal, seal_all, seal_record};

use super::head;

/// The same bytes with right checksums, as far as header, records and trailer are there.
pub(super) fn checksums(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = bytes.to_vec();
    let header = header_length(&bytes)?;
    let lengths = |layout| records(&bytes, &layout).map(|(_, record)| record.len()).collect();
    let lengths: Vec<usize> = Layout::of(&bytes).map(lengths).unwrap_or_default();
    seal_all(&mut bytes, header, &lengths);
    Some(bytes)
}

/// A whole snapshot with this header, if it is not longer than that: the words are those of the bytes, and zero where
/// there are none. No shard has been split.
pub(super) fn all(bytes: &[u8], longest: u64) -> Option<Vec<u8>> {
    let layout = Layout::of(bytes)?;
    let shards = layout.part.end - layout.part.start;
    if shards.checked_mul(layout.record() as u64)? > longest {
        return None;
    }
    let (header, rest) = bytes.split_at(layout.header);
    let mut whole = header.to_vec();
    let origin = seal(&mut whole, 0);
    let mut given = rest.chunks(layout.record());
    let (mut checksums, mut total) = (origin, 0);
    for number in layout.part.clone() {
        let given = given.next().and_then(|record| record.get(HEAD..)).unwrap_or_default();
        let given = &given[..given.len().min(layout.words)];
        let count = layout.taken(given).count() as u64;
        let begin = whole.len();
        whole.extend(head(&layout, number, [0, 0], count));
        whole.extend(given);
        whole.resize(begin + layout.record(), 0);
        checksums = crc32c_append(checksums, &seal_record(&mut whole[begin..], origin).to_le_bytes());
        total += count;
    }
    let begin = whole.len();
    whole.extend(b"\xc0/cuckoo");
    whole.extend(shards.to_le_bytes());
    whole.extend(total.to_le_bytes());
    whole.resize(begin + HEAD, 0);
    seal(&mut whole[begin..], checksums);
    Some(whole)
}
