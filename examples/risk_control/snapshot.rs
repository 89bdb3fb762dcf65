//! The filter in a file: loaded from it instead of being filled, and saved to it on the way out.
//!
//! The hash function stays the default, the fastest: the file is read where it was written, and the list is at hand.
//! Where that function gives another output, on other processors or after an update, the file is refused, and would be
//! deleted. A file for other machines is one for a `StableHashBuilder`.

use crate::arguments::Arguments;
use crate::list::{List, Text};
use concurrent_cuckoo_filter::{CuckooFilter, SnapshotReader, StableHashBuilder};
use std::fs::{self, File};
use std::hash::BuildHasher;
use std::io::BufReader;
use std::path::Path;
use std::time::{Duration, Instant};

/// Before the filter's origin, in the metadata of its snapshot.
const OURS: &str = "risk_control: ";

/// What was loaded or saved.
pub(crate) struct Moved {
    pub(crate) bytes: u64,
    pub(crate) took: Duration,
}

pub(crate) struct Snapshot<'a> {
    path: &'a Path,
    /// Of which keys the filter is and how it was built, so that no other one is taken for it.
    origin: String,
    keys: usize,
}

impl<'a> Snapshot<'a> {
    /// The file that is asked for, if one is.
    pub(crate) fn asked_for(arguments: &'a Arguments, text: &Text, list: &List) -> Option<Self> {
        let path = arguments.snapshot.as_deref()?;
        let (listed, made) = (list.keys.len(), arguments.made());
        // The same for the same list, in every process.
        let hash = StableHashBuilder::with_keys(0, 0).hash_one(text.keys.as_str());
        let origin = format!("a list of {listed} keys ({hash:016x}), --keys {made}, --rate {}", arguments.rate);
        Some(Snapshot { path, origin, keys: listed + made })
    }

    /// Whether there is a file to load. Refuses one of another kind, and a place where none can be saved, before much
    /// is done for nothing.
    pub(crate) fn is_there(&self) -> Result<bool, String> {
        if !self.path.try_exists().map_err(|error| self.cannot("load", error))? {
            let folder = self.path.parent().filter(|folder| *folder != Path::new(""));
            return match folder {
                Some(folder) if !folder.is_dir() => Err(self.cannot("save", format!("{folder:?} is not a folder"))),
                _ => Ok(false),
            };
        }
        let file = File::open(self.path).map_err(|error| self.cannot("load", error))?;
        let reader = SnapshotReader::new(BufReader::new(file)).map_err(|error| self.cannot("load", error))?;
        let origin = std::str::from_utf8(reader.header().metadata()).ok().and_then(|text| text.strip_prefix(OURS));
        match origin {
            Some(origin) if origin == self.origin => Ok(true),
            Some(origin) => {
                Err(self.cannot("load", format!("it is of {origin:?}, and {:?} is asked for", self.origin)))
            }
            None => Err(self.cannot("load", "another program has saved it")),
        }
    }

    pub(crate) fn load(&self) -> Result<(CuckooFilter<str>, Moved), String> {
        let start = Instant::now();
        let filter = CuckooFilter::load(self.path).map_err(|error| self.cannot("load", error))?;
        Ok((filter, self.moved(start)?))
    }

    pub(crate) fn save(&self, filter: &CuckooFilter<str>) -> Result<Moved, String> {
        if filter.len() != self.keys {
            return Err(self.cannot("save", format!("only {} of {} keys are in the filter", filter.len(), self.keys)));
        }
        let start = Instant::now();
        let metadata = format!("{OURS}{}", self.origin);
        let saved = filter.snapshot().metadata(metadata.as_bytes()).save(self.path);
        saved.map_err(|error| self.cannot("save", error))?;
        self.moved(start)
    }

    fn moved(&self, start: Instant) -> Result<Moved, String> {
        let took = start.elapsed();
        let bytes = fs::metadata(self.path).map_err(|error| self.cannot("find", error))?.len();
        Ok(Moved { bytes, took })
    }

    fn cannot(&self, what: &str, why: impl std::fmt::Display) -> String {
        format!("cannot {what} the snapshot {:?}: {why}", self.path)
    }
}
