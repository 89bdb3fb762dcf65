//! Fuzzing: sequences of operations against an exact model, and snapshots with defects under checksums that match.

use crate::tools::{self, Tool};
use crate::{run, tree};
use anyhow::{Context, Result, ensure};
use std::fs::{self, File};
use std::path::PathBuf;
use std::thread::available_parallelism;
use std::time::Instant;

const EXECUTIONS: usize = 20_000_000;
const SECONDS_OF_FULL: u64 = 240;

struct Target {
    name: &'static str,
    /// The longest input that is tried: some 30 operations, or a snapshot of one shard with room for defects.
    max_len: u32,
}

const OPERATIONS: Target = Target { name: "operations", max_len: 64 };
const SNAPSHOT: Target = Target { name: "snapshot", max_len: 512 };

pub(crate) fn check(seconds: u64, full: bool) -> Result<()> {
    tools::nightly()?;
    let fuzzer = Fuzzer { tool: Tool::find("cargo-fuzz", "0.13.2")?, scratch: tree::target("fuzz")? };
    if full {
        let processes = available_parallelism()?.get();
        let limit = format!("-runs={}", EXECUTIONS.div_ceil(processes));
        fuzzer.run("8.3", &OPERATIONS, "none", processes, &limit)?;
        fuzzer.run("8.4", &SNAPSHOT, "none", processes, &limit)?;
    }
    let limit = format!("-max_total_time={}", if full { SECONDS_OF_FULL } else { seconds }.div_ceil(2));
    fuzzer.run("8.5", &OPERATIONS, "address", 1, &limit)?;
    fuzzer.run("8.6", &SNAPSHOT, "address", 1, &limit)
}

struct Fuzzer {
    tool: Tool,
    scratch: PathBuf,
}

impl Fuzzer {
    /// Runs a target in some processes, each up to a limit such as "-runs=1000".
    fn run(&self, id: &str, target: &Target, sanitizer: &str, processes: usize, limit: &str) -> Result<()> {
        let Target { name, max_len } = target;
        // Comparisons are not traced: that would take most of the time, and the inputs are made so that each byte counts.
        let build = format!("cargo +nightly fuzz build --no-trace-compares --sanitizer {sanitizer} {name}");
        let built = self.scratch.join("build");
        let mut build = self.tool.command(&build);
        run::quietly(build.env("CARGO_TARGET_DIR", &built), &self.scratch.join("build.log"))?;
        let binary = built.join(tools::rustc("+nightly", "host")?).join("release").join(name);
        let findings = format!("fuzz/artifacts/{name}/");
        fs::create_dir_all(&findings)?;
        let began = Instant::now();
        let mut children = run::Children::default();
        for process in 0..processes {
            // The corpus is where it begins; what it adds is of this run.
            let corpus = self.scratch.join(format!("corpus.{process}"));
            tree::empty(&corpus)?;
            let log = File::create(self.log(process))?;
            let mut run = run::command(&binary.to_string_lossy(), [corpus]);
            run.args([&format!("fuzz/corpus/{name}"), limit, &format!("-max_len={max_len}")]);
            run.arg(format!("-artifact_prefix={findings}"));
            children.0.push(run.stdout(log.try_clone()?).stderr(log).spawn().context("cannot run the fuzzer")?);
        }
        let mut ran = 0;
        for (process, child) in children.0.iter_mut().enumerate() {
            let (status, said) = (child.wait()?, run::read(self.log(process))?);
            ensure!(status.success(), "{said}\ntarget {name} with sanitizer {sanitizer} found something");
            let done = said.lines().find_map(|line| line.strip_prefix("Done ")?.split(' ').next());
            ran += done
                .with_context(|| format!("{said}\ntarget {name} does not say how often it ran"))?
                .parse::<usize>()?;
        }
        ensure!(ran > 0, "target {name} was not executed");
        let (ran, seconds) = (run::thousands(ran), began.elapsed().as_secs());
        println!("figure {id}: target {name}, sanitizer {sanitizer}: {ran} executions in {seconds} s, 0 findings");
        Ok(())
    }

    fn log(&self, process: usize) -> PathBuf {
        self.scratch.join(format!("run.{process}.log"))
    }
}
