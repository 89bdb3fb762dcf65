//! What came of all turns, for people.

use super::case::Case;
use super::field::Memory;
use crate::fronts::Variant;
use crate::load::Outcome;
use crate::table::Table;
use crate::text::{count, mebibytes, median, some_time, time};
use crate::times::Times;
use std::time::Duration;

/// At least so much of the throughput without any look-up is asked of the filter.
const ASKED: f64 = 0.97;

/// How it was measured.
pub(crate) struct Run {
    pub(crate) seconds: Duration,
    pub(crate) turns: usize,
    pub(crate) connections: usize,
    pub(crate) keys: u64,
    pub(crate) listed_percent: f64,
    pub(crate) false_positive_rate: f64,
    pub(crate) changes: usize,
    pub(crate) quick: bool,
    pub(crate) memory: Vec<Memory>,
    pub(crate) took: Duration,
}

/// The outcomes: for each case and variant, one of each turn.
pub(crate) struct Report {
    cases: Vec<Case>,
    variants: Vec<Variant>,
    outcomes: Vec<Vec<Vec<Outcome>>>,
}

impl Report {
    pub(crate) fn new(cases: &[Case], variants: &[Variant]) -> Self {
        let none = || variants.iter().map(|_| Vec::new()).collect();
        Report { cases: cases.to_vec(), variants: variants.to_vec(), outcomes: cases.iter().map(|_| none()).collect() }
    }

    pub(crate) fn add(&mut self, case: usize, variant: usize, outcome: Outcome) {
        self.outcomes[case][variant].push(outcome);
    }

    pub(crate) fn text(&self, run: &Run) -> String {
        format!("\n{}\n{}\n{}\n{}", run.words(), self.checks().text(), self.share(), run.memory().text())
    }

    pub(crate) fn markdown(&self, run: &Run) -> String {
        format!("{}\n{}\n{}\n{}", run.words(), self.checks().markdown(), self.share(), run.memory().markdown())
    }

    fn checks(&self) -> Table {
        let heads = [
            "case",
            "before the store",
            "requests/s",
            "filter: times as many",
            "p50",
            "p99",
            "p99.9",
            "worst",
            "CPU/request",
            "changes/s",
            "p50 of them",
            "p99",
            "worst",
        ];
        let mut table = Table::new(&heads, 2);
        for (case, outcomes) in self.cases.iter().zip(&self.outcomes) {
            for (&variant, own) in self.variants.iter().zip(outcomes) {
                let mut checks = Times::new();
                let mut changes = Times::new();
                for outcome in own {
                    checks.merge(&outcome.checks);
                    outcome.changes.iter().for_each(|own| changes.merge(own));
                }
                let mut row = vec![case.to_string(), variant.to_string()];
                row.push(count(median(own.iter().map(Outcome::checks_per_second).collect()) as u64));
                row.push(if variant == Variant::Filter { String::new() } else { Ratio::of(&outcomes[0], own).text() });
                row.extend([0.5, 0.99, 0.999].map(|part| some_time(checks.quantile(part))));
                row.push(some_time(checks.worst()));
                row.push(processor(own).map_or_else(|| "-".into(), time));
                if case.writers {
                    let rates: Vec<f64> = own.iter().filter_map(Outcome::changes_per_second).collect();
                    row.push(count(median(rates).round() as u64));
                    row.extend([0.5, 0.99].map(|part| some_time(changes.quantile(part))));
                    row.push(some_time(changes.worst()));
                }
                table.row(row);
            }
        }
        table
    }

    /// What the filter costs, by the cases that say it: where no key is listed, it is all that differs.
    fn share(&self) -> String {
        let Some(nothing) = self.variants.iter().position(|&variant| variant == Variant::Nothing) else {
            return String::new();
        };
        let mut text = String::new();
        for (case, outcomes) in self.cases.iter().zip(&self.outcomes).filter(|(case, _)| case.absent_only) {
            let ratio = Ratio::of(&outcomes[0], &outcomes[nothing]);
            let verdict = if ratio.median >= ASKED { "reached" } else { "missed" };
            text += &format!(
                "{case}: the filter answers {} of the requests that no look-up answers; at least {ASKED} is asked: \
                 {verdict}\n",
                ratio.text(),
            );
            if let (Some(own), Some(other)) = (processor(&outcomes[0]), processor(&outcomes[nothing])) {
                text += &format!(
                    "{case}: by processor time of the server, {:.3}\n",
                    other.as_secs_f64() / own.as_secs_f64()
                );
            }
        }
        text
    }
}

/// How many times as many requests of one as of another, in the same turn.
struct Ratio {
    median: f64,
    least: f64,
    most: f64,
}

impl Ratio {
    fn of(one: &[Outcome], other: &[Outcome]) -> Self {
        let rates = |outcomes: &[Outcome]| -> Vec<f64> { outcomes.iter().map(Outcome::checks_per_second).collect() };
        Ratio::of_rates(&rates(one), &rates(other))
    }

