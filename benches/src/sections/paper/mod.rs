//! The tables and curves of the paper: Fan, Andersen, Kaminsky and Mitzenmacher, "Cuckoo Filter: Practically Better Than
//! Bloom", CoNEXT 2014.

mod occupancy;
mod space;
mod width;

use super::Plan;
use crate::record::Record;

pub(crate) fn run(plan: &Plan, record: &mut Record) {
    record.heading("The paper's tables");
    record.text(
        "Bin Fan, David G. Andersen, Michael Kaminsky and Michael D. Mitzenmacher, [Cuckoo Filter: Practically Better \
         Than Bloom](https://www.cs.cmu.edu/~dga/papers/cuckoo-conext2014.pdf), CoNEXT 2014, measured with this crate \
         and with crates for the other structures.",
    );
    space::run(plan, record);
    width::run(plan, record);
    occupancy::run(plan, record);
}
