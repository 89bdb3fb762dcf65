//! Single calls on one thread beside peers.

use crate::passes::{filled, hits, inserts, misses, removes};
use crate::turns::Contests;
use compare::peers::{atomic_cuckoo, bloom, dash_set, ours};
use compare::{Field, Size};
use std::cell::LazyCell;
use std::ops::Deref;

/// The ratios that are asked for, where any is.
#[derive(Default)]
struct Bars {
    atomic_cuckoo_miss: Option<f64>,
    atomic_cuckoo_hit: Option<f64>,
    atomic_cuckoo_writes: Option<f64>,
    fastbloom: Option<f64>,
    dash_miss: Option<f64>,
}

fn bars(log2: u32) -> Bars {
    match log2 {
        16 => Bars { atomic_cuckoo_miss: Some(5.0), ..Bars::default() },
        20 => Bars {
            atomic_cuckoo_miss: Some(3.0),
            atomic_cuckoo_hit: Some(3.0),
            fastbloom: Some(2.0),
            dash_miss: Some(1.3),
            atomic_cuckoo_writes: Some(2.0),
        },
        _ => Bars::default(),
    }
}

pub(crate) fn run(contests: &Contests, log2: u32, field: &impl Deref<Target = Field<u64>>) {
    let named = |contest: &str| format!("{contest} 2^{log2}");
    let (bars, size) = (bars(log2), Size::new(log2, 16));
    let ours = LazyCell::new(|| filled(ours::build(size), field));
    {
        let peer = LazyCell::new(|| filled(atomic_cuckoo::build(size), field));
        contests.run(
            &named("miss against atomic-cuckoo-filter"),
            bars.atomic_cuckoo_miss,
            || misses(&*ours, field),
            || misses(&*peer, field),
        );
        contests.run(
            &named("hit against atomic-cuckoo-filter"),
            bars.atomic_cuckoo_hit,
            || hits(&*ours, field),
            || hits(&*peer, field),
        );
    }
    {
        let peer = LazyCell::new(|| filled(bloom::build(size), field));
        contests.run(
            &named("miss against fastbloom"),
            bars.fastbloom,
            || misses(&*ours, field),
            || misses(&*peer, field),
        );
        contests.run(&named("hit against fastbloom"), bars.fastbloom, || hits(&*ours, field), || hits(&*peer, field));
    }
    {
        let peer = LazyCell::new(|| filled(dash_set::build(size), field));
        contests.run(
            &named("miss against DashSet"),
            bars.dash_miss,
            || misses(&*ours, field),
            || misses(&*peer, field),
        );
    }
    contests.run(
        &named("insert against atomic-cuckoo-filter"),
        bars.atomic_cuckoo_writes,
        || inserts(&ours::build(size), field),
        || inserts(&atomic_cuckoo::build(size), field),
    );
    contests.run(
        &named("remove against atomic-cuckoo-filter"),
        bars.atomic_cuckoo_writes,
        || removes(&filled(ours::build(size), field), field),
        || removes(&filled(atomic_cuckoo::build(size), field), field),
    );
}
