//! Writing the delta of two snapshots.

use super::format::{self, Change, End};
use super::{Name, Piece};
use crate::error::SnapshotError;
use crate::layout::{Extent, Fingerprint, Geometry, Plan, unpack};
use crate::snapshot::SnapshotReader;
use crate::snapshot::arriving::{Arrived, Arriving};
use crate::snapshot::format::with_sum_of;
use crate::snapshot::read::at_end;
use core::cmp::Ordering;
use std::io::{Read, Write};
use std::path::PathBuf;

impl<R: Read> SnapshotReader<R> {
    /// Writes the changes from an older snapshot of the filter to this one: a delta, which
    /// [`apply_delta`](crate::Filter::apply_delta) applies to a filter loaded from the older snapshot, during use. Both snapshots
    /// are checked in full. The delta contains the header of this snapshot, including metadata and seeds of the hash function.
    ///
    /// # Errors
    /// Those of [`Filter::read_from`](crate::Filter::read_from) for each snapshot; if one is a part, if their filters were built
    /// differently, or if they are expiring, counting or tagged ([`SnapshotError::KindMismatch`]); errors of the writer.
    ///
    /// # Complexity
    /// Reads each slot of both, and sorts the slots of changed shards. The delta has 6 bytes per inserted or removed fingerprint,
    /// and up to 127 per changed shard, or in a growing filter per changed table of the smaller snapshot. Memory: up to 80 bytes
    /// per slot of a shard, or of all tables that a table was split into in the meantime.
    pub fn write_delta_since<O: Read>(
        mut self,
        mut older: SnapshotReader<O>,
        mut writer: impl Write,
    ) -> Result<(), SnapshotError> {
        for header in [older.header(), self.header()] {
            header.check_kind("plain")?;
            header.check_whole()?;
        }
        if let Some(what) = self.header().difference(older.header()) {
            return Err(SnapshotError::DeltaOfAnother { what });
        }
        let header = self.header_bytes();
        writer.write_all(&format::head())?;
        writer.write_all(&header)?;
        let origin = self.origin;
        let (mut old, mut new) = (Tables::of(&mut older), Tables::of(&mut self));
        let (mut checksums, mut end) = (origin, End { changes: 0, from: 0, to: 0 });
        // Reading past the last tables checks the trailers of both, and the ends of their files.
        while old.next()? & new.next()? {
            let (piece, mut before) = (old.piece().or(new.piece()), old.names());
            let digest = |names: &[Name]| names.iter().map(|name| name.digest(piece.shard)).fold(0, u64::wrapping_add);
            if old.holds_the_same_words(&new) {
                let digest = digest(&before);
                (end.from, end.to) = (end.from.wrapping_add(digest), end.to.wrapping_add(digest));
                continue;
            }
            // Tables are halves of each other, so the ends meet at the end of the larger table.
            let mut after = new.names();
            while old.end() != new.end() {
                if old.end() < new.end() {
                    old.next()?;
                    before.extend(old.names());
                } else {
                    new.next()?;
                    after.extend(new.names());
                }
            }
            (end.from, end.to) = (end.from.wrapping_add(digest(&before)), end.to.wrapping_add(digest(&after)));
            let [removed, inserted] = difference(before, after);
            let (names, sum) = format::names_to_bytes(removed.iter().chain(&inserted).copied());
            if names.is_empty() {
                continue;
            }
            let (removed, inserted) = (removed.len() as u64, inserted.len() as u64);
            let head = Change { piece, removed, inserted, sum }.to_bytes(origin);
            writer.write_all(&head)?;
            writer.write_all(&names)?;
            checksums = with_sum_of(checksums, &head);
            end.changes += 1;
        }
        writer.write_all(&end.to_bytes(checksums))?;
        writer.flush()?;
        Ok(())
    }
}

/// The tables of a snapshot, one at a time.
struct Tables<'a, R> {
    arriving: Arriving<'a, &'a mut R>,
    file: Option<PathBuf>,
    geometry: Geometry,
    now: Option<Arrived>,
}

