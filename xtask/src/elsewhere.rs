//! The tests of the library, built otherwise or run on another machine: instrumented, with sanitizers, under Miri, where a number
//! has 32 bits (i386), and where its highest byte comes first (s390x).

use crate::tools::{self, Skipped, Tool};
use crate::{Args, run, tree};
use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

const X86: &str = "x86_64-unknown-linux-gnu";
const MIN_PERCENT: f64 = 95.0;
const SEEDS: u32 = 32;

/// The output of the tests, which pass, and how many seconds they took. What they make is in this folder of the target directory.
fn tests(mut command: Command, folder: &str) -> Result<(String, u64)> {
    let began = Instant::now();
    command.env("CARGO_TARGET_DIR", tree::target(folder)?).env("CARGO_INCREMENTAL", "0");
    Ok((run::quietly(command)?, began.elapsed().as_secs()))
}

/// Lines of src/ without its tests, by the tests of the library with all features, without doctests.
pub(crate) fn coverage(_: &Args) -> Result<()> {
    let tarpaulin = Tool::find("cargo-tarpaulin", "0.37.5")?.command(
        "cargo tarpaulin --engine llvm --locked --packages concurrent-cuckoo-filter --all-features --skip-clean \
         --include-files src/* \
         --timeout 900 --out Stdout --color Never --lib --tests -- --include-ignored",
    );
    let (said, seconds) = tests(tarpaulin, "coverage")?;
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

/// AddressSanitizer and LeakSanitizer. Reads in inline assembly (src/sys/unaligned.rs) are not instrumented; debug builds check
/// where they lie.
pub(crate) fn asan(_: &Args) -> Result<()> {
    tools::toolchain("nightly-")?;
    ensure!(tools::host("+nightly")? == X86, Skipped(format!("this takes {X86}")));
    // The library of the sanitizer comes with the toolchain, and std is used as it is, not built anew.
    let libraries = run::stdout(run::plain("rustc +nightly --print target-libdir"))?;
    let sanitizer = Path::new(libraries.trim()).join("librustc-nightly_rt.asan.a");
    ensure!(sanitizer.exists(), Skipped("the toolchain has no AddressSanitizer".into()));
    // With a target, what runs while building is built without the sanitizer.
    let line = "cargo +nightly test --locked --package concurrent-cuckoo-filter --all-features --lib --tests --target";
    let mut command = run::command(line, [X86, "--", "--include-ignored"]);
    command.env("RUSTFLAGS", "-Zsanitizer=address").env("CARGO_PROFILE_TEST_DEBUG", "line-tables-only");
    // Memory that cannot be had is an error to be returned: tests ask for it.
    command.env("ASAN_OPTIONS", "allocator_may_return_null=1:detect_leaks=1");
    let (said, seconds) = tests(command, "asan")?;
    let passed = run::thousands(run::passed_tests(&said)?);
    println!("figure 8.7: {passed} tests passed with AddressSanitizer and LeakSanitizer, 0 reports, in {seconds} s");
    Ok(())
}

/// The code that ships, on a few threads, under the memory model of a machine that reorders more than x86-64.
pub(crate) fn miri(_: &Args) -> Result<()> {
    tools::toolchain("nightly-")?;
    let has = run::stdout(run::plain("cargo +nightly miri --version")).is_ok();
    let missing = "the nightly toolchain has no Miri: rustup +nightly component add miri rust-src";
    ensure!(has, Skipped(missing.into()));
    let line = "cargo +nightly miri test --locked --lib --target aarch64-unknown-linux-gnu -- few_threads";
    let mut command = run::plain(line);
    command
        .env("MIRIFLAGS", format!("-Zmiri-disable-isolation -Zmiri-preemption-rate=0.1 -Zmiri-many-seeds=0..{SEEDS}"));
    let (_, seconds) = tests(command, "miri")?;
    println!("figure 8.8: {SEEDS} seeds on aarch64 under Miri, 0 findings, in {seconds} s");
    Ok(())
}

/// They work for minutes.
const LONG: [&str; 3] = ["stress::", "rates::", "capacity::"];

/// Not under qemu: tests that start themselves as another process, threads that meet by chance, which there says nothing of another
/// processor's memory, and millions of keys, of which others like these take fewer.
const NOT_UNDER_QEMU: [&str; 7] = [
    "snapshot::crash::",
    "four_processes_build_one_filter",
    "corrupted_histories_are_refused",
    "what_real_threads_say_can_be_explained",
    "an_overfull_load_fills_two_shards",
    "many_keys_are_treated_as_by_a_loop",
    "sorted_lookups_are_answered_in_the_order_of_the_caller",
];

pub(crate) fn machines(_: &Args) -> Result<()> {
    let host = tools::host("")?;
    ensure!(host == X86, Skipped(format!("this takes Linux on x86-64, not {host}")));
    // An x86-64 processor runs i386 by itself.
    machine("9.6", "32 bits (i386)", "i686", "--lib --test it --test refused_memory --test serde", &LONG, None)?;
    let without = [&LONG[..], &NOT_UNDER_QEMU].concat();
    let qemu = Some("qemu-s390x-static -L /usr/s390x-linux-gnu");
    machine("9.7", "highest byte first (s390x, under qemu)", "s390x", "--lib --test it --test serde", &without, qemu)
}

fn machine(
    figure: &str,
    name: &str,
    processor: &str,
    programs: &str,
    without: &[&str],
    runner: Option<&str>,
) -> Result<()> {
    let (target, linker) = (format!("{processor}-unknown-linux-gnu"), format!("{processor}-linux-gnu-gcc"));
    for line in [Some(&linker[..]), runner].into_iter().flatten() {
        let found = run::silently(run::command(line, ["--version"])).is_ok();
        let packages =
            format!("gcc-{processor}-linux-gnu libc6-dev-{processor}-cross libc6-i386 lib32gcc-s1 qemu-user-static");
        ensure!(found, Skipped(format!("no {line} for {target}; in Debian: apt-get install {packages}")));
    }
    tools::add_target(&target)?;
    // Building takes longer than running, even under qemu: no debug information, and no more optimisation than pays.
    let mut command = run::plain("cargo test --locked --no-fail-fast --all-features --target");
    command.arg(&target).args(programs.split(' ')).args(["--", "--include-ignored"]);
    command.args(without.iter().map(|test| format!("--skip={test}")));
    command.env("CARGO_PROFILE_TEST_DEBUG", "0").env("CARGO_PROFILE_TEST_OPT_LEVEL", "1");
    // Under qemu a minute is not yet a hang.
    command.env("CUCKOO_PATIENCE", "900");
    let variable = format!("CARGO_TARGET_{}", target.to_uppercase().replace('-', "_"));
    command.env(format!("{variable}_LINKER"), linker);
    command.envs(runner.map(|runner| (format!("{variable}_RUNNER"), runner)));
    let (said, seconds) = tests(command, "machines")?;
    let (passed, rust) = (run::thousands(run::passed_tests(&said)?), run::stdout(run::plain("rustc --version"))?);
    let rust = rust.split(' ').nth(1).context("rustc names no version")?;
    println!(
        "figure {figure}: {name}: {passed} tests passed, all but what measures memory and {} groups of tests that xtask names, \
         with Rust {rust} in {seconds} s",
        without.len()
    );
    Ok(())
}
