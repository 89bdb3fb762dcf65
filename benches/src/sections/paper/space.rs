//! Table 3 of the paper: space, false positives, speed of construction.

use crate::record::{Record, Table};
use crate::sections::Plan;
use crate::sections::filters::{self, Filled};
use compare::clock::timed;
use compare::field::{self, Size};
use concurrent_cuckoo_filter::{Builder, CuckooFilter};
use std::sync::Arc;

/// Bits of a fingerprint, as in the paper.
const BITS: u32 = 12;

/// Bits a key of Bloom filters, as in the paper.
const BLOOM_BITS: usize = 13;

/// Absent keys behind each rate.
const ABSENT: u64 = 20_000_000;

/// Turns at the most: they take long, and the faster one counts.
const TURNS: usize = 2;

/// A row of the table: what it measures, and what was published of it.
struct Structure {
    name: &'static str,
    /// Told the number of keys, and some keys more.
    fill: fn(usize, &[u64]) -> Filled,
    published: Published,
}

/// As text, empty where nothing could be confirmed.
struct Published {
    bits_a_key: &'static str,
    rate: &'static str,
    speed: &'static str,
}

const UNKNOWN: Published = Published { bits_a_key: "", rate: "", speed: "" };

const PROMISED: &str = "this crate, promised capacity, insert";
const REFUSED: &str = "this crate, up to its first refusal, insert";

const STRUCTURES: [Structure; 7] = [
    Structure { name: PROMISED, fill: |count, keys| filters::ours(&keys[..count], ours()), published: UNKNOWN },
    Structure {
        name: "this crate, promised capacity, par_insert",
        fill: |count, keys| filters::ours_in_bulk(&keys[..count], ours()),
        published: UNKNOWN,
    },
    Structure {
        name: REFUSED,
        fill: |count, keys| filters::ours_until_refused(count, keys, ours()),
        published: Published { bits_a_key: "12.60", rate: "0.19 %", speed: "5.86" },
    },
    Structure {
        name: "Bloom: fastbloom",
        fill: |count, keys| filters::bloom(&keys[..count], BLOOM_BITS),
        published: Published { bits_a_key: "13.00", rate: "0.19 %", speed: "" },
    },
    Structure {
        name: "blocked Bloom: sbbf-rs-safe",
        fill: |count, keys| filters::blocked_bloom(&keys[..count], BLOOM_BITS),
        published: UNKNOWN,
    },
    Structure {
        name: "counting Bloom: fastbloom-rs",
        fill: |count, keys| filters::counting_bloom(&keys[..count], BLOOM_BITS),
        published: UNKNOWN,
    },
    Structure {
        name: "quotient: qfilter",
        fill: |count, keys| filters::quotient(&keys[..count], 0.5f64.powi(9)),
        published: UNKNOWN,
    },
];

/// The row of a structure that only the paper has.
const SEMI_SORTED: [&str; 9] = ["semi-sorted cuckoo", "", "", "", "12.58", "", "0.09 %", "", "4.10"];

fn ours() -> Builder<u64> {
    CuckooFilter::builder().fingerprint_bits(BITS)
}

pub(crate) fn run(plan: &Plan, record: &mut Record) {
    let (log2, large) = if plan.quick { (14, 17) } else { (24, 27) };
    let threads = rayon::current_num_threads();
    record.text(&format!(
        "Table 3: space, false positives and speed of construction. {BITS} bits a fingerprint, {BLOOM_BITS} bits a key for \
         Bloom filters ({BLOOM_BITS} counters of 4 bits for the counting one). What differs from the paper: the machine; \
         the size, here the keys that fill 95 % of 2^{log2} slots (and 2^{large}), there 192 MB; the hash function, here \
         ahash (fastbloom-rs: xxh3); {threads} threads in `par_insert`. Keys are random 64-bit numbers, as there. One \
         thread fills the peers, so they go without locks. Speeds include the making of the filter and are the better \
         of {TURNS} turns (2^{large}: of one); rates are over 2 * 10^7 absent keys; every key that went in was found."
    ));
    record.text(
        "Of the paper's own figures, bits and rates are those that the article \"Cuckoo Filters: Better Than Bloom \
         Filters?\" (maltsev.space, 2025) quotes; the speeds are what the paper's authors note in `conext-table3.cc` of \
         [their code](https://github.com/efficient/cuckoofilter) for a Core i7-4790 and one thread. The speeds in the \
         paper itself and its rows for blocked Bloom, quotient and d-left counting Bloom filters are left out, because \
         they could not be confirmed.",
    );
    let mut results = Results::new(plan);
    all(plan, log2, &mut results);
    results.table.row(SEMI_SORTED);
    ours_alone(plan, large, &mut results);
    record.table(results.table);
    record.text(
        "A cuckoo filter needs fewer bits than a Bloom filter of the same rate, as in the paper, and this one keeps to \
         that at the capacity that it promises, not only when it is filled until it refuses. A quotient filter whose \
         slots, a power of two, are full needs fewer still, and a blocked Bloom filter is built faster. A counting Bloom \
         filter takes four times the memory of a plain one to be able to remove, which cuckoo and quotient filters can \
         as they are.",
    );
    if !plan.quick {
        record.text(&results.bars.join("\n"));
    }
}

