//! Filters that count: against exact counts.

use concurrent_cuckoo_filter::{BuildError, CountingFilter, InsertError};
use fastrand::Rng;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

#[test]
fn what_cannot_be_built_is_said() {
    let builder = || CountingFilter::<u64>::builder().capacity(1000);
    for bits in [0, 17] {
        let error = builder().counter_bits(bits).build().unwrap_err();
        assert_eq!(error.to_string(), format!("counters of {bits} bits were requested; 1 to 16 are possible"));
    }
    let error = builder().counter_bits(16).false_positive_rate(1e-5).build().unwrap_err();
    assert!(matches!(error, BuildError::RateTooLow { widest: 16, .. }), "{error:?}");
    let made = |bits| {
        let filter = builder().counter_bits(bits).false_positive_rate(0.01).build().unwrap();
        (filter.max_count(), filter.fingerprint_bits())
    };
    assert_eq!([1, 2, 3, 4, 8, 16].map(made), [(1, 10), (3, 10), (7, 13), (15, 12), (255, 16), (65_535, 16)]);
    let shown = format!("{:?}", builder().build().unwrap());
    assert!(shown.contains("CountingFilter") && shown.contains("max_count: 15"), "{shown}");
}

/// No count is too low, and those that are too high are as many as collisions predict: a key's class mates are the present
/// keys that its lookup is wrong about.
#[test]
fn counts_are_exact_but_for_collisions() {
    for (bits, capacity) in [(4, 30_000), (8, 30_000), (16, 30_000), (2, 5_000)] {
        let filter = CountingFilter::<u64>::builder().capacity(capacity).counter_bits(bits).build().unwrap();
        let mut random = Rng::with_seed(bits.into());
        let mut exact = HashMap::<u64, u32>::new();
        for _ in 0..6 * capacity {
            // Some keys are much more frequent than others.
            let key = random.u64(..capacity as u64).min(random.u64(..capacity as u64));
            let count = exact.entry(key).or_default();
            *count += 1;
            assert!(filter.add(&key).unwrap() >= (*count).min(filter.max_count()), "{key} was added {count} times");
        }
        let (mut high, mut sum) = (0, 0.0);
        for (key, &count) in &exact {
            let told = filter.count(key);
            assert!(told >= count.min(filter.max_count()), "{key} was added {count} times, not {told}");
            high += u32::from(told > count);
            sum += f64::from(told);
        }
        // Each key has the others for class mates, at the rate at which it would be wrongly found; of two, both are high.
        let rate = filter.stats().expected_false_positive_rate;
        let expected = rate * exact.len() as f64;
        assert!(f64::from(high) < 1.3 * expected + 10.0, "{high} counts of {} are too high at {rate}", exact.len());
        assert!(sum > 0.0 && filter.len() <= exact.len());
        assert!(
            filter.len() as f64 > exact.len() as f64 - expected - 10.0,
            "classes: {} of {}",
            filter.len(),
            exact.len()
        );
        for key in exact.keys() {
            filter.remove(key);
        }
        assert_eq!(filter.len(), 0, "a key and its count are one slot");
    }
}

#[test]
fn threads_add_up() {
    const KEYS: usize = 2_000;
    let filter = CountingFilter::<usize>::builder().capacity(KEYS).counter_bits(16).build().unwrap();
    let exact: Vec<AtomicU32> = (0..KEYS).map(|_| AtomicU32::new(0)).collect();
    thread::scope(|scope| {
        for seed in 0..3 {
            let (filter, exact) = (&filter, &exact);
            scope.spawn(move || {
                let mut random = Rng::with_seed(seed);
                for _ in 0..50_000 {
                    let key = random.usize(..KEYS);
                    // What was added before this lookup began counts.
                    let before = exact[key].load(Ordering::Acquire);
                    assert!(filter.count(&key) >= before, "{key}");
                    filter.add(&key).unwrap();
                    exact[key].fetch_add(1, Ordering::Release);
                }
            });
        }
    });
    let mut exactly = 0;
    for (key, count) in exact.iter().enumerate() {
        let (told, count) = (filter.count(&key), count.load(Ordering::Relaxed));
        assert!(told >= count, "{key} was added {count} times, not {told}");
        exactly += usize::from(told == count);
    }
    assert!(exactly > KEYS - 20, "{exactly} of {KEYS}");
}

#[test]
fn a_full_filter_refuses_new_keys_and_counts_old_ones() {
    let filter = CountingFilter::<u64>::builder().capacity(100).build().unwrap();
    let new = (0..).find(|key| filter.add(key) == Err(InsertError::Full)).unwrap();
    assert!(new > 100);
    assert!((0..new).all(|key| filter.add(&key).unwrap() >= 2));
    assert_eq!(filter.add(&new), Err(InsertError::Full));
    assert_eq!(filter.stats().refused_full, 2);
}
