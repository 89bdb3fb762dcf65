//! Bits per key by false-positive rate. Peers have no locks here, since only one thread fills them.

use super::Plan;
use crate::field::{self, Size};
use crate::record::{Record, Table};
use ahash::RandomState;
use concurrent_cuckoo_filter::{Builder, CuckooFilter};
use fastrand::Rng;
use rayon::prelude::*;
use std::f64::consts::LN_2;
use xorf::{BinaryFuse8, BinaryFuse16, Filter};

const RATES: [f64; 8] = [0.1, 0.05, 0.03, 0.01, 0.005, 0.001, 1e-4, 1e-5];

/// The bits per key of the blocked Bloom filters, which cannot be built for a rate.
const BLOCKED: [usize; 4] = [8, 10, 14, 20];

/// The memory and the false-positive rate of a filter.
struct Measured {
    bits: f64,
    rate: f64,
}

impl Measured {
    /// Measures a filter of these keys. Looks up enough absent keys for a thousand false positives at this rate, up to a bound.
    fn new(keys: &[u64], rate: f64, bytes: usize, plan: &Plan, contains: impl Fn(&u64) -> bool + Sync) -> Self {
        assert!(keys.par_iter().all(&contains), "every key that was stored is found");
        let absent = if plan.quick { 1e5 } else { (1000.0 / rate).clamp(1e6, 2e7) };
        // Each run of keys has a seed of its own, far from those of the present keys.
        let (runs, run) = ((absent as u64).div_ceil(1 << 16), 1 << 16);
        let wrong = |seed: u64| {
            let mut random = Rng::with_seed(0xab5e << 48 | seed);
            (0..run).filter(|_| contains(&random.u64(..))).count()
        };
        let wrong: usize = (0..runs).into_par_iter().map(wrong).sum();
        let (bits, rate) = (bytes as f64 * 8.0 / keys.len() as f64, wrong as f64 / (runs * run) as f64);
        Measured { bits, rate }
    }
}

fn requested(rate: f64) -> Builder<u64> {
    CuckooFilter::builder().false_positive_rate(rate)
}

/// This crate at the promised capacity, filled by single insertions.
fn ours(keys: &[u64], rate: f64, plan: &Plan) -> Measured {
    let filter = requested(rate).capacity(keys.len()).build().expect("a possible filter");
    keys.iter().for_each(|key| filter.insert(key).expect("room for the capacity"));
    Measured::new(keys, rate, filter.memory_usage(), plan, |key| filter.contains(key))
}

fn bloom(keys: &[u64], rate: f64, plan: &Plan) -> Measured {
    let builder = fastbloom::BloomFilter::with_false_pos(rate).hasher(RandomState::new());
    let mut filter = builder.expected_items(keys.len());
    keys.iter().for_each(|key| _ = filter.insert(key));
    Measured::new(keys, rate, filter.num_bits() / 8, plan, |key| filter.contains(key))
}

/// A split-block Bloom filter of this many bits per key.
fn blocked_bloom(keys: &[u64], bits: usize, plan: &Plan) -> Measured {
    let (mut filter, hasher) = (sbbf_rs_safe::Filter::new(bits, keys.len()), RandomState::new());
    keys.iter().for_each(|key| _ = filter.insert_hash(hasher.hash_one(key)));
    Measured::new(keys, 1e-4, filter.as_bytes().len(), plan, |key| filter.contains_hash(hasher.hash_one(key)))
}

fn quotient(keys: &[u64], rate: f64, plan: &Plan) -> Measured {
    let filter = qfilter::Filter::new_with_hasher(keys.len() as u64, rate, RandomState::new());
    let mut filter = filter.expect("a possible filter");
    // With counts, so that keys can be removed again.
    keys.iter().for_each(|key| filter.insert_duplicated(key).expect("room for the capacity"));
    Measured::new(keys, rate, filter.memory_usage(), plan, |key| filter.contains(key))
}

