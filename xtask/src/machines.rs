//! The library's tests where a number has 32 bits (i386), and where its highest byte comes first (s390x).

use crate::tools::{self, Skipped};
use crate::{run, tree};
use anyhow::{Context, Result, ensure};
use std::time::Instant;

/// Where one of the programs is missing: what has them in Debian.
const PACKAGES: &str = "gcc-i686-linux-gnu libc6-dev-i386-cross libc6-i386 lib32gcc-s1 \
    gcc-s390x-linux-gnu libc6-dev-s390x-cross qemu-user-static";

struct Machine {
    figure: &'static str,
    name: &'static str,
    target: &'static str,
    linker: &'static str,
    runner: Option<&'static str>,
    programs: &'static str,
    without_tests: &'static [&'static str],
}

/// An x86-64 processor runs it by itself.
const I386: Machine = Machine {
    figure: "9.6",
    name: "32 bits (i386)",
    target: "i686-unknown-linux-gnu",
    linker: "i686-linux-gnu-gcc",
    runner: None,
    programs: "--lib --test it --test refused_memory --test serde",
    // They work for minutes.
    without_tests: &["stress::", "rates::", "capacity::"],
};

const S390X: Machine = Machine {
    figure: "9.7",
    name: "highest byte first (s390x, under qemu)",
    target: "s390x-unknown-linux-gnu",
    linker: "s390x-linux-gnu-gcc",
    runner: Some("qemu-s390x-static -L /usr/s390x-linux-gnu"),
    // The others start themselves as another process, and the kernel does not run what is made for s390x.
    programs: "--lib --test it --test serde",
    without_tests: &[
        "stress::",
        "rates::",
        "capacity::",
        // They start themselves, too.
        "snapshot::crash::",
        "four_processes_build_one_filter",
        // Many minutes under qemu each: threads that meet by chance, which there says nothing of another processor's
        // memory, and millions of keys, of which others like these take fewer.
        "corrupted_histories_are_refused",
        "what_real_threads_say_can_be_explained",
        "a_batch_of_many_does_what_a_loop_does",
        "an_overfull_load_fills_two_shards",
        "many_keys_are_treated_as_by_a_loop_on_any_pool",
        "many_keys_are_treated_as_by_a_loop_out_of_cache",
        "sorted_lookups_are_answered_in_the_order_of_the_caller",
    ],
};

pub(crate) fn check() -> Result<()> {
    let host = tools::host("")?;
    ensure!(host == "x86_64-unknown-linux-gnu", Skipped(format!("this takes Linux on x86-64, not {host}")));
    check_on(&I386)?;
    check_on(&S390X)
}

fn check_on(machine: &Machine) -> Result<()> {
    let target = machine.target;
    for line in [Some(machine.linker), machine.runner].into_iter().flatten() {
        let found = run::silently(run::command(line, ["--version"])).is_ok();
        ensure!(found, Skipped(format!("no {line} for {target}; in Debian: apt-get install {PACKAGES}")));
    }
    tools::add_target(target)?;

    let began = Instant::now();
    // Building takes longer than running, even under qemu: no debug information, and no more optimisation than pays.
    let mut tests = run::plain("cargo test --locked --no-fail-fast --all-features --target");
    tests.arg(target).args(machine.programs.split(' ')).args(["--", "--include-ignored"]);
    tests.args(machine.without_tests.iter().map(|test| format!("--skip={test}")));
    tests.env("CARGO_TARGET_DIR", tree::target("machines")?).env("CARGO_INCREMENTAL", "0");
    tests.env("CARGO_PROFILE_TEST_DEBUG", "0").env("CARGO_PROFILE_TEST_OPT_LEVEL", "1");
    // Under qemu a minute is not yet a hang.
    tests.env("CUCKOO_PATIENCE", "900");
    let variable = format!("CARGO_TARGET_{}", target.to_uppercase().replace('-', "_"));
    tests.env(format!("{variable}_LINKER"), machine.linker);
    tests.envs(machine.runner.map(|runner| (format!("{variable}_RUNNER"), runner)));
    let passed = run::thousands(run::passed_tests(&run::quietly(tests)?)?);
    let skipped = machine.without_tests.len();
    let (rust, seconds) = (run::stdout(run::plain("rustc --version"))?, began.elapsed().as_secs());
    let rust = rust.split(' ').nth(1).context("rustc names no version")?;
    println!(
        "figure {}: {}: {passed} tests passed, all but what measures memory and {skipped} groups of tests that xtask \
         names, with Rust {rust} in {seconds} s",
        machine.figure, machine.name
    );
    Ok(())
}
