//! Every contestant does what it is compared for: with every type of key, at every width that the benchmarks use.

use super::{Contestant, Contested, ours};
use crate::field::{Field, Key, Size, Text};

const LOG2: u32 = 16;
const PROBES: usize = 1 << 19;

/// What a contestant may do amiss.
struct Known {
    /// Keys that it may refuse or lose, of all that it is given up to 95 % load.
    lost: f64,
    /// The rate of false positives at that load, and by how much of it the measured one may differ.
    rate: f64,
    within: f64,
}

fn known(name: &str, bits: u32) -> Known {
    let cuckoo = 1.0 - (-8.0 * 0.95 / (2f64.powi(bits as i32) - 1.0)).exp();
    let bits_a_key = f64::from(bits) / 0.95;
    match name {
        "this crate" => Known { lost: 0.0, rate: cuckoo, within: 0.15 },
        // It refuses some, and those it accepts while it relocates it can lose.
        "atomic-cuckoo-filter" => Known { lost: 0.001, rate: cuckoo, within: 0.15 },
        // Each key that it refuses costs another one.
        "cuckoofilter + RwLock" => Known { lost: 0.001, rate: cuckoo, within: 0.15 },
        // Half the keys of its second part, if it has one, are compared with as well.
        "scalable_cuckoo_filter + RwLock" => Known { lost: 0.0, rate: cuckoo, within: 0.15 },
        // Equal fingerprints of a bucket are one: at 8 bits, every sixtieth key has no copy of its own.
        "cuckoo-clock" => Known { lost: 8.0 * 2f64.powi(-(bits as i32)), rate: cuckoo, within: 0.15 },
        "fastbloom" => Known { lost: 0.0, rate: 0.6185f64.powf(bits_a_key), within: 0.3 },
        "sbbf-rs-safe + RwLock" => Known { lost: 0.0, rate: blocked_bloom(bits_a_key), within: 0.15 },
        "qfilter + RwLock" => Known { lost: 0.0, rate: 0.95 * 0.5f64.powi(bits as i32 - 2), within: 0.15 },
        "DashSet" | "papaya" | "scc" => Known { lost: 0.0, rate: 0.0, within: 0.0 },
        _ => panic!("nothing is known of {name}"),
    }
}

/// The rate of a Bloom filter of blocks of 8 words, in each of which a key sets one of 32 bits.
fn blocked_bloom(bits_a_key: f64) -> f64 {
    let keys_a_block = 256.0 / bits_a_key;
    let mut likelihood = (-keys_a_block).exp();
    let mut rate = 0.0;
    for keys in 1..256 {
        likelihood *= keys_a_block / f64::from(keys);
        rate += likelihood * (1.0 - (31.0f64 / 32.0).powi(keys)).powi(8);
    }
    rate
}

fn check<K: Key>(contestant: &Contestant<K>, bits: u32, field: &Field<K>) {
    let Contestant { name, removes, build, .. } = contestant;
    let known = known(name, bits);
    let set = build(Size::new(LOG2, bits));
    let all = field.present.len();
    let enough = all - (all as f64 * known.lost) as usize;

    let inserted = set.insert_all(&field.present);
    assert!(inserted >= enough, "{name}, {bits} bits, {}: {inserted} of {all} inserted", K::NAME);
    let found = set.contains_all(&field.present);
    assert!(found >= enough, "{name}, {bits} bits, {}: {found} of {all} found", K::NAME);

    let wrong = set.contains_all(&field.misses) as f64;
    let expected = known.rate * field.misses.len() as f64;
    let margin = expected * known.within + 4.0 * expected.sqrt();
    assert!(
        (wrong - expected).abs() <= margin,
        "{name}, {bits} bits, {}: {wrong} false positives where {expected:.0} were expected",
        K::NAME
    );

    if *removes {
        let removed = set.remove_all(&field.present);
        assert!(removed >= enough, "{name}, {bits} bits, {}: {removed} of {all} removed", K::NAME);
        let left = set.contains_all(&field.present);
        assert!(left <= all - enough, "{name}, {bits} bits, {}: {left} left", K::NAME);
    }
}

fn check_all<K: Contested>() {
    let field = Field::new(LOG2, PROBES);
    for contestant in K::contestants() {
        for bits in [8, 12, 13, 16] {
            if (contestant.bits)(bits) {
                check(&contestant, bits, &field);
            }
        }
    }
}

#[test]
fn contestants_with_numbers() {
    check_all::<u64>();
}

#[test]
fn contestants_with_text() {
    check_all::<Text>();
}

/// Small tables are what they are asked to be as well, and every operation of a version does its work.
#[test]
fn versions_have_their_size_and_do_what_they_are_timed_for() {
    for (log2, least) in [(6, 0.7), (9, 0.95), (12, 0.99), (16, 0.999)] {
        let size = Size::new(log2, 13);
        let filter = (ours::version().numbers)(size);
        let Field { present, misses, .. } = Field::<u64>::new(log2, size.slots);
        let (half, others) = (&present[..size.slots / 2], &misses[..size.slots / 2]);
        assert_eq!(filter.insert_batch(half), half.len());
        let share = filter.slots() as f64 / size.slots as f64;
        assert!((least..=1.0).contains(&share), "2^{log2}: {share} of the slots");

        let mut found = vec![false; half.len()];
        filter.contains_batch(half, &mut found);
        assert!(found.iter().all(|&found| found) && filter.contains_all(half) == half.len());
        assert_eq!(filter.insert_unique_all(half), 0);
        assert!((half.len()..half.len() + 20 + half.len() / 50).contains(&filter.count_all(half)));
        assert_eq!(filter.load(&filter.save()), half.len());
        assert_eq!(filter.churn(half, others), half.len());
        assert_eq!(filter.contains_all(others), half.len());
        filter.clear();
        assert_eq!((filter.contains_all(others), filter.par_insert(half)), (0, half.len()));
    }
}
