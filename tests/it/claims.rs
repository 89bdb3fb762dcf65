//! What is known to go wrong in other cuckoo filters, and does not here: docs/claims.md.

use concurrent_cuckoo_filter::{CuckooFilter, InsertError};

/// Others kick for ever, or drop the fingerprint that is in hand when they give up.
#[test]
fn a_full_filter_refuses_at_once_and_keeps_every_key() {
    let filter = CuckooFilter::<u64>::with_capacity(1000);
    let kept: Vec<u64> = (0..4000).filter(|key| filter.insert(key).is_ok()).collect();
    assert!((1000..1200).contains(&kept.len()), "{} keys in a filter for 1000", kept.len());
    assert_eq!(filter.insert(&u64::MAX), Err(InsertError::Full));
    assert_eq!(filter.len(), kept.len());
    assert!(kept.iter().all(|key| filter.contains(key)));
    assert!(kept.iter().all(|key| filter.remove(key)), "each has a copy of its own");
    assert!(filter.is_empty());
}

/// Others double at a power of two: one key more, twice the memory.
#[test]
fn memory_follows_the_capacity() {
    let bits_a_key = |capacity: usize| {
        CuckooFilter::<u64>::builder().capacity(capacity).memory_usage().unwrap() as f64 * 8.0 / capacity as f64
    };
    for log2 in 14..26 {
        for capacity in [(1 << log2) - 1, (1 << log2) + 1, 3 << (log2 - 1)] {
            let bits = bits_a_key(capacity);
            assert!((13.0..14.5).contains(&bits), "{bits} bits a key at {capacity}");
        }
    }
}

/// Others take the alternate modulo a capacity that is no power of two, so that it does not lead back: a key that was moved is
/// found, and its neighbours are lost when it moves again.
#[test]
fn a_key_that_moved_is_found_and_removed_at_any_size() {
    let mut moved = 0;
    for capacity in (33..400).step_by(7).chain([50_001, 250_003]) {
        let filter = CuckooFilter::<u64>::with_capacity(capacity);
        let keys = 0..capacity as u64;
        assert!(keys.clone().all(|key| filter.insert(&key).is_ok()));
        moved += filter.stats().relocations;
        assert!(keys.clone().all(|key| filter.contains(&key)), "{capacity} keys");
        assert!(keys.clone().all(|key| filter.remove(&key)), "{capacity} keys");
        assert!(filter.is_empty(), "{capacity} keys");
    }
    assert!(moved > 0, "keys moved");
}

/// Others hash where an array stands in memory.
#[test]
fn an_array_is_known_by_what_is_in_it() {
    let filter = CuckooFilter::<[u8]>::with_capacity(100);
    filter.insert(b"mailinator.com").unwrap();
    let elsewhere = String::from("mailinator.com").into_bytes();
    assert!(filter.contains(&elsewhere) && filter.contains(&elsewhere.clone()[..]));
    assert!(filter.remove(&elsewhere));
}

/// Others insert a key 2b + 1 times and fail, or lose one: a copy for each of the 8 slots, and then a refusal that says so.
#[test]
fn the_ninth_copy_of_a_key_is_refused_and_disturbs_nobody() {
    let filter = CuckooFilter::<u64>::with_capacity(1000);
    (1..500).for_each(|key| filter.insert(&key).unwrap());
    assert!((0..8).all(|_| filter.insert(&0).is_ok()));
    assert_eq!(filter.insert(&0), Err(InsertError::TooManyCopies));
    assert_eq!(filter.count(&0), 8);
    assert!((0..500).all(|key| filter.contains(&key)));
}

/// A removal of what was never inserted can take another key's copy. Whoever asks first and remembers
/// what was admitted removes no other key's.
#[test]
fn what_was_admitted_can_be_removed_and_nothing_else_is_lost() {
    // Narrow, so that many keys share a class.
    let filter = CuckooFilter::<u64>::builder().capacity(20_000).fingerprint_bits(8).build().unwrap();
    let (admitted, taken_for_present): (Vec<u64>, Vec<u64>) =
        (0..20_000).partition(|key| filter.insert_unique(key).unwrap());
    assert!(taken_for_present.len() > 100, "some keys share a class with another");
    let (leaving, staying) = admitted.split_at(admitted.len() / 2);
    assert!(leaving.iter().all(|key| filter.remove(key)));
    assert!(staying.iter().all(|key| filter.contains(key)), "no other key lost a copy");
    assert_eq!(filter.len(), staying.len());

    // The mistake: removals of keys that were told "present", which have no copy of their own.
    let mistaken = taken_for_present.iter().filter(|key| filter.remove(key)).count();
    assert!(mistaken > 0 && staying.iter().any(|key| !filter.contains(key)), "{mistaken} copies of others are gone");
}
