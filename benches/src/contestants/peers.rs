//! Alternatives to this crate. A structure whose writes take `&mut` is in one lock, which lookups take, too. All use ahash; those
//! that take a hasher instead of a hash function use it without random seeds.

use super::{Contestant, Family, Set};
use crate::field::Size;
use ahash::{AHasher, RandomState};
use cuckoo_clock::config::{BitCount, CuckooConfiguration};
use parking_lot::RwLock;
use rand::{SeedableRng, rngs::SmallRng};
use std::hash::BuildHasher;

pub(super) fn all() -> Vec<Contestant> {
    type Make = fn(Size) -> Box<dyn Set>;
    let contestant = |name, family, bits, removes, make: Make| Contestant { name, family, removes, bits, make };
    let filter =
        |name: &str, bits, removes, make| contestant(format!("{name}, {bits} bits"), Family::Peer, bits, removes, make);
    let exact = |name: &str, make| contestant(name.to_owned(), Family::Exact, 13, true, make);
    vec![
        filter("atomic-cuckoo-filter", 16, true, |size| Box::new(atomic(size))),
        filter("cuckoofilter + RwLock", 8, true, |size| Box::new(locked_cuckoo(size))),
        filter("scalable_cuckoo_filter + RwLock", 13, true, |size| Box::new(scalable_cuckoo(size))),
        filter("cuckoo-clock", 13, true, |size| Box::new(cuckoo_clock(size))),
        filter("fastbloom", 13, false, |size| Box::new(bloom(size))),
        filter("sbbf-rs-safe + RwLock", 13, false, |size| Box::new(blocked_bloom(size))),
        filter("qfilter + RwLock", 13, true, |size| Box::new(quotient(size))),
        exact("DashSet", |size| Box::new(DashSet::with_capacity_and_hasher(size.keys, RandomState::new()))),
        exact("papaya", |size| Box::new(Papaya::with_capacity_and_hasher(size.keys, RandomState::new()))),
        exact("scc", |size| Box::new(Scc::with_capacity_and_hasher(size.keys, RandomState::new()))),
    ]
}

/// Implements [`Set`] for a type, from an expression of `set` and `key` per operation.
macro_rules! set {
    ($set:ty, |$this:ident, $key:ident| $insert:expr, $contains:expr $(, $remove:expr)?) => {
        impl Set for $set {
            #[inline]
            fn insert(&self, $key: &u64) -> bool {
                let $this = self;
                $insert
            }

            #[inline]
            fn contains(&self, $key: &u64) -> bool {
                let $this = self;
                $contains
            }

            $(#[inline]
            fn remove(&self, $key: &u64) -> bool {
                let $this = self;
                $remove
            })?
        }
    };
}

/// Fingerprints are written by compare-and-swap. One lock serves all relocations, and lookups wait during a relocation. The
/// number of buckets is a power of two.
type AtomicCuckoo = atomic_cuckoo_filter::CuckooFilter<AHasher>;

fn atomic(size: Size) -> AtomicCuckoo {
    let builder = atomic_cuckoo_filter::CuckooFilterBuilder::default().capacity(size.slots).bucket_size(4);
    builder.fingerprint_size(size.bits as usize).build().expect("a possible filter")
}

set!(AtomicCuckoo, |set, key| AtomicCuckoo::insert(set, key).is_ok(), set.contains(key), set.remove(key));

/// The number of buckets is a power of two. A full filter drops another key than the one that it refuses.
type LockedCuckoo = RwLock<cuckoofilter::CuckooFilter<AHasher>>;

fn locked_cuckoo(size: Size) -> LockedCuckoo {
    RwLock::new(cuckoofilter::CuckooFilter::with_capacity(size.slots))
}

set!(LockedCuckoo, |set, key| set.write().add(key).is_ok(), set.read().contains(key), set.write().delete(key));

/// The number of buckets of the first filter is a power of two. Keys that it cannot place are kept in a list, and a filter of
/// twice the size is added.
type ScalableCuckoo = RwLock<scalable_cuckoo_filter::ScalableCuckooFilter<u64, AHasher, SmallRng>>;

