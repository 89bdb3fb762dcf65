//! Miri with many seeds: the code that ships, on a few threads, under the memory model of a machine that reorders more than x86-64.

use crate::tools::{self, Skipped};
use crate::{run, tree};
use anyhow::{Result, ensure};
use std::time::Instant;

const SEEDS: u32 = 32;

pub(crate) fn check() -> Result<()> {
    tools::toolchain("nightly-")?;
    let has = run::stdout(run::plain("cargo +nightly miri --version")).is_ok();
    let missing = "the nightly toolchain has no Miri: rustup +nightly component add miri rust-src";
    ensure!(has, Skipped(missing.into()));
    let began = Instant::now();
    let mut tests =
        run::plain("cargo +nightly miri test --locked --lib --target aarch64-unknown-linux-gnu -- few_threads");
    tests.env("CARGO_TARGET_DIR", tree::target("miri")?).env("CARGO_INCREMENTAL", "0");
    tests.env("MIRIFLAGS", format!("-Zmiri-disable-isolation -Zmiri-preemption-rate=0.1 -Zmiri-many-seeds=0..{SEEDS}"));
    run::quietly(tests)?;
    println!("figure 8.8: {SEEDS} seeds on aarch64 under Miri, 0 findings, in {} s", began.elapsed().as_secs());
    Ok(())
}
