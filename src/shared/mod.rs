//! One filter in a file that processes map: one writes it, the others query it.
//!
//! ```text
//! mod    the face: the filter of the process that writes, and the readers
//! file   where the parts lie, who may write, and whether what was stored is there
//! ```
//!
//! What a killed writer leaves is the business of `raw` (`intent`, `recovery`); see docs/design/shared.md.

mod file;

use crate::batch::{assert_same_length, hashing};
use crate::builder::Builder;
use crate::error::{BuildError, SharedError};
use crate::filter::CuckooFilter;
use crate::hashing::{SavedHasher, hash_of};
use crate::layout::{Mixed, Plan};
use crate::raw::{Observed, RawFilter, Unrecoverable};
use crate::snapshot::{Described, describe, described, folder_and_name, temporary_path};
use crate::sys::mapping::FileMapping;
use crate::sys::memory::ReadOnly;
use crate::view::Viewed;
use core::borrow::Borrow;
use core::fmt;
use core::hash::{BuildHasher, Hash};
use file::{Places, State};
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A filter in a file that processes share, for the one process that writes it. All its threads may.
///
/// [`writer`](SharedFilter::writer) gives the filter; whatever a [`CuckooFilter`] can do, it does here: batches, bulk operations,
/// snapshots. Other processes query the same memory through a [`SharedReader`], while it changes: their lookups take no
/// lock, write nothing and wait for no writer, not even for one that was killed in the middle of its work.
///
/// # A writer that is killed
/// Whatever the moment: readers find every key whose insertion returned, and the next [`open`](SharedFilter::open) does what was
/// under way to its end. Every insertion and removal that returned stays, and no copy is left that nobody inserted. What was under
/// way in a thread is done or not. Locks and counts are made anew, in a pass over the memory.
///
/// This is about the process, not about the machine. The file is memory: in `/dev/shm` it is gone when the machine stops, and on a
/// disk the system writes it when it likes. A file that was not [closed](SharedFilter::close) before the machine stopped is refused,
/// with [`SharedError::NotClosed`]. For that case, [`save`](CuckooFilter::save) snapshots.
///
/// # The file
/// It is created for its owner alone (mode 0600). Give it other permissions with [`std::fs::set_permissions`]: who reads it can
/// query the filter, read the keys of its hash function, and keep it locked, so that no writer opens it; who writes it can make it
/// answer anything. **Where it is truncated, the processes that map it are ended** (`SIGBUS`). Copies of a file that is in use are
/// refused. Network file systems do not keep the memory of several machines alike: use one machine.
///
/// All of its memory is taken when it is created. Huge pages, which the builder asks for by default, are had in `/dev/shm` on
/// Linux 6.1 or later.
///
/// # After a fork
/// A child that is forked from the writing process does not have the memory: there [`writer`](SharedFilter::writer) returns
/// [`SharedError::Forked`], and the use of a reference that was taken before ends the child (`SIGSEGV`). Open a [`SharedReader`] in
/// the child. A child keeps the file locked as long as it lives, as it inherits the open file.
///
/// # Limits
/// Linux, and filters of fixed size whose slots hold fingerprints alone. The hash function is a [`SavedHasher`] that
/// keeps its keys, as both of this crate do.
///
/// ```
/// use concurrent_cuckoo_filter::{CuckooFilter, SharedFilter, SharedReader};
///
/// let path = std::env::temp_dir().join(format!("concurrent-cuckoo-filter.example-shared-{}", std::process::id()));
/// let blocked = SharedFilter::create(&path, CuckooFilter::<str>::builder().capacity(100_000))?;
/// blocked.writer()?.insert("mailinator.com")?;
///
/// // In other processes:
/// let reader = SharedReader::<CuckooFilter<str>>::open(&path)?;
/// assert!(reader.contains("mailinator.com"));
/// blocked.writer()?.remove("mailinator.com");
/// assert!(!reader.contains("mailinator.com"));
///
/// blocked.close()?;
/// let again = SharedFilter::<CuckooFilter<str>>::open(&path)?;
/// assert!(again.writer()?.is_empty());
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[cfg_attr(docsrs, doc(cfg(feature = "shared")))]
pub struct SharedFilter<F> {
    filter: F,
    mapping: Arc<FileMapping>,
    /// Locked as long as it is open.
    file: File,
    state: State,
}

