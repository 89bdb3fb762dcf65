//! One filter in a file mapped by several processes: one process writes, the others query.
//!
//! ```text
//! mod    the API: the writing process's filter, and the readers
//! file   offsets in the file, the lock of the writer, and the state
//! ```
//!
//! `raw` recovers from a killed writer (`intent`, `recovery`); see docs/design/shared.md.

mod file;

use crate::builder::{Builder, Planned};
use crate::error::{BuildError, SharedError};
use crate::filter::key::BatchKey;
use crate::filter::{CuckooFilter, assert_same_length, hashing};
use crate::hashing::{Prehashed, SavedHasher, hash_of};
use crate::layout::{Mixed, Plan};
use crate::raw::{Observed, RawFilter};
use crate::snapshot::{Header, SnapshotHeader, SnapshotReader, TempFile, open_regular};
use crate::stats::Config;
use crate::sys::mapping::FileMapping;
use crate::sys::memory::HugePages;
use crate::sys::read_only::ReadOnly;
use crate::view::Viewed;
use core::borrow::Borrow;
use core::fmt;
use core::hash::{BuildHasher, Hash};
use file::{Places, State};
use std::fs::{self, File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The writing process's handle of a filter in a file shared by processes. All threads of that process may write.
///
/// [`writer`](SharedFilter::writer) returns the filter, with every operation of a [`CuckooFilter`]: batches, bulk operations,
/// snapshots. Other processes query the same live memory through a [`SharedReader`]: their lookups take no lock, write nothing and
/// wait for no writer, not even for a writer killed in the middle of an operation.
///
/// # A killed writer
/// A writer may be killed at any moment. Readers find every key whose insertion returned, and the next [`open`](SharedFilter::open)
/// completes the interrupted operations: each of them is done or not done, every operation that returned is kept, and no surplus
/// copy remains. This covers a crash of the process, not of the machine: a file that was not [closed](SharedFilter::close) before
/// the machine stopped is refused with [`SharedError::NotClosed`]. To recover from that, [`save`](CuckooFilter::save) snapshots.
///
/// # The file
/// The file is created with mode 0600, and all its memory is allocated then, on huge pages by default (in `/dev/shm` on Linux 6.1
/// and later). A process with read permission can query the filter, read the seeds of its hash function, and lock the file against
/// writers; a process with write permission can make lookups return anything, and make the writer panic or wait forever.
/// **Truncating the file kills the processes that map it** (`SIGBUS`). A copy of a file in use is refused if it is another file and
/// the original was in use when copying began. Network file systems do not keep the memory of several machines coherent.
///
/// # After a fork
/// A forked child of the writing process does not inherit the memory: [`writer`](SharedFilter::writer) returns
/// [`SharedError::Forked`] there. Do not use a reference taken before the fork: it kills the child (`SIGSEGV`), or accesses other
/// memory that the child has mapped since. Open a [`SharedReader`] in the child. A child inherits the open file: unless the writing
/// process drops the filter, the file stays locked as long as the child lives, or until it executes another program.
///
/// # Limits
/// Linux, and plain filters of fixed size: filters that grow are refused ([`SharedError::Growing`]), and expiring, counting and
/// tagged filters have no constructor. The hash function is a [`SavedHasher`] that stores its seeds, such as
/// [`DefaultHashBuilder`](crate::DefaultHashBuilder) and [`StableHashBuilder`](crate::StableHashBuilder).
///
/// ```
/// use concurrent_cuckoo_filter::{CuckooFilter, SharedFilter, SharedReader, SharedState};
///
/// let path = std::env::temp_dir().join(format!("concurrent-cuckoo-filter.example-shared-{}", std::process::id()));
/// let blocked = SharedFilter::create(&path, CuckooFilter::<String>::builder().capacity(100_000))?;
/// blocked.writer()?.insert("mailinator.com")?;
///
/// // In other processes:
/// let reader = SharedReader::<CuckooFilter<String>>::open(&path)?;
/// assert!(reader.contains("mailinator.com") && reader.try_contains("mailinator.com")?);
/// assert!(reader.hashed().contains(&blocked.writer()?.hash("mailinator.com")));
/// blocked.writer()?.remove("mailinator.com");
/// let mut found = [true; 2];
/// reader.contains_batch(&["mailinator.com", "example.com"], &mut found);
/// assert_eq!((found, reader.state()), ([false; 2], SharedState::Live));
///
/// blocked.close()?;
/// assert_eq!(reader.state(), SharedState::Closed);
/// let again = SharedFilter::<CuckooFilter<String>>::open(&path)?;
/// assert!(again.writer()?.is_empty());
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[cfg_attr(docsrs, doc(cfg(feature = "shared")))]
pub struct SharedFilter<F> {
    filter: F,
    mapping: Arc<FileMapping>,
    /// Locked until the filter is dropped.
    file: File,
    state: State,
}

/// The state of a shared filter, as recorded in its file. A killed writer leaves it [`Live`](SharedState::Live).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SharedState {
    /// Opened for writing, and not closed since.
    Live,
    /// Closed by its writer.
    Closed,
    /// Replaced by [another filter](SharedFilter::create_or_replace).
    Replaced,
}

