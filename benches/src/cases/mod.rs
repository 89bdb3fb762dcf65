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
mod sizes;
mod turnover;

use crate::contestants::Contestant;
use crate::record::Record;
use clap::ValueEnum;
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

    /// Prints the current step.
    pub(crate) fn step(&self, what: &str) {
        eprintln!("{:4} s  {what}", self.seconds());
    }

    /// Seconds since the start.
    pub(crate) fn seconds(&self) -> u64 {
        self.start.elapsed().as_secs()
    }
}

/// A part of the comparison that can be run alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Section {
    /// Every operation of every kind of filter and of the peers, or of an earlier commit; lookups by table size
    Operations,
    /// Lookups and inserts by load factor
    Load,
    /// Mixes of conc-map-bench on several threads
    Mixed,
    /// Lookups and writes of one thread while another one works on the same filter
    Beside,
    /// Percentiles of single operations, alone and with writers
    Latency,
    /// Bits per key by false-positive rate
    Bits,
    /// A filter that grows, compared with one of the final size and a chain of filters
    Growth,
    /// Filters that forget: "was it seen within the window?"
    Expiry,
    /// How full a table gets, by its shape
    Occupancy,
    /// Keys that come and go
    Turnover,
    /// Sizes of other structures, by formula
    Sizes,
}

impl Section {
    /// Runs the section, and adds the result to the record.
    pub(crate) fn run(self, plan: &Plan, record: &mut Record) {
        let run = match self {
            Section::Operations => operations::run,
            Section::Load => load::run,
            Section::Mixed => mixed::run,
            Section::Beside => beside::run,
            Section::Latency => latency::run,
            Section::Bits => bits::run,
            Section::Growth => growth::run,
            Section::Expiry => expiry::run,
            Section::Occupancy => occupancy::run,
            Section::Turnover => turnover::run,
            Section::Sizes => sizes::run,
        };
        run(plan, record);
    }
}
