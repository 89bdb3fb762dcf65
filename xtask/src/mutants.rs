//! Mutation testing: operators, conditions and results of the library are changed, one at a time, and some test must fail.

use crate::tools::Tool;
use crate::{run, tools, tree};
use anyhow::{Context, Result, bail, ensure};
use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::available_parallelism;

const CONFIG: &str = ".cargo/mutants.toml";

/// Those at the heart, by name, and the tests that must catch them.
const HEART: [&str; 7] = [
    r"replace & with \^ in Lanes::equal$",
    r"replace \+ with \* in advance$",
    r"delete ! in Locked.*::bump$",
    r"replace == with != in VersionRef.*::is_still$",
    r"replace \| with & in RawFilter::look$",
    r"replace > with >= in Shard.*::remove_locked$",
    r"replace Shard.*::relocate -> Option<Slot> with None$",
];
const TESTS_OF_THE_HEART: [&str; 3] = ["lanes::", "raw::", "stopped_writer_tests::"];

/// Each for what the one before it missed.
const STAGES: [Stage; 5] = [
    Stage {
        name: "unit tests",
        build: Build::Quick,
        cargo: "--lib",
        tests: &[run::SKIP_SLOW_UNIT_TESTS, "--skip=two_filters --test-threads=1"],
    },
    Stage {
        name: "quick tests of the public API",
        build: Build::Quick,
        cargo: "--test=builder --test=debug --test=model --test=refused_memory --test=serde --test=snapshot_damage \
                --test=snapshot_file --test=snapshot_golden --test=snapshot_header --test=snapshot_parts \
                --test=snapshot_refused --test=snapshot_replay",
        tests: &[],
    },
    Stage {
        name: "slower tests of the public API",
        build: Build::Quick,
        cargo: "--test=faults_capacity --test=faults_panics --test=faults_rayon --test=faults_snapshots --test=merge \
                --test=snapshot_churn --test=snapshot_memory --test=snapshot_parallel --test=snapshot_round_trip \
                --test=stats",
        tests: &[],
    },
    Stage { name: "all tests", build: Build::Optimised, cargo: "", tests: &[] },
    Stage { name: "models", build: Build::Models, cargo: "--profile=loom --lib", tests: &["loom_tests::"] },
];

struct Stage {
    name: &'static str,
    build: Build,
    /// Arguments for `cargo test`.
    cargo: &'static str,
    /// Arguments for binaries of tests.
    tests: &'static [&'static str],
}

#[derive(Clone, Copy, PartialEq)]
enum Build {
    /// Without optimisation: a mutant is compiled in a fraction of the time, which is what most of them cost.
    Quick,
    Optimised,
    Models,
}

/// Runs a test binary up to the first test that fails; cargo is told to run them so. A mutant that fails one test and has
/// another one run for ever is caught at once.
pub(crate) fn until_failure(command: &[String]) -> Result<()> {
    let (program, arguments) = command.split_first().context("no command")?;
    let (reader, writer) = std::io::pipe()?;
    let mut command = Command::new(program);
    command.args(arguments).stdout(writer.try_clone()?).stderr(writer);
    let mut child = command.spawn()?;
    // With its ends of the pipe.
    drop(command);
    for line in BufReader::new(reader).split(b'\n') {
        let line = line?;
        println!("{}", String::from_utf8_lossy(&line));
        if line.starts_with(b"test ") && line.ends_with(b" FAILED") {
            child.kill()?;
            bail!("a test failed");
        }
    }
    let status = child.wait()?;
    ensure!(status.success(), "{status}");
    Ok(())
}

/// cargo-mutants, and for each core a copy of the tree and a folder to build it in.
struct Mutants {
    tool: Tool,
    folder: PathBuf,
    workers: usize,
    /// Which files are mutated; all if there are none.
    files: Vec<String>,
}

impl Mutants {
    fn new(workers: usize, files: Vec<String>) -> Result<Self> {
        let (tool, folder) = (Tool::find("cargo-mutants", "27.1.0")?, tree::target("mutants")?);
        let mutants = Mutants { tool, folder, workers, files };
        (0..workers).try_for_each(|worker| tree::copy_to(&mutants.tree(worker)))?;
        Ok(mutants)
    }

    fn tree(&self, worker: usize) -> PathBuf {
        self.folder.join(format!("tree.{worker}"))
    }

    /// The mutants that these further arguments leave, by name.
    fn list(&self, more: &[&str]) -> Result<BTreeSet<String>> {
        let mut list = self.tool.command("cargo mutants --list --dir");
        let names = run::output(list.arg(self.tree(0)).args(&self.files).args(more))?;
        Ok(names.lines().map(str::to_owned).collect())
    }