impl<K: ?Sized + 'static, S: SavedHasher> SharedFilter<CuckooFilter<K, S>> {
    /// Creates an empty filter in a new file, and opens it for writing. The file appears under its name when it is complete.
    ///
    /// # Errors
    /// If the path exists; if the file system has no room for the whole file; if the hash function has no seeds to store; those of
    /// [`Builder::build`]. If the sync of the folder, the last step, fails, the file exists.
    pub fn create(path: impl AsRef<Path>, builder: Builder<K, S>) -> Result<Self, SharedError> {
        let path = path.as_ref();
        let create = || {
            let folder = file::open_folder(path)?;
            let (created, temporary) = Self::new(path, builder)?;
            fs::hard_link(&temporary.0, path)?;
            folder.sync_all()?;
            Ok(created)
        };
        create().map_err(|error: SharedError| error.of_file(path))
    }

    /// Creates an empty filter, and replaces the file if the path exists. Readers keep the old filter until they
    /// [reopen](SharedReader::reopen_if_replaced) the path.
    ///
    /// # Errors
    /// Those of [`create`](SharedFilter::create), except for an existing path; if the old filter has a writer, or the old file is
    /// no shared filter.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::{CuckooFilter, SharedFilter, SharedReader};
    ///
    /// let path = std::env::temp_dir().join(format!("concurrent-cuckoo-filter.example-replace-{}", std::process::id()));
    /// SharedFilter::create(&path, CuckooFilter::<u64>::builder().capacity(100))?.close()?;
    /// let mut reader = SharedReader::<CuckooFilter<u64>>::open(&path)?;
    /// let larger = SharedFilter::create_or_replace(&path, CuckooFilter::<u64>::builder().capacity(1_000))?;
    /// larger.writer()?.insert(&7)?;
    /// assert!(!reader.contains(&7) && reader.reopen_if_replaced()? && reader.contains(&7));
    /// # std::fs::remove_file(&path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn create_or_replace(path: impl AsRef<Path>, builder: Builder<K, S>) -> Result<Self, SharedError> {
        let path = path.as_ref();
        let replace = || {
            let folder = file::open_folder(path)?;
            let (created, mut temporary) = Self::new(path, builder)?;
            for _ in 0..file::ATTEMPTS {
                let placed = match file::open_and_lock(path) {
                    // A link fails if another process has created a file in the meantime, which is then replaced.
                    Err(SharedError::Io(error)) if error.kind() == ErrorKind::NotFound => {
                        fs::hard_link(&temporary.0, path)
                    }
                    old => {
                        let locked = old?;
                        file::mark_replaced(&locked, true)?;
                        let renamed = temporary.rename_to(path);
                        if renamed.is_err() {
                            file::mark_replaced(&locked, false)?;
                        }
                        renamed
                    }
                };
                match placed {
                    Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                    placed => return Ok(placed.and_then(|()| folder.sync_all()).map(|()| created)?),
                }
            }
            // Such as a link to a file that does not exist.
            Err(std::io::Error::from(ErrorKind::AlreadyExists).into())
        };
        replace().map_err(|error: SharedError| error.of_file(path))
    }

    /// Creates a filter in a temporary file in the folder of the path.
    fn new(path: &Path, builder: Builder<K, S>) -> Result<(Self, TempFile), SharedError> {
        let Planned { plan, capacities, rate, .. } = builder.plan().map_err(SharedError::Build)?;
        if plan.grows() {
            return Err(SharedError::Growing);
        }
        let huge_pages = builder.huge_pages == HugePages::Advised;
        let header = Header::of::<K, S>("plain", &plan, None, capacities, rate, &builder.hasher.make());
        let places = places_of(&plan)?;
        let (temporary, file) = TempFile::create(path)?;
        file::lock(&file)?;
        places.set_len(&file)?;
        file::write_description(&file, &header.to_bytes())?;
        State::live(&file.metadata()?)?.closed().write(&file)?;
        Ok((Self::of_locked(file, huge_pages)?, temporary))
    }

    /// Opens a filter for writing, completes the interrupted operations of a killed writer, and counts the stored fingerprints.
    ///
    /// # Errors
    /// If the filter has a writer; if it was not closed before the machine stopped, or is a copy of a file in use; if it is no
    /// shared filter, or one of another type.
    ///
    /// # Complexity
    /// One pass over the memory: 0.2 s per GiB.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::{CuckooFilter, SharedError, SharedFilter};
    ///
    /// let path = std::env::temp_dir().join(format!("concurrent-cuckoo-filter.example-open-{}", std::process::id()));
    /// let shared = SharedFilter::create(&path, CuckooFilter::<u64>::builder().capacity(100))?;
    /// let second = SharedFilter::<CuckooFilter<u64>>::open(&path);
    /// assert!(matches!(second, Err(SharedError::WriterPresent { .. })));
    /// shared.writer()?.insert(&7)?;
    /// drop(shared); // like a killed writer
    /// assert!(SharedFilter::<CuckooFilter<u64>>::open(&path)?.writer()?.contains(&7));
    /// # std::fs::remove_file(&path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn open(path: impl AsRef<Path>) -> Result<Self, SharedError> {
        let path = path.as_ref();
        let opened = file::open_and_lock(path).and_then(|file| Self::of_locked(file, false));
        opened.map_err(|error| error.of_file(path))
    }

    fn of_locked(file: File, huge_pages: bool) -> Result<Self, SharedError> {
        let (header, hasher) = described::<K, S>(&file)?;
        let places = places_of(header.plan())?;
        places.check(&file)?;
        places.allocate(&file)?;
        let state = State::live(&file.metadata()?)?;
        let mapping = places.map(&file, true)?;
        if huge_pages {
            mapping.collapse(places.first_word, places.word_bytes());
        }
        let refused = || SharedError::Build(BuildError::OutOfMemory { bytes: mapping.len() });
        let shards = places.shards(&mapping, header.plan()).ok_or_else(refused)?;
        // Before the first store: a file marked as closed must hold everything stored, even after a crash of the machine. It
        // follows everything that can fail without a store, so the file stays closed after such a failure.
        state.write(&file)?;
        file.sync_all()?;
        let (raw, _) = RawFilter::take_over(shards)?;
        let Config { capacity, false_positive_rate, .. } = header.config;
        let filter = CuckooFilter::from_raw([capacity; 2], false_positive_rate, raw, (), hasher);
        Ok(SharedFilter { filter, mapping, file, state })
    }
}