pub(super) fn run(plan: &Plan, record: &mut Record) {
    let log2 = plan.log2(20);
    let keys: &[u64] = &field::keys(u64::from(log2), Size::new(log2, 0).keys);
    record.heading("Bits per key");
    record.text(&format!(
        "{} random keys, 95 % of 2^{log2}, the capacity of a quotient filter of 2^{log2} slots. Bits are memory per key; \
         false-positive rates are measured with 10^6 to 2 * 10^7 absent keys; every inserted key was found. This crate \
         and qfilter have whole bits, and so better rates than requested; the Bloom filters are built for the rates of \
         this crate. *Bound* is that of every filter, and *windows' bound* is (log2(1/rate) + 2) / 0.95, for cuckoo \
         filters whose keys choose windows of slots instead of buckets.",
        keys.len()
    ));
    let heads = "requested rate|this crate|its rate|bound|windows' bound|Bloom's bound|fastbloom|qfilter|its rate";
    let mut table = Table::new(heads.split('|'));
    for rate in RATES {
        plan.step(&format!("bits per key for {}", percent(rate)));
        let ours = ours(keys, rate, plan);
        // With few lookups the measured rate may be 0, for which no filter can be built.
        let kept = ours.rate.max(1e-7);
        let (bloom, quotient) = (bloom(keys, kept, plan), quotient(keys, rate, plan));
        let bound = -kept.log2();
        let bits = [ours.bits, bound, (2.0 + bound) / 0.95, bound / LN_2, bloom.bits, quotient.bits];
        let [bits, others @ ..] = bits.map(|bits| format!("{bits:.2}"));
        let cells = [percent(rate), bits, percent(ours.rate)].into_iter().chain(others);
        table.row(cells.chain([percent(quotient.rate)]));
    }
    record.table(&table);

    record.text(
        "Built for a number of bits instead of a rate: split-block Bloom filters (sbbf-rs-safe), and binary fuse filters \
         (xorf), which are built from all keys at once and never change:",
    );
    let mut table = Table::new(["", "bits per key", "its rate", "this crate at that rate"]);
    let (eight, sixteen) = (BinaryFuse8::try_from(keys), BinaryFuse16::try_from(keys));
    let (eight, sixteen) = (eight.expect("distinct keys"), sixteen.expect("distinct keys"));
    let blocked = BLOCKED.map(|bits| ("blocked Bloom", blocked_bloom(keys, bits, plan)));
    let fuse = [
        ("binary fuse", Measured::new(keys, 0.004, eight.len(), plan, |key| eight.contains(key))),
        ("binary fuse", Measured::new(keys, 1.5e-5, 2 * sixteen.len(), plan, |key| sixteen.contains(key))),
    ];
    for (name, Measured { bits, rate }) in blocked.into_iter().chain(fuse) {
        let bytes = requested(rate.max(1e-7)).capacity(keys.len()).memory_usage();
        let ours =
            bytes.map_or("not possible".into(), |bytes| format!("{:.2}", bytes as f64 * 8.0 / keys.len() as f64));
        table.row([name.into(), format!("{bits:.2}"), percent(rate), ours]);
    }
    record.table(&table);
    record.text(
        "At equal rates this crate needs fewer bits than a Bloom filter below 0.4 %; above that the Bloom filter is \
         smaller. A quotient filter needs fewer at every rate while its slots, a power of two, are full, and about twice \
         as many just after doubling. A binary fuse filter needs the fewest, if all keys are known in advance.",
    );
}

/// Formats a rate in percent, with three significant digits.
fn percent(rate: f64) -> String {
    let percent = rate * 100.0;
    let digits = if percent > 0.0 { (2.0 - percent.log10().floor()).max(0.0) as usize } else { 0 };
    format!("{percent:.digits$} %")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each structure finds its keys, and has the expected size and false-positive rate.
    #[test]
    fn structures_keep_their_sizes_and_rates() {
        // The number of keys that a quotient filter of 2^16 slots holds.
        let keys = field::keys(1, (1 << 16) * 95 / 100);
        let plan = &Plan::new(false, 1, Vec::new());
        for (number, (filter, bits, rate)) in [
            (ours(&keys, 0.002, plan), 12.8, 0.00186),
            (bloom(&keys, 0.01, plan), 9.6, 0.01),
            (blocked_bloom(&keys, 13, plan), 13.0, 0.0037),
            (quotient(&keys, 0.5f64.powi(9), plan), 11.7, 0.00185),
        ]
        .into_iter()
        .enumerate()
        {
            assert!((filter.bits / bits - 1.0).abs() < 0.05, "{number}: {} bits per key", filter.bits);
            assert!((filter.rate / rate - 1.0).abs() < 0.15, "{number}: a rate of {}", filter.rate);
        }
    }
}
