//! This crate, and earlier commits of it.

/// Defines `build`, `plain` and `contestants` for a commit of the crate, given by the name of its package; after `plain`, the first
/// two alone, which earlier commits have, too.
#[macro_export]
macro_rules! version {
    (plain $package:ident, $name:literal $(, $two_steps:path)?) => {
        use $crate::{Contestant, Family, Pass, Set, Size};
        use $package::CuckooFilter;

        const FITS: &str = "a possible filter";

        /// A filter of some kind.
        pub struct Of<F>(pub F);

        /// A plain filter with as many slots as the size says, or a little fewer: within 0.1 % from 2^12 on.
        pub fn build(size: Size) -> CuckooFilter<u64> {
            let build = |capacity| {
                let builder = CuckooFilter::<u64>::builder().capacity(capacity).fingerprint_bits(size.bits);
                builder.build().expect("a possible filter")
            };
            let fits = |capacity| {
                let filter = build(capacity);
                filter.insert(&0).expect("an empty filter");
                1.0 / filter.load_factor() < size.slots as f64 + 0.5
            };
            // A capacity of 90 % of the slots always fits a large filter; a small one has at least 24 slots.
            let mut low = if size.slots < 1 << 16 { 1 } else { size.slots / 10 * 9 };
            let mut high = size.slots;
            while high - low > 1 + size.slots / 8192 {
                let middle = low.midpoint(high);
                *if fits(middle) { &mut low } else { &mut high } = middle;
            }
            build(low)
        }

        fn of(what: &str, family: Family, bits: u32, make: fn(Size) -> Box<dyn Set>) -> Contestant {
            Contestant { name: format!("{}, {what}", $name), family, removes: true, bits, make }
        }

        /// Plain filters of 13 and of 16 bits, and one that grows.
        pub fn plain() -> Vec<Contestant> {
            vec![
                of("13 bits", Family::Ours, 13, |size| Box::new(Of(build(size)))),
                of("16 bits", Family::Ours, 16, |size| Box::new(Of(build(size)))),
                of("growing, 13 bits", Family::Kind, 13, |size| {
                    let builder = CuckooFilter::<u64>::builder().capacity(size.keys / 60).max_capacity(size.keys);
                    Box::new(Of(builder.fingerprint_bits(13).build().expect(FITS)))
                }),
            ]
        }

        $crate::version!(of CuckooFilter<u64>,
            |set, key| set.insert(key).is_ok(), set.remove(key), |keys| set.par_insert(keys);
            "insert_unique" => |keys| keys.iter().filter(|&key| set.insert_unique(key) != Ok(false)).count(),
            "count" => |keys| keys.iter().filter(|&key| set.count(key) > 0).count()
            $(, "two steps" => |keys| $two_steps(set, keys))?);
    };
    ($package:ident, $name:literal) => {
        $crate::version!(plain $package, $name, in_two_steps);
        use $package::{CountingFilter, ExpiringFilter, TaggedFilter};

        /// Plain filters, and the other kinds, whose slots have 13 bits of a fingerprint and 3 of a tag.
        pub fn contestants() -> Vec<Contestant> {
            let kinds = [
                of("expiring, 13 + 3 bits", Family::Kind, 13, |size| {
                    // It has room for one more tick, which keys may live longer.
                    let builder = ExpiringFilter::<u64>::builder().capacity(size.keys * 6 / 7 + 1).steps(6);
                    Box::new(Of(builder.time_to_live(std::time::Duration::from_secs(6)).build().expect(FITS)))
                }),
                of("growing, expiring, 13 + 3 bits", Family::Kind, 13, |size| {
                    let builder = ExpiringFilter::<u64>::builder().capacity(size.keys / 60).max_capacity(size.keys * 6 / 7 + 1);
                    let builder = builder.fingerprint_bits(13).steps(6).time_to_live(std::time::Duration::from_secs(6));
                    Box::new(Of(builder.build().expect(FITS)))
                }),
                of("counting, 13 + 3 bits", Family::Kind, 13, |size| {
                    let builder = CountingFilter::<u64>::builder().capacity(size.keys).counter_bits(3);
                    Box::new(Of(builder.build().expect(FITS)))
                }),
                of("tagged, 13 + 3 bits", Family::Kind, 13, |size| {
                    let builder = TaggedFilter::<u64>::builder().capacity(size.keys).tags(7);
                    Box::new(Of(builder.build().expect(FITS)))
                }),
            ];
            plain().into_iter().chain(kinds).collect()
        }

        $crate::version!(of ExpiringFilter<u64>,
            |set, key| set.insert(key).is_ok(), set.remove(key), |keys| set.par_insert(keys););
        $crate::version!(of CountingFilter<u64>,
            |set, key| set.add(key).is_ok(), set.subtract(key).is_some(), |keys| set.bulk().add(keys););
        $crate::version!(of TaggedFilter<u64>,
            |set, key| set.insert(key, 1).is_ok(), set.remove(key, 1), |keys| {
                set.bulk().insert(keys, 1).expect("a tag that fits")
            };);

        /// Looks up the keys, each one started sixteen keys ahead, and returns the number of found ones.
        fn in_two_steps(filter: &CuckooFilter<u64>, keys: &[u64]) -> usize {
            const AHEAD: usize = 16;
            let (mut started, mut found) = ([0; AHEAD], 0);
            let (first, later) = keys.split_at(AHEAD.min(keys.len()));
            started.iter_mut().zip(first).for_each(|(hash, key)| *hash = filter.prefetch(key));
            for (number, key) in later.iter().enumerate() {
                let hash = &mut started[number % AHEAD];
                found += usize::from(filter.hashed().contains(hash));
                *hash = filter.prefetch(key);
            }
            found + started[..first.len()].iter().filter(|hash| filter.hashed().contains(*hash)).count()
        }
    };
    (of $filter:ty, |$set:ident, $key:ident| $insert:expr, $remove:expr, |$keys:ident| $load:expr;
        $($name:literal => |$asked:ident| $more:expr),*) => {
        impl Set for Of<$filter> {
            #[inline]
            fn insert(&self, $key: &u64) -> bool {
                let $set = &self.0;
                $insert
            }

            #[inline]
            fn contains(&self, key: &u64) -> bool {
                self.0.contains(key)
            }

            #[inline]
            fn remove(&self, $key: &u64) -> bool {
                let $set = &self.0;
                $remove
            }

            fn load(&self, $keys: &[u64]) -> usize {
                let $set = &self.0;
                $load.inserted
            }

            fn more(&self) -> Vec<(&'static str, Pass<'_>)> {
                let $set = &self.0;
                let batch: Pass<'_> = Box::new(move |keys| {
                    let mut found = [false; 1024];
                    let count = |keys: &[u64]| {
                        let found = &mut found[..keys.len()];
                        $set.contains_batch(keys, found);
                        found.iter().filter(|&&found| found).count()
                    };
                    keys.chunks(1024).map(count).sum()
                });
                vec![("contains_batch", batch), $(($name, Box::new(move |$asked: &[u64]| $more))),*]
            }
        }
    };
}

version!(concurrent_cuckoo_filter, "this crate");