impl<F> SharedFilter<F> {
    /// Returns the filter, for any number of threads of this process.
    ///
    /// # Errors
    /// [`SharedError::Forked`] in a forked child of the process that opened the filter.
    #[inline]
    pub fn writer(&self) -> Result<&F, SharedError> {
        if self.mapping.is_forked() { Err(SharedError::Forked) } else { Ok(&self.filter) }
    }

    /// Closes the filter, and returns when a file on a disk is written. A closed filter survives a crash of the machine.
    ///
    /// Dropping the filter without closing it has the effect of a killed writer: nothing is lost while the machine runs.
    ///
    /// # Errors
    /// An error of the system; [`SharedError::Forked`] like [`writer`](SharedFilter::writer).
    pub fn close(self) -> Result<(), SharedError> {
        self.writer()?;
        self.file.sync_all()?;
        self.state.closed().write(&self.file)?;
        Ok(self.file.sync_all()?)
    }
}

/// The lock belongs to the open file, which a child inherits. Without the call, a filter could not be opened again while another
/// thread is between the fork and the exec of a command. A forked child must leave the lock to its parent.
impl<F> Drop for SharedFilter<F> {
    fn drop(&mut self) {
        if !self.mapping.is_forked() {
            // A failure leaves the lock to the close of the file.
            let _ = self.file.unlock();
        }
    }
}

