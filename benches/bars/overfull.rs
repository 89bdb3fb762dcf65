//! A load of more keys than there is room for does not slow to a crawl.

use crate::large::Large;
use crate::turns::Contests;
use compare::clock::timed;
use compare::field::keys;
use std::ops::Deref;

pub(crate) fn run(contests: &Contests, log2: u32, large: &impl Deref<Target = Large>) {
    if !contests.wants(&format!("overfull 2^{log2}")) {
        return;
    }
    let Large { filter, present, .. } = &**large;
    large.par_fill(&large.two);
    let slots = (filter.len() as f64 / filter.load_factor()) as usize;
    load(&format!("par_insert of 95 % of the slots 2^{log2}"), large, present);
    let mut more = present.clone();
    more.extend(keys::<u64>(5, (slots as f64 * 1.2) as usize - present.len()));
    load(&format!("par_insert of 120 % of the slots 2^{log2}"), large, &more);
}

fn load(name: &str, Large { filter, two, .. }: &Large, keys: &[u64]) {
    filter.clear();
    let (nanos, report) = timed(1, || two.install(|| filter.bulk().max_listed(0).insert(keys)));
    let (seconds, inserted, load) = (nanos / 1e9, report.inserted, filter.load_factor());
    println!("{name:<64} {seconds:.2} s, {inserted} of {} keys, load {load:.4}", keys.len());
}
