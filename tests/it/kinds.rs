//! Properties of all kinds of filters, fixed in size and growing: one suite over all of them.

use crate::support::{Folder, hasher, par_read, pool};
use concurrent_cuckoo_filter::kind::{Counting, Expiring, Kind, Plain, Tagged};
use concurrent_cuckoo_filter::{
    Builder, BulkReport, Filter, FilterView, MappedFilter, MergeError, RemoveReport, SnapshotError, SnapshotReader,
    StableHashBuilder,
};
use std::fs;
use std::hash::BuildHasher;
use std::time::Duration;
use testkit::written;

type Of<C> = Filter<u64, StableHashBuilder, <C as Case>::Kind>;

const HOUR: Duration = Duration::from_secs(3600);

/// The operations of a kind that take or return more than keys, for a filter of numbers.
trait Case: Sized {
    type Kind: Kind;
    /// The names of the kind in snapshots, and in errors about the requested filter.
    const NAMES: [&'static str; 2];
    /// Whether each key has a copy of its own.
    const OWN_COPIES: bool;
    /// The hashes of the snapshots of `determinism`, fixed in size and growing. Another hash means another version of the format,
    /// or other places of keys.
    const DIGESTS: [u64; 2];

    fn builder() -> Builder<u64, StableHashBuilder, Self::Kind>;
    fn put(filter: &Of<Self>, key: u64);
    fn put_batch(filter: &Of<Self>, keys: &[u64]) -> BulkReport;
    fn par_put(filter: &Of<Self>, keys: &[u64]) -> BulkReport;
    fn take(filter: &Of<Self>, key: u64) -> bool;
    fn take_batch(filter: &Of<Self>, keys: &[u64]) -> RemoveReport;
}

/// `$put` inserts one key, a batch, and in parallel; `$take` removes one key and a batch.
macro_rules! case {
    ($name:ident: $kind:ident, $names:expr, $own:literal, $digests:expr, $options:expr, [$($put:expr),+], [$($take:expr),+]) => {
        struct $name;

        impl Case for $name {
            type Kind = $kind;
            const NAMES: [&'static str; 2] = $names;
            const OWN_COPIES: bool = $own;
            const DIGESTS: [u64; 2] = $digests;

            fn builder() -> Builder<u64, StableHashBuilder, $kind> {
                type Asked = Builder<u64, StableHashBuilder, $kind>;
                let options: fn(Asked) -> Asked = $options;
                options(Filter::builder().hasher(hasher()))
            }
            case!(put(u64), put_batch(&[u64]) -> BulkReport, par_put(&[u64]) -> BulkReport: $($put),+);
            case!(take(u64) -> bool, take_batch(&[u64]) -> RemoveReport: $($take),+);
        }
    };
    ($($method:ident($keys:ty) $(-> $told:ty)?),+: $($body:expr),+) => {
        $(fn $method(filter: &Of<Self>, keys: $keys) $(-> $told)? {
            let method: fn(&Of<Self>, $keys) $(-> $told)? = $body;
            method(filter, keys)
        })+
    };
}

case!(
    Keys: Plain,
    ["plain", "plain"],
    true,
    [0x64af_8730_840e_b565, 0x9e03_c823_0aaf_3075],
    |builder| builder,
    [
        |filter, key| filter.insert(&key).unwrap(),
        |filter, keys| filter.insert_batch(keys),
        |filter, keys| filter.par_insert(keys)
    ],
    [|filter, key| filter.remove(&key), |filter, keys| filter.remove_batch(keys)]
);
case!(
    Deadlines: Expiring,
    ["expiring", "expiring"],
    true,
    [0x02a2_6897_85a8_c58f, 0x6569_5c45_5f96_44f4],
    |builder| builder.time_to_live(HOUR),
    [
        |filter, key| filter.insert(&key).unwrap(),
        |filter, keys| filter.insert_batch(keys),
        |filter, keys| filter.par_insert(keys)
    ],
    [|filter, key| filter.remove(&key), |filter, keys| filter.remove_batch(keys)]
);
case!(
    Counts: Counting,
    ["counting", "counting"],
    false,
    [0x7f94_0ab1_d2dd_f8ef, 0xbea9_69e8_e813_dc7c],
    |builder| builder,
    [
        |filter, key| _ = filter.add(&key).unwrap(),
        |filter, keys| filter.add_batch(keys, &mut vec![0; keys.len()]),
        |filter, keys| filter.bulk().add(keys)
    ],
    [|filter, key| filter.remove(&key), |filter, keys| filter.remove_batch(keys)]
);
case!(
    Windows: Counting,
    ["expiring and counting", "counting"],
    false,
    [0x2bd6_99e1_dd58_8306, 0x6070_cbc8_d114_9c65],
    |builder| builder.time_to_live(HOUR),
    [
        |filter, key| _ = filter.add(&key).unwrap(),
        |filter, keys| filter.add_batch(keys, &mut vec![0; keys.len()]),
        |filter, keys| filter.bulk().add(keys)
    ],
    [|filter, key| filter.subtract(&key) == Some(0), |filter, keys| filter.remove_batch(keys)]
);
case!(
    Tags: Tagged,
    ["tagged", "tagged"],
    true,
    [0x70c6_a17a_cc35_6e64, 0xad31_38d7_baf4_328c],
    |builder| builder,
    [
        |filter, key| filter.insert(&key, 3).unwrap(),
        |filter, keys| filter.insert_batch(keys, 3).unwrap(),
        |filter, keys| filter.bulk().insert(keys, 3).unwrap()
    ],
    [|filter, key| filter.remove(&key, 3), |filter, keys| filter.remove_batch(keys, 3)]
);

/// Calls the body with each kind, fixed in size and growing.
macro_rules! of_each_kind {
    ($($name:ident => $body:ident($($keys:expr)?);)+) => {
        $(
            #[test]
            fn $name() {
                for grows in [false, true] {
                    $body::<Keys>($($keys,)? grows);
                    $body::<Deadlines>($($keys,)? grows);
                    $body::<Counts>($($keys,)? grows);
                    $body::<Windows>($($keys,)? grows);
                    $body::<Tags>($($keys,)? grows);
                }
            }
        )+
    };
}

of_each_kind! {
    every_way_of_inserting_and_every_lookup_agree => ways(400_000);
    a_clone_has_equal_contents_and_is_independent => clones(60_000);
    a_snapshot_reads_back_as_the_filter_in_every_way => snapshots(60_000);
    a_damaged_snapshot_is_refused_in_every_way => damage();
    a_snapshot_of_another_kind_key_type_or_hasher_is_refused => mismatch();
    the_same_changes_give_the_same_bytes => determinism(60_000);
    merged_filters_hold_both => merges(140_000);
    reserve_makes_room_ahead => reserves(200_000);
}

/// A builder for this many keys, or for 2,000 keys that may grow to this many.
fn asked<C: Case>(keys: usize, grows: bool) -> Builder<u64, StableHashBuilder, C::Kind> {
    if grows { C::builder().capacity(2_000).max_capacity(keys) } else { C::builder().capacity(keys) }
}

fn build<C: Case>(keys: usize, grows: bool) -> Of<C> {
    asked::<C>(keys, grows).build().unwrap()
}

/// A filter filled to its capacity, in all three ways.
fn filled<C: Case>(keys: u64, grows: bool) -> Of<C> {
    let filter = build::<C>(keys as usize, grows);
    (0..keys / 4).for_each(|key| C::put(&filter, key));
    assert_eq!(C::put_batch(&filter, &Vec::from_iter(keys / 4..keys / 2)).refused, []);
    assert_eq!(C::par_put(&filter, &Vec::from_iter(keys / 2..keys)).refused, []);
    filter
}

/// The bytes of a filter of a few keys, in two tables if it grows.
fn small<C: Case>(grows: bool) -> Vec<u8> {
    let builder = C::builder().capacity(10);
    let filter = if grows { builder.max_capacity(100) } else { builder }.build().unwrap();
    (0..10).for_each(|key| C::put(&filter, key));
    let mut more = 10..;
    while grows && filter.stats().tables < 2 {
        C::put(&filter, more.next().unwrap());
    }
    written(|to| filter.write_to(to))
}

/// Every kind of lookup finds every present key, and few others.
fn assert_holds<C: Case>(filter: &Of<C>, keys: u64) {
    let asked: Vec<u64> = (0..2 * keys).collect();
    let (mut batch, mut bulk) = (vec![false; asked.len()], vec![false; asked.len()]);
    filter.contains_batch(&asked, &mut batch);
    filter.par_contains(&asked, &mut bulk);
    for &key in &asked {
        let (at, found) = (key as usize, filter.contains(&key));
        assert!(found || key >= keys, "{key} is missed");
        assert_eq!((batch[at], bulk[at]), (found, found), "of {key}");
    }
    let wrong = batch[keys as usize..].iter().filter(|&&found| found).count() as f64;
    // The requested rate is 0.1 %.
    assert!(wrong < 0.0016 * keys as f64, "{wrong} of {keys} absent keys found");
}

fn ways<C: Case>(keys: u64, grows: bool) {
    let filter = filled::<C>(keys, grows);
    assert_eq!(filter.stats().tables > 4, grows, "{} tables", filter.stats().tables);
    assert_holds::<C>(&filter, keys);
    let thirds = Vec::from_iter((0..keys).step_by(3));
    let (one_by_one, batch) = thirds.split_at(thirds.len() / 2);
    let removed =
        one_by_one.iter().filter(|key| C::take(&filter, **key)).count() + C::take_batch(&filter, batch).removed;
    let lost = (0..keys).filter(|key| key % 3 != 0 && !filter.contains(key)).count() as u64;
    let missing = keys.div_ceil(3) - removed as u64 + lost;
    // Keys that share a count are removed together.
    let shared = if C::OWN_COPIES { 0 } else { keys / 2_000 };
    assert!(missing <= shared, "{missing} keys are missing after removals of others");
    filter.clear();
    assert!(filter.is_empty() && !filter.contains(&1));
}

fn clones<C: Case>(keys: u64, grows: bool) {
    let filter = filled::<C>(keys, grows);
    let (copy, bytes) = (filter.clone(), |filter: &Of<C>| written(|to| filter.write_to(to)));
    assert_eq!(copy.len(), filter.len());
    assert!(grows || bytes(&copy) == bytes(&filter));
    // Without the tables that were refilled.
    let [less, memory] = [&copy, &filter].map(|filter| filter.memory_usage());
    assert!(less <= memory && (grows || less == memory));
    filter.clear();
    assert_holds::<C>(&copy, keys);
    assert!(filter.is_empty());
    (0..keys).for_each(|key| C::put(&filter, key));
    assert_holds::<C>(&filter, keys);
}

fn snapshots<C: Case>(keys: u64, grows: bool) {
    let filter = filled::<C>(keys, grows);
    let bytes = written(|to| filter.snapshot().metadata(b"offset 17").write_to(to));
    SnapshotReader::new(&bytes[..]).unwrap().check().unwrap();
    let one_by_one = Of::<C>::read_from(&bytes[..], hasher()).unwrap();
    for read in [one_by_one, pool(2).install(|| par_read(&bytes)).unwrap()] {
        assert_eq!(read.len(), filter.len());
        assert_holds::<C>(&read, keys);
        assert_eq!(
            written(|to| read.snapshot().metadata(b"offset 17").write_to(to)),
            bytes,
            "it is written as it was read"
        );
    }
    let asked: Vec<u64> = (0..2 * keys).collect();
    let [mut loaded, mut viewed, mut mapped] = [(); 3].map(|()| vec![false; asked.len()]);
    filter.contains_batch(&asked, &mut loaded);
    let (file, view) = (Folder::file_of(&bytes), FilterView::<Of<C>>::from_bytes(&bytes).unwrap());
    assert_eq!(view.header().metadata, b"offset 17");
    view.contains_batch(&asked, &mut viewed);
    let map = MappedFilter::<Of<C>>::open(file.path()).unwrap();
    map.contains_batch(&asked, &mut mapped);
    assert!(view.check().is_ok() && map.check().is_ok());
    assert!(viewed == loaded && mapped == loaded, "a snapshot that is queried in place");
}

/// The error of each way to read the bytes and, with `in_all_ways`, of a file and of several threads.
fn errors<C: Case>(bytes: &[u8], in_all_ways: bool, file: &Folder) -> Vec<Option<SnapshotError>> {
    let mut errors = vec![
        SnapshotReader::new(bytes).and_then(SnapshotReader::check).err(),
        Of::<C>::read_from(bytes, hasher()).err(),
        FilterView::<Of<C>>::from_bytes(bytes).and_then(|view| view.check()).err(),
    ];
    if in_all_ways {
        fs::write(file.path(), bytes).unwrap();
        errors.push(par_read::<u64, C::Kind>(bytes).err());
        errors.push(MappedFilter::<Of<C>>::open(file.path()).and_then(|view| view.check()).err());
    }
    errors
}

/// Cut off anywhere, or with one bit flipped anywhere. An error about a cut names the place.
fn damage<C: Case>(grows: bool) {
    let bytes = small::<C>(grows);
    let file = Folder::file_of(&bytes);
    let places = (0..bytes.len()).map(|length| {
        let errors = errors::<C>(&bytes[..length], length % 13 == 0, &file);
        let errors = errors.into_iter().map(|error| match error {
            Some(SnapshotError::Truncated { place, .. }) => place,
            other => panic!("the first {length} bytes: {other:?}"),
        });
        let errors = Vec::from_iter(errors);
        assert!(errors.iter().all(|place| *place == errors[0]), "the first {length} bytes: {errors:?}");
        errors[0].to_string()
    });
    let mut lengths: Vec<(String, usize)> = Vec::new();
    for place in places {
        match lengths.last_mut() {
            Some((last, length)) if *last == place => *length += 1,
            _ => lengths.push((place, 1)),
        }
    }
    let named: Vec<&str> = lengths.iter().map(|(place, _)| &place[..]).collect();
    let records = if grows { &["table 0", "table 1"][..] } else { &["shard 0"] };
    assert_eq!(named, [&["the header"][..], records, &["the trailer"]].concat());
    assert_eq!([lengths[0].1, lengths[named.len() - 1].1], [256, 64]);

    let mut damaged = bytes.clone();
    for bit in 0..8 * bytes.len() {
        let flip = 1 << (bit % 8);
        damaged[bit / 8] ^= flip;
        let errors = errors::<C>(&damaged, bit % 101 == 0, &file);
        assert!(errors.iter().all(Option::is_some), "bit {bit} is not missed: {errors:?}");
        damaged[bit / 8] ^= flip;
    }
}

fn mismatch<C: Case>(grows: bool) {
    let bytes = small::<C>(grows);
    fn refuses<C: Case, D: Case>(bytes: &[u8], grows: bool) {
        let growing = if C::NAMES[0] == "plain" { "growing".into() } else { format!("growing and {}", C::NAMES[0]) };
        let name = if grows { growing } else { C::NAMES[0].into() };
        let view = FilterView::<Of<D>>::from_bytes(bytes).err();
        for error in [view, Of::<D>::read_from(bytes, hasher()).err(), par_read::<u64, D::Kind>(bytes).err()] {
            match error {
                Some(SnapshotError::KindMismatch { saved, requested, .. }) => {
                    assert_eq!((saved, requested), (name.clone(), D::NAMES[1]));
                }
                other => assert!(other.is_none() && C::NAMES[1] == D::NAMES[1], "{name} as {}: {other:?}", D::NAMES[1]),
            }
        }
    }
    refuses::<C, Keys>(&bytes, grows);
    refuses::<C, Deadlines>(&bytes, grows);
    refuses::<C, Counts>(&bytes, grows);
    refuses::<C, Tags>(&bytes, grows);
    let other_hasher = Of::<C>::read_from(&bytes[..], StableHashBuilder::with_seeds(1, 3)).unwrap_err();
    assert!(matches!(other_hasher, SnapshotError::HasherMismatch { .. }), "{other_hasher}");
    let other_keys = Filter::<String, StableHashBuilder, C::Kind>::read_from(&bytes[..], hasher()).unwrap_err();
    assert!(matches!(other_keys, SnapshotError::KeyTypeMismatch { .. }), "{other_keys}");
    // A delta has classes, but no deadlines, counts or tags.
    let [new, old] = [(); 2].map(|()| SnapshotReader::new(&bytes[..]).unwrap());
    let delta = new.write_delta_since(old, Vec::new());
    assert_eq!(delta.is_ok(), C::NAMES[0] == "plain");
    assert!(matches!(delta, Ok(_) | Err(SnapshotError::KindMismatch { requested: "plain", .. })));
}

/// Also for a filter that continues from a snapshot.
fn determinism<C: Case>(keys: u64, grows: bool) {
    let changes = |filter: &Of<C>, keys: core::ops::Range<u64>| {
        for key in keys {
            C::put(filter, key);
            if key % 5 == 0 {
                C::take(filter, key / 2);
            }
        }
    };
    let bytes = |filter: &Of<C>| written(|to| filter.write_to(to));
    let [one, other] = [(); 2].map(|()| build::<C>(keys as usize, grows));
    changes(&one, 0..keys / 2);
    changes(&other, 0..keys / 2);
    assert_eq!(bytes(&one), bytes(&other));
    let read = Of::<C>::read_from(&bytes(&one)[..], hasher()).unwrap();
    for filter in [&one, &other, &read, &one.clone()] {
        changes(filter, keys / 2..keys);
    }
    assert_eq!(bytes(&one), bytes(&other));
    assert_eq!(bytes(&one), bytes(&read), "after a snapshot");
    // The probe of the hash function depends on the layout of arrays in memory.
    if cfg!(all(target_pointer_width = "64", target_endian = "little")) {
        let digest = StableHashBuilder::with_seeds(0, 0).hash_one(&bytes(&one)[..]);
        assert_eq!(digest, C::DIGESTS[usize::from(grows)], "the bytes are those of format 2: {digest:#x}");
    }
}

/// Filters of two shards or more, or of few tables and of many.
fn merges<C: Case>(keys: u64, grows: bool) {
    let few = keys / 10;
    let [one, other] = [(); 2].map(|()| build::<C>(2 * keys as usize, grows));
    assert!(grows || one.config().shards > 1);
    (0..few).for_each(|key| C::put(&one, key));
    (few..2 * keys).for_each(|key| C::put(&other, key));
    assert!(!grows || one.stats().tables < other.stats().tables);
    let copy = one.clone();
    for (into, from) in [(&one, &other), (&other, &copy), (&copy, &copy)] {
        let all = from.len();
        assert_eq!(into.merge_from(from).map(|report| (report.inserted, report.refused)), Ok((all, 0)));
    }
    assert_holds::<C>(&one, 2 * keys);
    assert_holds::<C>(&other, 2 * keys);
    assert_holds::<C>(&copy, few);
    let merged = one.len();
    for other_size in [build::<C>(4 * keys as usize, grows), build::<C>(2 * keys as usize, !grows)] {
        C::put(&other_size, 3 * keys);
        let refused = one.merge_from(&other_size).unwrap_err();
        assert!(refused == MergeError::SizesDiffer && refused.to_string().contains("the same capacity"), "{refused}");
    }
    assert_eq!(one.len(), merged, "nothing was stored");
    let like = || C::builder().capacity(2_000);
    let other_hasher = like().hasher(StableHashBuilder::with_seeds(1, 3)).build().unwrap();
    let refused = like().build().unwrap().merge_from(&other_hasher).unwrap_err();
    assert!(refused == MergeError::HashersDiffer && refused.to_string().contains("the same seeds"), "{refused}");
}

fn reserves<C: Case>(keys: u64, grows: bool) {
    let filter = build::<C>(keys as usize, grows);
    let before = filter.memory_usage();
    assert_eq!(asked::<C>(keys as usize, grows).memory_usage().unwrap(), before);
    assert!(filter.reserve(keys as usize).is_ok() && filter.reserve(keys as usize + 1).is_err());
    let ready = filter.memory_usage();
    assert_eq!(ready > before, grows);
    let told = asked::<C>(keys as usize, grows).memory_usage_at(keys as usize).unwrap();
    assert!(told.abs_diff(ready) <= told / 20, "{told} bytes were told, {ready} are taken");
    // First with more tables than the keys need.
    assert_eq!(C::par_put(&filter, &Vec::from_iter(0..keys / 3)).refused, []);
    (keys / 3..keys * 9 / 10).for_each(|key| C::put(&filter, key));
    assert_holds::<C>(&filter, keys * 9 / 10);
    let memory = filter.memory_usage();
    assert!(memory <= ready + ready / 20, "{memory} bytes, {ready} were made ready");
    // A tenth of the keys fits, or a fifth where dead keys have slots.
    assert!(filter.reserve(keys as usize / 11).is_ok() && filter.reserve(keys as usize / 4).is_err());
}
