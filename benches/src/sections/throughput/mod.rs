//! Throughput of one kind of operation at a time.

mod bulk;
mod look_ups;
mod writes;

use super::Plan;
use crate::record::Record;

pub(crate) fn run(plan: &Plan, record: &mut Record) {
    record.heading("Throughput by table size");
    look_ups::by_size(plan, record);
    look_ups::of_text(plan, record);
    writes::run(plan, record);
    bulk::run(plan, record);
}
