//! What is timed and counted, one file a section.

mod bits;
mod bulk;
mod claims;
mod entrants;
mod expiry;
mod filled;
mod growth;
mod kinds;
mod latency;
mod load;
mod lookups;
mod refusals;
mod threads;
mod versions;
mod writes;

use crate::contestants::{Version, ours};
use crate::record::Record;
use clap::ValueEnum;
use std::time::Instant;

/// How much is measured.
pub(crate) struct Plan {
    /// Tiny sizes, to see that everything works.
    pub(crate) quick: bool,
    /// Slices of each case.
    pub(crate) rounds: usize,
    /// Slots of the largest tables of this crate, as a power of two.
    pub(crate) large: u32,
    earlier: Option<Version>,
    start: Instant,
}

impl Plan {
    pub(crate) fn new(quick: bool, rounds: usize, large: u32, earlier: Option<Version>) -> Self {
        Plan { quick, rounds, large: if quick { 16 } else { large }, earlier, start: Instant::now() }
    }

    /// Slices of cases of which one takes seconds.
    pub(crate) fn few(&self) -> usize {
        self.rounds.min(5)
    }

    /// This crate, and the earlier commit if there is one.
    pub(crate) fn versions(&self) -> Vec<Version> {
        std::iter::once(ours::version()).chain(self.earlier).collect()
    }

    /// Says what is being done now.
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
    /// Every operation of this crate by table size, compared with an earlier commit if there is one
    Versions,
    /// Lookups by table size, compared with all peers
    Lookups,
    /// Inserts, removes and both, one by one
    Writes,
    /// Many keys at once, and snapshots
    Bulk,
    /// Lookups and loads of every kind of filter, compared with a plain one and an earlier commit if there is one
    Kinds,
    /// Lookups and inserts by load factor
    Load,
    /// Lookups and writes on several threads
    Threads,
    /// Percentiles of single operations, alone and with writers
    Latency,
    /// Load factors at the first refusal, by size and width
    Refusals,
    /// Bits a key by false-positive rate
    Bits,
    /// A filter that grows, by keys, compared with one of the final size and a chain of filters
    Growth,
    /// What articles say of cuckoo filters: occupancy, keys that come and go, sizes
    Claims,
    /// Filters that forget: lookups, "was it seen within the window?" compared with peers, ticks
    Expiry,
}

impl Section {
    /// Measures it and adds what it found to the record.
    pub(crate) fn run(self, plan: &Plan, record: &mut Record) {
        let run = match self {
            Section::Versions => versions::run,
            Section::Lookups => lookups::run,
            Section::Writes => writes::run,
            Section::Bulk => bulk::run,
            Section::Kinds => kinds::run,
            Section::Load => load::run,
            Section::Threads => threads::run,
            Section::Latency => latency::run,
            Section::Refusals => refusals::run,
            Section::Bits => bits::run,
            Section::Growth => growth::run,
            Section::Claims => claims::run,
            Section::Expiry => expiry::run,
        };
        run(plan, record);
    }
}