    /// A command that tries mutants in the copy of a worker, built in this way.
    fn command(&self, worker: usize, build: Build) -> Result<Command> {
        let mut command =
            self.tool.command("cargo mutants --in-place --no-shuffle --cargo-arg=--locked --all-features");
        command.arg("--dir").arg(self.tree(worker)).args(&self.files);
        command.env("CARGO_TARGET_DIR", self.folder.join(format!("build.{worker}")));
        command.env("CARGO_INCREMENTAL", "1").env("CARGO_PROFILE_TEST_DEBUG", "false");
        let runner = tools::rustc("", "host")?.to_uppercase().replace('-', "_");
        let runner = format!("CARGO_TARGET_{runner}_RUNNER");
        let until_failure = format!("{} until-failure", env::current_exe()?.display());
        match build {
            Build::Quick => command
                .env(runner, until_failure)
                .envs([("PROPTEST_CASES", "8"), ("CARGO_PROFILE_TEST_OPT_LEVEL", "0")]),
            Build::Optimised => command.env(runner, until_failure).env("CARGO_PROFILE_TEST_OPT_LEVEL", "1"),
            Build::Models => command.env("RUSTFLAGS", "--cfg cuckoo_loom"),
        };
        Ok(command)
    }
}

pub(crate) fn quick() -> Result<()> {
    let files = ["--file=src/layout/lanes.rs", "--file=src/raw/*.rs"].map(str::to_owned).into();
    let mutants = Mutants::new(1, files)?;
    let out = mutants.folder.join("quick");
    tree::empty(&out)?;
    // Tests that fail without a mutant are for others to find.
    let mut command = mutants.command(0, Build::Quick)?;
    command.args(["--baseline=skip", "--timeout=60", "--cargo-arg=--lib", "--output"]).arg(&out);
    command.args(HEART.map(|name| format!("--re={name}"))).args(["--", "--"]).args(TESTS_OF_THE_HEART);
    let (status, _) = run::loudly(&mut command, &out.join("log"))?;
    ensure!(status.success(), "not all were caught");
    let caught = lines(&out.join("mutants.out/caught.txt"))?;
    for name in HEART {
        let named = mutants.list(&["--re", name])?;
        ensure!(!named.is_disjoint(&caught), "no mutant is called {name} any longer: choose another one");
    }
    println!("figure 8.1: {0} of {0} mutants of the heart caught", caught.len());
    Ok(())
}

pub(crate) fn all(files: &[PathBuf]) -> Result<()> {
    let files: Vec<_> = files.iter().map(|file| format!("--file={}", file.display())).collect();
    let mutants = Mutants::new(available_parallelism()?.get(), files)?;
    let results = Results::of(&mutants)?;
    let with_equivalents = check_config(&mutants, &results.folder)?;
    let list = mutants.list(&[])?;
    for stage in &STAGES {
        println!("\n-- {}", stage.name);
        try_stage(&mutants, &results, stage, &list)?;
    }

    let count = |kinds: &[&str]| Ok::<_, anyhow::Error>(results.of_kinds(kinds)?.intersection(&list).count());
    let (caught, timeout, unviable) = (count(&["caught", "timeout"])?, count(&["timeout"])?, count(&["unviable"])?);
    let settled = results.of_kinds(&SETTLED)?;
    let missed: Vec<_> = list.difference(&settled).collect();
    let [all, caught, timeout, unviable, left_out] =
        [list.len(), caught, timeout, unviable, with_equivalents.difference(&list).count()].map(run::thousands);
    println!(
        "figure 8.1: {all} mutants: {caught} caught, {timeout} of them by a test that ran too long, {unviable} do not \
         compile, {} missed; {left_out} more are left out as equivalent",
        missed.len()
    );
    missed.iter().for_each(|mutant| println!("missed: {mutant}"));
    ensure!(missed.is_empty(), "the mutants above were missed");
    Ok(())
}

/// Tries the mutants that nothing has settled, and that this stage has not missed.
fn try_stage(mutants: &Mutants, results: &Results, stage: &Stage, list: &BTreeSet<String>) -> Result<()> {
    results.begin(stage)?;
    let mut passed_by = results.of_kinds(&SETTLED)?;
    passed_by.extend(lines(&results.missed_by(stage.name))?);
    if list.is_subset(&passed_by) {
        return Ok(());
    }
    let mut children = run::Children::default();
    for worker in 0..mutants.workers {
        // What --iterate reads.
        let settled = passed_by.iter().map(|name| format!("{name}\n")).collect::<String>();
        fs::write(results.worker(worker).join("previously_caught.txt"), settled)?;
        let mut command = mutants.command(worker, stage.build)?;
        command.arg("--output").arg(results.folder.join(worker.to_string()));
        // Tests that take five times as long as without a mutant, and a minute at least, are taken to hang.
        command.args(["--iterate", "--timeout-multiplier=5", "--minimum-test-timeout=60", "--sharding=round-robin"]);
        command.arg(format!("--shard={worker}/{}", mutants.workers));
        // cargo-mutants knows profiles by an option of its own.
        for argument in stage.cargo.split_whitespace() {
            let own = argument.starts_with("--profile");
            command.arg(if own { argument.to_owned() } else { format!("--cargo-arg={argument}") });
        }
        command.args(["--", "--"]).args(stage.tests.iter().flat_map(|arguments| arguments.split_whitespace()));
        children.0.push(command.spawn().context("cannot run cargo mutants")?);
    }
    for child in &mut children.0 {
        // 2: some were missed; 3: some took too long. Anything else, such as a test that fails without a mutant, is wrong.
        let status = child.wait()?;
        ensure!(matches!(status.code(), Some(0 | 2 | 3)), "{}: cargo-mutants ended with {status}", stage.name);
    }
    results.gather()
}

