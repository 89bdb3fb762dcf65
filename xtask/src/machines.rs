//! The library's tests where a number has 32 bits (i386), and where its highest byte comes first (s390x).

use crate::tools::{self, Skipped};
use crate::{run, tree};
use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::time::Instant;

const PACKAGES: &str = "gcc-i686-linux-gnu libc6-dev-i386-cross libc6-i386 lib32gcc-s1 gcc-s390x-linux-gnu \
    libc6-dev-s390x-cross qemu-user-static";

/// What a short run has time for.
const SHORT: &[&str] = &["snapshot_golden", "snapshot_round_trip", "snapshot_refused", "model", "builder", "serde"];

struct Machine {
    figure: &'static str,
    name: &'static str,
    target: &'static str,
    linker: &'static str,
    runner: &'static str,
    /// Programs that measure memory or time, or work for minutes on a processor of one's own, and others that cannot run.
    not_programs: &'static [&'static str],
    /// Single tests, by their whole names.
    not_tests: &'static [&'static str],
}

/// An x86-64 processor runs it by itself.
const I386: Machine = Machine {
    figure: "9.6",
    name: "32 bits (i386)",
    target: "i686-unknown-linux-gnu",
    linker: "i686-linux-gnu-gcc",
    runner: "",
    not_programs: &["snapshot_memory", "stress", "rates", "capacity"],
    not_tests: &[],
};

const S390X: Machine = Machine {
    figure: "9.7",
    name: "highest byte first (s390x, under qemu)",
    target: "s390x-unknown-linux-gnu",
    linker: "s390x-linux-gnu-gcc",
    runner: "qemu-s390x-static -L /usr/s390x-linux-gnu",
    // The last two start themselves as another process, and the kernel does not run what is made for s390x.
    not_programs: &["snapshot_memory", "stress", "rates", "capacity", "faults_memory", "snapshot_crash"],
    not_tests: &[
        // It starts itself, too.
        "four_processes_build_one_filter",
        // Many minutes under qemu each: threads that meet by chance, which there says nothing of another processor's
        // memory, and millions of keys, of which others like these take fewer.
        "corrupted_histories_are_refused",
        "what_real_threads_say_can_be_explained",
        "a_batch_of_a_million_does_what_a_loop_does",
        "an_overfull_load_fills_the_filter_and_names_what_it_refused",
        "many_keys_are_treated_as_by_a_loop_on_any_pool",
        "many_keys_are_treated_as_by_a_loop_out_of_cache",
    ],
};

pub(crate) fn check(full: bool) -> Result<()> {
    let host = tools::rustc("", "host")?;
    ensure!(host == "x86_64-unknown-linux-gnu", Skipped(format!("this takes Linux on x86-64, not {host}")));
    for machine in [I386, S390X] {
        machine.check(full)?;
    }
    Ok(())
}

impl Machine {
    fn check(&self, full: bool) -> Result<()> {
        let target = tree::target("machines")?;
        let log = target.join(self.target).with_extension("log");
        let runner = self.runner.split(' ').next().expect("a program");
        for program in [self.linker, runner].iter().filter(|program| !program.is_empty()) {
            let found = run::logged(&mut run::command(program, ["--version"]), &log).is_ok();
            ensure!(found, Skipped(format!("there is no {program}; in Debian: apt-get install {PACKAGES}")));
        }
        let added = run::logged(&mut run::command("rustup target add", [self.target]), &log);
        let added = added.is_ok_and(|status| status.success());
        ensure!(added, Skipped(format!("rustup cannot add the target {}: see {}", self.target, log.display())));

        // Building takes longer than running, even under qemu: no debug information, and no more optimisation than pays.
        let mut tests = run::plain("cargo test --locked --no-fail-fast --all-features --lib --target");
        tests.arg(self.target).env("CARGO_TARGET_DIR", target).env("CARGO_INCREMENTAL", "0");
        tests.env("CARGO_PROFILE_TEST_DEBUG", "0").env("CARGO_PROFILE_TEST_OPT_LEVEL", "1");
        // Under qemu a minute is not yet a hang.
        tests.env("CUCKOO_PATIENCE", "900");
        let variable = format!("CARGO_TARGET_{}", self.target.to_uppercase().replace('-', "_"));
        tests.env(format!("{variable}_LINKER"), self.linker);
        if !self.runner.is_empty() {
            tests.env(format!("{variable}_RUNNER"), self.runner);
        }
        for program in self.programs(full)? {
            tests.args(["--test", &program]);
        }
        tests.arg("--").args(self.not_tests.iter().flat_map(|test| ["--skip", test]));

        let began = Instant::now();
        let passed = run::thousands(run::passed_tests(&run::quietly(&mut tests, &log)?)?);
        let (programs, tests) = (self.not_programs.len(), self.not_tests.len());
        let which = match full {
            true => format!("all but {programs} programs and {tests} tests that xtask names"),
            false => "the short form".to_owned(),
        };
        let (rust, seconds) = (tools::rustc("", "release")?, began.elapsed().as_secs());
        println!(
            "figure {}: {}: {passed} tests passed, {which}, with Rust {rust} in {seconds} s",
            self.figure, self.name
        );
        Ok(())
    }

    /// The binaries of tests that run here.
    fn programs(&self, full: bool) -> Result<Vec<String>> {
        let files = Path::new("tests").read_dir().context("no folder tests")?;
        let names = files.filter_map(|file| {
            let path = file.ok()?.path();
            path.extension().is_some_and(|extension| extension == "rs").then_some(())?;
            Some(path.file_stem()?.to_str()?.to_owned())
        });
        let chosen = |name: &String| match full {
            true => !self.not_programs.contains(&name.as_str()),
            false => SHORT.contains(&name.as_str()),
        };
        Ok(names.filter(chosen).collect())
    }
}