impl<F> fmt::Debug for SharedFilter<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedFilter").field("bytes", &self.mapping.len()).finish_non_exhaustive()
    }
}

/// Reads and checks the description of a filter, and returns its hash function, too.
fn described<K: ?Sized + 'static, S: SavedHasher>(file: &File) -> Result<(SnapshotHeader, S), SharedError> {
    let bytes = file::read_description(file)?;
    let header = SnapshotReader::new(&bytes[..]).map_err(SharedError::Header)?.header().clone();
    let hasher = header.check_plain::<K, S>().map_err(SharedError::Header)?;
    Ok((header, hasher))
}

fn places_of(plan: &Plan) -> Result<Places, SharedError> {
    let too_large = || BuildError::TooLarge { capacity: plan.slots(), fingerprint_bits: plan.fingerprint_bits };
    Places::of(plan).ok_or_else(|| SharedError::Build(too_large()))
}

/// A read-only mapping of a shared filter, which another process may write. Lookups take no lock, write nothing, wait for no
/// writer, and run on any number of threads.
///
/// `open` copies and checks the description of the filter, and everything else that lookups depend on follows from it: bytes stored
/// into the file later change answers, and nothing else. A reader works in any process, also in forked ones.
#[cfg_attr(docsrs, doc(cfg(feature = "shared")))]
// The order of the fields is that of `hashed`: the hash function is last.
#[repr(C)]
pub struct SharedReader<F: Viewed> {
    lookups: Observed,
    header: SnapshotHeader,
    state: ReadOnly,
    /// Device and inode of the file.
    identity: (u64, u64),
    path: PathBuf,
    hasher: F::Hasher,
}

impl<K: ?Sized + 'static, S: SavedHasher> SharedReader<CuckooFilter<K, S>> {
    /// Opens a filter, with or without a writer.
    ///
    /// # Errors
    /// If the filter was not closed before the machine stopped, or is a copy of a file in use; if it is no shared filter, or one of
    /// another type.
    ///
    /// # Complexity
    /// O(1): 0.2 ms for a filter of any size.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, SharedError> {
        let path = path.as_ref();
        Self::map(path).map_err(|error| error.of_file(path))
    }

    fn map(path: &Path) -> Result<Self, SharedError> {
        let file = open_regular(path, OpenOptions::new().read(true))?;
        let (header, hasher) = described::<K, S>(&file)?;
        let places = places_of(header.plan())?;
        places.check(&file)?;
        let (mapping, metadata) = (places.map(&file, false)?, file.metadata()?);
        let [state, stripes, words] = places.read_only(&mapping).expect("all places lie in the mapping");
        Ok(SharedReader {
            lookups: Observed::new(header.plan(), words, stripes),
            header,
            state,
            identity: (metadata.dev(), metadata.ino()),
            path: path.into(),
            hasher,
        })
    }

    /// Opens the filter that replaced this one, if any, and returns whether there was one.
    ///
    /// # Errors
    /// Those of [`open`](SharedReader::open). The reader is unchanged then.
    pub fn reopen_if_replaced(&mut self) -> Result<bool, SharedError> {
        if self.state() != SharedState::Replaced {
            return Ok(false);
        }
        let new = Self::open(&self.path)?;
        let is_new = new.identity != self.identity;
        if is_new {
            *self = new;
        }
        Ok(is_new)
    }
}

impl<K: ?Sized, S> SharedReader<CuckooFilter<K, S>> {
    /// Returns the state recorded in the file.
    #[must_use]
    pub fn state(&self) -> SharedState {
        let state = State::seen(&self.state);
        match state {
            _ if state.is_replaced() => SharedState::Replaced,
            _ if state.is_closed() => SharedState::Closed,
            _ => SharedState::Live,
        }
    }

    /// Returns what the filter was created with, such as its configuration and the type of its keys. `stored` is 0, whatever the filter
    /// holds.
    #[must_use]
    pub fn header(&self) -> &SnapshotHeader {
        &self.header
    }

