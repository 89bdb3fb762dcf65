//! Which lines of the library its tests run: those of src/ without its tests, by `cargo test` of the library with all
//! features, without examples and doctests.

use crate::tools::Tool;
use crate::{run, tree};
use anyhow::{Context, Result, ensure};
use std::time::Instant;

const MIN_PERCENT: f64 = 95.0;

/// What runs for less than a second each.
const QUICK: &str = "--lib --test builder --test debug --test faults_snapshots --test merge --test refused_memory \
    --test serde --test snapshot_damage --test snapshot_file --test snapshot_header --test snapshot_parts \
    --test snapshot_refused --";

pub(crate) fn check(quick: bool) -> Result<()> {
    let tool = Tool::find("cargo-tarpaulin", "0.37.5")?;
    // Its own folder: instrumented builds are no use to others.
    let target = tree::target("coverage")?;
    let began = Instant::now();
    let mut tarpaulin = tool.command(
        "cargo tarpaulin --engine llvm --locked --packages concurrent-cuckoo-filter --all-features --include-files src/* \
         --exclude-files src/*_tests.rs src/*_tests/* src/snapshot/file/fake.rs --skip-clean --timeout 900 --out Lcov \
         --color Never",
    );
    tarpaulin.arg("--output-dir").arg(&target).arg("--target-dir").arg(&target);
    if quick {
        tarpaulin.args(QUICK.split_whitespace()).args(run::SKIP_SLOW_UNIT_TESTS.split(' '));
        tarpaulin.env("CARGO_INCREMENTAL", "0").env("CARGO_PROFILE_TEST_OPT_LEVEL", "0").env("PROPTEST_CASES", "8");
    } else {
        tarpaulin.args(["--lib", "--tests"]);
    }
    run::quietly(&mut tarpaulin, &target.join("log"))?;
    let seconds = began.elapsed().as_secs();
    let (run, lines) = count(&run::read(target.join("lcov.info"))?)?;
    let percent = 100.0 * run as f64 / lines as f64;
    println!("figure 8.2: tests run {run} of {lines} lines of src/, {percent:.1} %, in {seconds} s");
    ensure!(percent >= MIN_PERCENT, "tests must run {MIN_PERCENT} % of the lines");
    Ok(())
}

/// Names the lines that no test runs; counts those that are run, and all. As lcov has them: SF:FILE, then DA:LINE,TIMES
/// for each.
fn count(lcov: &str) -> Result<(usize, usize)> {
    let (mut run, mut lines, mut file, mut missed) = (0, 0, "", Vec::new());
    for line in lcov.lines() {
        if let Some(path) = line.strip_prefix("SF:") {
            file = path.rsplit_once("/src/").map_or(path, |(_, path)| path);
        } else if let Some((number, times)) = line.strip_prefix("DA:").and_then(|line| line.split_once(',')) {
            lines += 1;
            match times.parse::<u64>().with_context(|| format!("no number of times: {line}"))? {
                0 => missed.push(format!("{file}:{number}")),
                _ => run += 1,
            }
        }
    }
    ensure!(lines > 0, "no line was counted");
    missed.iter().for_each(|line| println!("not run: src/{line}"));
    Ok((run, lines))
}
