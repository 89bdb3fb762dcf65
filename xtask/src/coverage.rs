//! Which lines of the library its tests run: those of src/ without its tests, by `cargo test` of the library with all
//! features, without examples and doctests.

use crate::tools::Tool;
use crate::{run, tree};
use anyhow::{Context, Result, ensure};
use std::time::Instant;

const MIN_PERCENT: f64 = 95.0;

/// What runs for less than a second each.
const QUICK: &str = "--lib --test it --test refused_memory --test serde -- --skip=stress:: --skip=rates:: --skip=model:: \
    --skip=capacity:: --skip=operations:: --skip=batch:: --skip=unique:: --skip=faults::pools --skip=faults::panics \
    --skip=faults::user_code --skip=snapshot::parallel --skip=snapshot::round_trip --skip=snapshot::replay \
    --skip=snapshot::crash --skip=snapshot::golden";

/// The bulk operations of `it`, but not their unit tests: what the names of their tests begin with.
const SKIP_BULK: [&str; 11] = ["a_", "an", "e", "i", "k", "l", "m", "n", "p", "r", "s"];

pub(crate) fn check(quick: bool) -> Result<()> {
    let mut tarpaulin = Tool::find("cargo-tarpaulin", "0.37.5")?.command(
        "cargo tarpaulin --engine llvm --locked --packages concurrent-cuckoo-filter --all-features --skip-clean \
         --include-files src/* --exclude-files src/snapshot/file/fake.rs \
         --timeout 900 --out Stdout --color Never",
    );
    // Its own folder: instrumented builds are no use to others.
    tarpaulin.arg("--target-dir").arg(tree::target("coverage")?);
    if quick {
        tarpaulin.args(QUICK.split_whitespace()).args(run::SKIP_SLOW_UNIT_TESTS.split(' '));
        tarpaulin.args(SKIP_BULK.map(|begin| format!("--skip=bulk::{begin}")));
        tarpaulin.env("CARGO_INCREMENTAL", "0").env("CARGO_PROFILE_TEST_OPT_LEVEL", "0").env("PROPTEST_CASES", "8");
    } else {
        tarpaulin.args(["--lib", "--tests", "--", "--include-ignored"]);
    }
    let began = Instant::now();
    let said = run::quietly(tarpaulin)?;
    let seconds = began.elapsed().as_secs();
    let missed = said.lines().skip_while(|line| !line.starts_with("|| Uncovered Lines:"));
    missed.take_while(|line| !line.contains("Total Lines:")).for_each(|line| println!("{line}"));
    // "98.33% coverage, 2002/2036 lines covered", and perhaps a change
    let total = said.lines().find_map(|line| line.split_once(" lines covered")?.0.split_once("% coverage, "));
    let (percent, lines) = total.with_context(|| format!("{said}\ncargo-tarpaulin gives no total"))?;
    let lines = lines.replace('/', " of ");
    println!("figure 8.2: tests run {lines} lines of src/, {percent} %, in {seconds} s");
    ensure!(percent.parse::<f64>()? >= MIN_PERCENT, "tests must run {MIN_PERCENT} % of the lines");
    Ok(())
}
