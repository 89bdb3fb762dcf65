//! What articles on cuckoo filters say, measured: docs/claims.md tells which sentence each of these is about.

mod occupancy;
mod sizes;
mod turnover;

use super::Plan;
use crate::record::Record;

pub(super) fn run(plan: &Plan, record: &mut Record) {
    record.heading("Claims");
    occupancy::run(plan, record);
    turnover::run(plan, record);
    sizes::run(record);
}