/// Each entry of the list that follows "# Equivalent" must leave out something, since code changes. Returns the mutants
/// without that list.
fn check_config(mutants: &Mutants, folder: &Path) -> Result<BTreeSet<String>> {
    let config = run::read(CONFIG)?;
    let (before, equivalent) =
        config.split_once("    # Equivalent").with_context(|| format!("{CONFIG} has no list \"# Equivalent\""))?;
    let without = folder.join("with-equivalents.toml");
    fs::write(&without, format!("{before}]\n"))?;
    let list = |more: &[&str]| {
        let config = without.to_str().context("the name of a folder is not UTF-8")?;
        mutants.list(&[&["--config", config], more].concat())
    };
    let entries = equivalent.lines().filter_map(|line| line.trim().strip_prefix('\'')?.strip_suffix("',"));
    for entry in entries.filter(|_| mutants.files.is_empty()) {
        ensure!(!list(&["--re", entry])?.is_empty(), "{CONFIG} leaves out what is not there: {entry}");
    }
    list(&[])
}

const KINDS: [&str; 4] = ["caught", "timeout", "unviable", "missed"];
const SETTLED: [&str; 3] = ["caught", "timeout", "unviable"];

/// What came of the mutants, kept between stages and runs.
struct Results {
    folder: PathBuf,
    workers: usize,
}

impl Results {
    /// Those of a run before, if they are of this code.
    fn of(mutants: &Mutants) -> Result<Self> {
        let mut state = DefaultHasher::new();
        for path in ["Cargo.toml", "Cargo.lock", ".cargo", "src", "tests", "loom-tests"] {
            hash(&mutants.tree(0).join(path), &mut state)?;
        }
        mutants.workers.hash(&mut state);
        let (state, folder) = (state.finish().to_string(), mutants.folder.join("all"));
        if !lines(&folder.join("state"))?.contains(&state) {
            tree::empty(&folder)?;
            fs::write(folder.join("state"), &state)?;
        }
        let results = Results { folder, workers: mutants.workers };
        (0..results.workers).try_for_each(|worker| fs::create_dir_all(results.worker(worker)))?;
        Ok(results)
    }

    fn worker(&self, worker: usize) -> PathBuf {
        self.folder.join(format!("{worker}/mutants.out"))
    }

    fn missed_by(&self, stage: &str) -> PathBuf {
        self.folder.join(format!("missed by {stage}.txt"))
    }

    fn of_kinds(&self, kinds: &[&str]) -> Result<BTreeSet<String>> {
        let mut all = BTreeSet::new();
        for kind in kinds {
            all.extend(lines(&self.folder.join(kind).with_extension("txt"))?);
        }
        Ok(all)
    }

    /// Gathers what a stage has left that was stopped, and begins this one.
    fn begin(&self, stage: &Stage) -> Result<()> {
        self.gather()?;
        Ok(fs::write(self.folder.join("stage"), stage.name)?)
    }

    /// Gathers what came of the mutants in the stage that has ended, or was stopped.
    fn gather(&self) -> Result<()> {
        let stage = lines(&self.folder.join("stage"))?.into_iter().next().unwrap_or_default();
        for kind in KINDS {
            let all =
                if kind == "missed" { self.missed_by(&stage) } else { self.folder.join(kind).with_extension("txt") };
            let mut gathered = lines(&all)?;
            for worker in 0..self.workers {
                let file = self.worker(worker).join(kind).with_extension("txt");
                // What does not compile for a model has been compiled before.
                if (stage.as_str(), kind) != ("models", "unviable") {
                    gathered.extend(lines(&file)?);
                }
                if file.exists() {
                    fs::remove_file(file)?;
                }
            }
            fs::write(all, gathered.iter().map(|name| format!("{name}\n")).collect::<String>())?;
        }
        Ok(())
    }
}

/// The lines of a file; none if it is not there.
fn lines(file: &Path) -> Result<BTreeSet<String>> {
    Ok(if file.exists() { run::read(file)?.lines().map(str::to_owned).collect() } else { BTreeSet::new() })
}

/// Adds the content of a file, or of all files in a folder.
fn hash(path: &Path, state: &mut DefaultHasher) -> Result<()> {
    if path.is_file() {
        fs::read(path)?.hash(state);
        return Ok(());
    }
    let entries = path.read_dir().with_context(|| format!("no folder {}", path.display()))?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    paths.sort();
    paths.iter().try_for_each(|path| hash(path, state))
}
