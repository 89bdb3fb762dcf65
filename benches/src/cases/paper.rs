//! Table 3 of the paper: Fan, Andersen, Kaminsky and Mitzenmacher, "Cuckoo Filter: Practically Better Than Bloom", CoNEXT
//! 2014: space, false positives, speed of construction.

use super::Plan;
use super::filled::{self, Filled};
use crate::field::{self, Size};
use crate::record::{Record, Table};
use concurrent_cuckoo_filter::{Builder, CuckooFilter};

/// Bits of a fingerprint, as in the paper.
const BITS: u32 = 12;

/// Bits a key of Bloom filters, as in the paper.
const BLOOM_BITS: usize = 13;

/// Absent keys behind each rate.
const ABSENT: u64 = 20_000_000;

/// Turns at the most: they take long, and the faster one counts.
const TURNS: usize = 2;

/// Fills a structure, told the number of keys, and some keys more.
type Fill = fn(usize, &[u64]) -> Filled;

/// What is measured, how it is filled, and what was published of its bits a key, rate and speed, where that could be
/// confirmed.
const STRUCTURES: [(&str, Fill, [&str; 3]); 7] = [
    ("this crate, promised capacity, insert", |count, keys| filled::ours(&keys[..count], ours()), [""; 3]),
    ("this crate, promised capacity, par_insert", |count, keys| filled::ours_in_bulk(&keys[..count], ours()), [""; 3]),
    (
        "this crate, up to its first refusal, insert",
        |count, keys| filled::ours_until_refused(count, keys, ours()),
        ["12.60", "0.19 %", "5.86"],
    ),
    ("Bloom: fastbloom", |count, keys| filled::bloom(&keys[..count], BLOOM_BITS), ["13.00", "0.19 %", ""]),
    ("blocked Bloom: sbbf-rs-safe", |count, keys| filled::blocked_bloom(&keys[..count], BLOOM_BITS), [""; 3]),
    ("counting Bloom: fastbloom-rs", |count, keys| filled::counting_bloom(&keys[..count], BLOOM_BITS), [""; 3]),
    ("quotient: qfilter", |count, keys| filled::quotient(&keys[..count], 0.5f64.powi(9)), [""; 3]),
];

/// The row of a structure that only the paper has.
const SEMI_SORTED: [&str; 9] = ["semi-sorted cuckoo", "", "", "", "12.58", "", "0.09 %", "", "4.10"];

fn ours() -> Builder<u64> {
    CuckooFilter::builder().fingerprint_bits(BITS)
}

pub(super) fn run(plan: &Plan, record: &mut Record) {
    let log2 = if plan.quick { 14 } else { 24 };
    record.heading("The paper's tables");
    record.text(
        "Bin Fan, David G. Andersen, Michael Kaminsky and Michael D. Mitzenmacher, [Cuckoo Filter: Practically Better \
         Than Bloom](https://www.cs.cmu.edu/~dga/papers/cuckoo-conext2014.pdf), CoNEXT 2014, measured with this crate \
         and with crates for the other structures.",
    );
    let threads = rayon::current_num_threads();
    record.text(&format!(
        "Table 3: space, false positives and speed of construction. {BITS} bits a fingerprint, {BLOOM_BITS} bits a key for \
         Bloom filters ({BLOOM_BITS} counters of 4 bits for the counting one). What differs from the paper: the machine; \
         the size, here the keys that fill 95 % of 2^{log2} slots, there 192 MB; the hash function, here \
         ahash (fastbloom-rs: xxh3); {threads} threads in `par_insert`. Keys are random 64-bit numbers, as there. One \
         thread fills the peers, so they go without locks. Speeds include the making of the filter and are the better \
         of {TURNS} turns; rates are over 2 * 10^7 absent keys; every key that went in was found."
    ));
    record.text(
        "Of the paper's own figures, bits and rates are those that the article \"Cuckoo Filters: Better Than Bloom \
         Filters?\" (maltsev.space, 2025) quotes; the speeds are what the paper's authors note in `conext-table3.cc` of \
         [their code](https://github.com/efficient/cuckoofilter) for a Core i7-4790 and one thread. The speeds in the \
         paper itself and its rows for blocked Bloom, quotient and d-left counting Bloom filters are left out, because \
         they could not be confirmed.",
    );
    let heads =
        ["structure", "keys", "MiB", "bits a key", "paper", "false positives", "paper", "M keys/s", "authors, later"];
    let mut table = Table::new(heads);
    let absent = if plan.quick { 100_000 } else { ABSENT };
    let mut row = |name: &str, filter: &Filled, [bits, rate, speed]: [&str; 3]| {
        table.row([
            name,
            &filter.keys.to_string(),
            &format!("{:.1}", filter.bytes as f64 / f64::from(1 << 20)),
            &format!("{:.2}", filter.bits_a_key()),
            bits,
            &format!("{:.3} %", filter.false_positive_rate(absent) * 100.0),
            rate,
            &format!("{:.1}", 1e3 / filter.nanos),
            speed,
        ]);
    };
    let count = Size::new(log2, BITS).keys;
    let keys = field::keys(u64::from(log2), count + count / 16 + 1000);
    for (name, fill, published) in STRUCTURES {
        plan.step(&format!("2^{log2} slots, {name}"));
        let turns = (0..plan.rounds.min(TURNS)).map(|_| fill(count, &keys));
        let best = turns.min_by(|one, other| one.nanos.total_cmp(&other.nanos)).expect("a turn");
        row(name, &best, published);
    }
    if plan.large > log2 {
        let keys = field::keys(u64::from(plan.large), Size::new(plan.large, BITS).keys);
        let name = format!("this crate, 2^{} slots, promised capacity, par_insert", plan.large);
        row(&name, &filled::ours_in_bulk(&keys, ours()), [""; 3]);
    }
    table.row(SEMI_SORTED);
    record.table(table);
    record.text(
        "A cuckoo filter needs fewer bits than a Bloom filter of the same rate, as in the paper, and this one keeps to \
         that at the capacity that it promises, not only when it is filled until it refuses. A quotient filter whose \
         slots, a power of two, are full needs fewer still, and a blocked Bloom filter is built faster. A counting Bloom \
         filter takes four times the memory of a plain one to be able to remove, which cuckoo and quotient filters can \
         as they are.",
    );
}
