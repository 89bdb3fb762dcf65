//! This crate, and earlier commits of it.

use super::Many;
use crate::field::{Size, Text};

/// The name of this crate among the contestants.
pub const NAME: &str = "this crate";

/// One commit of the crate.
#[derive(Clone, Copy)]
pub struct Version {
    /// Its name in tables.
    pub name: &'static str,
    /// Builds a filter of numbers.
    pub numbers: fn(Size) -> Box<dyn Many<u64>>,
    /// Builds a filter of text.
    pub text: fn(Size) -> Box<dyn Many<Text>>,
    /// Fills a filter of each kind with these keys.
    pub kinds: fn(&[u64]) -> Vec<Kind>,
}

type Pass = Box<dyn Fn(&[u64]) -> usize>;
type Batch = Box<dyn Fn(&[u64], &mut [bool])>;

/// A filter of some kind, which holds keys.
pub struct Kind {
    /// Its name in tables.
    pub name: &'static str,
    /// Looks the keys up one by one, and counts those that were found.
    pub contains_all: Pass,
    /// Looks the keys up in a batch.
    pub contains_batch: Batch,
    /// Empties the filter and loads the keys in bulk; returns how many keys went in, 0 where there is no such operation.
    pub fill: Pass,
}

/// Defines a [`Kind`]: name, filter, a lookup, the method for batches, and how it is filled.
#[macro_export]
macro_rules! kind {
    ($name:literal, $filter:expr, |$set:ident, $key:ident| $lookup:expr, $batch:ident, $fill:expr) => {{
        let single = std::sync::Arc::new($filter);
        let (batch, filled) = (std::sync::Arc::clone(&single), std::sync::Arc::clone(&single));
        $crate::Kind {
            name: $name,
            contains_all: Box::new(move |keys| {
                let $set = &*single;
                keys.iter().filter(|&$key| $lookup).count()
            }),
            contains_batch: Box::new(move |keys, found| batch.$batch(keys, found)),
            fill: Box::new(move |keys| $fill(&*filled, keys)),
        }
    }};
}

