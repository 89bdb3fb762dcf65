//! A delta of two snapshots.

use super::format::{self, Change, End};
use super::{Name, digest};
use crate::error::SnapshotError;
use crate::layout::Plan;
use crate::raw::{Bare, Shard, Shards};
use crate::snapshot::arriving::{Arrived, Arriving};
use crate::snapshot::read::{SnapshotReader, check_plain, one_shard, whole};
use core::cmp::Ordering;
use std::io::{Read, Write};

impl<R: Read> SnapshotReader<R> {
    /// Writes what has changed from an older snapshot of the filter to this one: a delta, that a filter which was loaded from
    /// the older one takes over with [`apply_delta`](crate::Filter::apply_delta), while it serves. Both are checked
    /// in full. The header of this snapshot goes with it, metadata and keys of the hasher included.
    ///
    /// # Errors
    /// As [`Filter::read_from`](crate::Filter::read_from), for each of the two; if one is a part, or they are of
    /// filters that were built differently; what the writer returns.
    ///
    /// # Complexity
    /// Each slot of both, and the slots of changed shards sorted. The delta has 6 bytes for each fingerprint that came or
    /// went, and up to 127 for each shard in which one did. Memory: eight times that of a shard.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::{CuckooFilter, SnapshotReader, StableHashBuilder};
    ///
    /// type List = CuckooFilter<String, StableHashBuilder>;
    /// let list = List::with_capacity_and_hasher(100_000, StableHashBuilder::new());
    /// let (mut yesterday, mut today, mut delta) = (Vec::new(), Vec::new(), Vec::new());
    /// list.insert("a.com")?;
    /// list.write_to(&mut yesterday)?;
    /// list.remove("a.com");
    /// list.insert("b.com")?;
    /// list.write_to(&mut today)?;
    /// SnapshotReader::new(&today[..])?.write_delta_since(SnapshotReader::new(&yesterday[..])?, &mut delta)?;
    /// assert!(delta.len() < 1000);
    ///
    /// // Elsewhere:
    /// let replica: List = SnapshotReader::new(&yesterday[..])?.into_filter()?;
    /// replica.apply_delta(&delta[..])?;
    /// assert!(replica.contains("b.com") && !replica.contains("a.com"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn write_delta_since<O: Read>(
        self,
        older: SnapshotReader<O>,
        mut writer: impl Write,
    ) -> Result<(), SnapshotError> {
        for header in [older.header(), self.header()] {
            check_plain(header)?;
            whole(header)?;
        }
        if let Some(what) = self.header().difference(older.header()) {
            return Err(SnapshotError::DeltaOfAnother { what });
        }
        let header = self.header_bytes();
        let plan = *self.header().plan();
        writer.write_all(&format::head())?;
        writer.write_all(&header)?;
        let origin = crate::snapshot::format::origin(&header);
        let (mut old, mut new) = (Copy::new(&plan, older)?, Copy::new(&plan, self)?);
        let (mut checksums, mut end) = (origin, End { changes: 0, from: 0, to: 0 });
        while let Some((number, old_sum, before)) = old.next()? {
            let Some((_, new_sum, after)) = new.next()? else { break };
            let from = digest(number, before);
            end.from = end.from.wrapping_add(from);
            if old_sum == new_sum {
                end.to = end.to.wrapping_add(from);
                continue;
            }
            end.to = end.to.wrapping_add(digest(number, after));
            let [removed, inserted] = difference(before, after);
            let (names, sum) = format::names_to_bytes(removed.iter().chain(&inserted).copied());
            if names.is_empty() {
                continue;
            }
            let (shard, removed, inserted) = (number as u64, removed.len() as u64, inserted.len() as u64);
            let head = Change { shard, removed, inserted, sum }.to_bytes(origin);
            writer.write_all(&head)?;
            writer.write_all(&names)?;
            checksums = format::with_change(checksums, &head);
            end.changes += 1;
        }
        // The trailer of the newer one is checked where its shards have ended.
        new.next()?;
        writer.write_all(&end.to_bytes(checksums))?;
        writer.flush()?;
        Ok(())
    }
}

/// The shards of a snapshot, one at a time.
struct Copy<R> {
    arriving: Arriving<R>,
    one: Shards,
    bytes: Vec<u8>,
}

impl<R: Read> Copy<R> {
    fn new(plan: &Plan, reader: SnapshotReader<R>) -> Result<Self, SnapshotError> {
        Ok(Copy { arriving: reader.arriving(), one: one_shard(plan)?, bytes: Vec::new() })
    }

    /// The next shard, checked: its number, the checksum of its words, and all that it holds.
    fn next(&mut self) -> Result<Option<(usize, u32, Shard<'_>)>, SnapshotError> {
        let Some(arrived) = self.arriving.next(core::mem::take(&mut self.bytes))? else { return Ok(None) };
        let shard = self.one.at(0, Bare);
        arrived.store_in(shard)?;
        let Arrived { number, bytes, head, .. } = arrived;
        self.bytes = bytes;
        Ok(Some((number, head.sum, shard)))
    }
}

/// The classes of which copies have gone and have come, once for each copy.
fn difference(before: Shard<'_>, after: Shard<'_>) -> [Vec<Name>; 2] {
    let [before, after] = [before, after].map(|shard| {
        let mut names: Vec<Name> = shard.classes(()).map(|(class, _)| Name::of(class)).collect();
        names.sort_unstable();
        names
    });
    let (mut gone, mut come) = (Vec::new(), Vec::new());
    let (mut before, mut after) = (before.into_iter().peekable(), after.into_iter().peekable());
    while let (Some(old), Some(new)) = (before.peek(), after.peek()) {
        match old.cmp(new) {
            Ordering::Less => gone.extend(before.next()),
            Ordering::Greater => come.extend(after.next()),
            Ordering::Equal => drop((before.next(), after.next())),
        }
    }
    gone.extend(before);
    come.extend(after);
    [gone, come]
}
