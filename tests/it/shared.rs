//! One filter shared by processes: who may open what, and the effect of any bytes on readers. (`tests/internal/shared` tests
//! killed processes.)

use crate::support::Folder;
use concurrent_cuckoo_filter::{
    Builder, CuckooFilter, MappedFilter, SharedError, SharedFilter, SharedReader, SharedState, SnapshotError,
    StableHashBuilder,
};
use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Barrier;
use std::thread;
use testkit::assert_matches;

type Filter = CuckooFilter<u64, StableHashBuilder>;

fn builder(capacity: usize) -> Builder<u64, StableHashBuilder> {
    CuckooFilter::builder().capacity(capacity).hasher(StableHashBuilder::with_seeds(3, 4))
}

fn open(path: &Path) -> Result<SharedFilter<Filter>, SharedError> {
    SharedFilter::open(path)
}

fn reader(path: &Path) -> Result<SharedReader<Filter>, SharedError> {
    SharedReader::open(path)
}

#[test]
fn what_is_stored_is_seen_at_once_and_there_again() {
    let (folder, path) = Folder::with_path("shared-seen");
    for capacity in [0, 100, 20_000, 1_500_000] {
        let filter = SharedFilter::create(&path, builder(capacity)).unwrap();
        let seen = reader(&path).unwrap();
        let keys: Vec<u64> = (0..capacity.min(20_000) as u64).collect();
        for key in &keys {
            filter.writer().unwrap().insert(key).unwrap();
            assert!(seen.contains(key) && seen.try_contains(key).unwrap());
        }
        let mut found = vec![false; keys.len()];
        seen.contains_batch(&keys, &mut found);
        assert!(found.iter().all(|&found| found));
        let absent = (1 << 40..(1 << 40) + 10_000).filter(|key| seen.contains(key)).count();
        assert!(absent < 40, "{absent} of 10,000 absent keys");
        // Dropped as by a kill, and closed.
        drop(filter);
        let filter = open(&path).unwrap();
        assert_eq!(filter.writer().unwrap().len(), keys.len());
        assert_eq!((filter.writer().unwrap().capacity(), seen.state()), (capacity, SharedState::Live));
        let header = seen.header();
        assert_eq!((header.config.capacity, &header.key_type[..], header.stored), (capacity, "u64", 0));
        filter.close().unwrap();
        assert_eq!(seen.state(), SharedState::Closed);
        let filter = open(&path).unwrap();
        keys.iter().for_each(|key| assert!(filter.writer().unwrap().remove(key)));
        assert!(filter.writer().unwrap().is_empty());
        assert_eq!(folder.files(), 1);
        fs::remove_file(&path).unwrap();
    }
}

#[test]
fn there_is_one_writer_and_its_file_is_its_own() {
    let (folder, path) = Folder::with_path("shared-writer");
    let filter = SharedFilter::create(&path, builder(100)).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let own = u64::from(std::process::id());
    for refused in [open(&path), SharedFilter::create_or_replace(&path, builder(10))] {
        let error = refused.unwrap_err();
        assert!(matches!(error, SharedError::WriterPresent { pid, .. } if pid == own), "{error}");
    }
    let error = SharedFilter::create(&path, builder(100)).unwrap_err();
    assert!(error.to_string().contains("filter\": "), "{error}");
    assert_eq!(folder.files(), 1, "nothing is left of what was refused");
    drop(filter);
    assert!(open(&path).is_ok());
}

#[test]
fn a_filter_is_replaced_under_its_readers() {
    let (folder, path) = Folder::with_path("shared-replaced");
    let old = SharedFilter::create_or_replace(&path, builder(100)).unwrap();
    old.writer().unwrap().insert(&1).unwrap();
    let mut seen = reader(&path).unwrap();
    assert!(!seen.reopen_if_replaced().unwrap());
    drop(old);
    let new = SharedFilter::create_or_replace(&path, builder(1000)).unwrap();
    new.writer().unwrap().insert(&2).unwrap();
    assert_eq!(seen.state(), SharedState::Replaced);
    assert!(seen.contains(&1) && !seen.contains(&2));
    assert!(seen.reopen_if_replaced().unwrap());
    assert!(seen.contains(&2) && !seen.contains(&1));
    assert_eq!((seen.state(), folder.files()), (SharedState::Live, 1));
}

/// A sparse copy has no blocks for pages of zeros. On a full disk, a store to such a page would kill the process.
#[test]
fn a_sparse_copy_is_allocated_when_it_is_opened() {
    use std::os::unix::fs::MetadataExt;
    let (_folder, path) = Folder::with_path("shared-sparse");
    SharedFilter::create(&path, builder(1_000_000)).unwrap().close().unwrap();
    let (bytes, blocks) = (fs::read(&path).unwrap(), || fs::metadata(&path).unwrap().blocks());
    let allocated = blocks();
    fs::remove_file(&path).unwrap();
    let copy = fs::File::create(&path).unwrap();
    copy.set_len(bytes.len() as u64).unwrap();
    copy.write_all_at(&bytes[..4096], 0).unwrap();
    assert!(blocks() < allocated / 2);
    drop(open(&path).unwrap());
    assert!(blocks() >= allocated);
}

