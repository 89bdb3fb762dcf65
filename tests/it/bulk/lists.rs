//! The forms of keys in lists and iterators.

use super::{BLOCK, ONE_SHARD, build, indices, pools};
use concurrent_cuckoo_filter::kind::BatchKey;
use concurrent_cuckoo_filter::{BulkReport, CuckooFilter};
use std::borrow::{Borrow, Cow};
use std::cell::Cell;
use std::hash::Hash;
use std::rc::Rc;
use std::sync::Arc;

/// A key stored in one form is found in every other form, by a batch and on many threads.
fn every_form_is_one_key<K, A, B, F, G>(a: &[A], b: &[B])
where
    K: ?Sized + Hash + Borrow<K>,
    A: BatchKey<K, F> + Sync,
    B: BatchKey<K, G> + Sync + Clone,
{
    let filter = CuckooFilter::<K>::builder().capacity(a.len() + 100).fingerprint_bits(32).build().unwrap();
    for few in [77, a.len()] {
        let (a, b) = (&a[..few], &b[..few]);
        let mut found = vec![false; few];
        assert_eq!(filter.insert_batch(a).inserted, few);
        filter.contains_batch(b, &mut found);
        assert!(found.iter().all(|&found| found));
        assert_eq!(filter.remove_batch(b).removed, few);
        assert_eq!(filter.par_insert(a).inserted, few);
        found.fill(false);
        filter.par_contains(b, &mut found);
        assert!(found.iter().all(|&found| found));
        assert_eq!(filter.bulk().remove(b).removed, few);
        assert_eq!((filter.len(), filter.bulk().insert_iter(b.iter().cloned()).inserted), (0, few));
        assert_eq!(filter.bulk().remove(a).removed, few);
    }
}

#[test]
fn keys_are_anything_that_borrows_as_the_key_type() {
    let owned: Vec<String> = (0..20_000).map(|i| format!("word {i}")).collect();
    let words: Vec<&str> = owned.iter().map(String::as_str).collect();
    let shared: Vec<Arc<str>> = words.iter().map(|&word| word.into()).collect();
    let mixed: Vec<Cow<'_, str>> = words.iter().map(|&word| word.into()).collect();
    every_form_is_one_key::<str, _, _, _, _>(&owned, &words);
    every_form_is_one_key::<str, _, _, _, _>(&words, &shared);
    every_form_is_one_key::<str, _, _, _, _>(&mixed, &owned);
    every_form_is_one_key::<String, _, _, _, _>(&owned, &owned.iter().collect::<Vec<_>>());
    let arrays: Vec<[u8; 2]> = (0..20_000_u16).map(u16::to_le_bytes).collect();
    every_form_is_one_key::<[u8], _, _, _, _>(&arrays, &arrays.iter().map(|array| array.to_vec()).collect::<Vec<_>>());
    let numbers: Vec<u64> = (0..20_000).collect();
    every_form_is_one_key::<u64, _, _, _, _>(&numbers, &numbers.iter().collect::<Vec<_>>());
}

#[test]
fn keys_without_a_size_are_counted_right() {
    let filter = CuckooFilter::<()>::with_capacity(100);
    for length in [20, 40_000] {
        let report = filter.bulk().max_listed(2).insert(&vec![(); length]);
        assert_eq!((report.inserted, indices(&report), report.refused_unlisted), (8, vec![8, 9], length - 10));
        let mut found = [false; 19];
        filter.contains_batch(&[(); 19], &mut found);
        assert_eq!(found, [true; 19]);
        let report = filter.bulk().max_listed(1).remove(&vec![(); length]);
        assert_eq!((report.removed, report.missing, report.missing_unlisted), (8, vec![8], length - 9));
    }
}

#[test]
fn an_iterator_of_any_kind_is_loaded() {
    let count = 150_000;
    let owned: Vec<String> = (0..count).map(|i| format!("word {i}")).collect();
    let check = |load: &(dyn Fn(&CuckooFilter<String>) -> BulkReport + Sync)| {
        for pool in pools() {
            let filter = CuckooFilter::builder().capacity(count).fingerprint_bits(32).build().unwrap();
            let report = pool.install(|| load(&filter));
            assert_eq!((report.inserted, report.refused.len(), filter.len()), (count, 0, count));
            assert_eq!(filter.remove_batch(&owned).removed, count);
        }
    };
    check(&|filter| filter.bulk().insert_iter(owned.clone()));
    // Without an exact size, and with keys that stay in one thread.
    check(&|filter| filter.bulk().insert_iter((0..).take_while(|&i| i < count).map(|i| format!("word {i}"))));
    check(&|filter| {
        let number = Rc::new(Cell::new(0));
        filter.bulk().insert_iter(std::iter::from_fn(|| {
            let i = number.replace(number.get() + 1);
            (i < count).then(|| Rc::<str>::from(format!("word {i}")))
        }))
    });
    check(&|filter| filter.hashed().bulk().insert_iter(owned.iter().map(|word| filter.hash(word))));
}

/// An iterator without `fuse` may return more items after `None`.
#[test]
fn an_iterator_is_not_asked_again_after_its_end() {
    for end in [0, 1, 15, 16, 100, BLOCK - 1, BLOCK, BLOCK + 1, 100_000] {
        let filter = build(ONE_SHARD, 32);
        let mut asked = 0;
        let report = filter.bulk().insert_iter(std::iter::from_fn(|| {
            asked += 1;
            (asked != end + 1 && asked < 150_000).then_some(asked as u64)
        }));
        assert_eq!((report.inserted, filter.len(), asked), (end, end, end + 1));
    }
}
