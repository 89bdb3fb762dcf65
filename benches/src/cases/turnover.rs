//! Keys that come and go: what a filter that removes has over one that cannot.

use super::Plan;
use crate::record::figure::{self, Axes, Line, Look};
use crate::record::{Record, Table};
use concurrent_cuckoo_filter::CuckooFilter;
use fastbloom_rs::{CountingBloomFilter, Deletable, FilterBuilder, Membership};
use rayon::prelude::*;

/// A filter under turnover.
trait Turned: Sync {
    fn insert(&mut self, key: u64);
    fn remove(&mut self, key: u64);
    fn contains(&self, key: u64) -> bool;
}

/// Implements [`Turned`] for a type: what each operation does with `filter` and `key`.
macro_rules! turned {
    ($type:ty, |$filter:ident, $key:ident| $insert:expr, $remove:expr, $contains:expr) => {
        impl Turned for $type {
            fn insert(&mut self, $key: u64) {
                let $filter = self;
                $insert;
            }

            fn remove(&mut self, $key: u64) {
                let $filter = self;
                $remove;
            }

            fn contains(&self, $key: u64) -> bool {
                let $filter = self;
                $contains
            }
        }
    };
}

type Ours = CuckooFilter<u64>;
type Bloom = fastbloom::BloomFilter<ahash::RandomState>;
turned!(
    Ours,
    |filter, key| Ours::insert(filter, &key).unwrap(),
    assert!(Ours::remove(filter, &key)),
    Ours::contains(filter, &key)
);
// It cannot remove.
turned!(Bloom, |filter, key| Bloom::insert(filter, &key), _ = (filter, key), Bloom::contains(filter, &key));
turned!(
    CountingBloomFilter,
    |filter, key| filter.add(&key.to_le_bytes()),
    Deletable::remove(filter, &key.to_le_bytes()),
    Membership::contains(filter, &key.to_le_bytes())
);

/// Keys that were never inserted begin here.
const ABSENT: u64 = 1 << 63;

pub(super) fn run(plan: &Plan, record: &mut Record) {
    let (live, windows, absent) = if plan.quick { (10_000u64, 4, 10_000) } else { (10_000_000, 10, 4_000_000) };
    let ours = CuckooFilter::<u64>::with_capacity(live as usize);
    let bits = ours.memory_usage() * 8;
    // 13 counters a key, each of 4 bits: the size that has our rate.
    let counters = (live as usize * 13).next_multiple_of(64);
    let bloom = fastbloom::BloomFilter::with_num_bits(bits).hasher(ahash::RandomState::new());
    let mut filters: [(&str, usize, Look, Box<dyn Turned>); 3] = [
        ("this crate", bits, Look::Main, Box::new(ours)),
        ("fastbloom", bits, Look::Coloured(4), Box::new(bloom.expected_items(live as usize))),
        (
            "counting Bloom: fastbloom-rs",
            counters * 4,
            Look::Coloured(0),
            Box::new(CountingBloomFilter::new(FilterBuilder::from_size_and_hashes(counters as u64, 9))),
        ),
    ];
    record.text(&format!(
        "{live} live keys, the oldest removed for each new one, up to {} times as many in all: the rate of false positives \
         over {absent} absent keys, in percent. Every live key is looked for at every step; what is missed is told in \
         brackets. The Bloom filter has the memory of this crate's and cannot remove; the counting one has \
         {:.0} bits a key.",
        windows,
        counters as f64 * 4.0 / live as f64
    ));
    let heads = (1..=windows).map(|window| format!("{} M", (window * live) as f64 / 1e6));
    let mut table = Table::new(std::iter::once("keys so far".into()).chain(heads));
    let mut lines = Vec::new();
    for (name, bits, look, filter) in &mut filters {
        plan.step(&format!("turnover, {name}"));
        let (mut cells, mut points) = (Vec::new(), Vec::new());
        for window in 0..windows {
            for key in window * live..(window + 1) * live {
                if let Some(oldest) = key.checked_sub(live) {
                    filter.remove(oldest);
                }
                filter.insert(key);
            }
            let kept = window * live..(window + 1) * live;
            let missed = kept.into_par_iter().filter(|&key| !filter.contains(key)).count();
            let wrong = (ABSENT..ABSENT + absent).into_par_iter().filter(|&key| filter.contains(key)).count();
            let percent = wrong as f64 / absent as f64 * 100.0;
            cells.push(if missed == 0 { format!("{percent:.3}") } else { format!("{percent:.3} ({missed} missed)") });
            points.push((((window + 1) * live) as f64 / 1e6, percent.max(1e-4)));
        }
        let label = format!("{name}, {:.1} bits", *bits as f64 / live as f64);
        table.row(std::iter::once(label.clone()).chain(cells));
        lines.push(Line { name: label, look: *look, points });
    }
    record.table(&table);
    let title = "False positives while keys come and go, %";
    let axes = Axes { x: "keys so far, millions", x_label: |keys| format!("{keys:.2}"), y: "false positives, %" };
    record.figure("turnover", title, figure::draw(title, &axes, &lines));
}
