//! The variants of the server beside each other, turn by turn.

mod case;
mod field;
mod report;

use crate::args::{at_least_one, connections, percent, rate, seconds};
use crate::fronts::Variant;
use crate::load::Outcome;
use crate::{keys, serve, text};
use case::{Case, Sample};
use clap::Args;
use field::Field;
use report::{Report, Run};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Compares the server with the same server without its filter, with one that looks nothing up, and with a set of
/// strings in the filter's place.
///
/// Each variant is a process with a list of its own, and all lists are the same. In each turn every variant is measured
/// in every case, in slices of half a second at the most, one after the other in changing order. Checks are asked in a
/// closed loop: each connection asks again as soon as it has its answer. Changes come by the clock, and count from the
/// moment at which they were due. Every answer is checked. It takes some 30 x turns x seconds in all; let the machine
/// be idle meanwhile.
#[derive(Args)]
pub(crate) struct Options {
    /// Seconds of each figure in each turn
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds)]
    seconds: Duration,

    /// Turns
    #[arg(long, value_name = "COUNT", default_value_t = 3, value_parser = at_least_one)]
    turns: usize,

    /// Connections that check at the same time
    #[arg(long, value_name = "COUNT", default_value_t = 32, value_parser = connections)]
    connections: usize,

    /// The file of the list, one key a line [default: the list of the examples, about 121,570 domains]
    #[arg(long, value_name = "FILE", default_value = keys::LIST, hide_default_value = true)]
    list: PathBuf,

    /// Made-up keys on the list beside those of the file
    #[arg(long, value_name = "COUNT", default_value_t = 1_000_000)]
    keys: u64,

    /// Of 100 keys that are asked for, so many are listed
    #[arg(long, value_name = "PERCENT", default_value = "5", value_parser = percent)]
    listed_percent: f64,

    /// The filter's rate of wrong answers: each costs a read of the store
    #[arg(long, value_name = "RATE", default_value_t = 0.001, value_parser = rate)]
    false_positive_rate: f64,

    /// Changes a second, where there are writers
    #[arg(long, value_name = "COUNT", default_value_t = 1000, value_parser = at_least_one)]
    changes: usize,

    /// The cases to measure, by their numbers in the order of the tables [default: all of them]
    #[arg(long, value_name = "NUMBER", value_delimiter = ',', value_parser = at_least_one)]
    cases: Vec<usize>,

    /// The variants to measure beside the filter [default: all of them]
    #[arg(long, value_name = "VARIANT", value_delimiter = ',')]
    beside: Vec<Variant>,

    /// Writes the tables in Markdown as well
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,

    /// A short list and one short turn, to see that everything works; the figures mean nothing
    #[arg(long, conflicts_with_all = ["seconds", "turns", "keys"])]
    quick: bool,
}

/// Variants are measured in turn for no longer than this at a time, so that what slows the machine slows them all.
const SLICE: Duration = Duration::from_millis(500);

/// Keys that are asked for in one go over all questions.
const SINGLES: usize = 100_000;
const BATCHES: usize = 2_000;
/// Keys in a batch.
pub(super) const BATCH: usize = 100;

pub(crate) fn run(options: &Options) -> Result<(), String> {
    let begun = Instant::now();
    let (seconds, turns, made_keys) = match options.quick {
        true => (Duration::from_millis(200), 1, 20_000),
        false => (options.seconds, options.turns, options.keys),
    };
    if let Some(path) = &options.markdown {
        // Before minutes of work, and not after them.
        let opened = std::fs::OpenOptions::new().create(true).append(true).open(path);
        opened.map_err(|error| format!("{} cannot be written: {error}", path.display()))?;
    }
    let cases = cases(options)?;
    let variants: Vec<Variant> = Variant::ALL
        .into_iter()
        .filter(|&one| one == Variant::Filter || options.beside.is_empty() || options.beside.contains(&one))
        .collect();

    let tell = |what: &str| eprintln!("{:>7.1} s  {what}", begun.elapsed().as_secs_f64());
    let listed = keys::read(&options.list)?;
    tell(&format!(
        "{} keys of {} and {} made-up ones",
        text::count(listed.len() as u64),
        options.list.display(),
        text::count(made_keys)
    ));
    let some = if options.quick { 10 } else { 1 };
    let sample = Sample::new(&listed, made_keys, (SINGLES / some).max(BATCHES / some * BATCH), options.listed_percent);
    let (singles, batches) = (SINGLES / some, BATCHES / some);
    let questions: Vec<_> = cases.iter().map(|case| case.questions(&sample, singles, batches)).collect();
    tell("the questions are written; the lists are being stored");
    let servers = serve::Options {
        front: Variant::Filter,
        data: PathBuf::new(),
        capacity: 1,
        false_positive_rate: options.false_positive_rate,
        list: options.list.clone(),
        keys: made_keys,
    };
    let mut field = Field::start(&variants, &listed, &servers, tell)?;
    drop((listed, sample));

    let slices = seconds.div_duration_f64(SLICE).ceil().max(1.0) as usize;
    let mut report = Report::new(&cases, &variants);
    for turn in 0..turns {
        for (number, (case, questions)) in cases.iter().zip(&questions).enumerate() {
            let mut sums: Vec<Option<Outcome>> = variants.iter().map(|_| None).collect();
            for slice in 0..slices {
                for place in 0..variants.len() {
                    let variant = (turn + number + slice + place) % variants.len();
                    let changes = case.writers.then_some(options.changes as f64);
                    let outcome = field.measure(
                        variant,
                        case,
                        questions,
                        options.connections,
                        seconds / slices as u32,
                        changes,
                    )?;
                    match &mut sums[variant] {
                        Some(sum) => sum.add(&outcome),
                        none => *none = Some(outcome),
                    }
                }
            }
            let sums: Vec<Outcome> = sums.into_iter().flatten().collect();
            let rate = |(variant, sum): (&Variant, &Outcome)| {
                format!("{} {}/s", variant.name(), text::count(sum.checks_per_second() as u64))
            };
            let rates: Vec<String> = variants.iter().zip(&sums).map(rate).collect();
            tell(&format!("turn {} of {turns}: {case}: {}", turn + 1, rates.join(", ")));
            sums.into_iter().enumerate().for_each(|(variant, sum)| report.add(number, variant, sum));
        }
    }
    let run = Run {
        seconds,
        turns,
        connections: options.connections,
        keys: field.keys,
        listed_percent: options.listed_percent,
        false_positive_rate: options.false_positive_rate,
        changes: options.changes,
        quick: options.quick,
        memory: field.memory(),
        took: begun.elapsed(),
    };
    print!("{}", report.text(&run));
    if let Some(path) = &options.markdown {
        std::fs::write(path, report.markdown(&run))
            .map_err(|error| format!("{} cannot be written: {error}", path.display()))?;
    }
    Ok(())
}

fn cases(options: &Options) -> Result<Vec<Case>, String> {
    let all = Case::all();
    if options.cases.is_empty() {
        return Ok(all.to_vec());
    }
    let case = |&number: &usize| {
        let case = all.get(number - 1).copied();
        case.ok_or_else(|| format!("there is no case {number}; there are {}", all.len()))
    };
    options.cases.iter().map(case).collect()
}
