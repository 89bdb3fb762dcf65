//! Tests that every contestant does what it is measured for.

use super::{Contestant, Set, all, most, ours};
use crate::field::{Field, Size};

const LOG2: u32 = 16;
const PROBES: usize = 1 << 19;

/// The tolerances of a contestant.
struct Known {
    /// The number of keys that it may refuse or lose up to 95 % load.
    lost: f64,
    /// The false-positive rate at that load, and the relative error that is allowed.
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

fn check(contestant: &Contestant, field: &Field) {
    let Contestant { name, removes, bits, .. } = contestant;
    let (known, set) = (known(name.split(", ").next().unwrap(), *bits), contestant.build(LOG2));
    let all = field.present.len();
    let enough = all - (all as f64 * known.lost) as usize;
    let inserted = set.insert_all(&field.present);
    assert!(inserted >= enough, "{name}: {inserted} of {all} inserted");
    let found = set.contains_all(&field.present);
    assert!(found >= enough, "{name}: {found} of {all} found");

    let wrong = set.contains_all(&field.misses) as f64;
    let expected = known.rate * field.misses.len() as f64;
    let margin = expected * known.within + 4.0 * expected.sqrt();
    assert!((wrong - expected).abs() <= margin, "{name}: {wrong} false positives where {expected:.0} were expected");

    for (operation, pass) in set.more() {
        let expected = if operation == "insert_unique" { 0 } else { all };
        let done = pass(&field.present);
        assert!((expected..=expected + all / 50).contains(&done), "{name}: {operation} of {done} of {all}");
    }
    if *removes {
        let removed = set.remove_all(&field.present);
        assert!(removed >= enough, "{name}: {removed} of {all} removed");
        let left = set.contains_all(&field.present);
        assert!(left <= all - enough, "{name}: {left} left");
        // A counter counts keys of one class together.
        most(set.load(&field.present), all);
        most(set.churn(&field.present, &field.misses[..all]), all);
    }
}

#[test]
fn contestants_do_what_they_are_compared_for() {
    let field = Field::new(LOG2, PROBES);
    all(|_| true).iter().for_each(|contestant| check(contestant, &field));
}

#[test]
fn small_tables_have_the_requested_size() {
    for (log2, least) in [(6, 0.7), (9, 0.95), (12, 0.99), (16, 0.999)] {
        let size = Size::new(log2, 13);
        let filter = ours::Of(ours::build(size));
        assert!(filter.insert(&1));
        let share = 1.0 / filter.0.load_factor() / size.slots as f64;
        assert!((least..=1.0).contains(&share), "2^{log2}: {share} of the slots");
    }
}