impl<'a, R: Read> Tables<'a, R> {
    fn of(snapshot: &'a mut SnapshotReader<R>) -> Self {
        let file = snapshot.file.clone();
        let arriving = snapshot.arriving();
        let geometry = Geometry::new(arriving.heads.plan());
        Tables { arriving, file, geometry, now: None }
    }

    /// Reads and checks the next table; `false` after the last one, with which a file must end.
    fn next(&mut self) -> Result<bool, SnapshotError> {
        let next = self.advance();
        let Some(file) = &self.file else { return next };
        let ended = match next {
            Ok(false) => at_end(&mut self.arriving.reader).map(|()| false),
            next => next,
        };
        ended.map_err(|error| error.of_file(file))
    }

    fn advance(&mut self) -> Result<bool, SnapshotError> {
        let bytes = self.now.take().map_or_else(Vec::new, |arrived| arrived.bytes);
        let Some(arrived) = self.arriving.next(bytes)? else { return Ok(false) };
        arrived.check_alone(self.plan())?;
        self.now = Some(arrived);
        Ok(true)
    }

    fn plan(&self) -> &'a Plan {
        self.arriving.heads.plan()
    }

    fn table(&self) -> &Arrived {
        self.now.as_ref().expect("a table that has arrived")
    }

    fn extent(&self) -> Extent {
        self.table().head.record.extent
    }

    fn piece(&self) -> Piece {
        Piece::of(self.plan(), &self.extent())
    }

    /// Returns the cell after those of the table.
    fn end(&self) -> usize {
        self.extent().first_cell + self.plan().cells_at(self.extent().depth)
    }

    fn holds_the_same_words<O: Read>(&self, other: &Tables<'_, O>) -> bool {
        self.extent() == other.extent() && self.table().bytes == other.table().bytes
    }

    /// Returns the classes of the table, once per copy.
    fn names(&self) -> Vec<Name> {
        let (plan, extent) = (self.plan(), self.extent());
        let table = plan.leaf(&extent);
        let words: Vec<u64> = self.table().bytes.as_chunks().0.iter().map(|&word| u64::from_le_bytes(word)).collect();
        let buckets = table.all_buckets().zip(unpack(&words, table.slot_bits, table.buckets as usize));
        let name = |bucket, stored| Name::of(self.geometry.cell_place_of(plan, &extent, stored, bucket).class);
        let names = buckets.flat_map(|(bucket, slots)| {
            slots.into_iter().filter_map(Fingerprint::from_slot).map(move |stored| name(bucket, stored))
        });
        names.collect()
    }
}

/// Returns the classes of removed and of inserted copies, once per copy.
fn difference(mut before: Vec<Name>, mut after: Vec<Name>) -> [Vec<Name>; 2] {
    before.sort_unstable();
    after.sort_unstable();
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

#[cfg(all(test, not(cuckoo_model)))]
mod tests {
    use super::*;
    use crate::CuckooFilter;
    use std::io::{self, ErrorKind};
    use std::path::Path;

    struct Failing;

    impl Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(ErrorKind::ConnectionReset.into())
        }
    }

    impl Write for Failing {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// An error of the writer names neither of the two files.
    #[test]
    fn an_error_of_the_system_names_the_file_it_is_of() {
        let mut bytes = Vec::new();
        CuckooFilter::<u64>::with_capacity(100).write_to(&mut bytes).unwrap();
        let open = |name: &str, len: usize| {
            let mut reader = SnapshotReader::new(bytes[..len].chain(Failing).take(bytes.len() as u64)).unwrap();
            reader.file = Some(Path::new(name).into());
            reader
        };
        let (whole, cut) = (bytes.len(), bytes.len() - 1);
        for (newer, older, named) in [(cut, whole, "\"newer\": "), (whole, cut, "\"older\": ")] {
            let error = open("newer", newer).write_delta_since(open("older", older), Vec::new()).unwrap_err();
            assert!(error.to_string().starts_with(named), "{error}");
        }
        let error = open("newer", whole).write_delta_since(open("older", whole), Failing).unwrap_err();
        assert_eq!(error.to_string(), io::Error::from(ErrorKind::BrokenPipe).to_string());
    }
}
