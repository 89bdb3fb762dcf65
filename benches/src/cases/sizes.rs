//! Sizes of small filters compared with exact structures, and formulas of structures that are not run.

use super::Plan;
use crate::record::{Record, Table};
use concurrent_cuckoo_filter::CuckooFilter;
use std::f64::consts::LN_2;

/// The number of distinct users per day.
const ACTIVE: usize = 1_000_000;
const USERS: usize = 100_000_000;

pub(super) fn run(_: &Plan, record: &mut Record) {
    let bytes = |keys: usize, rate: f64| {
        let builder = CuckooFilter::<u64>::builder().capacity(keys).false_positive_rate(rate);
        builder.memory_usage().expect("a possible filter")
    };
    record.text(&format!("4,000 keys: {} bytes at 1 %, {} at 0.1 %.", bytes(4000, 0.01), bytes(4000, 0.001)));

    record.text(&format!("{ACTIVE} users per day, of {USERS}:"));
    let mut table = Table::new(["", "MiB", "rate", "removes", "other than numbers"]);
    // hashbrown: a power of two of slots, of which 7 in 8 are used, each with a key and a control byte.
    let places = (ACTIVE * 8 / 7).next_power_of_two();
    for (name, bytes, rate, other) in [
        ("this crate, 1 %", bytes(ACTIVE, 0.01), "1 %", "yes"),
        ("this crate, 0.1 %", bytes(ACTIVE, 0.001), "0.1 %", "yes"),
        ("bitmap, one bit per number", USERS / 8, "0", "no"),
        ("HashSet<u64>", places * (size_of::<u64>() + 1), "0", "yes"),
        ("HashMap<u64, u64>", places * (2 * size_of::<u64>() + 1), "0", "yes"),
    ] {
        let size = format!("{:.1}", bytes as f64 / f64::from(1 << 20));
        table.row([name.into(), size, rate.into(), "yes".into(), String::from(other)]);
    }
    record.table(&table);

    record.text(
        "Bits per key by formula, beside this crate's own: cuckoo filters of 2 choices of 4 slots at 96.5 % load; with windows \
         or pairs of slots, (log2(1/rate) + 2) / 0.95; Bloom filters; d-left counting Bloom filters (Bonomi and others, \
         2006: rate = 24 * 2^-r, counters of 2 bits, 75 % load); Golomb-coded sets (log2(1/rate) + 1.5; Putze, Sanders \
         and Singler, 2007), which are not changed in place; and what Pagh, Pagh and Rao (2005) come close to, which is the \
         bound of every filter. None of these but this crate was run here.",
    );
    let heads = ["rate", "this crate", "2 x 4 slots", "windows", "Bloom", "d-left counting", "Golomb", "bound"];
    let mut table = Table::new(heads);
    for rate in [0.03, 0.01, 0.001, 1e-4, 1e-5] {
        let log = -f64::log2(rate);
        let formulas = [
            bytes(ACTIVE, rate) as f64 * 8.0 / ACTIVE as f64,
            (log + 3.0) / 0.965,
            (log + 2.0) / 0.95,
            log / LN_2,
            ((24.0 / rate).log2() + 2.0) / 0.75,
            log + 1.5,
            log,
        ];
        let cells = formulas.map(|bits| format!("{bits:.1}"));
        table.row(std::iter::once(format!("{} %", rate * 100.0)).chain(cells));
    }
    record.table(&table);
}