/// Of several processes that find no file, or one without a writer, one becomes the writer, and none takes the file away from its
/// readers.
#[test]
fn one_of_several_that_create_or_replace_a_file_is_its_writer() {
    let (folder, path) = Folder::with_path("shared-race");
    for round in 0..50 {
        let ready = Barrier::new(4);
        let create = || {
            ready.wait();
            SharedFilter::create_or_replace(&path, builder(10))
        };
        let created: Vec<_> = thread::scope(|scope| {
            let threads = [(); 4].map(|()| scope.spawn(create));
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(created.iter().filter(|created| created.is_ok()).count(), 1, "round {round}");
        for error in created.iter().filter_map(|created| created.as_ref().err()) {
            assert!(matches!(error, SharedError::WriterPresent { .. }), "{error}");
        }
        assert_eq!((reader(&path).unwrap().state(), folder.files()), (SharedState::Live, 1));
        drop(created);
        if round % 2 == 1 {
            fs::remove_file(&path).unwrap();
        }
    }
}

#[test]
fn a_link_to_nothing_is_not_replaced() {
    let folder = Folder::new("shared-link");
    symlink(folder.0.join("nothing"), folder.path()).unwrap();
    let error = SharedFilter::create_or_replace(folder.path(), builder(10)).unwrap_err();
    assert!(matches!(&error, SharedError::Io(error) if error.kind() == ErrorKind::AlreadyExists), "{error}");
    assert_eq!(folder.files(), 1);
}

#[test]
fn files_that_may_lack_something_are_refused() {
    let folder = Folder::new("shared-refused");
    let (path, copy) = (folder.path(), folder.0.join("copy"));
    let filter = SharedFilter::create(&path, builder(100)).unwrap();
    filter.writer().unwrap().insert(&1).unwrap();
    fs::copy(&path, &copy).unwrap();
    assert!(matches!(reader(&copy).unwrap_err(), SharedError::CopyOfLive));
    assert!(matches!(open(&copy).unwrap_err(), SharedError::CopyOfLive));
    // As after a restart of the machine.
    let file = File::options().write(true).open(&path).unwrap();
    file.write_all_at(&[7; 16], 2064).unwrap();
    drop(filter);
    assert!(matches!(reader(&path).unwrap_err(), SharedError::NotClosed));
    assert!(matches!(open(&path).unwrap_err(), SharedError::NotClosed));
    // A closed filter survives that, and can be copied.
    file.write_all_at(&2_u64.to_ne_bytes(), 2048).unwrap();
    fs::copy(&path, &copy).unwrap();
    assert!(reader(&path).unwrap().contains(&1) && reader(&copy).unwrap().contains(&1));
    assert!(open(&path).unwrap().writer().unwrap().contains(&1));
    let len = file.metadata().unwrap().len();
    file.write_all_at(&2_u64.to_ne_bytes(), 2048).unwrap();
    for other in [len - 1, len + 1, 5000, 4096] {
        file.set_len(other).unwrap();
        let lengths = (len, other);
        for error in [open(&path).unwrap_err(), reader(&path).unwrap_err()] {
            assert_matches!(error, SharedError::WrongLength { expected, found, .. } if (expected, found) == lengths);
        }
    }
    for other in [0, 7, 2000] {
        file.set_len(other).unwrap();
        assert!(matches!(open(&path).unwrap_err(), SharedError::NotShared));
    }
}

#[test]
fn other_filters_are_refused_by_name() {
    let (folder, path) = Folder::with_path("shared-other");
    drop(SharedFilter::create(&path, builder(100)).unwrap());
    let error = SharedReader::<CuckooFilter<String, StableHashBuilder>>::open(&path).unwrap_err();
    assert!(matches!(error, SharedError::Header(SnapshotError::KeyTypeMismatch { .. })), "{error}");
    let error = SharedReader::<CuckooFilter<u64>>::open(&path).unwrap_err();
    assert!(matches!(error, SharedError::Header(SnapshotError::HasherMismatch { .. })), "{error}");
    assert!(MappedFilter::<Filter>::open(&path).is_err());
    let snapshot = folder.0.join("snapshot");
    builder(10_000).build().unwrap().save(&snapshot).unwrap();
    assert!(matches!(reader(&snapshot).unwrap_err(), SharedError::NotShared));
    assert!(matches!(SharedFilter::create_or_replace(&snapshot, builder(9)).unwrap_err(), SharedError::NotShared));
    assert!(matches!(reader(&folder.0).unwrap_err(), SharedError::Io(_)));
    let growing = SharedFilter::create(folder.0.join("growing"), builder(100).max_capacity(100_000));
    assert!(matches!(growing.unwrap_err(), SharedError::Growing));
    assert_eq!(folder.files(), 2);
    // A file that was never finished, and one of another format.
    let file = File::options().write(true).open(&path).unwrap();
    file.write_all_at(&0_u64.to_ne_bytes(), 2048).unwrap();
    assert!(matches!(open(&path).unwrap_err(), SharedError::NotClosed));
    file.write_all_at(&2_u32.to_le_bytes(), 8).unwrap();
    assert!(matches!(open(&path).unwrap_err(), SharedError::UnknownVersion { found: 2, known: 1, .. }));
}

/// Random changes of the description and of the state: half of the bytes of a word, or one bit.
#[test]
fn no_header_makes_a_reader_or_a_writer_panic() {
    let (_folder, path) = Folder::with_path("shared-header");
    drop(SharedFilter::create(&path, builder(1000)).unwrap());
    let whole = fs::read(&path).unwrap();
    let file = File::options().write(true).open(&path).unwrap();
    let (mut random, mut opened) = (fastrand::Rng::with_seed(1), 0);
    for _ in 0..4000 {
        let at = if random.bool() { random.usize(..320) } else { 2048 + random.usize(..64) };
        let mut header = whole[..4096].to_vec();
        header[at] ^= 1 << random.u32(..8);
        if random.bool() {
            header[at..at + 4].fill(random.u8(..));
        }
        file.write_all_at(&header, 0).unwrap();
        opened += usize::from(reader(&path).is_ok()) + usize::from(open(&path).is_ok());
    }
    assert!((1..8000).contains(&opened), "{opened} were accepted");
}

/// Another process stores random words in all stripes and words: lookups end, with any answer.
#[test]
fn no_contents_keep_a_lookup_from_its_end() {
    const SCRIBBLED: &str = "CUCKOO_SCRIBBLED";
    if let Some(path) = std::env::var_os(SCRIBBLED) {
        scribble(Path::new(&path));
    }
    let (_folder, path) = Folder::with_path("shared-scribbled");
    for bits in [8, 13, 16, 24, 31] {
        let filter = SharedFilter::create_or_replace(&path, builder(2000).fingerprint_bits(bits)).unwrap();
        let (seen, whole) = (reader(&path).unwrap(), fs::read(&path).unwrap());
        let mut scribbler = Command::new(std::env::current_exe().unwrap())
            .args(["shared::no_contents_keep_a_lookup_from_its_end", "--exact"])
            .env(SCRIBBLED, &path)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        while fs::read(&path).unwrap()[4096..] == whole[4096..] {
            assert_eq!(scribbler.try_wait().unwrap(), None, "it has written nothing");
        }
        let (keys, mut found): (Vec<u64>, _) = ((0..1000).collect(), [false; 1000]);
        for _ in 0..200 {
            seen.contains_batch(&keys, &mut found);
            keys.iter().for_each(|key| _ = (seen.contains(key), seen.try_contains(key)));
        }
        assert_eq!(scribbler.try_wait().unwrap(), None, "it has stopped before the lookups did");
        scribbler.kill().unwrap();
        scribbler.wait().unwrap();
        drop(filter);
        // A note that no writer makes, or keys where none can be.
        let refused = open(&path);
        assert!(matches!(refused, Ok(_) | Err(SharedError::Damaged { .. })), "{refused:?}");
        if let Ok(filter) = refused {
            let filter = filter.writer().unwrap();
            (0..1000).for_each(|key| _ = filter.insert(&key).is_ok() && filter.remove(&key));
        }
    }
}

/// Stores random words behind the description, until the process is killed or the file is gone.
fn scribble(path: &Path) -> ! {
    let (file, mut random) = (File::options().write(true).open(path).unwrap(), fastrand::Rng::with_seed(1));
    let len = file.metadata().unwrap().len();
    while path.exists() {
        for _ in 0..1000 {
            // Versions change most often, since they decide which lookups repeat.
            let at = if random.bool() { 4096 + 64 + 128 * random.u64(..8) } else { random.u64(512..len / 8) * 8 };
            file.write_all_at(&random.u64(..).to_ne_bytes(), at).unwrap();
        }
    }
    std::process::exit(1)
}

/// A file system in memory has less room than this filter takes.
#[test]
fn a_file_system_without_room_refuses_the_whole_file() {
    let name = format!("concurrent-cuckoo-filter.full-{}", std::process::id());
    let path = Path::new("/dev/shm").join(&name);
    let refused = SharedFilter::create(&path, builder(1 << 41));
    if path.parent().is_some_and(Path::exists) {
        let error = refused.unwrap_err();
        assert!(matches!(&error, SharedError::Io(io) if io.kind() == ErrorKind::StorageFull), "{error}");
        assert!(error.to_string().contains(&name), "{error}");
    }
    let left = fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    assert!(
        !left.map(|left| left.file_name()).any(|left| left.to_string_lossy().contains(&name)),
        "nothing is left of it"
    );
}
