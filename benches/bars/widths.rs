//! Widths at which a bucket is not a word beside the one at which it is.

use crate::passes::{filled, hits, inserts, misses};
use crate::turns::Contests;
use compare::peers::ours;
use compare::{Field, Size};
use std::cell::LazyCell;
use std::ops::Deref;

pub(crate) fn run(contests: &Contests, field: &impl Deref<Target = Field<u64>>) {
    let build = |bits| ours::build::<u64>(Size::new(20, bits));
    let sixteen = LazyCell::new(|| filled(build(16), field));
    for bits in [13, 12] {
        let named = |contest: &str| format!("{contest} {bits} bits against 16 bits 2^20");
        let narrow = LazyCell::new(|| filled(build(bits), field));
        contests.run(&named("miss"), 0.8, || misses(&*narrow, field), || misses(&*sixteen, field));
        contests.run(&named("hit"), 0.8, || hits(&*narrow, field), || hits(&*sixteen, field));
        contests.run(&named("insert"), 0.8, || inserts(&build(bits), field), || inserts(&build(16), field));
    }
}
