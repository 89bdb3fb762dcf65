//! The file of a shared filter: the offsets of its parts, the lock of its writer, and its state.
//!
//! ```text
//! 0      magic, format, and the header of a snapshot, which describes the filter and never changes
//! 2048   the state
//! 4096   stripes
//!        words, from a page or a huge page on
//! ```
//!
//! All offsets follow from the header; none is read from the file.

use crate::error::SharedError;
use crate::layout::Plan;
use crate::raw::{Shards, Stripe};
use crate::snapshot::{folder_and_name, open_regular};
use crate::sys::mapping::{self, FileMapping, HUGE};
use crate::sys::read_only::ReadOnly;
use crossbeam_utils::CachePadded;
use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::Arc;

/// The first bytes of every file. The first byte is not valid in text.
const MAGIC: [u8; 8] = *b"\xc0cshare\n";

/// The format written, and the only one read.
const FORMAT: u32 = 1;

/// The offset of the description, and its maximum length: two names, and no metadata.
const DESCRIPTION: usize = 64;

const STATE: usize = 2048;

pub(super) const HEADER: usize = 4096;

const LIVE: u64 = 1;
const CLOSED: u64 = 2;

/// The number of attempts at a path whose file is replaced before it is locked.
pub(super) const ATTEMPTS: usize = 16;

/// The state in the order of the file: [`LIVE`] or [`CLOSED`]; not 0 if another file replaced this one; the boot id of the machine;
/// device and inode of the file; the process that writes it.
#[derive(Clone, Copy)]
pub(super) struct State([u64; 7]);

/// The numbers of a state that are used alone.
const STATUS: usize = 0;
const REPLACED: usize = 1;
const WRITER: usize = 6;

impl State {
    /// Returns the state of a file written by this process.
    pub(super) fn live(file: &Metadata) -> io::Result<Self> {
        let [high, low] = boot()?;
        Ok(State([LIVE, 0, high, low, file.dev(), file.ino(), std::process::id().into()]))
    }

    fn read(file: &File) -> io::Result<Self> {
        let mut bytes = [[0; 8]; 7];
        file.read_exact_at(bytes.as_flattened_mut(), STATE as u64)?;
        Ok(State(bytes.map(u64::from_ne_bytes)))
    }

    /// Returns the present state, for a reader.
    pub(super) fn seen(words: &ReadOnly) -> Self {
        State(core::array::from_fn(|number| words.at(STATE / size_of::<u64>() + number).load()))
    }

    pub(super) fn write(&self, file: &File) -> io::Result<()> {
        file.write_all_at(self.0.map(u64::to_ne_bytes).as_flattened(), STATE as u64)
    }

    pub(super) fn closed(mut self) -> Self {
        self.0[STATUS] = CLOSED;
        self
    }

    pub(super) fn is_closed(self) -> bool {
        self.0[STATUS] == CLOSED
    }

    pub(super) fn is_replaced(self) -> bool {
        self.0[REPLACED] != 0
    }

    /// Returns an error unless the file contains every completed store: it was closed, or the machine has not stopped since, and it
    /// is no copy.
    fn check(self, file: &Metadata) -> Result<(), SharedError> {
        let State([status, _, high, low, device, inode, _]) = self;
        if self.is_closed() {
            return Ok(());
        }
        if status != LIVE || [high, low] != boot()? {
            return Err(SharedError::NotClosed);
        }
        if (device, inode) != (file.dev(), file.ino()) {
            return Err(SharedError::CopyOfLive);
        }
        Ok(())
    }
}

/// Returns the boot id of the machine, which distinguishes a file in use from one left open when the machine stopped.
fn boot() -> io::Result<[u64; 2]> {
    const FILE: &str = "/proc/sys/kernel/random/boot_id";
    let text = fs::read_to_string(FILE).map_err(|error| io::Error::new(error.kind(), format!("{FILE}: {error}")))?;
    let id = u128::from_str_radix(&text.trim().replace('-', ""), 16);
    let id = id.map_err(|_| io::Error::new(ErrorKind::InvalidData, format!("{FILE} has no boot id")))?;
    Ok([(id >> 64) as u64, id as u64])
}

/// The offsets of the parts of a filter.
pub(super) struct Places {
    stripes: usize,
    pub(super) first_word: usize,
    words: usize,
    len: usize,
}

impl Places {
    /// Returns `None` if the filter exceeds the address space.
    pub(super) fn of(plan: &Plan) -> Option<Self> {
        let (stripes, words) = (Shards::stripes_of(plan)?, Shards::words_of(plan)?);
        let bytes = words.checked_mul(size_of::<u64>())?;
        let behind = HEADER.checked_add(stripes.checked_mul(size_of::<CachePadded<Stripe>>())?)?;
        let first_word = behind.checked_next_multiple_of(if bytes < HUGE { HEADER } else { HUGE })?;
        let len = first_word.checked_add(bytes)?.checked_next_multiple_of(HEADER)?;
        isize::try_from(len).is_ok().then_some(Places { stripes, first_word, words, len })
    }

