//! Allocations that fail: one after the other, and all large ones. The operation returns an error that says so, or takes a slower
//! way; no key is lost. Each case runs in a process of its own, because some small allocations are those of std or rayon or lists
//! of a few bytes per shard, and std ends the process when one of those fails.

use crate::refusing::{ARMED, LARGE, LEFT, REFUSED, TAKES_PART};
use concurrent_cuckoo_filter::{
    BuildError, CuckooFilter, InsertError, MergeError, SnapshotError, SnapshotReader, StableHashBuilder,
};
use rayon::ThreadPoolBuilder;
use std::env;
use std::process::Command;
use std::sync::atomic::Ordering;
use testkit::{hasher, watchdog, written};

type Filter = CuckooFilter<u64, StableHashBuilder>;

/// Three shards.
const CAPACITY: usize = 600_000;
const KEYS: u64 = 200_000;

fn build() -> Result<Filter, BuildError> {
    CuckooFilter::builder().capacity(CAPACITY).fingerprint_bits(32).hasher(hasher()).build()
}

/// A filter of one table, which may be split once, when an insertion finds no room.
fn build_growing() -> Filter {
    CuckooFilter::builder().capacity(1000).max_capacity(1000).hasher(hasher()).build().unwrap()
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Led {
    Error,
    /// Everything was done, or the result shows what was not.
    Done,
}

/// The subjects of an operation, built while memory is available.
struct Scene {
    /// Holds all keys.
    filter: Filter,
    /// Holds the first half.
    other: Filter,
    keys: Vec<u64>,
    copies: Vec<u64>,
    /// One key away from a split, and this key.
    growing: Filter,
    splits_it: u64,
    bytes: Vec<u8>,
    /// For written bytes, and for answers.
    written: Vec<u8>,
    found: Vec<bool>,
}

impl Scene {
    fn new() -> Self {
        let (filter, other) = (build().unwrap(), build().unwrap());
        let old: Vec<u64> = (0..KEYS / 2).collect();
        let keys: Vec<u64> = (KEYS / 2..KEYS).collect();
        assert_eq!(filter.insert_batch(&old).inserted + other.insert_batch(&old).inserted, 2 * old.len());
        assert_eq!(filter.insert_batch(&keys).inserted, keys.len());
        let bytes = written(|to| filter.write_to(to));
        let written = Vec::with_capacity(bytes.len());
        let (growing, twin) = (build_growing(), build_growing());
        let mut added = (0..).inspect(|key| twin.insert(key).unwrap());
        let splits_it = added.find(|_| twin.stats().splits == 1).unwrap();
        (0..splits_it).for_each(|key| growing.insert(&key).unwrap());
        let (found, copies) = (vec![false; keys.len()], vec![KEYS; 5000]);
        Scene { filter, other, keys, copies, growing, splits_it, bytes, written, found }
    }

    /// Replaces the other filter by the one that is read.
    fn read<'a>(&'a mut self, open: fn(&'a [u8]) -> Opened<'a>) -> Led {
        match of_snapshot(open(&self.bytes).and_then(|reader| reader.into_filter_with_hasher(hasher()))) {
            Ok(read) => {
                self.other = read;
                Led::Done
            }
            Err(led) => led,
        }
    }

    fn holds_old(&self, filter: &Filter) {
        assert!((0..KEYS / 2).all(|key| filter.contains(&key)), "a key is lost");
    }
}

type Opened<'a> = Result<SnapshotReader<&'a [u8]>, SnapshotError>;

type Operation = (&'static str, fn(&mut Scene) -> Led);

fn of_snapshot<T>(result: Result<T, SnapshotError>) -> Result<T, Led> {
    result.map_err(|error| match error {
        SnapshotError::OutOfMemory { .. } => Led::Error,
        error => panic!("{error}"),
    })
}

/// The list of refused keys has any length, 16 bytes each, unless `Bulk::max_listed` bounds it. It is a `Vec` for the caller,
/// which ends the process when it cannot grow.
const LISTS: &str = "insert_batch that lists 4,992 refused keys";

const OPERATIONS: [Operation; 12] = [
    ("build", |_| match build() {
        Ok(_) => Led::Done,
        Err(BuildError::OutOfMemory { .. }) => Led::Error,
        Err(error) => panic!("{error}"),
    }),
    ("insert_batch", |scene| {
        assert_eq!(scene.filter.insert_batch(&scene.keys).inserted, scene.keys.len());
        assert_eq!(scene.filter.len(), KEYS as usize + scene.keys.len());
        Led::Done
    }),
    (LISTS, |scene| {
        assert_eq!(scene.filter.insert_batch(&scene.copies).refused.len(), scene.copies.len() - 8);
        Led::Done
    }),
    ("par_insert", |scene| {
        assert_eq!(scene.filter.par_insert(&scene.keys).inserted, scene.keys.len());
        assert_eq!(scene.filter.len(), KEYS as usize + scene.keys.len());
        Led::Done
    }),
    ("par_insert_iter", |scene| {
        assert_eq!(scene.filter.bulk().insert_iter(&scene.keys).inserted, scene.keys.len());
        assert_eq!(scene.filter.len(), KEYS as usize + scene.keys.len());
        Led::Done
    }),
    ("par_contains", |scene| {
        scene.filter.par_contains(&scene.keys, &mut scene.found);
        Led::Done
    }),
    ("par_remove", |scene| {
        assert_eq!(scene.filter.bulk().remove(&scene.keys).removed, scene.keys.len());
        Led::Done
    }),
    ("write_to", |scene| match of_snapshot(scene.filter.write_to(&mut scene.written)) {
        Ok(()) => Led::Done,
        Err(led) => led,
    }),
    ("read_from", |scene| scene.read(SnapshotReader::new)),
    ("read in parallel", |scene| scene.read(|bytes| Ok(SnapshotReader::new(bytes)?.in_parallel()))),
    ("insert that splits a table", |scene| {
        let result = scene.growing.insert(&scene.splits_it);
        let (splits, len) = (scene.growing.stats().splits, scene.growing.len() as u64);
        match result {
            Ok(()) => {
                assert_eq!((splits, len), (1, scene.splits_it + 1));
                Led::Done
            }
            Err(InsertError::OutOfMemory) => {
                assert_eq!((splits, len), (0, scene.splits_it), "nothing has changed");
                Led::Error
            }
            Err(error) => panic!("{error}"),
        }
    }),
    ("merge_from", |scene| match scene.filter.merge_from(&scene.other) {
        Ok(report) => {
            assert_eq!((report.inserted as u64, report.refused), (KEYS / 2, 0));
            Led::Done
        }
        Err(MergeError::OutOfMemory { .. }) => Led::Error,
        Err(error) => panic!("{error}"),
    }),
];

/// The variable for the process without memory: the operation, the allocation that fails, the size of large ones.
const ASKED: &str = "FAULTS_MEMORY_ASKED";

fn work(asked: &str) {
    let _watchdog = watchdog();
    let numbers: Vec<usize> = asked.split(' ').map(|number| number.parse().unwrap()).collect();
    let [operation, left, large] = numbers[..] else { panic!("{asked}") };
    let mut scene = Scene::new();
    let pool = ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    pool.broadcast(|_| TAKES_PART.set(true));
    LEFT.store(left, Ordering::Relaxed);
    LARGE.store(large, Ordering::Relaxed);
    let scene_in_pool = &mut scene;
    let led = pool.install(|| {
        ARMED.store(true, Ordering::Relaxed);
        let led = (OPERATIONS[operation].1)(scene_in_pool);
        ARMED.store(false, Ordering::Relaxed);
        led
    });
    scene.holds_old(&scene.filter);
    scene.holds_old(&scene.other);
    let len = scene.filter.len();
    // Afterwards everything works as before.
    let (growing, splits_it) = (&scene.growing, scene.splits_it);
    assert!((0..splits_it).all(|key| growing.contains(&key)), "a key is lost");
    assert!(growing.stats().splits == 1 || growing.insert(&splits_it).is_ok(), "memory is back");
    assert!(growing.stats().splits == 1 && (0..=splits_it).all(|key| growing.contains(&key)), "a key is lost");
    assert_eq!(pool.install(|| scene.filter.par_insert(&scene.keys)).inserted, scene.keys.len());
    assert!(scene.filter.remove_batch(&scene.keys).missing.is_empty());
    assert_eq!(scene.filter.len(), len);
    println!("led to {led:?}, {} refused", REFUSED.load(Ordering::Relaxed));
}

/// Runs the operation in a process of its own. Returns whether that process succeeded, and its output and errors.
fn run(operation: usize, left: usize, large: usize) -> (bool, [String; 2]) {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", "operations::some_refused_memory_is_an_error_or_a_slower_way", "--nocapture"]);
    command.env(ASKED, format!("{operation} {left} {large}"));
    let output = command.output().unwrap();
    (output.status.success(), [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}

#[test]
fn some_refused_memory_is_an_error_or_a_slower_way() {
    match env::var(ASKED) {
        Ok(asked) => work(&asked),
        Err(_) => refuse_one_by_one(20, "one by one, every twentieth"),
    }
}

/// Each allocation, or every third one, and its caller.
#[test]
#[ignore = "long: cargo xtask full runs it"]
fn refused_memory_is_an_error_or_a_slower_way() {
    match env::var_os("CUCKOO_FULL") {
        Some(_) => refuse_one_by_one(1, "one by one"),
        None => refuse_one_by_one(3, "one by one, every third"),
    }
}

fn refuse_one_by_one(step: usize, chosen: &str) {
    let (mut errors, mut done, mut ended, mut large_ones) = (0, 0, 0, 0);
    for (operation, (name, _)) in OPERATIONS.iter().enumerate() {
        let mut left = 0;
        loop {
            let (succeeded, [said, complained]) = run(operation, left, usize::MAX);
            if said.contains(", 0 refused") {
                println!("{name}: at most {left} allocations");
                break;
            }
            if succeeded {
                *(if said.contains("led to Error") { &mut errors } else { &mut done }) += 1;
            } else {
                assert!(complained.contains("memory allocation of"), "{name}, {left}: {said} {complained}");
                ended += 1;
            }
            left += step;
        }
        // No process ends for lack of anything large but a list.
        for large in [1 << 20, 40 << 10] {
            let (succeeded, [said, complained]) = run(operation, usize::MAX, large);
            let ended = *name == LISTS && complained.contains("memory allocation of");
            assert!(ended || succeeded, "{name} without {large} bytes: {said} {complained}");
            large_ones += 1;
        }
    }
    println!(
        "\nfigure 5.9: {} allocations of {} operations refused {chosen}: {errors} errors, {done} times all was done, \
         {ended} times std ended the process; every allocation of 40 KiB or more refused, {large_ones} times: none ended \
         but by the list of refused keys; no key lost",
        errors + done + ended,
        OPERATIONS.len()
    );
}
