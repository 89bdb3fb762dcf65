//! The measurements, one file per section.

mod beside;
mod bits;
mod expiry;
mod growth;
mod latency;
mod load;
mod mixed;
mod occupancy;
mod operations;
mod turnover;

use crate::contestants::Contestant;
use crate::record::Record;
use std::time::Instant;

/// How much is measured.
pub(crate) struct Plan {
    /// Whether sizes are tiny, only to check that everything works.
    pub(crate) quick: bool,
    /// The number of slices per case.
    pub(crate) rounds: usize,
    /// An earlier commit of the crate.
    earlier: Vec<Contestant>,
    start: Instant,
}

impl Plan {
    pub(crate) fn new(quick: bool, rounds: usize, earlier: Vec<Contestant>) -> Self {
        Plan { quick, rounds, earlier, start: Instant::now() }
    }

    /// Returns this power of two of slots, or a small one for a quick run.
    pub(crate) fn log2(&self, slots: u32) -> u32 {
        if self.quick { slots.min(12) } else { slots }
    }

    /// The number of slices where each takes seconds.
    pub(crate) fn few(&self) -> usize {
        self.rounds.min(5)
    }

    pub(crate) fn step(&self, what: &str) {
        eprintln!("{:4} s  {what}", self.seconds());
    }

    /// Seconds since the start.
    pub(crate) fn seconds(&self) -> u64 {
        self.start.elapsed().as_secs()
    }
}

/// A part of the comparison that can be run alone: its name, what it measures, and the function that adds the result to the record.
pub(crate) type Section = (&'static str, &'static str, fn(&Plan, &mut Record));

pub(crate) const SECTIONS: [Section; 10] = [
    (
        "operations",
        "Every operation of every kind of filter and of the peers, or of an earlier commit; lookups by table size",
        operations::run,
    ),
    ("load", "Lookups and inserts by load factor", load::run),
    ("mixed", "Mixes of conc-map-bench on several threads", mixed::run),
    ("beside", "Lookups and writes of one thread while another one works on the same filter", beside::run),
    ("latency", "Percentiles of single operations, alone and with writers", latency::run),
    ("bits", "Bits per key by false-positive rate", bits::run),
    ("growth", "A filter that grows, compared with one of the final size and a chain of filters", growth::run),
    ("expiry", "Filters that forget: \"was it seen within the window?\"", expiry::run),
    ("occupancy", "How full a table gets, by its shape", occupancy::run),
    ("turnover", "Keys that come and go", turnover::run),
];
