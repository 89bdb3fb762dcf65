//! What is measured, one file a section.

mod bits;
mod contestants;
mod filters;
mod latency;
mod load;
mod paper;
mod refusals;
mod threads;
mod throughput;
mod turns;

use crate::record::Record;
use clap::ValueEnum;
use std::time::Instant;

/// How much is measured.
pub(crate) struct Plan {
    /// Tiny sizes, to see that everything works.
    pub(crate) quick: bool,
    /// How often each contestant takes its turn.
    pub(crate) turns: usize,
    start: Instant,
}

impl Plan {
    pub(crate) fn new(quick: bool, turns: usize) -> Self {
        Plan { quick, turns, start: Instant::now() }
    }

    /// Tells whoever waits what is being done now.
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
    /// Lookups, inserts and removes by table size
    Throughput,
    /// Lookups and inserts by load factor
    Load,
    /// Lookups and writes mixed, on 1, 2 and 4 threads
    Threads,
    /// Percentiles of a single lookup beside writers
    Latency,
    /// The tables and curves of the cuckoo filter's paper
    Paper,
    /// Load factors at the first refusal, by size
    Refusals,
    /// Bits a key by false-positive rate
    Bits,
}

impl Section {
    /// Measures it and adds to the record what it found.
    pub(crate) fn run(self, plan: &Plan, record: &mut Record) {
        let run = match self {
            Section::Throughput => throughput::run,
            Section::Load => load::run,
            Section::Threads => threads::run,
            Section::Latency => latency::run,
            Section::Paper => paper::run,
            Section::Refusals => refusals::run,
            Section::Bits => bits::run,
        };
        run(plan, record);
    }
}
