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
}

/// Defines, for the commit of the crate that goes by a name, `build`, `version` and the contestant `Filter`.
#[macro_export]
macro_rules! version {
    ($package:ident, $name:expr) => {
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
            }
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

version!(concurrent_cuckoo_filter, NAME);