/// Whether a shared filter is in use, as its file says. A writer that was killed has left it [`Live`](SharedState::Live).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SharedState {
    /// It was opened for writing, and not closed.
    Live,
    /// Its writer has closed it.
    Closed,
    /// [Another filter](SharedFilter::create_or_replace) has taken its place.
    Replaced,
}

/// A file that is removed again unless it has got another name.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        // What is wrong has been found, or nothing is.
        let _ = fs::remove_file(&self.0);
    }
}

impl<K: ?Sized + 'static, S: SavedHasher> SharedFilter<CuckooFilter<K, S>> {
    /// Creates an empty filter in a new file, and opens it for writing. Readers do not see the file before it is whole.
    ///
    /// # Errors
    /// If something is at the path already; if the system has no room for all of it; as [`Builder::build`].
    pub fn create(path: impl AsRef<Path>, builder: Builder<K, S>) -> Result<Self, SharedError> {
        let path = path.as_ref();
        let linked = Self::new(path, builder).and_then(|(created, temporary)| {
            fs::hard_link(&temporary.0, path)?;
            Ok(created)
        });
        linked.map_err(|error| error.of_file(path))
    }

    /// Creates an empty filter in the place of the one that is there, if one is. Readers keep the old one, and see that it was
    /// [replaced](SharedReader::reopen_if_replaced).
    ///
    /// # Errors
    /// As [`create`](SharedFilter::create); if the old filter has a writer, or the old file is no shared filter.
    pub fn create_or_replace(path: impl AsRef<Path>, builder: Builder<K, S>) -> Result<Self, SharedError> {
        let path = path.as_ref();
        let replace = || {
            let (created, temporary) = Self::new(path, builder)?;
            let old = match file::open_and_lock(path) {
                Err(SharedError::Io(error)) if error.kind() == std::io::ErrorKind::NotFound => None,
                old => Some(old?),
            };
            old.as_ref().map_or(Ok(()), file::mark_replaced)?;
            fs::rename(&temporary.0, path)?;
            Ok(created)
        };
        replace().map_err(|error: SharedError| error.of_file(path))
    }

    /// A filter in a file of another name in the same folder.
    fn new(path: &Path, builder: Builder<K, S>) -> Result<(Self, Temporary), SharedError> {
        let (capacity, rate, plan, hasher, huge_pages) = builder.planned().map_err(SharedError::Build)?;
        if plan.grows() {
            return Err(SharedError::Growing);
        }
        let too_large = BuildError::TooLarge { capacity, fingerprint_bits: plan.fingerprint_bits };
        let places = Places::of(&plan).ok_or(SharedError::Build(too_large))?;
        let (folder, name) = folder_and_name(path)?;
        let temporary = temporary_path(folder, name);
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&temporary)?;
        let temporary = Temporary(temporary);
        file::lock(&file)?;
        places.allocate(&file)?;
        let mapping = places.map(&file, true)?;
        if huge_pages {
            mapping.collapse(places.first_word, places.word_bytes());
        }
        let filter = Self::of_memory(&places, &mapping, Described { plan, capacity, rate, hasher })?;
        file::write_description(&file, &describe(&filter).map_err(SharedError::Header)?)?;
        let state = State::live(&file.metadata()?);
        state.write(&file)?;
        file.sync_all()?;
        File::open(folder)?.sync_all()?;
        Ok((SharedFilter { filter, mapping, file, state }, temporary))
    }

    /// Opens a filter for writing. What a writer that was killed had under way is done to its end, and all is counted.
    ///
    /// # Errors
    /// If it has a writer; if it was not closed before the machine stopped, or is a copy of a file that was in use; if it is no
    /// shared filter, or not one of this type.
    ///
    /// # Complexity
    /// Reads all of the memory once.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, SharedError> {
        let path = path.as_ref();
        Self::open_locked(path).map_err(|error| error.of_file(path))
    }

    fn open_locked(path: &Path) -> Result<Self, SharedError> {
        let file = file::open_and_lock(path)?;
        let described = described::<K, S>(&file::read_description(&file)?).map_err(SharedError::Header)?;
        let places = places_in(&file, &described.plan)?;
        file::checked_state(&file)?;
        let state = State::live(&file.metadata()?);
        state.write(&file)?;
        // Before the first store: after the machine has stopped, a file that says that it was closed holds all that was stored.
        file.sync_all()?;
        let mapping = places.map(&file, true)?;
        let filter = Self::of_memory(&places, &mapping, described)?;
        Ok(SharedFilter { filter, mapping, file, state })
    }

    fn of_memory(
        places: &Places,
        mapping: &Arc<FileMapping>,
        described: Described<S>,
    ) -> Result<CuckooFilter<K, S>, SharedError> {
        let Described { plan, capacity, rate, hasher } = described;
        let refused = || SharedError::Build(BuildError::OutOfMemory { bytes: mapping.len() });
        let shards = places.shards(mapping, &plan).ok_or_else(refused)?;
        let (raw, _) = RawFilter::take_over(shards).map_err(|unrecoverable| match unrecoverable {
            Unrecoverable::Intent { shard } => SharedError::Damaged { shard, what: "a note that no writer makes" },
            Unrecoverable::BehindTheEnd { shard } => {
                SharedError::Damaged { shard, what: "keys behind its last bucket" }
            }
        })?;
        Ok(CuckooFilter::from_raw([capacity; 2], rate, raw, hasher))
    }
}

