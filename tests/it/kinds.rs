//! What filters of every kind have in common, fixed in size and growing: one suite over all of them.

use crate::support::Folder;
use concurrent_cuckoo_filter::{
    BulkReport, CountingFilter, CuckooFilter, ExpiringFilter, FilterView, MappedFilter, RemoveReport, SnapshotError,
    SnapshotReader, StableHashBuilder, TaggedFilter,
};
use std::fs;
use std::hash::BuildHasher;
use std::path::Path;
use std::time::Duration;

type Stable = StableHashBuilder;

const HOUR: Duration = Duration::from_secs(3600);

/// A filter of numbers.
trait Kind: Clone + Send + Sync {
    /// Whether each key has a copy of its own.
    const OWN_COPIES: bool;
    /// The hashes of the snapshots of `determinism`, fixed in size and growing. Another one is another version of the format, or
    /// keys that lie elsewhere.
    const DIGESTS: [u64; 2];

    /// For this many keys, or for 2,000 that may become as many.
    fn build(keys: usize, grows: bool) -> Self;
    fn put(&self, key: u64);
    fn put_batch(&self, keys: &[u64]) -> BulkReport;
    fn par_put(&self, keys: &[u64]) -> BulkReport;
    fn has(&self, key: u64) -> bool;
    fn has_batch(&self, keys: &[u64], found: &mut [bool]);
    fn par_has(&self, keys: &[u64], found: &mut [bool]);
    fn take(&self, key: u64) -> bool;
    fn take_batch(&self, keys: &[u64]) -> RemoveReport;
    fn len(&self) -> usize;
    fn clear(&self);
    fn memory(&self) -> usize;
    fn tables(&self) -> usize;
    fn make_room(&self, keys: usize) -> bool;
    fn merge(&self, other: &Self) -> usize;
    fn bytes(&self) -> Vec<u8>;
    fn with_metadata(&self, metadata: &[u8]) -> Vec<u8>;
    fn read(bytes: &[u8], in_parallel: bool) -> Result<Self, SnapshotError>;
    /// Queries a snapshot in place, and checks it.
    fn view(bytes: &[u8], keys: &[u64], found: &mut [bool]) -> Result<(), SnapshotError>;
    /// The same in a file.
    fn map(path: &Path, keys: &[u64], found: &mut [bool]) -> Result<(), SnapshotError>;
}

/// The filter of a kind.
trait It {
    type Filter;
    fn it(&self) -> &Self::Filter;
}

/// Counts that die: a counting filter, too.
#[derive(Clone)]
struct Window(CountingFilter<u64, Stable>);

/// A kind, and the filter that it is: `$of`, and `$make` of that. `$put` is how a key goes in singly, in a batch and in bulk; `$age`
/// what a reader is told.
macro_rules! kind {
    ($filter:ident, $($rest:tt)+) => {
        kind!(= $filter<u64, Stable>, $filter<u64, Stable>, |filter| filter, |filter| filter, $($rest)+);
    };
    (= $kind:ty, $filter:ty, $make:expr, $of:expr, $own_copies:literal, $digests:expr, $builder:expr, $put:expr, $put_batch:expr, $par_put:expr, $take:expr, $take_batch:expr) => {
        impl Kind for $kind {
            const OWN_COPIES: bool = $own_copies;
            const DIGESTS: [u64; 2] = $digests;

            fn build(keys: usize, grows: bool) -> Self {
                let builder = $builder.hasher(Stable::with_seeds(1, 2));
                let builder = if grows { builder.capacity(2_000).max_capacity(keys) } else { builder.capacity(keys) };
                $make(builder.build().unwrap())
            }
            fn put(&self, key: u64) {
                $put(self.it(), &key).unwrap();
            }
            fn put_batch(&self, keys: &[u64]) -> BulkReport {
                $put_batch(self.it(), keys)
            }
            fn par_put(&self, keys: &[u64]) -> BulkReport {
                $par_put(self.it(), keys)
            }
            fn has(&self, key: u64) -> bool {
                self.it().contains(&key)
            }
            fn has_batch(&self, keys: &[u64], found: &mut [bool]) {
                self.it().contains_batch(keys, found);
            }
            fn par_has(&self, keys: &[u64], found: &mut [bool]) {
                self.it().par_contains(keys, found);
            }
            fn take(&self, key: u64) -> bool {
                $take(self.it(), &key)
            }
            fn take_batch(&self, keys: &[u64]) -> RemoveReport {
                $take_batch(self.it(), keys)
            }
            fn len(&self) -> usize {
                self.it().len()
            }
            fn clear(&self) {
                self.it().clear();
            }
            fn memory(&self) -> usize {
                self.it().memory_usage()
            }
            fn tables(&self) -> usize {
                self.it().stats().tables
            }
            fn make_room(&self, keys: usize) -> bool {
                self.it().reserve(keys).is_ok()
            }
            fn merge(&self, other: &Self) -> usize {
                self.it().merge_from(other.it()).unwrap().inserted
            }
            fn bytes(&self) -> Vec<u8> {
                let mut bytes = Vec::new();
                self.it().write_to(&mut bytes).unwrap();
                bytes
            }
            fn with_metadata(&self, metadata: &[u8]) -> Vec<u8> {
                let mut bytes = Vec::new();
                self.it().snapshot().metadata(metadata).write_to(&mut bytes).unwrap();
                bytes
            }
            fn read(bytes: &[u8], in_parallel: bool) -> Result<Self, SnapshotError> {
                let reader = SnapshotReader::new(bytes)?;
                let reader = if in_parallel { reader.in_parallel() } else { reader };
                let filter: $filter = reader.into_filter()?;
                Ok($make(filter))
            }
            fn view(bytes: &[u8], keys: &[u64], found: &mut [bool]) -> Result<(), SnapshotError> {
                let view = FilterView::<$filter>::from_bytes(bytes)?;
                view.contains_batch(keys, found);
                view.check()
            }
            fn map(path: &Path, keys: &[u64], found: &mut [bool]) -> Result<(), SnapshotError> {
                let mapped = MappedFilter::<$filter>::open(path)?;
                mapped.contains_batch(keys, found);
                mapped.check()
            }
        }

        impl It for $kind {
            type Filter = $filter;

            fn it(&self) -> &$filter {
                let of: fn(&Self) -> &$filter = $of;
                of(self)
            }
        }
    };
}

