//! Filters of a stable hash function, a hash function without seeds, pools, user code that panics and the checks after it, and
//! folders for files.

use concurrent_cuckoo_filter::kind::Kind;
use concurrent_cuckoo_filter::{
    Builder, CuckooFilter, Filter, SavedHasher, SnapshotError, SnapshotReader, StableHashBuilder,
};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash, Hasher};
use std::io::{self, Write};
use std::ops::Range;
use std::panic::{self, AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{env, fs, process, thread};
use testkit::written;

pub(crate) use testkit::hasher;

/// A filter whose keys have the same places each time.
pub(crate) type StableOf<K> = CuckooFilter<K, StableHashBuilder>;
pub(crate) type Stable = StableOf<u64>;

pub(crate) fn stable_builder<K: ?Sized>(capacity: usize, bits: u32) -> Builder<K, StableHashBuilder> {
    CuckooFilter::builder().capacity(capacity).fingerprint_bits(bits).hasher(hasher())
}

pub(crate) fn stable_of<K: ?Sized>(capacity: usize, bits: u32) -> StableOf<K> {
    stable_builder(capacity, bits).build().unwrap()
}

pub(crate) fn stable(capacity: usize, bits: u32) -> Stable {
    stable_of(capacity, bits)
}

pub(crate) fn stable_growing<K: ?Sized>(capacity: usize, max_capacity: usize, bits: u32) -> StableOf<K> {
    stable_builder(capacity, bits).max_capacity(max_capacity).build().unwrap()
}

/// Inserts the keys below `keys`.
pub(crate) fn with_keys(filter: Stable, keys: u64) -> Stable {
    (0..keys).for_each(|key| filter.insert(&key).unwrap());
    filter
}

pub(crate) fn bytes_of<K: ?Sized + 'static, S: SavedHasher>(filter: &CuckooFilter<K, S>, metadata: &[u8]) -> Vec<u8> {
    written(|to| filter.snapshot().metadata(metadata).write_to(to))
}

/// A writer that calls a function before each piece, with the number of bytes written so far.
struct Interrupted<F>(Vec<u8>, F);

impl<F: FnMut(usize)> Write for Interrupted<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.1(self.0.len());
        self.0.extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The bytes of a snapshot during which `work` is called: before the header, three times in each shard, and before the trailer.
pub(crate) fn written_while<T: Kind>(
    filter: &Filter<u64, StableHashBuilder, T>,
    happens: impl FnMut(usize),
) -> Vec<u8> {
    let mut writer = Interrupted(Vec::new(), happens);
    filter.write_to(&mut writer).unwrap();
    writer.0
}

pub(crate) fn par_read<K: ?Sized + 'static, T: Kind>(
    bytes: &[u8],
) -> Result<Filter<K, StableHashBuilder, T>, SnapshotError> {
    SnapshotReader::new(bytes)?.in_parallel().into_filter_with_hasher(hasher())
}

/// Asserts that a loaded or copied filter has the sizes, the rates and the digest of the saved filter, and the same answers for
/// the keys below `keys`.
#[track_caller]
pub(crate) fn check_equal<S: BuildHasher>(loaded: &CuckooFilter<u64, S>, saved: &CuckooFilter<u64, S>, keys: u64) {
    let [of_loaded, of_saved] = [loaded, saved].map(|filter| {
        let (stats, sizes) =
            (filter.stats(), [filter.capacity(), filter.config().max_capacity, filter.len(), filter.config().shards]);
        let rates = [filter.load_factor(), filter.stats().expected_false_positive_rate];
        (sizes, filter.config().fingerprint_bits, rates, filter.digest(), [stats.tables as u64, stats.doublings.into()])
    });
    assert_eq!(of_loaded, of_saved);
    assert_eq!(loaded.stats().splits, 0, "since it was loaded");
    // Without the tables that were refilled.
    let (memory, most) = (loaded.memory_usage(), saved.memory_usage());
    assert!(
        memory == most || memory < most && saved.config().max_capacity > saved.capacity(),
        "{memory} bytes, {most} before"
    );
    for key in 0..keys {
        assert_eq!(loaded.contains(&key), saved.contains(&key), "lookup of key {key}");
        assert!(keys > 10_000 && key % 100 > 0 || loaded.count(&key) == saved.count(&key), "count of key {key}");
    }
}

/// A user-defined hash function without seeds. Its name is short, or of the greatest length.
#[derive(Clone, Debug, Default)]
pub(crate) struct Own<const LONG: bool = false>(BuildHasherDefault<DefaultHasher>);

impl<const LONG: bool> BuildHasher for Own<LONG> {
    type Hasher = DefaultHasher;

    fn build_hasher(&self) -> DefaultHasher {
        self.0.build_hasher()
    }
}

impl<const LONG: bool> SavedHasher for Own<LONG> {
    const NAME: &'static str =
        if LONG { "a name that says all there is to say: it has sixty-four letters." } else { "own" };
}

pub(crate) fn pool(threads: usize) -> ThreadPool {
    ThreadPoolBuilder::new().num_threads(threads).build().unwrap()
}

