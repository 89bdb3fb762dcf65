//! Keys that come and go: a filter with removal compared with one without.

use super::Plan;
use crate::record::figure::{self, Axes, Line, Look};
use crate::record::{Record, Table};
use concurrent_cuckoo_filter::CuckooFilter;
use fastbloom_rs::{CountingBloomFilter, Deletable, FilterBuilder, Membership};
use rayon::prelude::*;

/// Keys from here on are never inserted.
const ABSENT: u64 = 1 << 63;

/// Returns the false positives of each window in percent, and the number of live keys that were missed.
fn turn<F: Sync>(
    [live, windows, absent]: [u64; 3],
    mut filter: F,
    insert: impl Fn(&mut F, u64),
    remove: impl Fn(&mut F, u64),
    contains: impl Fn(&F, u64) -> bool + Sync,
) -> Vec<(f64, usize)> {
    let window = |window: u64| {
        for key in window * live..(window + 1) * live {
            if let Some(oldest) = key.checked_sub(live) {
                remove(&mut filter, oldest);
            }
            insert(&mut filter, key);
        }
        let kept = window * live..(window + 1) * live;
        let missed = kept.into_par_iter().filter(|&key| !contains(&filter, key)).count();
        let wrong = (ABSENT..ABSENT + absent).into_par_iter().filter(|&key| contains(&filter, key)).count();
        (wrong as f64 / absent as f64 * 100.0, missed)
    };
    (0..windows).map(window).collect()
}

pub(super) fn run(plan: &Plan, record: &mut Record) {
    let size @ [live, windows, absent] = if plan.quick { [10_000_u64, 4, 10_000] } else { [10_000_000, 10, 4_000_000] };
    let ours = CuckooFilter::<u64>::with_capacity(live as usize);
    let bits = ours.memory_usage() * 8;
    // 13 counters of 4 bits per key: the size at which its rate equals ours.
    let counters = (live * 13).next_multiple_of(64);
    let bloom = fastbloom::BloomFilter::with_num_bits(bits).hasher(ahash::RandomState::new());
    let bloom = bloom.expected_items(live as usize);
    let counting = CountingBloomFilter::new(FilterBuilder::from_size_and_hashes(counters, 9));
    record.text(&format!(
        "{live} live keys, {} in total, the oldest removed for each new one: the false-positive rate over {absent} \
         absent keys, in percent. Every live key is looked up at each step; the number of missed ones is in brackets. \
         The Bloom filter has the memory of this crate's and cannot remove; the counting one has {:.0} bits per key.",
        windows * live,
        counters as f64 * 4.0 / live as f64
    ));
    plan.step("turnover");
    let ours = turn(
        size,
        ours,
        |filter, key| filter.insert(&key).expect("room"),
        |filter, key| assert!(filter.remove(&key)),
        |filter, key| filter.contains(&key),
    );
    let bloom =
        turn(size, bloom, |filter, key| _ = filter.insert(&key), |_, _| {}, |filter, key| filter.contains(&key));
    let counting = turn(
        size,
        counting,
        |filter, key| filter.add(&key.to_le_bytes()),
        |filter, key| filter.remove(&key.to_le_bytes()),
        |filter, key| filter.contains(&key.to_le_bytes()),
    );
    let heads = (1..=windows).map(|window| format!("{} M", (window * live) as f64 / 1e6));
    let mut table = Table::new(std::iter::once("keys so far".into()).chain(heads));
    let mut lines = Vec::new();
    for (name, bits, look, rates) in [
        ("this crate", bits as u64, Look::Main, ours),
        ("fastbloom", bits as u64, Look::Coloured(4), bloom),
        ("counting Bloom: fastbloom-rs", counters * 4, Look::Coloured(0), counting),
    ] {
        let name = format!("{name}, {:.1} bits", bits as f64 / live as f64);
        let cells = rates.iter().map(|&(percent, missed)| match missed {
            0 => format!("{percent:.3}"),
            _ => format!("{percent:.3} ({missed} missed)"),
        });
        table.row(std::iter::once(name.clone()).chain(cells));
        let points = (1..).zip(&rates).map(|(window, rate)| ((window * live) as f64 / 1e6, rate.0.max(1e-4)));
        lines.push(Line { name, look, points: points.collect() });
    }
    record.table(&table);
    let title = "False positives while keys come and go, %";
    let axes = Axes { x: "keys so far, millions", x_label: |keys| format!("{keys:.2}"), y: "false positives, %" };
    record.figure("turnover", title, figure::draw(title, &axes, &lines));
}
