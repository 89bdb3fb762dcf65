//! The file of a shared filter: the offsets of its parts, the lock of its writer, and its state.
//!
//! | bytes            | contents                                                                   |
//! |------------------|----------------------------------------------------------------------------|
//! | 0 to 2048        | magic, format, and the header of a snapshot, which describes the filter    |
//! | 2048 to 4096     | the state: its writer, its inode, and whether it was closed or replaced    |
//! | from 4096        | stripes                                                                    |
//! | from a page, or a huge page on | words                                                        |
//!
//! The header never changes. All offsets follow from it; none is read from the file.

use crate::error::SharedError;
use crate::layout::Plan;
use crate::raw::{Shards, Stripe};
use crate::sys::mapping::{self, FileMapping, HUGE};
use crate::sys::memory::ReadOnly;
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

/// The offset of the state.
const STATE: usize = 2048;

/// The offset of the stripes.
pub(super) const HEADER: usize = 4096;

const LIVE: u64 = 1;
const CLOSED: u64 = 2;

/// The number of attempts at a path whose file is replaced before it is locked.
const ATTEMPTS: usize = 16;

/// The numbers of the state, in the order of the file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct State {
    state: u64,
    /// Not 0 if another file replaced this one.
    pub(super) replaced: u64,
    /// The boot id of the machine; 0 where it is unknown.
    boot: [u64; 2],
    device: u64,
    inode: u64,
    pid: u64,
}

impl State {
    const WORDS: usize = 7;

    /// Returns the state of a file written by this process.
    pub(super) fn live(file: &Metadata) -> Self {
        let pid = u64::from(std::process::id());
        State { state: LIVE, replaced: 0, boot: boot(), device: file.dev(), inode: file.ino(), pid }
    }

    fn of_words([state, replaced, boot_high, boot_low, device, inode, pid]: [u64; Self::WORDS]) -> Self {
        State { state, replaced, boot: [boot_high, boot_low], device, inode, pid }
    }

    fn read(file: &File) -> io::Result<Self> {
        let mut bytes = [0; 8 * Self::WORDS];
        file.read_exact_at(&mut bytes, STATE as u64)?;
        let mut words = [0; Self::WORDS];
        for (word, bytes) in words.iter_mut().zip(bytes.as_chunks().0) {
            *word = u64::from_ne_bytes(*bytes);
        }
        Ok(State::of_words(words))
    }

    /// Returns the state as a reader sees it, at any time.
    pub(super) fn seen(words: &ReadOnly) -> Self {
        State::of_words(core::array::from_fn(|number| words.at(STATE / size_of::<u64>() + number).load()))
    }

    pub(super) fn write(&self, file: &File) -> io::Result<()> {
        let State { state, replaced, boot: [boot_high, boot_low], device, inode, pid } = *self;
        let bytes = [state, replaced, boot_high, boot_low, device, inode, pid].map(u64::to_ne_bytes);
        file.write_all_at(bytes.as_flattened(), STATE as u64)
    }

    pub(super) fn closed(self) -> Self {
        State { state: CLOSED, ..self }
    }

    pub(super) fn is_closed(self) -> bool {
        self.state == CLOSED
    }

    /// Returns an error unless the file contains every completed store: it was closed, or the machine has not stopped
    /// since, and it is no copy.
    fn check(self, file: &Metadata) -> Result<(), SharedError> {
        if self.is_closed() {
            return Ok(());
        }
        if self.state != LIVE || self.boot == [0; 2] || self.boot != boot() {
            return Err(SharedError::NotClosed);
        }
        if (self.device, self.inode) != (file.dev(), file.ino()) {
            return Err(SharedError::CopyOfLive);
        }
        Ok(())
    }
}

/// Returns the boot id of the machine; 0 where the system has none.
fn boot() -> [u64; 2] {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    let id = u128::from_str_radix(&digits, 16).unwrap_or(0);
    [(id >> 64) as u64, id as u64]
}

/// The offsets of the parts of a filter.
pub(super) struct Places {
    stripes: usize,
    pub(super) first_word: usize,
    words: usize,
    len: usize,
}

