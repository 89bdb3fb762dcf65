//! The output of `Debug`: names and sizes, but no keys, metadata or seeds.

use concurrent_cuckoo_filter::{
    CountingFilter, CuckooFilter, DefaultHashBuilder, ExpiringFilter, FilterView, Prehashed, SavedHasher,
    SnapshotError, SnapshotPlace, SnapshotReader, StableHashBuilder, TaggedFilter, WellMixed,
};
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::hash::BuildHasher;
use std::time::Duration;
use testkit::written;

#[track_caller]
fn check(value: &impl Debug, shown: &str) {
    assert_eq!(format!("{value:?}"), shown);
}

#[test]
fn hash_functions_show_none_of_their_keys() {
    let hasher = DefaultHashBuilder::with_seeds(1, 2, 3, 4);
    check(&hasher, "DefaultHashBuilder { .. }");
    check(&hasher.build_hasher(), "DefaultHasher { .. }");
    let hasher = StableHashBuilder::with_seeds(1, 2);
    check(&hasher, "StableHashBuilder { .. }");
    check(&hasher.build_hasher(), "StableHasher { .. }");
}

#[test]
fn what_is_under_way_shows_what_was_asked_for() {
    let builder = CuckooFilter::<String>::builder().capacity(10).stripes(3);
    let shown = "Builder { capacity: Some(10), max_capacity: None, false_positive_rate: None, fingerprint_bits: None, stripes: Some(3), options: Options { life: None, steps: 6, counter_bits: 4, tags: 7 }, .. }";
    check(&builder, shown);
    let filter = builder.build().unwrap();
    check(&filter.bulk().max_listed(7), "Bulk { max_listed: 7, .. }");
    let snapshot = filter.snapshot().metadata(b"secret");
    check(&snapshot, "Snapshot { metadata: 6 bytes, with_seeds: true, shards: 0..1, .. }");
}

#[test]
fn a_header_shows_sizes_and_names() {
    let hasher = StableHashBuilder::with_seeds(1, 2);
    let filter = CuckooFilter::<String, _>::with_capacity_and_hasher(10, hasher);
    let bytes = written(|to| filter.snapshot().metadata(b"secret").write_to(to));
    let reader = SnapshotReader::new(&bytes[..]).unwrap();
    let config = "Config { capacity: 10, max_capacity: 10, false_positive_rate: Some(0.001), fingerprint_bits: 11, shards: 1, \
                  time_to_live: None, time_to_idle: None, tick: None, max_count: 8, max_tag: 0 }";
    let shown = &format!(
        "SnapshotHeader {{ config: {config}, part: 0..1, hasher_name: \"siphash-1-3\", has_seeds: true, \
         key_type: \"str\", stored: 0, metadata: 6 bytes, .. }}"
    );
    check(reader.header(), shown);
    check(&reader, &format!("SnapshotReader {{ header: {shown}, .. }}"));
}

/// The outputs of each type, on one line and on several, and the names of the types.
#[derive(Default)]
struct Shown {
    types: BTreeSet<String>,
    texts: Vec<String>,
}

impl Shown {
    fn add<T: Debug>(&mut self, value: &T) {
        let path = std::any::type_name::<T>().split('<').next().unwrap();
        self.types.insert(path.rsplit("::").next().unwrap().into());
        self.texts.extend([format!("{value:?}"), format!("{value:#?}")]);
    }
}

