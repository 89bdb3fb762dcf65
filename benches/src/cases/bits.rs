//! Bits a key by rate of false positives.

use super::Plan;
use super::filled::{self, Filled};
use crate::field::{self, Size};
use crate::record::{Record, Table};

use concurrent_cuckoo_filter::{Builder, CuckooFilter};
use std::array;
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

/// Filters for each of [`RATES`], and those that have sizes of their own.
struct Curves {
    ours: [Measured; RATES.len()],
    bloom: [Measured; RATES.len()],
    quotient: [Measured; RATES.len()],
    /// Bloom filters built for the rates that ours turned out to keep.
    equal: [Measured; RATES.len()],
    blocked: [Measured; BLOCKED.len()],
    fuse: [Measured; FUSE.len()],
}

pub(super) fn run(plan: &Plan, record: &mut Record) {
    let log2 = if plan.quick { 12 } else { 20 };
    let keys: Vec<u64> = field::keys(u64::from(log2), Size::new(log2, 0).keys);
    let curves = Curves::measure(plan, &keys);
    record.heading("Bits a key");
    record.text(&format!(
        "{} random u64 keys, 95 % of 2^{log2}: as many as a quotient filter of 2^{log2} slots takes. Bits are the memory \
         over the keys; rates of false positives are measured with 10^6 to 2 * 10^7 absent keys; every key that went in \
         was found.",
        keys.len()
    ));
    curves.as_asked(record);
    curves.at_equal_rates(record);
    curves.built_at_once(record, keys.len());
    curves.blocked(record);
    curves.conclusion(record);
}

impl Curves {
    fn measure(plan: &Plan, keys: &[u64]) -> Self {
        let measured = |structure: &str, fill: fn(&[u64], f64) -> Filled, rates: [f64; RATES.len()]| {
            plan.step(&format!("bits a key of {structure}"));
            rates.map(|rate| Measured::new(&fill(keys, rate), rate, plan))
        };
        let ours = measured("this crate", |keys, rate| filled::ours(keys, asked(rate)), RATES);
        // Where few keys are looked up a rate of 0 can come out, which nothing can be built for.
        let kept = array::from_fn(|number| ours[number].rate.max(1e-7));
        Curves {
            bloom: measured("fastbloom", filled::bloom_for, RATES),
            quotient: measured("qfilter", filled::quotient, RATES),
            equal: measured("fastbloom at equal rates", filled::bloom_for, kept),
            blocked: BLOCKED.map(|bits| Measured::new(&filled::blocked_bloom(keys, bits), 1e-4, plan)),
            fuse: FUSE.map(|bits| Measured::new(&filled::binary_fuse(keys, bits), fuse_rate(bits), plan)),
            ours,
        }
    }

    fn as_asked(&self, record: &mut Record) {
        record.text("As asked for; this crate and qfilter have whole bits, and so keep better rates:");
        let columns = ["rate asked for", "this crate", "its rate", "fastbloom", "its rate", "qfilter", "its rate"];
        let mut table = Table::new(columns);
        for (number, &rate) in RATES.iter().enumerate() {
            let structures = [&self.ours, &self.bloom, &self.quotient].map(|structure| &structure[number]);
            let cells = structures.iter().flat_map(|measured| [bits(measured.bits), percent(measured.rate)]);
            table.row(iter::once(percent(rate)).chain(cells));
        }
        record.table(table);
    }

    /// This crate and Bloom filters for the same rates: one pair for each width.
    fn equal_rates(&self) -> Vec<(&Measured, &Measured)> {
        let mut pairs: Vec<_> = self.ours.iter().zip(&self.equal).collect();
        pairs.dedup_by_key(|(ours, _)| ours.bits.to_bits());
        pairs
    }

    fn at_equal_rates(&self, record: &mut Record) {
        record.text("At the rates that this crate keeps:");
        let columns = ["its rate", "this crate", "information bound", "Bloom's bound", "fastbloom", "its rate"];
        let mut table = Table::new(columns);
        for (ours, bloom) in self.equal_rates() {
            let cells = [ours.bits, information_bound(ours.rate), bloom_bound(ours.rate), bloom.bits].map(bits);
            table.row(iter::once(percent(ours.rate)).chain(cells).chain([percent(bloom.rate)]));
        }
        record.table(table);
    }

    fn built_at_once(&self, record: &mut Record, keys: usize) {
        record.text("Binary fuse filters (xorf) are built from all their keys at once and never change:");
        let mut table = Table::new(["bits of a fingerprint", "binary fuse", "its rate", "this crate for that rate"]);
        for (width, fuse) in FUSE.into_iter().zip(&self.fuse) {
            let ours = match asked(fuse_rate(width)).capacity(keys).memory_usage() {
                Ok(bytes) => bits(bytes as f64 * 8.0 / keys as f64),
                Err(_) => "not possible".into(),
            };
            table.row([width.to_string(), bits(fuse.bits), percent(fuse.rate), ours]);
        }
        record.table(table);
    }

    fn blocked(&self, record: &mut Record) {
        record.text("Split-block Bloom filters (sbbf-rs-safe) are built for bits, not for a rate:");
        let mut table = Table::new(["bits a key", "rate"]);
        for blocked in &self.blocked {
            table.row([bits(blocked.bits), percent(blocked.rate)]);
        }
        record.table(table);
    }

    fn conclusion(&self, record: &mut Record) {
        let smaller = self.equal_rates().into_iter().filter(|(ours, bloom)| ours.bits < bloom.bits);
        let highest = smaller.map(|(ours, _)| ours.rate).fold(0.0, f64::max);
        record.text(&format!(
            "At equal rates this crate needs fewer bits than a Bloom filter from {} down; above that the Bloom filter is \
             smaller. A quotient filter needs fewer at every rate while its slots, a power of two, are full, and about \
             twice as many when it has just doubled. A binary fuse filter needs the fewest, where all keys are known \
             beforehand.",
            percent(highest)
        ));
    }
}

fn asked(rate: f64) -> Builder<u64> {
    CuckooFilter::builder().false_positive_rate(rate)
}

fn fuse_rate(bits: u32) -> f64 {
    0.5f64.powi(bits as i32)
}

/// What any filter of this rate needs for a key.
fn information_bound(rate: f64) -> f64 {
    -rate.log2()
}

/// What a Bloom filter needs with the best number of hashes.
fn bloom_bound(rate: f64) -> f64 {
    information_bound(rate) / LN_2
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
