//! The models of the protocol, and the teeth that they must catch.

use crate::teeth::{self, Build, Tests, Tooth};
use crate::{Args, run, tree};
use anyhow::{Context, Result, bail, ensure};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Instant;

const MIN_MODELS: usize = 90;
/// The number of commits in which the gate pulls each tooth once.
const TURNS: usize = 16;
const SECONDS_TO_RUN: u64 = 3600;
const SECONDS_TO_CATCH: u64 = 120;

/// A failing model fails early, so most of the time of a tooth is compilation, which takes a tenth without optimization.
const UNOPTIMISED: &[&str] = &["profile.loom.package.concurrent-cuckoo-filter.opt-level=0"];

pub(crate) fn check(args: &Args) -> Result<()> {
    let (began, names) = (Instant::now(), args.names());
    let mut teeth = teeth::choose(&names)?;
    let build = Build { cfg: "cuckoo_loom", target: tree::target("loom")?, config: &[] };
    let tests = build.tests(Path::new("."))?;
    let models = list(&tests)?;
    let mut bounded = BTreeSet::<&str>::new();
    if names.is_empty() {
        // Each line is printed when its model ends. One thread takes less time than two: each execution maps stacks, and the threads
        // of a process wait for each other's mappings.
        let (status, said) = run::loudly(tests.command(SECONDS_TO_RUN, "loom_tests:: --nocapture --test-threads=1"))?;
        ensure!(status.success(), "a model failed");
        let mut ran = said.lines().filter_map(|line| line.strip_prefix("test result: ok. ")?.split(' ').next());
        let ran: usize = ran.next().unwrap_or("0").parse()?;
        ensure!(ran == models.len(), "{ran} of {} models ran", models.len());
        // With one thread, the name of a test precedes the first line that it prints.
        let lines = said.lines().filter(|line| line.contains(" preemptions)"));
        bounded = lines
            .filter_map(|line| models.get_key_value(line.split_once("model ")?.1.split_whitespace().next()?))
            .map(|(name, _)| name.as_str())
            .collect();
        println!("{} models are bounded: {}", bounded.len(), Vec::from_iter(bounded.iter().copied()).join(" "));
    }
    if args.has("--models") {
        return Ok(());
    }

    if names.is_empty() {
        let mut toothless = models.clone();
        teeth.iter().flat_map(Tooth::caught_by).for_each(|(model, _)| _ = toothless.remove(model));
        let names: Vec<_> = toothless.into_keys().collect();
        ensure!(names.is_empty(), "no tooth names these models: {}", names.join(" "));
    }
    if args.has("--sixteenth") {
        let commits: usize = run::stdout(run::plain("git rev-list --count HEAD"))?.trim().parse()?;
        teeth = teeth.into_iter().skip(commits % TURNS).step_by(TURNS).collect();
    }

    let build = Build { config: UNOPTIMISED, ..build };
    teeth::pull(&teeth, &build, |tooth, tests| Ok((catch(tooth, tests, &models)?, ())))?;
    if !names.is_empty() || args.has("--sixteenth") {
        println!("{} teeth bit", teeth.len());
        return Ok(());
    }
    let (models, teeth, seconds) = (models.len(), teeth.len(), began.elapsed().as_secs());
    let bounded = format!("{} of them with at most 2 or 3 preemptions", bounded.len());
    println!("figure 1.1: {models} models passed, {bounded}, {teeth} teeth bit, none missed; {seconds} s");
    Ok(())
}

/// Returns the paths of the test functions of all models, by name.
fn list(tests: &Tests) -> Result<BTreeMap<String, String>> {
    let mut models = BTreeMap::new();
    let list = run::stdout(tests.command(SECONDS_TO_RUN, "loom_tests:: --list"))?;
    for path in list.lines().filter_map(|line| line.strip_suffix(": test")) {
        let name = path.rsplit("::").next().expect("a name").to_owned();
        let twin = models.insert(name, path.to_owned());
        ensure!(twin.is_none(), "two models have the name of {path}");
    }
    ensure!(models.len() >= MIN_MODELS, "only {} models; there were at least {MIN_MODELS}", models.len());
    Ok(models)
}

/// Runs the models that a tooth names, each in a process of its own: if loom panics while it unwinds, the process ends.
fn catch(tooth: &Tooth, tests: &Tests, models: &BTreeMap<String, String>) -> Result<String> {
    let mut catchers = String::from("caught by");
    for (model, text) in tooth.caught_by() {
        let path = models.get(model).with_context(|| format!("names a model that does not exist: {model}"))?;
        let (status, said) = run::silently(tests.command(SECONDS_TO_CATCH, &format!("--exact {path}")))?;
        match status.code() {
            Some(0) => bail!("is not caught by {model}, which passed"),
            Some(124 | 137) => bail!("is not caught by {model} within {SECONDS_TO_CATCH} s"),
            _ => {}
        }
        let panic = said.split_once("panicked at").map_or("", |(_, panic)| panic);
        ensure!(panic.contains(text), "makes {model} fail, but not by saying \"{text}\":\n{said}");
        catchers = catchers + " " + model;
    }
    Ok(catchers)
}
