//! What the user asks for.

use crate::addresses;
use crate::memory::Announced;
use clap::Parser;
use concurrent_cuckoo_filter::{BuildError, Builder, CuckooFilter};
use std::path::PathBuf;
use std::thread::available_parallelism;
use std::time::Duration;

const MAX_THREADS: usize = 1024;
const LONGEST_RUN: f64 = 86_400.0;

/// Checks sign-ups against a list of throw-away e-mail domains, kept in a concurrent cuckoo filter.
///
/// Tells how much memory it is going to take, and loads the list into a filter, or the filter from a snapshot. Then,
/// for some seconds, worker threads look up the domains of prepared sign-ups (a quarter of them listed, three quarters
/// not), while one more thread keeps taking domains off a tenth of the list and putting them back. At the end it
/// prints speed, errors and memory.
///
/// The exit code is 0 if every domain that stayed on the list was found by every lookup, 1 if one was missed or the
/// run was not possible, 2 if the options cannot be understood.
#[derive(Parser)]
#[command(name = "risk_control")]
pub(crate) struct Arguments {
    /// The list: a UTF-8 file with one key a line. White space around keys, blank lines and repeated keys are skipped
    /// [default: the 121,570 domains in examples/data]
    #[arg(long, value_name = "FILE")]
    list: Option<PathBuf>,

    /// In place of a list: this many IP addresses, made, half of them IPv4 in /24 networks of 64 listed addresses each, half
    /// IPv6. Those that are asked for and not listed are of the same networks
    #[arg(long, value_name = "COUNT", conflicts_with = "list", allow_negative_numbers = true)]
    pub(crate) ips: Option<usize>,

    /// Keys besides the list: this many, made from their numbers as they are needed, such as 00000000000f4240.example.
    /// They are loaded into the same filter, stay in it, and are half of the listed ones that are looked up
    #[arg(long, value_name = "COUNT", default_value_t = 0, allow_negative_numbers = true)]
    keys: usize,

    /// Begins with a filter for 1,000 keys, which grows: the keys besides the list, 1,000,000 unless --keys says otherwise,
    /// are added one by one during the run, and only asked for after it
    #[arg(long, conflicts_with = "snapshot")]
    pub(crate) grow: bool,

    /// The part of unlisted domains that may be taken for listed: above 0, below 1
    #[arg(long, value_name = "RATE", default_value_t = 0.001, allow_negative_numbers = true)]
    pub(crate) rate: f64,

    /// A file of the filter. If it is there, the filter is loaded from it instead of being filled; it must have been
    /// saved with the same list, --keys and --rate. On the way out the filter is saved to it
    #[arg(long, value_name = "FILE")]
    pub(crate) snapshot: Option<PathBuf>,

    /// Threads that look up, 1 to 1024; the one that changes the list comes on top [default: as many as the machine
    /// runs at once]
    #[arg(long, value_name = "COUNT")]
    threads: Option<usize>,

    /// How long to run, in seconds; parts of a second are fine
    #[arg(long, value_name = "SECONDS", default_value_t = 5.0, allow_negative_numbers = true)]
    seconds: f64,
}

/// Keys that a filter is made for that grows, and those that are added to it.
const GROWS_FROM: usize = 1_000;
const ADDED: usize = 1_000_000;

impl Arguments {
    /// Keys besides the list.
    pub(crate) fn made(&self) -> usize {
        if self.grow && self.keys == 0 { ADDED } else { self.keys }
    }

    /// The filter for this many keys.
    pub(crate) fn builder(&self, keys: usize) -> Builder<str> {
        let builder = CuckooFilter::builder().capacity(keys).false_positive_rate(self.rate);
        if self.grow { builder.capacity(GROWS_FROM.min(keys)).max_capacity(keys) } else { builder }
    }

    /// Refuses what cannot work, before a long list is loaded for nothing.
    pub(crate) fn check(&self) -> Result<(), String> {
        // What is possible depends on the list too, and is told again once that is known; this is so for every list.
        let keys = self.made().max(1);
        match Announced::new(&self.builder(keys), keys, 0) {
            Err(error @ (BuildError::RateOutOfRange { .. } | BuildError::TooLarge { .. })) => {
                return Err(error.to_string());
            }
            Ok(announced) => announced.check()?,
            Err(_) => {}
        }
        if let Some(ips) = self.ips.filter(|ips| !(1..=addresses::MOST).contains(ips)) {
            return Err(format!("{ips} addresses were asked for; 1 to {} are possible", addresses::MOST));
        }
        if let Some(threads) = self.threads.filter(|threads| !(1..=MAX_THREADS).contains(threads)) {
            return Err(format!("{threads} threads were asked for; 1 to {MAX_THREADS} are possible"));
        }
        self.duration().map(|_| ())
    }

    pub(crate) fn list(&self) -> PathBuf {
        let ours = concat!(env!("CARGO_MANIFEST_DIR"), "/data/disposable-email-domains.txt");
        self.list.clone().unwrap_or_else(|| ours.into())
    }

    pub(crate) fn threads(&self) -> usize {
        self.threads.unwrap_or_else(|| available_parallelism().map_or(1, |threads| threads.get().min(MAX_THREADS)))
    }

    pub(crate) fn duration(&self) -> Result<Duration, String> {
        Duration::try_from_secs_f64(self.seconds)
            .ok()
            .filter(|duration| !duration.is_zero() && duration.as_secs_f64() <= LONGEST_RUN)
            .ok_or_else(|| {
                format!(
                    "a run of {:?} seconds was asked for; more than 0, up to {LONGEST_RUN} are possible",
                    self.seconds
                )
            })
    }
}