/// The table, and whether the sizes that were asked for are kept.
struct Results {
    table: Table,
    bars: Vec<String>,
    /// Absent keys behind each rate.
    absent: u64,
}

impl Results {
    fn new(plan: &Plan) -> Self {
        let columns = [
            "structure",
            "keys",
            "MiB",
            "bits a key",
            "paper",
            "false positives",
            "paper",
            "M keys/s",
            "authors, later",
        ];
        let absent = if plan.quick { 100_000 } else { ABSENT };
        Results { table: Table::new(columns), bars: Vec::new(), absent }
    }

    /// Adds a row and returns the rate of false positives.
    fn row(&mut self, name: &str, filter: &Filled, published: &Published) -> f64 {
        let rate = filter.false_positive_rate(self.absent);
        self.table.row([
            name,
            &filter.keys.to_string(),
            &format!("{:.1}", filter.bytes as f64 / f64::from(1 << 20)),
            &format!("{:.2}", filter.bits_a_key()),
            published.bits_a_key,
            &format!("{:.3} %", rate * 100.0),
            published.rate,
            &format!("{:.1}", 1e3 / filter.nanos),
            published.speed,
        ]);
        rate
    }

    fn bar_at_the_promise(&mut self, log2: u32, filter: &Filled, rate: f64) {
        let bits = filter.bits_a_key();
        self.bars.push(format!(
            "- 2^{log2} slots, promised capacity: at most 12.82 bits a key at 0.19 % asked, {bits:.2} at {:.3} %: {}",
            rate * 100.0,
            met(bits <= 12.82 && rate <= 0.0019)
        ));
    }

    fn bar_at_the_refusal(&mut self, log2: u32, filter: &Filled) {
        let bits = filter.bits_a_key();
        self.bars.push(format!(
            "- 2^{log2} slots, first refusal: at most 12.6 bits a key asked, {bits:.2}: {}",
            met(bits <= 12.6)
        ));
    }
}

fn met(met: bool) -> &'static str {
    if met { "met" } else { "MISSED" }
}

/// All structures, with keys for 95 % of 2^`log2` slots.
fn all(plan: &Plan, log2: u32, results: &mut Results) {
    let count = Size::new(log2, BITS).keys;
    let keys = field::keys(u64::from(log2), count + count / 16 + 1000);
    let mut best: [Option<Filled>; STRUCTURES.len()] = [const { None }; STRUCTURES.len()];
    for turn in 0..plan.turns.min(TURNS) {
        for (structure, best) in STRUCTURES.iter().zip(&mut best) {
            plan.step(&format!("2^{log2} slots, {}, turn {}", structure.name, turn + 1));
            let filter = (structure.fill)(count, &keys);
            if best.as_ref().is_none_or(|best| filter.nanos < best.nanos) {
                *best = Some(filter);
            }
        }
    }
    for (structure, filter) in STRUCTURES.iter().zip(best.into_iter().flatten()) {
        let rate = results.row(structure.name, &filter, &structure.published);
        match structure.name {
            PROMISED => results.bar_at_the_promise(log2, &filter, rate),
            REFUSED => results.bar_at_the_refusal(log2, &filter),
            _ => {}
        }
    }
}

/// This crate with 2^`log2` slots, loaded in bulk and then filled up key by key.
fn ours_alone(plan: &Plan, log2: u32, results: &mut Results) {
    plan.step(&format!("2^{log2} slots, this crate"));
    let count = Size::new(log2, BITS).keys;
    let keys = field::keys(u64::from(log2), count + count / 16);
    let (nanos, filter) = filters::loaded_in_bulk(&keys[..count], ours());
    let filter = Arc::new(filter);
    let filled = |count: usize, nanos: f64| {
        let filter = Arc::clone(&filter);
        Filled::new(count, filter.memory_usage(), nanos, move |key| filter.contains(key))
    };
    let promised = filled(count, nanos);
    let rate = results.row(&format!("this crate, 2^{log2} slots, promised capacity, par_insert"), &promised, &UNKNOWN);
    results.bar_at_the_promise(log2, &promised, rate);

    let (further, more) = timed(1, || filters::insert_until_refused(&filter, &keys[count..]));
    let all = count + more;
    let refused = filled(all, (nanos * count as f64 + further) / all as f64).checked(&keys[..all]);
    results.row(&format!("this crate, 2^{log2} slots, on to its first refusal, insert"), &refused, &UNKNOWN);
    results.bar_at_the_refusal(log2, &refused);
}
