//! Which lines of the library its tests run: those of src/ without its tests, by `cargo test` of the library with all
//! features, without examples and doctests.

use crate::tools::Tool;
use crate::{run, tree};
use anyhow::{Context, Result, ensure};
use std::time::Instant;

const MIN_PERCENT: f64 = 95.0;

pub(crate) fn check() -> Result<()> {
    let mut tarpaulin = Tool::find("cargo-tarpaulin", "0.37.5")?.command(
        "cargo tarpaulin --engine llvm --locked --packages concurrent-cuckoo-filter --all-features --skip-clean \
         --include-files src/* --exclude-files src/snapshot/file/fake.rs \
         --timeout 900 --out Stdout --color Never --lib --tests",
    );
    // Its own folder: instrumented builds are no use to others.
    tarpaulin.arg("--target-dir").arg(tree::target("coverage")?).args(["--", "--include-ignored"]);
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