    pub(super) fn set_len(&self, file: &File) -> io::Result<()> {
        file.set_len(self.len as u64)
    }

    /// Allocates the whole file, of which a copy may have left out pages of zeros: a store to a page without space would kill the
    /// process later.
    pub(super) fn allocate(&self, file: &File) -> io::Result<()> {
        let end = HEADER + self.stripes * size_of::<CachePadded<Stripe>>();
        mapping::allocate(file, 0, end)?;
        mapping::allocate(file, self.first_word, self.len - self.first_word)
    }

    /// Returns an error unless the file has the length of the filter, and contains every completed store.
    pub(super) fn check(&self, file: &File) -> Result<(), SharedError> {
        let metadata = file.metadata()?;
        let (expected, found) = (self.len as u64, metadata.len());
        if expected != found {
            return Err(SharedError::WrongLength { expected, found });
        }
        State::read(file)?.check(&metadata)
    }

    pub(super) fn map(&self, file: &File, writable: bool) -> io::Result<Arc<FileMapping>> {
        FileMapping::new(file, self.len, writable)
    }

    /// Returns the shards of a file written by this process; `None` if the memory of its own state cannot be allocated.
    pub(super) fn shards(&self, mapping: &Arc<FileMapping>, plan: &Plan) -> Option<Shards> {
        Some(Shards::shared(plan, mapping.run(self.first_word, self.words)?, mapping.run(HEADER, self.stripes)?))
    }

    /// Returns the state, the stripes and the words of a file read by this process.
    pub(super) fn read_only(&self, mapping: &Arc<FileMapping>) -> Option<[ReadOnly; 3]> {
        let stripes = self.stripes * size_of::<CachePadded<Stripe>>() / size_of::<u64>();
        Some([
            mapping.read_only(0, HEADER / size_of::<u64>())?,
            mapping.read_only(HEADER, stripes)?,
            mapping.read_only(self.first_word, self.words)?,
        ])
    }

    pub(super) fn word_bytes(&self) -> usize {
        self.words * size_of::<u64>()
    }
}

pub(super) fn write_description(file: &File, description: &[u8]) -> io::Result<()> {
    if description.len() > STATE - DESCRIPTION {
        return Err(io::Error::new(ErrorKind::InvalidInput, "the description of the filter is too long"));
    }
    let mut bytes = [0; STATE];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..12].copy_from_slice(&FORMAT.to_le_bytes());
    bytes[DESCRIPTION..][..description.len()].copy_from_slice(description);
    file.write_all_at(&bytes, 0)
}

/// Copies the description of the filter into memory of this process.
pub(super) fn read_description(file: &File) -> Result<Vec<u8>, SharedError> {
    let mut bytes = [0; STATE];
    match file.read_exact_at(&mut bytes, 0) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Err(SharedError::NotShared),
        other => other?,
    }
    if bytes[..8] != MAGIC {
        return Err(SharedError::NotShared);
    }
    let found = u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]);
    if found != FORMAT {
        return Err(SharedError::UnknownVersion { found, known: FORMAT });
    }
    Ok(bytes[DESCRIPTION..].to_vec())
}

/// Locks the file against other writers.
pub(super) fn lock(file: &File) -> Result<(), SharedError> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => {
            Err(SharedError::WriterPresent { pid: State::read(file).map_or(0, |state| state.0[WRITER]) })
        }
        Err(TryLockError::Error(error)) => Err(error.into()),
    }
}

/// Opens and locks the file at the path, and tries again if it was replaced before it was locked.
pub(super) fn open_and_lock(path: &Path) -> Result<File, SharedError> {
    for _ in 0..ATTEMPTS {
        let file = open_regular(path, OpenOptions::new().read(true).write(true))?;
        lock(&file)?;
        let (locked, there) = (file.metadata()?, fs::metadata(path)?);
        if (locked.dev(), locked.ino()) == (there.dev(), there.ino()) {
            return Ok(file);
        }
    }
    Err(io::Error::from(ErrorKind::ResourceBusy).into())
}

/// Opens the folder of a path, whose sync makes a file keep its name.
pub(super) fn open_folder(path: &Path) -> io::Result<File> {
    File::open(folder_and_name(path)?.0)
}

/// Marks a file as replaced, or not, for its readers.
pub(super) fn mark_replaced(file: &File, is_replaced: bool) -> Result<(), SharedError> {
    read_description(file)?;
    let mut state = State::read(file)?;
    state.0[REPLACED] = is_replaced.into();
    Ok(state.write(file)?)
}