kind!(
    CuckooFilter,
    true,
    [0x64af_8730_840e_b565, 0x9e03_c823_0aaf_3075],
    CuckooFilter::<u64>::builder(),
    |filter: &Self, key| filter.insert(key),
    |filter: &Self, keys| filter.insert_batch(keys),
    |filter: &Self, keys| filter.par_insert(keys),
    |filter: &Self, key| filter.remove(key),
    |filter: &Self, keys| filter.remove_batch(keys)
);
kind!(
    ExpiringFilter,
    true,
    [0x02a2_6897_85a8_c58f, 0x6569_5c45_5f96_44f4],
    ExpiringFilter::<u64>::builder().time_to_live(HOUR),
    |filter: &Self, key| filter.insert(key),
    |filter: &Self, keys| filter.insert_batch(keys),
    |filter: &Self, keys| filter.par_insert(keys),
    |filter: &Self, key| filter.remove(key),
    |filter: &Self, keys| filter.remove_batch(keys)
);
kind!(
    CountingFilter,
    false,
    [0x7f94_0ab1_d2dd_f8ef, 0xf6c2_4da3_adaf_7f4c],
    CountingFilter::<u64>::builder(),
    |filter: &Self, key| filter.add(key),
    |filter: &Self, keys: &[u64]| filter.add_batch(keys, &mut vec![0; keys.len()]),
    |filter: &Self, keys| filter.bulk().add(keys),
    |filter: &Self, key| filter.remove(key),
    |filter: &Self, keys| filter.remove_batch(keys)
);
kind!(
    = Window,
    CountingFilter<u64, Stable>,
    Window,
    |window| &window.0,
    false,
    [0x2bd6_99e1_dd58_8306, 0x6070_cbc8_d114_9c65],
    CountingFilter::<u64>::builder().time_to_live(HOUR),
    |filter: &CountingFilter<_, _>, key| filter.add(key),
    |filter: &CountingFilter<_, _>, keys: &[u64]| filter.add_batch(keys, &mut vec![0; keys.len()]),
    |filter: &CountingFilter<_, _>, keys| filter.bulk().add(keys),
    |filter: &CountingFilter<_, _>, key| filter.subtract(key) == Some(0),
    |filter: &CountingFilter<_, _>, keys| filter.remove_batch(keys)
);
kind!(
    TaggedFilter,
    true,
    [0x70c6_a17a_cc35_6e64, 0xad31_38d7_baf4_328c],
    TaggedFilter::<u64>::builder(),
    |filter: &Self, key| filter.insert(key, 3),
    |filter: &Self, keys| filter.insert_batch(keys, 3).unwrap(),
    |filter: &Self, keys| filter.bulk().insert(keys, 3).unwrap(),
    |filter: &Self, key| filter.remove(key, 3),
    |filter: &Self, keys| filter.remove_batch(keys, 3)
);

