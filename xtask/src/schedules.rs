//! Histories of operations on threads that shuttle switches (src/histories_tests).

use crate::teeth::{self, Build, Tests, Tooth};
use crate::{run, tree};
use anyhow::{Result, bail, ensure};
use std::path::Path;
use std::time::Instant;

const TESTS: &str = "histories_tests::schedules";
const SECONDS_TO_CATCH: u64 = 900;

const SHORT: usize = 120_000;
const FULL: usize = 2_250_000;
const FULL_FORM: &[(&str, &str)] = &[("CUCKOO_FULL", "1")];

/// Assertions of the crate are left out: it is the histories that must show what is wrong.
const UNCHECKED: &[&str] = &["profile.loom.debug-assertions=false", "profile.loom.overflow-checks=false"];

/// What found a tooth.
#[derive(PartialEq)]
enum Found {
    ByShort,
    ByFull,
    NotForSchedules,
}

pub(crate) fn check(full: bool, names: &[String]) -> Result<()> {
    let build = Build { cfg: "cuckoo_shuttle", target: tree::target("schedules")?, config: &[] };
    if names.is_empty() {
        explore(&build, full)?;
    }
    if names.is_empty() && !full {
        return Ok(());
    }
    let build = Build { config: UNCHECKED, ..build };
    // For the dependencies.
    build.tests(Path::new("."))?;
    let found = teeth::pull(&teeth::choose(names)?, &build, find)?;
    if full {
        let [short, long, not] = [Found::ByShort, Found::ByFull, Found::NotForSchedules]
            .map(|kind| found.iter().filter(|&found| *found == kind).count());
        println!(
            "figure 1.3: {short} teeth found by the short form, {long} more by the full one, 0 missed; {not} are not \
             for schedules"
        );
    }
    Ok(())
}

fn explore(build: &Build, full: bool) -> Result<()> {
    let tests = build.tests(Path::new("."))?;
    let began = Instant::now();
    let mut command = tests.command(&format!("{TESTS} --nocapture --test-threads=2"));
    if full {
        command.envs(FULL_FORM.iter().copied());
    }
    let (status, said) = run::loudly(&mut command, &build.target.join("schedules.log"))?;
    ensure!(status.success(), "a history cannot be explained");
    // "schedules NAME: RAN of ALL scenarios, every history explained"
    let counts = said.lines().filter_map(|line| line.strip_prefix("schedules ")?.split_once(": ")?.1.split(' ').next());
    let ran = counts.map(|count| count.parse::<usize>()).sum::<Result<usize, _>>()?;
    let expected = if full { FULL } else { SHORT };
    ensure!(ran >= expected, "{ran} of {expected} schedules ran");
    let seconds = began.elapsed().as_secs();
    println!("figure 1.2: {} schedules, 0 histories that no order explains; {seconds} s", run::thousands(ran));
    Ok(())
}

fn find(tooth: &Tooth, tests: &Tests) -> Result<(String, Found)> {
    if let Some(reason) = &tooth.not_for_schedules {
        return Ok((format!("is not for schedules: {reason}"), Found::NotForSchedules));
    }
    for (env, found) in [(&[][..], Found::ByShort), (FULL_FORM, Found::ByFull)] {
        let (status, said) = tests.run(SECONDS_TO_CATCH, TESTS, env)?;
        // The time limit is no finding, nor is a process that ends without a word.
        let line = said.lines().find(|line| line.contains(": failed in scenario "));
        if let (false, Some(line)) = (status.success(), line) {
            return Ok((format!("found: {line}"), found));
        }
    }
    bail!("was not found")
}