/// Defines, for the commit of the crate that goes by a name, `build`, `version` and the contestant `Filter`. The type of a
/// mapped filter is not the same in all commits.
#[macro_export]
macro_rules! version {
    ($package:ident, $name:expr, $mapped:ty) => {
        /// The contestant.
        pub struct Filter<K: $crate::Key>(pub $package::CuckooFilter<K>);

        /// A filter with as many slots as the size says, or a little fewer: within 0.1 % from 2^12 on.
        pub fn build<K: $crate::Key>(size: $crate::Size) -> $package::CuckooFilter<K> {
            let build = |capacity| {
                let builder = $package::CuckooFilter::<K>::builder().capacity(capacity).fingerprint_bits(size.bits);
                builder.build().expect("a possible filter")
            };
            let mut random = $crate::field::keys::<K>(0, 1);
            let key = random.pop().expect("one key");
            let fits = |capacity| {
                let filter = build(capacity);
                filter.insert(&key).expect("an empty filter");
                1.0 / filter.load_factor() < size.slots as f64 + 0.5
            };
            // A large filter holds 90 % for certain; for a small one of this crate 24 slots are the least.
            let mut low = if size.slots < 1 << 16 { 1 } else { size.slots / 10 * 9 };
            let mut high = size.slots;
            while high - low > 1 + size.slots / 8192 {
                let middle = low.midpoint(high);
                if fits(middle) {
                    low = middle;
                } else {
                    high = middle;
                }
            }
            build(low)
        }

        /// This commit.
        pub fn version() -> $crate::Version {
            $crate::Version {
                name: $name,
                numbers: |size| Box::new(Filter(build(size))),
                text: |size| Box::new(Filter(build(size))),
                kinds,
            }
        }

        /// A filter of each kind that holds these keys. Where slots have tags, fingerprints have 13 bits and tags 3.
        fn kinds(keys: &[u64]) -> Vec<$crate::Kind> {
            use $package::{CountingFilter, CuckooFilter, ExpiringFilter, StableHashBuilder, TaggedFilter};
            let count = keys.len();
            let plain = |bits| CuckooFilter::<u64>::builder().capacity(count).fingerprint_bits(bits);
            let stable = plain(13).hasher(StableHashBuilder::with_keys(1, 2)).build().expect("a possible filter");
            assert_eq!(stable.par_insert_hash(keys).inserted, count);
            let path = std::env::temp_dir().join(format!("{}-{count}.filter", std::process::id()));
            stable.save(&path).expect("a folder that can be written to");
            let mapped = <$mapped>::open(&path).expect("the filter that was saved");
            std::fs::remove_file(&path).expect("the file is ours");
            let expiring = ExpiringFilter::<u64>::builder().time_to_live(std::time::Duration::from_secs(6)).steps(6);
            // There is room for the tick that keys may live longer.
            let expiring = expiring.capacity(count * 6 / 7).build().expect("a possible filter");
            let counting = CountingFilter::<u64>::builder().capacity(count).counter_bits(3);
            let tagged = TaggedFilter::<u64>::builder().capacity(count).tags(7);
            let growing = CuckooFilter::<u64>::builder().capacity(count / 60).max_capacity(count).fingerprint_bits(13);
            let fill = |filter: &CuckooFilter<u64>, keys: &[u64]| {
                filter.clear();
                filter.par_insert(keys).inserted
            };
            let kinds = vec![
                $crate::kind!(
                    "plain, 16 bits",
                    plain(16).build().expect("a possible filter"),
                    |set, key| set.contains(key),
                    contains_batch,
                    fill
                ),
                $crate::kind!(
                    "plain, 13 bits",
                    plain(13).build().expect("a possible filter"),
                    |set, key| set.contains(key),
                    contains_batch,
                    fill
                ),
                $crate::kind!(
                    "growing, 13 bits",
                    growing.build().expect("a possible filter"),
                    |set, key| set.contains(key),
                    contains_batch,
                    fill
                ),
                $crate::kind!(
                    "expiring, 13 + 3 bits",
                    expiring,
                    |set, key| set.contains(key),
                    contains_batch,
                    |filter: &ExpiringFilter<u64>, keys: &[u64]| {
                        filter.clear();
                        filter.par_insert(keys).inserted
                    }
                ),
                $crate::kind!(
                    "counting, 13 + 3 bits",
                    counting.build().expect("a possible filter"),
                    |set, key| set.contains(key),
                    contains_batch,
                    |filter: &CountingFilter<u64>, keys: &[u64]| {
                        filter.clear();
                        filter.par_add(keys).inserted
                    }
                ),
                $crate::kind!(
                    "tagged, 13 + 3 bits",
                    tagged.build().expect("a possible filter"),
                    |set, key| set.contains(key),
                    contains_batch,
                    |filter: &TaggedFilter<u64>, keys: &[u64]| {
                        filter.clear();
                        filter.par_insert(keys, 1).inserted
                    }
                ),
                $crate::kind!(
                    "hashes, loaded, 13 bits",
                    stable,
                    |set, key| set.contains_hash(*key),
                    contains_batch_hash,
                    |_, _| 0
                ),
                $crate::kind!(
                    "hashes, mapped, 13 bits",
                    mapped,
                    |set, key| set.contains_hash(*key),
                    contains_batch_hash,
                    |_, _| 0
                ),
            ];
            kinds.iter().for_each(|kind| $crate::most((kind.fill)(keys).max(count * 95 / 100 + 1), count));
            kinds
        }

        impl<K: $crate::Key> $crate::Set<K> for Filter<K> {
            #[inline]
            fn insert(&self, key: &K) -> bool {
                self.0.insert(key).is_ok()
            }

            #[inline]
            fn contains(&self, key: &K) -> bool {
                self.0.contains(key)
            }

            #[inline]
            fn remove(&self, key: &K) -> bool {
                self.0.remove(key)
            }
        }

        impl<K: $crate::Key> $crate::Many<K> for Filter<K> {
            fn contains_batch(&self, keys: &[K], found: &mut [bool]) {
                self.0.contains_batch(keys, found);
            }

            fn insert_batch(&self, keys: &[K]) -> usize {
                self.0.insert_batch(keys).inserted
            }

            fn insert_unique_all(&self, keys: &[K]) -> usize {
                keys.iter().filter(|&key| self.0.insert_unique(key) == Ok(true)).count()
            }

            fn count_all(&self, keys: &[K]) -> usize {
                keys.iter().map(|key| self.0.count(key)).sum()
            }

            fn par_insert(&self, keys: &[K]) -> usize {
                self.0.par_insert(keys).inserted
            }

            fn clear(&self) {
                self.0.clear();
            }

            fn slots(&self) -> usize {
                (self.0.len() as f64 / self.0.load_factor()).round() as usize
            }

            fn save(&self) -> Vec<u8> {
                let mut snapshot = Vec::new();
                self.0.write_to(&mut snapshot).expect("memory");
                snapshot
            }

            fn load(&self, snapshot: &[u8]) -> usize {
                let loaded = $package::CuckooFilter::<K>::read_from(snapshot, self.0.hasher().clone());
                loaded.expect("a snapshot").len()
            }
        }
    };
}

type Mapped = concurrent_cuckoo_filter::MappedFilter<
    concurrent_cuckoo_filter::CuckooFilter<u64, concurrent_cuckoo_filter::StableHashBuilder>,
>;
version!(concurrent_cuckoo_filter, NAME, Mapped);
