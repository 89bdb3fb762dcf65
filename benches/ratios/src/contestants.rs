//! Filters behind one trait. Every loop is in a function of its own, so that all are compiled alike.

use crate::Case;
use parking_lot::RwLock;

pub(crate) struct Contestant {
    pub(crate) name: &'static str,
    pub(crate) filter: Box<dyn Filter>,
}

pub(crate) trait Filter {
    fn insert(&self, key: u64) -> bool;
    fn contains(&self, keys: &[u64]) -> usize;
    /// Peers have no batches: theirs is a loop.
    fn contains_batch(&self, keys: &[u64], found: &mut [bool]);

    fn churn(&self, _out: &[u64], _into: &[u64]) {}

    fn insert_unique(&self, _keys: &[u64]) -> usize {
        0
    }

    fn count(&self, _keys: &[u64]) -> usize {
        0
    }

    fn contains_text(&self, _keys: &[String]) -> usize {
        0
    }

    fn has(&self, case: Case) -> bool;
}

/// One filter of numbers and one of text, which is as large, and empty.
struct Pair<N, T>(N, T);

macro_rules! ours {
    ($crate_name:ident) => {
        impl Filter for Pair<$crate_name::CuckooFilter<u64>, $crate_name::CuckooFilter<str>> {
            fn insert(&self, key: u64) -> bool {
                self.0.insert(&key).is_ok()
            }

            #[inline(never)]
            fn contains(&self, keys: &[u64]) -> usize {
                keys.iter().filter(|&key| self.0.contains(key)).count()
            }

            #[inline(never)]
            fn contains_batch(&self, keys: &[u64], found: &mut [bool]) {
                self.0.contains_batch(keys, found);
            }

            #[inline(never)]
            fn churn(&self, out: &[u64], into: &[u64]) {
                for (out, into) in out.iter().zip(into) {
                    self.0.remove(out);
                    let _ = self.0.insert(into);
                }
            }

            #[inline(never)]
            fn insert_unique(&self, keys: &[u64]) -> usize {
                keys.iter().filter(|&key| self.0.insert_unique(key) == Ok(true)).count()
            }

            #[inline(never)]
            fn count(&self, keys: &[u64]) -> usize {
                keys.iter().map(|key| self.0.count(key)).sum()
            }

            #[inline(never)]
            fn contains_text(&self, keys: &[String]) -> usize {
                keys.iter().filter(|&key| self.1.contains(key)).count()
            }

            fn has(&self, _: Case) -> bool {
                true
            }
        }
    };
}

ours!(today);
ours!(earlier);

struct Sbbf(RwLock<sbbf_rs_safe::Filter>, ahash::RandomState);

impl Filter for Sbbf {
    fn insert(&self, key: u64) -> bool {
        self.0.write().insert_hash(self.1.hash_one(key));
        true
    }

    #[inline(never)]
    fn contains(&self, keys: &[u64]) -> usize {
        keys.iter().filter(|&key| self.0.read().contains_hash(self.1.hash_one(key))).count()
    }

    fn contains_batch(&self, keys: &[u64], _: &mut [bool]) {
        std::hint::black_box(self.contains(keys));
    }

    fn has(&self, case: Case) -> bool {
        !matches!(case, Case::Churn | Case::Unique | Case::Count | Case::Text)
    }
}

struct Locked(RwLock<cuckoofilter::CuckooFilter<ahash::AHasher>>);

impl Filter for Locked {
    fn insert(&self, key: u64) -> bool {
        self.0.write().add(&key).is_ok()
    }

    #[inline(never)]
    fn contains(&self, keys: &[u64]) -> usize {
        keys.iter().filter(|&key| self.0.read().contains(key)).count()
    }

    fn contains_batch(&self, keys: &[u64], _: &mut [bool]) {
        std::hint::black_box(self.contains(keys));
    }

    #[inline(never)]
    fn churn(&self, out: &[u64], into: &[u64]) {
        for (out, into) in out.iter().zip(into) {
            self.0.write().delete(out);
            let _ = self.0.write().add(into);
        }
    }

    fn has(&self, case: Case) -> bool {
        !matches!(case, Case::Unique | Case::Count | Case::Text)
    }
}

/// All of them, empty. Ours have as many slots as are asked for, within one in a thousand.
pub(crate) fn contestants(slots: usize, bits: u32, peers: bool) -> Vec<Contestant> {
    /// The largest capacity for which a filter has at most so many slots.
    macro_rules! sized {
        ($crate_name:ident, $key:ty) => {{
            let build = |capacity| {
                let builder = $crate_name::CuckooFilter::<$key>::builder().capacity(capacity);
                builder.fingerprint_bits(bits)
            };
            let limit = slots * bits as usize / 8 * 1011 / 1000 + 1024;
            let fits = |capacity: usize| build(capacity).memory_usage().is_ok_and(|bytes| bytes <= limit);
            let (mut low, mut high) = (0, slots);
            while high - low > slots / 4096 + 1 {
                let middle = (low + high) / 2;
                if fits(middle) { low = middle } else { high = middle }
            }
            build(low).build().expect("memory")
        }};
    }
    let mut list = vec![
        Contestant { name: "today", filter: Box::new(Pair(sized!(today, u64), sized!(today, str))) },
        Contestant { name: "earlier", filter: Box::new(Pair(sized!(earlier, u64), sized!(earlier, str))) },
    ];
    if peers {
        let sbbf = Sbbf(RwLock::new(sbbf_rs_safe::Filter::new(13, slots * 95 / 100)), ahash::RandomState::new());
        let locked = Locked(RwLock::new(cuckoofilter::CuckooFilter::with_capacity(slots)));
        list.push(Contestant { name: "sbbf-rs-safe", filter: Box::new(sbbf) });
        list.push(Contestant { name: "cuckoofilter", filter: Box::new(locked) });
    }
    list
}