/// Filled to its capacity, by all three ways.
fn filled<F: Kind>(keys: u64, grows: bool) -> F {
    let filter = F::build(keys as usize, grows);
    let (one, batch, bulk) = (0..keys / 4, keys / 4..keys / 2, keys / 2..keys);
    one.for_each(|key| filter.put(key));
    let [batch, bulk] = [batch, bulk].map(Vec::from_iter);
    assert_eq!(filter.put_batch(&batch).refused, []);
    assert_eq!(filter.par_put(&bulk).refused, []);
    filter
}

/// Every present key is found by every kind of lookup, and few others are.
fn assert_holds<F: Kind>(filter: &F, keys: u64) {
    let asked: Vec<u64> = (0..2 * keys).collect();
    let (mut batch, mut bulk) = (vec![false; asked.len()], vec![false; asked.len()]);
    filter.has_batch(&asked, &mut batch);
    filter.par_has(&asked, &mut bulk);
    for &key in &asked {
        let (at, found) = (key as usize, filter.has(key));
        assert!(found || key >= keys, "{key} is missed");
        assert_eq!((batch[at], bulk[at]), (found, found), "of {key}");
    }
    let wrong = batch[keys as usize..].iter().filter(|&&found| found).count() as f64;
    // 0.1 % is asked for.
    assert!(wrong < 0.0016 * keys as f64, "{wrong} of {keys} absent keys found");
}

/// Calls the body with each kind, fixed in size and growing.
macro_rules! of_each_kind {
    ($($name:ident => $body:ident($keys:expr);)+) => {
        $(
            #[test]
            fn $name() {
                for grows in [false, true] {
                    $body::<CuckooFilter<u64, Stable>>($keys, grows);
                    $body::<ExpiringFilter<u64, Stable>>($keys, grows);
                    $body::<CountingFilter<u64, Stable>>($keys, grows);
                    $body::<Window>($keys, grows);
                    $body::<TaggedFilter<u64, Stable>>($keys, grows);
                }
            }
        )+
    };
}

of_each_kind! {
    every_way_in_and_every_lookup_agree => ways(400_000);
    a_clone_holds_the_same_and_goes_its_own_way => clones(60_000);
    what_is_written_is_read => snapshots(60_000);
    a_damaged_snapshot_is_refused_in_every_way => damage(2_500);
    the_same_changes_give_the_same_bytes => determinism(60_000);
    merged_filters_hold_both => merges(30_000);
    room_is_made_ahead => reserves(200_000);
}

fn ways<F: Kind>(keys: u64, grows: bool) {
    let filter = filled::<F>(keys, grows);
    assert_eq!(filter.tables() > 4, grows, "{} tables", filter.tables());
    assert_holds(&filter, keys);
    let thirds = Vec::from_iter((0..keys).step_by(3));
    let (one_by_one, batch) = thirds.split_at(thirds.len() / 2);
    let removed = one_by_one.iter().filter(|key| filter.take(**key)).count() + filter.take_batch(batch).removed;
    let missing =
        keys.div_ceil(3) - removed as u64 + (0..keys).filter(|key| key % 3 != 0 && !filter.has(*key)).count() as u64;
    // Keys that are counted together go together.
    let shared = if F::OWN_COPIES { 0 } else { keys / 2_000 };
    assert!(missing <= shared, "{missing} keys are missing after removals of others");
    filter.clear();
    assert_eq!((filter.len(), filter.has(1)), (0, false));
}

fn clones<F: Kind>(keys: u64, grows: bool) {
    let filter = filled::<F>(keys, grows);
    let copy = filter.clone();
    assert_eq!(copy.len(), filter.len());
    assert!(grows || copy.bytes() == filter.bytes());
    // Without the tables that were refilled.
    assert!(copy.memory() <= filter.memory() && (grows || copy.memory() == filter.memory()));
    filter.clear();
    assert_holds(&copy, keys);
    assert_eq!(filter.len(), 0);
    filled_again(&filter, keys);
}

fn filled_again<F: Kind>(filter: &F, keys: u64) {
    (0..keys).for_each(|key| filter.put(key));
    assert_holds(filter, keys);
}