impl<F> SharedFilter<F> {
    /// The filter, for any number of threads of this process.
    ///
    /// # Errors
    /// [`SharedError::Forked`] in a process that was forked from the one that has opened the filter.
    #[inline]
    pub fn writer(&self) -> Result<&F, SharedError> {
        if self.mapping.is_forked() { Err(SharedError::Forked) } else { Ok(&self.filter) }
    }

    /// Closes the filter: returns when all of it is on the disk, if its file is on one. After that it outlives the machine.
    ///
    /// A filter that is dropped is left as by a writer that was killed, which loses nothing while the machine runs.
    ///
    /// # Errors
    /// What the system returns; [`SharedError::Forked`] as [`writer`](SharedFilter::writer).
    pub fn close(self) -> Result<(), SharedError> {
        self.writer()?;
        self.file.sync_all()?;
        self.state.closed().write(&self.file)?;
        Ok(self.file.sync_all()?)
    }
}

impl<F> fmt::Debug for SharedFilter<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedFilter").field("bytes", &self.mapping.len()).finish_non_exhaustive()
    }
}

/// The places of a file of the right length.
fn places_in(file: &File, plan: &Plan) -> Result<Places, SharedError> {
    let too_large = || BuildError::TooLarge { capacity: plan.slots(), fingerprint_bits: plan.fingerprint_bits };
    let places = Places::of(plan).ok_or_else(|| SharedError::Build(too_large()))?;
    places.check_length(&file.metadata()?)?;
    Ok(places)
}

/// A shared filter that another process writes, mapped to be read. Lookups take no lock, write nothing, wait for no writer
/// and run on any number of threads.
///
/// The description of the filter is copied and checked when it is opened, and everything else that lookups depend on follows
/// from it: whatever is stored into the file later changes answers, and nothing else. Opened and used in any process, forked ones
/// too.
#[cfg_attr(docsrs, doc(cfg(feature = "shared")))]
pub struct SharedReader<F: Viewed> {
    lookups: Observed,
    state: ReadOnly,
    /// Device and inode.
    identity: (u64, u64),
    path: PathBuf,
    hasher: F::Hasher,
}