    /// Returns the hash function.
    #[must_use]
    pub fn hasher(&self) -> &S {
        &self.hasher
    }

    /// Returns this reader as one of a filter of hashes. See [`Filter::hashed`](crate::Filter::hashed).
    #[inline]
    #[must_use]
    pub fn hashed(&self) -> &SharedReader<CuckooFilter<u64, Prehashed>> {
        #[expect(unsafe_code)]
        // SAFETY: 1. both are `repr(C)`, and their fields are of the same types in the same order, up to the hash function, which
        // is the last one and takes no bytes in `Prehashed`.
        unsafe {
            crate::sys::prefix::begin(self)
        }
    }
}

impl<K: ?Sized, S: BuildHasher> SharedReader<CuckooFilter<K, S>> {
    #[inline(always)]
    fn mixed<Q: ?Sized + Hash>(&self, key: &Q) -> Mixed {
        Mixed::of(hash_of(&self.hasher, key))
    }

    /// Returns whether the key is present, as [`CuckooFilter::contains`], but within a bound: a lookup interrupted by writers 1024
    /// times in a row returns `true`. So a lookup is wait-free, and `false` stays certain.
    #[inline]
    #[must_use]
    pub fn contains<Q: ?Sized + Hash>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.lookups.contains(self.mixed(key))
    }

    /// Returns whether the key is present, or an error if the lookup was interrupted too often.
    ///
    /// # Errors
    /// [`SharedError::Contended`] where [`contains`](SharedReader::contains) returns `true` for that reason.
    pub fn try_contains<Q: ?Sized + Hash>(&self, key: &Q) -> Result<bool, SharedError>
    where
        K: Borrow<Q>,
    {
        self.lookups.try_contains(self.mixed(key)).ok_or(SharedError::Contended)
    }

    /// Looks up many keys, and sets `found[i]` if `keys[i]` is present. Faster than a loop of [`contains`](SharedReader::contains)
    /// in large filters.
    ///
    /// # Panics
    /// If `keys` and `found` differ in length.
    #[track_caller]
    pub fn contains_batch<Q: BatchKey<K, F>, F>(&self, keys: &[Q], found: &mut [bool]) {
        assert_same_length(keys.len(), found.len());
        self.lookups.contains_each(&mut hashing(keys, |key| self.mixed(key)), found);
    }
}

impl<F: Viewed> fmt::Debug for SharedReader<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedReader").field("path", &self.path).finish_non_exhaustive()
    }
}

#[cfg(all(test, not(cuckoo_model)))]
mod tests {
    use super::*;
    use crate::snapshot::with_failing_calls;

    #[test]
    fn a_failed_replacement_leaves_the_old_file_as_it_was() {
        let path = std::env::temp_dir().join(format!("concurrent-cuckoo-filter.unreplaced-{}", std::process::id()));
        let builder = || CuckooFilter::<u64>::builder().capacity(100);
        SharedFilter::create(&path, builder()).unwrap().close().unwrap();
        let reader = SharedReader::<CuckooFilter<u64>>::open(&path).unwrap();
        let replace = || SharedFilter::create_or_replace(&path, builder()).err();
        // The second call, after that which creates the file.
        let (calls, error) = with_failing_calls(&[(1, ErrorKind::Other)], replace);
        assert_eq!((calls, reader.state()), (vec!["create", "rename", "remove"], SharedState::Closed));
        assert!(matches!(error, Some(SharedError::Io(_))));
        fs::remove_file(&path).unwrap();
    }

    /// As a child has it between its fork and its exec.
    #[test]
    fn a_dropped_writer_leaves_no_lock_on_a_file_that_a_child_has_inherited() {
        let path = std::env::temp_dir().join(format!("concurrent-cuckoo-filter.inherited-{}", std::process::id()));
        let filter = SharedFilter::create(&path, CuckooFilter::<u64>::builder().capacity(100)).unwrap();
        let _inherited = filter.file.try_clone().unwrap();
        assert!(matches!(SharedFilter::<CuckooFilter<u64>>::open(&path), Err(SharedError::WriterPresent { .. })));
        drop(filter);
        assert!(SharedFilter::<CuckooFilter<u64>>::open(&path).is_ok());
        fs::remove_file(&path).unwrap();
    }
}