/// Shows every type that contains this hash function. Also returns the probe, which was hashed with its seeds.
fn show_all<S: SavedHasher + Clone + Debug + Sync>(hasher: &S, shown: &mut Shown) -> Vec<u64>
where
    S::Hasher: Debug,
{
    let builder = CuckooFilter::<String>::builder().capacity(10).hasher(hasher.clone());
    shown.add(&builder);
    let filter = builder.build().unwrap();
    filter.insert("secret").unwrap();
    shown.add(&filter);
    shown.add(hasher);
    shown.add(&hasher.build_hasher());
    shown.add(&Prehashed);
    shown.add(&Prehashed.build_hasher());
    shown.add(&WellMixed(hasher.clone()));
    shown.add(&WellMixed(hasher.clone()).build_hasher());
    shown.add(&filter.bulk());
    shown.add(&filter.insert_batch(&["secret"; 9]));
    shown.add(&filter.insert_batch(&["secret"; 9]).refused[0]);
    shown.add(&filter.remove_batch(&["secret"; 9]));
    shown.add(&filter.merge_from(&filter).unwrap());
    shown.add(&filter.stats());
    shown.add(&filter.config());
    shown.add(&filter.snapshot().metadata(b"secret"));
    let bytes = written(|to| filter.snapshot().metadata(b"secret").write_to(to));
    let reader = SnapshotReader::new(&bytes[..]).unwrap();
    shown.add(reader.header());
    shown.add(&reader);
    let other_keys = CuckooFilter::<String, _>::read_from(&bytes[..], StableHashBuilder::with_seeds(0, 0)).unwrap_err();
    assert!(matches!(other_keys, SnapshotError::HasherMismatch { .. }));
    shown.add(&other_keys);
    shown.add(&SnapshotPlace::Header);
    shown.add(&filter.insert_batch(&["secret"; 9]).refused[0].error);
    shown.add(&filter.merge_from(&CuckooFilter::with_capacity_and_hasher(99999, hasher.clone())).unwrap_err());
    shown.add(&CuckooFilter::<String>::builder().build().unwrap_err());
    shown.add(&FilterView::<CuckooFilter<String, S>>::from_bytes_with_hasher(&bytes, hasher.clone()).unwrap());
    let mut delta = Vec::new();
    let [new, old] = [&bytes[..]; 2].map(|bytes| SnapshotReader::new(bytes).unwrap());
    new.write_delta_since(old, &mut delta).unwrap();
    let replica = CuckooFilter::<String, S>::read_from(&bytes[..], hasher.clone()).unwrap();
    shown.add(&replica.apply_delta(&delta[..]).unwrap());

    let large = || CuckooFilter::<String>::builder().capacity(600_000).hasher(hasher.clone());
    let layout = large().layout().unwrap();
    shown.add(&layout);
    let part = large().build_shards(0..1).unwrap();
    shown.add(&part);
    let elsewhere = (0..).map(|key: u32| layout.hash(&key.to_string())).find(|&hash| layout.shard_of_hash(hash) > 0);
    shown.add(&part.insert_batch(&[elsewhere.unwrap()]).unwrap_err());

    let expiring = ExpiringFilter::<String>::builder().capacity(10).time_to_live(Duration::from_secs(60));
    let expiring = expiring.hasher(hasher.clone());
    shown.add(&expiring);
    let expiring = expiring.build().unwrap();
    expiring.insert("secret").unwrap();
    shown.add(&expiring);
    shown.add(&expiring.insert_for("secret", Duration::from_secs(600)).unwrap_err());
    let tagged = TaggedFilter::<String>::builder().capacity(10).hasher(hasher.clone());
    shown.add(&tagged);
    let tagged = tagged.build().unwrap();
    tagged.insert("secret", 1).unwrap();
    shown.add(&tagged);
    let counting = CountingFilter::<String>::builder().capacity(10).hasher(hasher.clone());
    shown.add(&counting);
    let counting = counting.build().unwrap();
    counting.add("secret").unwrap();
    shown.add(&counting);
    bytes[72..104].chunks_exact(8).map(|number| u64::from_le_bytes(number.try_into().unwrap())).collect()
}

#[cfg(all(feature = "shared", target_os = "linux"))]
fn show_shared(hasher: StableHashBuilder, shown: &mut Shown) {
    use concurrent_cuckoo_filter::{SharedFilter, SharedReader};

    let path = std::env::temp_dir().join(format!("concurrent-cuckoo-filter.debug-{}", std::process::id()));
    let filter = SharedFilter::create(&path, CuckooFilter::<String>::builder().capacity(100).hasher(hasher)).unwrap();
    filter.writer().unwrap().insert("secret").unwrap();
    shown.add(&filter);
    shown.add(&SharedFilter::<CuckooFilter<String, StableHashBuilder>>::open(&path).unwrap_err());
    let reader = SharedReader::<CuckooFilter<String, StableHashBuilder>>::open(&path).unwrap();
    shown.add(&reader);
    shown.add(&reader.state());
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn no_public_type_shows_keys_of_a_hash_function_or_metadata() {
    let keys = [0xdead_beef_cafe_f00d_u64, 0x0123_4567_89ab_cdef, 0xfeed_face_0bad_c0de, 0x5ca1_ab1e_0ddb_a115];
    let mut shown = Shown::default();
    let mut secrets = keys.to_vec();
    secrets.extend(show_all(&StableHashBuilder::with_seeds(keys[0], keys[1]), &mut shown));
    secrets.extend(show_all(&DefaultHashBuilder::with_seeds(keys[0], keys[1], keys[2], keys[3]), &mut shown));

    let has_shared = cfg!(all(feature = "shared", target_os = "linux"));
    #[cfg(all(feature = "shared", target_os = "linux"))]
    show_shared(StableHashBuilder::with_seeds(keys[0], keys[1]), &mut shown);
    let public: BTreeSet<String> = include_str!("../../docs/public-api.txt")
        .lines()
        .filter_map(|line| line.split_once("core::fmt::Debug for concurrent_cuckoo_filter::"))
        .map(|(_, name)| name.split('<').next().unwrap().into())
        .filter(|name: &String| has_shared || !name.starts_with("Shared"))
        // Kinds and forms have no values.
        .filter(|name: &String| !name.starts_with("kind::"))
        .collect();
    assert_eq!(shown.types, public, "each public type that can be shown");

    let as_numbers = format!("{:?}", b"secret").replace(['[', ']'], "");
    let on_lines = as_numbers.replace(", ", ",\n");
    for text in shown.texts {
        let squeezed: String = text.lines().map(|line| format!("{}\n", line.trim())).collect();
        for secret in ["secret", &as_numbers, &on_lines] {
            assert!(!squeezed.contains(secret), "{text}");
        }
        let lower = text.to_lowercase().replace('_', "");
        for secret in &secrets {
            assert!(!lower.contains(&secret.to_string()) && !lower.contains(&format!("{secret:x}")), "{text}");
        }
    }
}