impl<K: ?Sized + 'static, S: SavedHasher> SharedReader<CuckooFilter<K, S>> {
    /// Opens a filter, whether it has a writer or not.
    ///
    /// # Errors
    /// If it was not closed before the machine stopped, or is a copy of a file that was in use; if it is no shared filter, or
    /// not one of this type.
    ///
    /// # Complexity
    /// The same for filters of any size.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, SharedError> {
        let path = path.as_ref();
        Self::map(path).map_err(|error| error.of_file(path))
    }

    fn map(path: &Path) -> Result<Self, SharedError> {
        let file = file::open(path, false)?;
        let Described { plan, hasher, .. } =
            described::<K, S>(&file::read_description(&file)?).map_err(SharedError::Header)?;
        let places = places_in(&file, &plan)?;
        file::checked_state(&file)?;
        let (mapping, metadata) = (places.map(&file, false)?, file.metadata()?);
        let [state, stripes, words] = places.read_only(&mapping).expect("all places lie in the mapping");
        Ok(SharedReader {
            lookups: Observed::new(&plan, words, stripes),
            state,
            identity: (metadata.dev(), metadata.ino()),
            path: path.into(),
            hasher,
        })
    }

    /// Opens the filter that has taken the place of this one, if one has; returns whether it did.
    ///
    /// # Errors
    /// As [`open`](SharedReader::open). This reader is as it was.
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
    /// Whether the filter is in use, as its file says now.
    #[must_use]
    pub fn state(&self) -> SharedState {
        let state = State::seen(&self.state);
        match state {
            _ if state.replaced != 0 => SharedState::Replaced,
            _ if state.is_closed() => SharedState::Closed,
            _ => SharedState::Live,
        }
    }

    /// The hash function.
    #[must_use]
    pub fn hasher(&self) -> &S {
        &self.hasher
    }

    /// As [`contains`](SharedReader::contains), of the key with this hash.
    #[inline]
    #[must_use]
    pub fn contains_hash(&self, hash: u64) -> bool {
        self.lookups.contains(Mixed::of(hash))
    }

    /// As [`try_contains`](SharedReader::try_contains), of the key with this hash.
    ///
    /// # Errors
    /// [`SharedError::Contended`].
    pub fn try_contains_hash(&self, hash: u64) -> Result<bool, SharedError> {
        self.lookups.try_contains(Mixed::of(hash)).ok_or(SharedError::Contended)
    }
}

impl<K: ?Sized + Hash, S: BuildHasher> SharedReader<CuckooFilter<K, S>> {
    #[inline(always)]
    fn mixed(&self, key: &K) -> Mixed {
        Mixed::of(hash_of(&self.hasher, key))
    }

    /// Says whether the key is present. As [`CuckooFilter::contains`], but for the bound: a lookup that is interrupted by
    /// a writer 1024 times in a row returns `true`, so that it is wait-free, and "no" stays certain.
    #[inline]
    #[must_use]
    pub fn contains(&self, key: &K) -> bool {
        self.lookups.contains(self.mixed(key))
    }

    /// Says whether the key is present, or that this stayed in doubt.
    ///
    /// # Errors
    /// [`SharedError::Contended`] where [`contains`](SharedReader::contains) returns `true` because it was interrupted.
    pub fn try_contains(&self, key: &K) -> Result<bool, SharedError> {
        self.lookups.try_contains(self.mixed(key)).ok_or(SharedError::Contended)
    }

    /// Looks up many keys: `found[i]` says whether `keys[i]` is present. Faster than a loop of
    /// [`contains`](SharedReader::contains) in large filters.
    ///
    /// # Panics
    /// If `keys` and `found` differ in length.
    #[track_caller]
    pub fn contains_batch<T: Borrow<K>>(&self, keys: &[T], found: &mut [bool]) {
        assert_same_length(keys.len(), found.len());
        self.lookups.contains_each(&mut hashing(keys, |key| self.mixed(key.borrow())), found);
    }
}

impl<F: Viewed> fmt::Debug for SharedReader<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedReader").field("path", &self.path).finish_non_exhaustive()
    }
}