fn scalable_cuckoo(size: Size) -> ScalableCuckoo {
    // The first filter has half of the requested rate, and a lookup compares 8 fingerprints: 4 bits in all.
    let filter = scalable_cuckoo_filter::ScalableCuckooFilterBuilder::new()
        .initial_capacity(size.slots)
        .false_positive_probability(0.5f64.powi(size.bits as i32 - 4))
        .hasher(RandomState::new().build_hasher())
        .rng(SmallRng::seed_from_u64(fastrand::u64(..)))
        .finish();
    RwLock::new(filter)
}

set!(
    ScalableCuckoo,
    |set, key| {
        set.write().insert(key);
        true
    },
    set.read().contains(key),
    set.write().remove(key)
);

/// Each bucket has a mutex, which lookups lock, too, and an allocation. A fingerprint takes whole bytes, and the number of
/// buckets is a power of two. Equal fingerprints of a bucket are stored once, so a removal can lose another key.
type CuckooClock = cuckoo_clock::CuckooFilter<RandomState>;

fn cuckoo_clock(size: Size) -> CuckooClock {
    let bits = BitCount::try_from(size.bits as usize).expect("a possible width");
    let configuration = CuckooConfiguration::builder(size.slots).fingerprint_bits(bits).build();
    CuckooClock::new(configuration.expect("a possible filter"), RandomState::new())
}

set!(CuckooClock, |set, key| CuckooClock::insert(set, key).is_none(), set.contains(key), set.remove(key));

/// Bits are set one by one by atomic operations.
type Bloom = fastbloom::AtomicBloomFilter<RandomState>;

/// Builds one with as many bits as a cuckoo filter of that size, and the best number of hash functions for the keys.
fn bloom(size: Size) -> Bloom {
    fastbloom::AtomicBloomFilter::with_num_bits(size.slots * size.bits as usize)
        .hasher(RandomState::new())
        .expected_items(size.keys)
}

set!(
    Bloom,
    |set, key| {
        Bloom::insert(set, key);
        true
    },
    set.contains(key)
);

/// A split-block Bloom filter, which takes hashes, with a hash function.
type BlockedBloom = (RwLock<sbbf_rs_safe::Filter>, RandomState);

/// Builds one with as many bits as a cuckoo filter of that size.
fn blocked_bloom(size: Size) -> BlockedBloom {
    (RwLock::new(sbbf_rs_safe::Filter::new(size.bits as usize, size.slots)), RandomState::new())
}

set!(
    BlockedBloom,
    |set, key| {
        let hash = set.1.hash_one(key);
        set.0.write().insert_hash(hash);
        true
    },
    {
        let hash = set.1.hash_one(key);
        set.0.read().contains_hash(hash)
    }
);

/// The number of slots is a power of two, of which it fills 95 %.
type Quotient = RwLock<qfilter::Filter<Box<[u8]>, RandomState>>;

/// Builds one with slots of about as many bits as the size says: 2.125 of them locate the remainders.
fn quotient(size: Size) -> Quotient {
    let rate = 0.5f64.powi(size.bits as i32 - 2);
    let filter = qfilter::Filter::new_with_hasher(size.slots as u64 * 19 / 20, rate, RandomState::new());
    RwLock::new(filter.expect("a possible filter"))
}

// As its documentation requires for filters with removal.
set!(
    Quotient,
    |set, key| set.write().insert_duplicated(key).is_ok(),
    set.read().contains(key),
    set.write().remove(key)
);

/// Exact: shards, each with a lock that lookups take, too.
type DashSet = dashmap::DashSet<u64, RandomState>;

set!(DashSet, |set, key| DashSet::insert(set, *key), set.contains(key), DashSet::remove(set, key).is_some());

/// Exact: lookups take no lock. Each operation enters and leaves the reclamation scheme, as separate requests would. Each key is an
/// allocation of its own.
type Papaya = papaya::HashSet<u64, RandomState>;

set!(Papaya, |set, key| set.pin().insert(*key), set.pin().contains(key), set.pin().remove(key));

/// Exact: buckets, each with a lock that lookups take, too.
type Scc = scc::HashSet<u64, RandomState>;

set!(Scc, |set, key| set.insert_sync(*key).is_ok(), set.contains_sync(key), set.remove_sync(key).is_some());