fn snapshots<F: Kind>(keys: u64, grows: bool) {
    let filter = filled::<F>(keys, grows);
    let bytes = filter.bytes();
    SnapshotReader::new(&bytes[..]).unwrap().check().unwrap();
    for in_parallel in [false, true] {
        let read = F::read(&bytes, in_parallel).unwrap();
        assert_eq!(read.len(), filter.len());
        assert_holds(&read, keys);
        assert_eq!(read.bytes(), bytes, "what was read is written alike");
    }
    let asked: Vec<u64> = (0..2 * keys).collect();
    let [mut loaded, mut viewed, mut mapped] = [(); 3].map(|()| vec![false; asked.len()]);
    filter.has_batch(&asked, &mut loaded);
    let file = Folder::file_of(&bytes);
    F::view(&bytes, &asked, &mut viewed).unwrap();
    F::map(&file.path(), &asked, &mut mapped).unwrap();
    assert!(viewed == loaded && mapped == loaded, "a snapshot that is queried in place");
    let with_metadata = filter.with_metadata(b"offset 17");
    assert_eq!(SnapshotReader::new(&with_metadata[..]).unwrap().header().metadata, b"offset 17");
}

/// Cut off anywhere, or with one bit flipped anywhere: an error or, before the check of a file, other answers.
fn damage<F: Kind>(keys: u64, grows: bool) {
    let bytes = filled::<F>(keys, grows).bytes();
    let file = Folder::file_of(&bytes);
    let (asked, mut found) = (Vec::from_iter(0..200), [false; 200]);
    let mut refuses = |bytes: &[u8], place: usize| {
        let checked = SnapshotReader::new(bytes).and_then(SnapshotReader::check);
        fs::write(file.path(), bytes).unwrap();
        let results = [
            checked.map(drop),
            F::read(bytes, false).map(drop),
            F::read(bytes, true).map(drop),
            F::view(bytes, &asked, &mut found),
            F::map(&file.path(), &asked, &mut found),
        ];
        assert!(results.iter().all(Result::is_err), "byte {place} of {}: {results:?}", bytes.len());
    };
    let mut damaged = bytes.clone();
    let (header, trailer) = (0..400, bytes.len() - 200..bytes.len());
    for place in header.chain((400..bytes.len()).step_by(61)).chain(trailer) {
        refuses(&bytes[..place], place);
        damaged[place] ^= 1 << (place % 8);
        refuses(&damaged, place);
        damaged[place] ^= 1 << (place % 8);
    }
}

/// Also when a filter goes on from a snapshot.
fn determinism<F: Kind>(keys: u64, grows: bool) {
    let changes = |filter: &F, keys: core::ops::Range<u64>| {
        for key in keys {
            filter.put(key);
            if key % 5 == 0 {
                filter.take(key / 2);
            }
        }
    };
    let (one, other) = (F::build(keys as usize, grows), F::build(keys as usize, grows));
    changes(&one, 0..keys / 2);
    changes(&other, 0..keys / 2);
    assert_eq!(one.bytes(), other.bytes());
    let read = F::read(&one.bytes(), false).unwrap();
    for filter in [&one, &other, &read, &one.clone()] {
        changes(filter, keys / 2..keys);
    }
    assert_eq!(one.bytes(), other.bytes());
    assert_eq!(one.bytes(), read.bytes(), "after a snapshot");
    // The probe of the hash function is of arrays as they lie in memory.
    if cfg!(all(target_pointer_width = "64", target_endian = "little")) {
        let digest = Stable::with_seeds(0, 0).hash_one(&one.bytes()[..]);
        assert_eq!(digest, F::DIGESTS[usize::from(grows)], "the bytes are those of format 2: {digest:#x}");
    }
}

fn merges<F: Kind>(keys: u64, grows: bool) {
    let [one, other] = [(); 2].map(|()| F::build(2 * keys as usize, grows));
    (0..keys).for_each(|key| one.put(key));
    (keys..2 * keys).for_each(|key| other.put(key));
    assert_eq!(one.merge(&other), other.len());
    assert_holds(&one, 2 * keys);
}

fn reserves<F: Kind>(keys: u64, grows: bool) {
    let filter = F::build(keys as usize, grows);
    let before = filter.memory();
    assert!(filter.make_room(keys as usize) && !filter.make_room(keys as usize + 1));
    let ready = filter.memory();
    assert_eq!(ready > before, grows);
    (0..keys * 9 / 10).for_each(|key| filter.put(key));
    assert!(filter.memory() <= ready + ready / 20, "{} bytes, {ready} were made ready", filter.memory());
}
