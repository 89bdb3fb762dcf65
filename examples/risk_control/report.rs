//! What came of it, for a person to read.

use crate::list::{List, Text};
use crate::made::MadeKey;
use crate::memory::{self, Announced, mebibytes};
use crate::run::{Outcome, TIMED_ONE_IN};
use crate::sign_ups::{Kind, SignUps};
use crate::snapshot::Moved;
use concurrent_cuckoo_filter::CuckooFilter;
use std::collections::HashSet;
use std::io::{self, Write};
use std::time::Duration;

pub(crate) struct Report<'a> {
    pub(crate) asked_rate: f64,
    pub(crate) text: &'a Text,
    pub(crate) list: &'a List<'a>,
    /// How many, before the run.
    pub(crate) made: usize,
    /// And during it.
    pub(crate) added: usize,
    pub(crate) read_in: Duration,
    pub(crate) filled: &'a Filled,
    pub(crate) announced: &'a Announced,
    pub(crate) filter: &'a CuckooFilter<str>,
    pub(crate) sign_ups: &'a SignUps<'a>,
    pub(crate) outcome: &'a Outcome,
}

/// How the keys came into the filter.
pub(crate) enum Filled {
    FromKeys { listed_in: Duration, made_in: Duration },
    FromSnapshot(Moved),
}

/// Tells of the memory before it is taken.
pub(crate) fn announce(announced: &Announced) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let taken = match announced.taken {
        Some(bytes) => format!("taken so far (list, sign-ups, program) {:.1} MiB", mebibytes(bytes)),
        None => "on top of list, sign-ups and program".into(),
    };
    writeln!(
        out,
        "announced        {:.1} MiB at the most: filter {:.1} MiB, its load {:.1} MiB, threads {:.1} MiB, {taken}",
        mebibytes(announced.total()),
        mebibytes(announced.filter),
        mebibytes(announced.load),
        mebibytes(announced.threads),
    )?;
    out.flush()
}

/// Tells of what was saved.
pub(crate) fn saved(moved: &Moved) -> io::Result<()> {
    let mut out = io::stdout().lock();
    print_moved(&mut out, "saved", moved)?;
    out.flush()
}

fn print_moved(out: &mut impl Write, what: &str, Moved { bytes, took }: &Moved) -> io::Result<()> {
    let speed = scaled(*bytes as f64 / took.as_secs_f64());
    writeln!(out, "snapshot         {} bytes {what} in {:.1} ms, {speed}bytes a second", grouped(*bytes), millis(*took))
}

