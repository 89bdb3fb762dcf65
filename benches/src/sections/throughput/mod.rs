//! Throughput of one kind of operation at a time.

mod bulk;
mod lookups;
mod writes;

use super::Plan;
use crate::record::Record;

pub(crate) fn run(plan: &Plan, record: &mut Record) {
    record.heading("Throughput by table size");
    lookups::by_size(plan, record);
    lookups::of_text(plan, record);
    writes::run(plan, record);
    bulk::run(plan, record);
}
