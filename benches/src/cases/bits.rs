//! Bits a key by rate of false positives.

use super::Plan;
use super::filled::{self, Filled};
use crate::field::{self, Size};
use crate::record::{Record, Table};

use concurrent_cuckoo_filter::{Builder, CuckooFilter};
use std::f64::consts::LN_2;
use std::iter;

/// The rates that are asked for.
const RATES: [f64; 10] = [0.1, 0.05, 0.03, 0.02, 0.01, 0.005, 0.001, 1e-4, 1e-5, 1e-6];

/// Bits a key of the blocked Bloom filters, which are not built for a rate.
const BLOCKED: [usize; 8] = [6, 8, 10, 12, 14, 16, 20, 24];

/// Bits of a fingerprint of the binary fuse filters.
const FUSE: [u32; 3] = [8, 16, 32];

/// What a filter takes, and how often it is wrong.
struct Measured {
    bits: f64,
    rate: f64,
}

impl Measured {
    /// Looks up enough absent keys to find a thousand at this rate, within reason.
    fn new(filter: &Filled, rate: f64, plan: &Plan) -> Self {
        let absent = if plan.quick { 1e5 } else { (1000.0 / rate).clamp(1e6, 2e7) };
        Measured { bits: filter.bits_a_key(), rate: filter.false_positive_rate(absent as u64) }
    }
}

pub(super) fn run(plan: &Plan, record: &mut Record) {
    let log2 = if plan.quick { 12 } else { 20 };
    let keys: &[u64] = &field::keys(u64::from(log2), Size::new(log2, 0).keys);
    record.heading("Bits a key");
    record.text(&format!(
        "{} random u64 keys, 95 % of 2^{log2}: as many as a quotient filter of 2^{log2} slots takes. Bits are the memory \
         over the keys; rates of false positives are measured with 10^6 to 2 * 10^7 absent keys; every key that went in \
         was found. This crate and qfilter have whole bits, and so keep better rates than are asked for; the Bloom filters \
         are built for the rates that this crate keeps. *Windows' bound*: (log2(1/rate) + 2) / 0.95, of cuckoo filters whose keys \
         choose windows or pairs of slots, not buckets of four; what this layout leaves.",
        keys.len()
    ));
    let heads = [
        "rate asked for",
        "this crate",
        "its rate",
        "bound",
        "windows' bound",
        "Bloom's bound",
        "fastbloom",
        "its rate",
        "qfilter",
        "its rate",
    ];
    let (mut table, mut highest) = (Table::new(heads), 0.0f64);
    for rate in RATES {
        plan.step(&format!("bits a key for {}", percent(rate)));
        let ours = Measured::new(&filled::ours(keys, asked(rate)), rate, plan);
        // Where few keys are looked up a rate of 0 can come out, which nothing can be built for.
        let kept = ours.rate.max(1e-7);
        let bloom = Measured::new(&filled::bloom_for(keys, kept), kept, plan);
        let quotient = Measured::new(&filled::quotient(keys, rate), rate, plan);
        if ours.bits < bloom.bits {
            highest = highest.max(ours.rate);
        }
        let [mine, others, theirs] =
            [ours, bloom, quotient].map(|measured| [bits(measured.bits), percent(measured.rate)]);
        // What any filter of this rate needs; what a cuckoo filter needs whose keys choose windows or pairs of slots, at a
        // load of 0.95; and what a Bloom filter needs with the best number of hashes.
        let bounds = [-kept.log2(), (2.0 - kept.log2()) / 0.95, -kept.log2() / LN_2].map(bits);
        table.row(iter::once(percent(rate)).chain(mine).chain(bounds).chain(others).chain(theirs));
    }
    record.table(table);

    record.text(
        "Built for bits, not for a rate: split-block Bloom filters (sbbf-rs-safe), and binary fuse filters (xorf), which are \
         built from all their keys at once and never change:",
    );
    let mut table = Table::new(["", "bits a key", "its rate", "this crate for that rate"]);
    let blocked = BLOCKED.map(|bits| ("blocked Bloom", filled::blocked_bloom(keys, bits), 1e-4));
    let fuse = FUSE.map(|bits| ("binary fuse", filled::binary_fuse(keys, bits), 0.5f64.powi(bits as i32)));
    for (name, filter, rate) in blocked.into_iter().chain(fuse) {
        let measured = Measured::new(&filter, rate, plan);
        let rate = if measured.rate > 0.0 { measured.rate } else { rate };
        let ours = match asked(rate).capacity(keys.len()).memory_usage() {
            Ok(bytes) => bits(bytes as f64 * 8.0 / keys.len() as f64),
            Err(_) => "not possible".into(),
        };
        table.row([name.into(), bits(measured.bits), percent(measured.rate), ours]);
    }
    record.table(table);
    record.text(&format!(
        "At equal rates this crate needs fewer bits than a Bloom filter from {} down; above that the Bloom filter is \
         smaller. A quotient filter needs fewer at every rate while its slots, a power of two, are full, and about \
         twice as many when it has just doubled. A binary fuse filter needs the fewest, where all keys are known \
         beforehand.",
        percent(highest)
    ));
}

fn asked(rate: f64) -> Builder<u64> {
    CuckooFilter::builder().false_positive_rate(rate)
}

fn bits(bits: f64) -> String {
    format!("{bits:.2}")
}

/// With three digits that count.
fn percent(rate: f64) -> String {
    let percent = rate * 100.0;
    let digits = if percent > 0.0 { (2.0 - percent.log10().floor()).max(0.0) as usize } else { 0 };
    let text = format!("{percent:.digits$}");
    let short = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{short} %")
}

#[cfg(test)]
mod tests {
    use super::percent;

    #[test]
    fn percentages_have_three_digits_that_count() {
        let of = [1.0, 0.1, 0.0296, 0.00737, 1e-3, 6.17e-5, 1e-6, 0.0];
        let written = ["100 %", "10 %", "2.96 %", "0.737 %", "0.1 %", "0.00617 %", "0.0001 %", "0 %"];
        assert_eq!(of.map(percent), written);
    }
}