impl Report<'_> {
    pub(crate) fn print(&self) -> io::Result<()> {
        let Report { text, list, filter, outcome, .. } = self;
        let (asked, written) = (&outcome.asked, &outcome.written);
        let mut out = io::stdout().lock();

        writeln!(
            out,
            "list             {} keys; left out: {} blank lines, {} repeated lines",
            grouped(list.keys.len() as u64),
            grouped(text.blank_lines as u64),
            grouped(list.repeated_lines as u64),
        )?;
        self.print_filled(&mut out)?;
        writeln!(
            out,
            "run              {} s, threads that look up: {}, that change the list: 1; {} sign-ups prepared",
            outcome.duration.as_secs_f64(),
            outcome.threads,
            grouped(self.sign_ups.all.len() as u64),
        )?;
        writeln!(
            out,
            "lookups          {}a second in all, {}a second on each thread; {} done",
            scaled(asked.speed),
            scaled(asked.speed / outcome.threads as f64),
            grouped(asked.lookups()),
        )?;
        writeln!(
            out,
            "one lookup       p50 {} ns, p99 {} ns, p99.9 {} ns (1 in {TIMED_ONE_IN} timed, the clock's own {} ns included)",
            grouped(asked.times.value_at_quantile(0.5)),
            grouped(asked.times.value_at_quantile(0.99)),
            grouped(asked.times.value_at_quantile(0.999)),
            outcome.clock,
        )?;
        writeln!(
            out,
            "missed           {} of {} lookups of domains that stayed on the list",
            grouped(outcome.missed()),
            grouped(asked.of(Kind::Stays).asked),
        )?;
        self.print_false_positives(&mut out)?;
        writeln!(
            out,
            "writer           {}changes a second: domains taken off {} times, put back {} times, refused {} times",
            scaled(written.speed),
            grouped(written.taken_off),
            grouped(written.put_back),
            grouped(written.refused),
        )?;
        if self.sign_ups.churned.is_empty() {
            writeln!(out, "                 (the only key of the list stays on it)")?;
        }
        self.print_growth(&mut out)?;
        let keys = list.keys.len() + self.made + self.added;
        let text: usize = list.keys.iter().map(|key| key.len()).sum();
        let exact = bytes_of_a_hash_set(keys, text + (self.made + self.added) * MadeKey::LEN);
        writeln!(
            out,
            "memory           filter {} bytes, {:.1} bits a key; exact HashSet<String> {} bytes, {:.1} times as many",
            grouped(filter.memory_usage() as u64),
            filter.memory_usage() as f64 * 8.0 / keys as f64,
            grouped(exact as u64),
            exact as f64 / filter.memory_usage() as f64,
        )?;
        writeln!(
            out,
            "                 (the set's are computed: table, control bytes, text; without the allocator's own)"
        )?;
        if let (Some(peak), Some(_)) = (memory::peak(), self.announced.taken) {
            let announced = self.announced.total();
            writeln!(
                out,
                "peak             {:.1} MiB taken by the program, {} than the {:.1} MiB that were announced",
                mebibytes(peak),
                if peak <= announced { "no more" } else { "MORE" },
                mebibytes(announced),
            )?;
        }
        out.flush()
    }

    fn print_growth(&self, out: &mut impl Write) -> io::Result<()> {
        let Some((took, refused)) = self.outcome.grown else { return Ok(()) };
        let stats = self.filter.stats();
        writeln!(
            out,
            "growth           from {} keys: {} added one by one during the run in {:.1} ms, refused {}; {} splits, {:.2} ms each",
            grouped(self.filter.capacity() as u64),
            grouped(self.added as u64),
            millis(took),
            grouped(refused as u64),
            grouped(stats.splits),
            millis(stats.time_in_splits) / stats.splits.max(1) as f64,
        )
    }

    fn print_filled(&self, out: &mut impl Write) -> io::Result<()> {
        write!(out, "load             file read and checked in {:.1} ms", millis(self.read_in))?;
        match self.filled {
            Filled::FromKeys { listed_in, made_in } => {
                writeln!(
                    out,
                    "; filter built and filled in {:.1} ms, {}keys a second",
                    millis(*listed_in),
                    scaled(self.list.keys.len() as f64 / listed_in.as_secs_f64()),
                )?;
                if self.made > 0 {
                    writeln!(
                        out,
                        "made keys        {}, filled in within {:.1} ms, {}keys a second",
                        grouped(self.made as u64),
                        millis(*made_in),
                        scaled(self.made as f64 / made_in.as_secs_f64()),
                    )?;
                }
                Ok(())
            }
            Filled::FromSnapshot(loaded) => {
                writeln!(out, "; filter loaded from the snapshot")?;
                print_moved(out, "loaded", loaded)?;
                if self.made > 0 {
                    writeln!(out, "made keys        {}, in the snapshot", grouped(self.made as u64))?;
                }
                Ok(())
            }
        }
    }

    fn print_false_positives(&self, out: &mut impl Write) -> io::Result<()> {
        let tally = self.outcome.asked.of(Kind::Unlisted);
        writeln!(
            out,
            "false positives  {} measured, {} asked for at the most, {} expected from {} bits at load {:.3}",
            percent(tally.found as f64 / tally.asked.max(1) as f64),
            percent(self.asked_rate),
            percent(self.filter.expected_false_positive_rate()),
            self.filter.fingerprint_bits(),
            self.filter.load_factor(),
        )?;
        writeln!(
            out,
            "                 ({} of {} lookups of domains that were never listed)",
            grouped(tally.found),
            grouped(tally.asked),
        )
    }
}

/// The memory of a `HashSet<String>` with this many keys, of this many bytes of text, and no room to spare beyond what its
/// table always has.
fn bytes_of_a_hash_set(keys: usize, text: usize) -> usize {
    // A table has a power of two of places, each a `String` and a control byte, and one group of 16 control bytes more.
    // It is filled to 7/8, or with 3 of 4 and 7 of 8 places.
    let places = match keys {
        ..4 => 4,
        4..8 => 8,
        8.. => (keys * 8 / 7).next_power_of_two(),
    };
    let table = places * (size_of::<String>() + 1) + 16;
    size_of::<HashSet<String>>() + table + text
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// `12_345` as `12,345`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// `12_345_678.0` as `12.3 M`, and what is below a million as `12,345 `: the unit follows.
fn scaled(number: f64) -> String {
    if number >= 1e6 { format!("{:.1} M ", number / 1e6) } else { format!("{} ", grouped(number as u64)) }
}

/// As many digits as tell something.
fn percent(part: f64) -> String {
    if part == 0.0 || part >= 1e-5 { format!("{:.4} %", part * 100.0) } else { format!("{:.2e} %", part * 100.0) }
}