impl Places {
    /// `None` if the filter exceeds the address space.
    pub(super) fn of(plan: &Plan) -> Option<Self> {
        let (stripes, words) = (Shards::stripes_of(plan)?, Shards::words_of(plan)?);
        let bytes = words.checked_mul(size_of::<u64>())?;
        let behind = HEADER.checked_add(stripes.checked_mul(size_of::<CachePadded<Stripe>>())?)?;
        let first_word = behind.checked_next_multiple_of(if bytes < HUGE { HEADER } else { HUGE })?;
        let len = first_word.checked_add(bytes)?.checked_next_multiple_of(HEADER)?;
        isize::try_from(len).is_ok().then_some(Places { stripes, first_word, words, len })
    }

    /// Allocates the whole file: a store to a page without space would kill the process later.
    pub(super) fn allocate(&self, file: &File) -> io::Result<()> {
        file.set_len(self.len as u64)?;
        let end = HEADER + self.stripes * size_of::<CachePadded<Stripe>>();
        mapping::allocate(file, 0, end)?;
        mapping::allocate(file, self.first_word, self.len - self.first_word)
    }

    pub(super) fn check_length(&self, file: &Metadata) -> Result<(), SharedError> {
        let (expected, found) = (self.len as u64, file.len());
        if expected == found { Ok(()) } else { Err(SharedError::WrongLength { expected, found }) }
    }

    pub(super) fn map(&self, file: &File, writable: bool) -> io::Result<Arc<FileMapping>> {
        FileMapping::new(file, self.len, writable)
    }

    /// The shards of a file written by this process. `None` if the memory of its own state cannot be allocated.
    pub(super) fn shards(&self, mapping: &Arc<FileMapping>, plan: &Plan) -> Option<Shards> {
        Shards::shared(plan, mapping.run(self.first_word, self.words)?, mapping.run(HEADER, self.stripes)?)
    }

    /// The state, the stripes and the words of a file read by this process.
    pub(super) fn read_only(&self, mapping: &Arc<FileMapping>) -> Option<[ReadOnly; 3]> {
        let stripes = self.stripes * size_of::<CachePadded<Stripe>>() / size_of::<u64>();
        Some([
            mapping.read_only(0, HEADER / size_of::<u64>())?,
            mapping.read_only(HEADER, stripes)?,
            mapping.read_only(self.first_word, self.words)?,
        ])
    }

    /// The size of all words in bytes.
    pub(super) fn word_bytes(&self) -> usize {
        self.words * size_of::<u64>()
    }
}

/// Writes the description of the filter.
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
            Err(SharedError::WriterPresent { pid: State::read(file).map_or(0, |state| state.pid) })
        }
        Err(TryLockError::Error(error)) => Err(error.into()),
    }
}

/// Opens and locks the file at the path, and tries again if it was replaced before it was locked.
pub(super) fn open_and_lock(path: &Path) -> Result<File, SharedError> {
    for _ in 0..ATTEMPTS {
        let file = open(path, true)?;
        lock(&file)?;
        let (locked, there) = (file.metadata()?, fs::metadata(path)?);
        if (locked.dev(), locked.ino()) == (there.dev(), there.ino()) {
            return Ok(file);
        }
    }
    Err(io::Error::from(ErrorKind::ResourceBusy).into())
}

/// Opens a regular file. Opening a named pipe would block.
pub(super) fn open(path: &Path, writable: bool) -> io::Result<File> {
    let check = |metadata: Metadata| {
        let refused = || io::Error::new(ErrorKind::InvalidInput, "this is not a regular file");
        if metadata.is_file() { Ok(()) } else { Err(refused()) }
    };
    check(fs::metadata(path)?)?;
    let file = OpenOptions::new().read(true).write(writable).open(path)?;
    check(file.metadata()?)?;
    Ok(file)
}

/// Checks that the file contains every completed store, and returns its state.
pub(super) fn checked_state(file: &File) -> Result<State, SharedError> {
    let state = State::read(file)?;
    state.check(&file.metadata()?)?;
    Ok(state)
}

/// Marks a file as replaced, for its readers.
pub(super) fn mark_replaced(file: &File) -> Result<(), SharedError> {
    read_description(file)?;
    Ok(State { replaced: 1, ..State::read(file)? }.write(file)?)
}
