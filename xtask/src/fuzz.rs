//! Fuzzing: sequences of operations against an exact model, and snapshots with defects under checksums that match.

use crate::tools::{self, Tool};
use crate::{Args, run, tree};
use anyhow::{Context, Result, ensure};
use rayon::prelude::*;
use std::fs;
use std::time::Instant;

const EXECUTIONS: usize = 20_000_000;
/// For both targets together.
const SECONDS: u64 = 120;
const SECONDS_OF_FULL: u64 = 240;

/// A target, and the longest input that is tried: some 30 operations, or a snapshot of one shard with room for defects.
type Target = (&'static str, u32);
const OPERATIONS: Target = ("operations", 64);
const SNAPSHOT: Target = ("snapshot", 1024);

pub(crate) fn check(args: &Args) -> Result<()> {
    let full = args.has("--full");
    let seconds = args.names().first().map_or(Ok(SECONDS), |seconds| seconds.parse()).context("how many seconds?")?;
    tools::toolchain("nightly-")?;
    let tool = Tool::find("cargo-fuzz", "0.13.2")?;
    if full {
        let processes = rayon::current_num_threads();
        let limit = format!("-runs={}", EXECUTIONS.div_ceil(processes));
        fuzz(&tool, "8.3", OPERATIONS, "none", processes, &limit)?;
        fuzz(&tool, "8.4", SNAPSHOT, "none", processes, &limit)?;
    }
    let seconds = if full { SECONDS_OF_FULL } else { seconds };
    let limit = format!("-max_total_time={}", seconds.div_ceil(2));
    fuzz(&tool, "8.5", OPERATIONS, "address", 1, &limit)?;
    fuzz(&tool, "8.6", SNAPSHOT, "address", 1, &limit)
}

/// Runs a target in some processes, each up to a limit such as "-runs=1000".
fn fuzz(
    tool: &Tool,
    figure: &str,
    (name, max_len): Target,
    sanitizer: &str,
    processes: usize,
    limit: &str,
) -> Result<()> {
    let target = tree::target("fuzz")?;
    // Comparisons are not traced: that would take most of the time, and the inputs are made so that each byte counts.
    let mut build =
        tool.command(&format!("cargo +nightly fuzz build --no-trace-compares --sanitizer {sanitizer} {name}"));
    build.env("CARGO_TARGET_DIR", &target);
    run::quietly(build)?;
    let binary = target.join(tools::host("+nightly")?).join("release").join(name);
    let findings = format!("fuzz/artifacts/{name}/");
    fs::create_dir_all(&findings)?;

    let began = Instant::now();
    let counts = (0..processes).into_par_iter().with_max_len(1).map(|process| {
        // The corpus is where it begins; what it adds is of this run.
        let added = target.join(format!("corpus.{process}"));
        tree::remove(&added)?;
        fs::create_dir(&added)?;
        let options = format!("{limit} -max_len={max_len} -artifact_prefix={findings} fuzz/corpus/{name}");
        let mut fuzzer = run::command("env", [&binary, &added]);
        fuzzer.args(options.split(' '));
        let said = run::quietly(fuzzer).with_context(|| format!("target {name} with sanitizer {sanitizer}"))?;
        let done = said.lines().find_map(|line| line.strip_prefix("Done ")?.split(' ').next());
        Ok(done.with_context(|| format!("{said}\n{name} does not say how often it ran"))?.parse::<usize>()?)
    });
    let ran: usize = counts.collect::<Result<Vec<_>>>()?.iter().sum();
    ensure!(ran > 0, "target {name} was not executed");
    let (ran, seconds) = (run::thousands(ran), began.elapsed().as_secs());
    println!("figure {figure}: target {name}, sanitizer {sanitizer}: {ran} executions in {seconds} s, 0 findings");
    Ok(())
}