/// A key whose `Hash` panics halfway when it is armed.
#[derive(Clone)]
pub(crate) struct Bomb {
    pub(crate) number: u64,
    pub(crate) armed: bool,
}

impl Hash for Bomb {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.number.hash(state);
        assert!(!self.armed, "the bomb of key {}", self.number);
        self.number.hash(state);
    }
}

pub(crate) fn bombs(numbers: Range<u64>) -> Vec<Bomb> {
    numbers.map(|number| Bomb { number, armed: false }).collect()
}

pub(crate) const BURNT: &str = "the fuse has burnt";

/// User code that panics at a chosen call: each call burns the fuse a little, and the last one panics.
#[derive(Clone)]
pub(crate) struct Fuse(Arc<AtomicUsize>);

impl Fuse {
    /// Longer than any test.
    pub(crate) fn long() -> Self {
        Fuse(Arc::new(AtomicUsize::new(usize::MAX)))
    }

    pub(crate) fn burn(&self) {
        assert!(self.0.fetch_sub(1, Ordering::Relaxed) > 1, "{BURNT}");
    }

    fn set(&self, calls: usize) {
        self.0.store(calls, Ordering::Relaxed);
    }

    /// Runs the work once to count its calls, then once for each call that panics, each time followed by `after`. Returns the
    /// number of calls.
    pub(crate) fn burn_at_each_call(&self, work: impl Fn(), after: impl Fn()) -> usize {
        self.set(usize::MAX);
        work();
        let calls = usize::MAX - self.0.load(Ordering::Relaxed);
        assert!(calls > 0);
        for at in 1..=calls {
            self.set(at);
            assert!(panics(&work).contains(BURNT));
            self.set(usize::MAX);
            after();
        }
        calls
    }
}

pub(crate) fn panics<R>(work: impl FnOnce() -> R) -> String {
    let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(work()))) else { panic!("this should have panicked") };
    match panic.downcast::<String>() {
        Ok(message) => *message,
        Err(panic) => panic.downcast_ref::<&str>().map_or_else(String::new, |&message| message.into()),
    }
}

/// Silences panics with one of these texts in their message, which tests cause by the thousand.
pub(crate) fn silence_panics(expected: &'static [&'static str]) {
    let print = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        if !expected.iter().any(|expected| message(panic).contains(expected)) {
            print(panic);
        }
    }));
}

fn message<'a>(panic: &'a PanicHookInfo<'_>) -> &'a str {
    let payload = panic.payload();
    payload
        .downcast_ref::<String>()
        .map_or_else(|| payload.downcast_ref::<&str>().copied().unwrap_or(""), String::as_str)
}

/// Runs every operation on keys of which a filter of 32 bits holds one copy each, from another thread: a stripe that stays locked
/// would block it for ever.
pub(crate) fn is_usable<K, S>(filter: &CuckooFilter<K, S>, keys: &[K])
where
    K: Hash + Sync,
    S: BuildHasher + Sync,
{
    let all = || {
        for key in keys.iter().step_by(keys.len().div_ceil(100).max(1)) {
            assert!(filter.contains(key));
            assert_eq!(filter.count(key), 1);
            assert_eq!(filter.insert_unique(key), Ok(false));
            assert_eq!(filter.insert(key), Ok(()));
            assert_eq!(filter.remove_all(key), 2);
            assert!(!filter.contains(key));
            assert_eq!(filter.insert_unique(key), Ok(true));
        }
        let mut found = vec![false; keys.len()];
        filter.contains_batch(keys, &mut found);
        assert!(found.iter().all(|&found| found), "a key is lost");
        assert_eq!(filter.insert_batch(keys).inserted, keys.len());
        assert_eq!(filter.remove_batch(keys).removed, keys.len());
        assert!(keys.iter().all(|key| filter.count(key) == 1));
    };
    thread::scope(|scope| {
        scope.spawn(all);
    });
}

/// A temporary folder, removed with its contents when it is dropped.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    /// Each test uses a name of its own.
    pub(crate) fn new(name: &str) -> Self {
        let path = env::temp_dir().join(format!("concurrent-cuckoo-filter.{name}.{}", process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    /// A folder, and the path of the file in it that most tests need.
    pub(crate) fn with_path(name: &str) -> (Self, PathBuf) {
        let folder = Folder::new(name);
        let path = folder.path();
        (folder, path)
    }

    /// A folder with a file of these bytes, for the test of this thread.
    pub(crate) fn file_of(bytes: &[u8]) -> Self {
        let folder = Folder::new(&format!("{:?}", thread::current().id()));
        fs::write(folder.path(), bytes).unwrap();
        folder
    }

    /// The path of the file that most tests need.
    pub(crate) fn path(&self) -> PathBuf {
        self.0.join("filter")
    }

    #[cfg(all(feature = "shared", target_os = "linux"))]
    pub(crate) fn files(&self) -> usize {
        fs::read_dir(&self.0).unwrap().count()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // The failure of a test matters more than a folder that stays.
        let _ = fs::remove_dir_all(&self.0);
    }
}
