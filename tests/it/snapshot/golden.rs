//! Files of each format so far, which every later version reads. After a change of format, `CUCKOO_FILTER_TEST_WRITE=1 cargo test
//! --test it same_bytes` writes the missing files; existing ones stay.

use concurrent_cuckoo_filter::{CuckooFilter, SnapshotError, SnapshotReader, StableHashBuilder};
use std::env;
use std::fs;
use std::ops::Range;
use std::path::PathBuf;
use testkit::format::Sealed;
use testkit::{Shape, Width, written};

type Filter = CuckooFilter<String, StableHashBuilder>;

struct Golden {
    name: &'static str,
    capacity: usize,
    /// For a growing filter.
    max_capacity: Option<usize>,
    width: Width,
    keys: Range<u32>,
    metadata: &'static [u8],
    with_keys: bool,
    shards: Range<usize>,
}

const PLAIN: Golden = Golden {
    name: "",
    capacity: 100,
    max_capacity: None,
    width: Width::Bits(16),
    keys: 0..100,
    metadata: b"",
    with_keys: true,
    shards: 0..1,
};

const FORMAT_2: [Golden; 8] = [
    Golden { name: "8-bits", width: Width::Bits(8), ..PLAIN },
    Golden { name: "13-bits", width: Width::Bits(13), ..PLAIN },
    Golden { name: "16-bits", ..PLAIN },
    Golden { name: "20-bits", width: Width::Bits(20), ..PLAIN },
    Golden { name: "empty-without-keys", keys: 0..0, with_keys: false, ..PLAIN },
    Golden { name: "rate-and-metadata", width: Width::Rate(0.001), metadata: b"log offset 17", ..PLAIN },
    // In two tables.
    Golden { name: "growing", capacity: 10, max_capacity: Some(10), width: Width::Bits(13), keys: 0..30, ..PLAIN },
    // The second of two shards: no filter of two shards is smaller than 64 KiB.
    Golden { name: "part", capacity: 260_000, width: Width::Bits(4), keys: 0..20, shards: 1..2, ..PLAIN },
];

impl Golden {
    fn hasher() -> StableHashBuilder {
        StableHashBuilder::with_seeds(0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210)
    }

    /// The filter of the file, as it is built today.
    fn filter(&self) -> Filter {
        let shape = Shape { capacity: self.capacity, width: self.width, stripes: Some(1), seed: 0 };
        let builder = shape.builder().hasher(Golden::hasher());
        let builder = if let Some(keys) = self.max_capacity { builder.max_capacity(keys) } else { builder };
        let filter: Filter = builder.build().unwrap();
        for key in self.keys() {
            filter.insert(&key).unwrap();
        }
        filter
    }

    fn keys(&self) -> impl Iterator<Item = String> {
        self.keys.clone().map(|number| format!("key {number}"))
    }

    fn bytes(&self) -> Vec<u8> {
        let filter = self.filter();
        let snapshot = filter.snapshot().metadata(self.metadata).shards(self.shards.clone());
        let snapshot = if self.with_keys { snapshot } else { snapshot.without_seeds() };
        written(|to| snapshot.write_to(to))
    }

    fn path(&self, format: u32) -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/format-{format}/{}.snapshot", self.name))
    }

    fn file(&self, format: u32) -> Vec<u8> {
        let path = self.path(format);
        fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    fn check_filter(&self, loaded: &Filter) {
        let today = self.filter();
        assert_eq!(loaded.len(), today.len());
        assert_eq!((loaded.capacity(), loaded.config().max_capacity), (today.capacity(), today.config().max_capacity));
        assert_eq!(loaded.stats().tables, today.stats().tables);
        assert_eq!(loaded.config().fingerprint_bits, today.config().fingerprint_bits);
        assert_eq!(loaded.stats().expected_false_positive_rate, today.stats().expected_false_positive_rate);
        for key in self.keys() {
            assert!(loaded.contains(&key), "{key}");
        }
        for number in 0..1000 {
            let key = format!("absent {number}");
            assert_eq!(loaded.contains(&key), today.contains(&key), "{key}");
        }
    }
}

#[test]
fn files_of_format_2_are_read() {
    for golden in FORMAT_2 {
        let file = golden.file(2);
        let reader = SnapshotReader::new(&file[..]).unwrap();
        assert_eq!(reader.header().metadata, golden.metadata, "{}", golden.name);
        assert_eq!(reader.header().part, golden.shards, "{}", golden.name);
        assert_eq!(reader.header().has_seeds, golden.with_keys, "{}", golden.name);
        if golden.shards.len() < reader.header().config.shards {
            let part =
                reader.into_filter_with_hasher::<String, _, concurrent_cuckoo_filter::kind::Plain>(Golden::hasher());
            assert!(matches!(part, Err(SnapshotError::PartAlone { shards: 2, .. })), "{part:?}");
            let rest = written(|to| golden.filter().snapshot().shards(0..1).write_to(to));
            golden.check_filter(&Filter::join([&file[..], &rest[..]], Golden::hasher()).unwrap());
        } else {
            if golden.with_keys {
                golden.check_filter(&reader.into_filter().unwrap());
            }
            golden.check_filter(&Filter::read_from(&file[..], Golden::hasher()).unwrap());
        }
    }
}

#[test]
fn the_same_filters_give_the_same_bytes_today() {
    for golden in FORMAT_2 {
        let path = golden.path(2);
        if env::var_os("CUCKOO_FILTER_TEST_WRITE").is_some() && !path.exists() {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, golden.bytes()).unwrap();
        }
        assert!(golden.file(2) == as_on_64_bits(golden.bytes(), &golden.file(2)), "{}", golden.name);
    }
}

/// The bytes, with the fourth number of the probe from the file if it differs: it depends on the layout of arrays in memory.
fn as_on_64_bits(bytes: Vec<u8>, file: &[u8]) -> Vec<u8> {
    const FOURTH_NUMBER: Range<usize> = 96..104;
    if cfg!(all(target_pointer_width = "64", target_endian = "little")) {
        return bytes;
    }
    Sealed::new(bytes).with(FOURTH_NUMBER.start, &file[FOURTH_NUMBER]).bytes
}
