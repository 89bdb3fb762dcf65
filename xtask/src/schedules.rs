//! Histories of operations on threads that shuttle switches (tests/internal/linearizability).

use crate::teeth::{self, Build, Tests, Tooth};
use crate::{Args, run, tree};
use anyhow::{Result, bail, ensure};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

const SECONDS_TO_RUN: u64 = 3600;
const SECONDS_TO_CATCH: u64 = 900;

/// The number of scenarios of each form.
const SHORT: usize = 202_500;
const FULL: usize = 3_750_000;

/// Without assertions of the crate, because the histories must show the fault.
const UNCHECKED: &[&str] = &["profile.loom.debug-assertions=false", "profile.loom.overflow-checks=false"];

pub(crate) fn check(args: &Args) -> Result<()> {
    let (full, names) = (args.has("--full"), args.names());
    let build = Build { cfg: "cuckoo_shuttle", target: tree::target("schedules")?, config: &[] };
    if names.is_empty() {
        explore(&build.tests(Path::new("."))?, full)?;
        if !full {
            return Ok(());
        }
    }
    let build = Build { config: UNCHECKED, ..build };
    // For the dependencies.
    build.tests(Path::new("."))?;
    let found_by = teeth::pull(&teeth::choose(&names)?, &build, find)?;
    if full {
        let count = |form| found_by.iter().filter(|&&found| found == form).count();
        let (short, more, not) = (count(Some(false)), count(Some(true)), count(None));
        let found = format!("{short} teeth found by the short form, {more} more by the full one, 0 missed");
        println!("figure 1.3: {found}; {not} are not for schedules");
    }
    Ok(())
}

fn command(tests: &Tests, seconds: u64, full: bool, arguments: &str) -> Command {
    let mut command = tests.command(seconds, &format!("linearizability::schedules {arguments}"));
    if full {
        command.env("CUCKOO_FULL", "1");
    }
    command
}

fn explore(tests: &Tests, full: bool) -> Result<()> {
    let began = Instant::now();
    let (status, said) = run::loudly(command(tests, SECONDS_TO_RUN, full, "--nocapture --test-threads=2"))?;
    ensure!(status.success(), "a history cannot be explained");
    // "schedules NAME: RAN of ALL scenarios, every history explained"
    let counts = said.lines().filter_map(|line| line.strip_prefix("schedules ")?.split_once(": ")?.1.split(' ').next());
    let ran = counts.map(str::parse::<usize>).sum::<Result<usize, _>>()?;
    let expected = if full { FULL } else { SHORT };
    ensure!(ran >= expected, "{ran} of {expected} schedules ran");
    let (ran, seconds) = (run::thousands(ran), began.elapsed().as_secs());
    println!("figure 1.2: {ran} schedules, 0 histories that no order explains; {seconds} s");
    Ok(())
}

/// Returns whether the full form was needed to find the tooth, or `None` if it is not for schedules.
fn find(tooth: &Tooth, tests: &Tests) -> Result<(String, Option<bool>)> {
    if let Some(reason) = &tooth.not_for_schedules {
        return Ok((format!("is not for schedules: {reason}"), None));
    }
    for full in [false, true] {
        let (status, said) = run::silently(command(tests, SECONDS_TO_CATCH, full, ""))?;
        // A process that exceeds the time limit, or ends without a message, has found nothing.
        let line = said.lines().find(|line| line.contains(": failed in scenario "));
        if let (false, Some(line)) = (status.success(), line) {
            return Ok((format!("found: {line}"), Some(full)));
        }
    }
    bail!("was not found")
}