    fn of_rates(one: &[f64], other: &[f64]) -> Self {
        let ratios: Vec<f64> = one.iter().zip(other).map(|(one, other)| one / other).collect();
        let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
        let most = ratios.iter().copied().fold(0.0, f64::max);
        Ratio { median: median(ratios), least, most }
    }

    fn text(&self) -> String {
        format!("{:.3} ({:.3}..{:.3})", self.median, self.least, self.most)
    }
}

/// Processor time of the server for a request.
fn processor(outcomes: &[Outcome]) -> Option<Duration> {
    let used: Duration = outcomes.iter().map(|outcome| outcome.processor).sum::<Option<Duration>>()?;
    let requests: u64 = outcomes.iter().map(|outcome| outcome.checks.count()).sum();
    (requests > 0).then(|| Duration::from_secs_f64(used.as_secs_f64() / requests as f64))
}

impl Run {
    fn words(&self) -> String {
        let Run { turns, connections, listed_percent, false_positive_rate, changes, .. } = self;
        let cores = std::thread::available_parallelism().map_or_else(|_| "?".into(), |cores| cores.to_string());
        let mut text = format!(
            "{} keys on the list, and a filter that is wrong for {false_positive_rate} of the absent ones; {turns} \
             turns of {} for each figure; checks in a closed loop on {connections} connections; {cores} processors, \
             shared by the server and the load; {} in all.\n\n\
             Of the keys that are asked for, {listed_percent} of 100 are listed, but where all are absent. With \
             writers, {changes} changes a second are due, half of them PUT and half DELETE; their times count from \
             the moment they were due. Rates are medians of the turns, ratios are of one turn, the median \
             (least..most); times are those of all turns. CPU/request is the server's processor time by its checks, \
             changes included. Every hit is confirmed by the store, behind the DashSet too; without a look-up every \
             answer is \"no\".\n",
            count(self.keys),
            time(self.seconds),
            time(self.took),
        );
        if self.quick || cfg!(debug_assertions) {
            text += "\nThe figures mean nothing: this was a quick run, or the program was not built with --release.\n";
        }
        text
    }

    fn memory(&self) -> Table {
        let mut table = Table::new(&["before the store", "memory when ready", "in the end"], 1);
        let bytes = |memory: Option<u64>| memory.map_or_else(|| "-".into(), mebibytes);
        for Memory { variant, start, end } in &self.memory {
            table.row(vec![variant.to_string(), bytes(*start), bytes(*end)]);
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(times: &[u64]) -> Outcome {
        let mut checks = Times::new();
        times.iter().for_each(|&ms| checks.add(Duration::from_millis(ms)));
        let processor = Some(Duration::from_millis(times.len() as u64));
        Outcome { checks, listed: 0, changes: None, took: Duration::from_secs(1), processor }
    }

    fn run() -> Run {
        Run {
            seconds: Duration::from_secs(1),
            turns: 3,
            connections: 32,
            keys: 1_121_570,
            listed_percent: 5.0,
            false_positive_rate: 0.001,
            changes: 1000,
            quick: false,
            memory: vec![Memory { variant: Variant::Filter, start: Some(1 << 20), end: None }],
            took: Duration::from_secs(9),
        }
    }

    #[test]
    fn a_ratio_is_the_median_of_those_of_each_turn() {
        let ratio = Ratio::of_rates(&[100.0, 50.0, 99.0], &[100.0, 100.0, 100.0]);
        assert_eq!(ratio.text(), "0.990 (0.500..1.000)");
    }

    #[test]
    fn the_table_has_medians_of_rates_and_times_of_all_turns() {
        let mut report = Report::new(&Case::all()[..1], &[Variant::Filter, Variant::Nothing]);
        for times in [&[1, 2, 3][..], &[1, 2], &[500]] {
            report.add(0, 0, outcome(times));
            report.add(0, 1, outcome(&[1, 1]));
        }
        let markdown = report.markdown(&run());
        assert!(
            markdown.contains(
                "| single checks, all absent | the filter | 2 |  | 2.00 ms | 500 ms | 500 ms | 500 ms | 1.00 ms |"
            ),
            "{markdown}"
        );
        assert!(markdown.contains("| no look-up | 2 | 1.000 (0.500..1.500) | 1.00 ms |"), "{markdown}");
        assert!(markdown.contains("at least 0.97 is asked: reached"), "{markdown}");
        assert!(markdown.contains("| the filter | 1.0 MiB | - |"), "{markdown}");
    }

    #[test]
    fn a_filter_that_costs_too_much_is_told() {
        let mut report = Report::new(&Case::all()[..1], &[Variant::Filter, Variant::Nothing]);
        report.add(0, 0, outcome(&[1; 96]));
        report.add(0, 1, outcome(&[1; 100]));
        assert!(report.text(&run()).contains("at least 0.97 is asked: missed"));
    }
}
