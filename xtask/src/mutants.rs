//! Mutation testing: operators, conditions and results of the library are changed, one at a time, and some test must fail.

use crate::tools::Tool;
use crate::{run, tree};
use anyhow::{Context, Result, bail, ensure};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

const CONFIG: &str = ".cargo/mutants.toml";

/// Some at the heart, by name, and how many have these names: the first has two.
const MUTANTS_OF_THE_HEART: usize = 8;
const HEART: [&str; 7] = [
    r"replace & with \^ in Lanes::equal$",
    r"replace \+ with \* in Stripe::advance$",
    r"delete ! in Locked.*::bump$",
    r"replace == with != in VersionRef.*::is_still$",
    r"replace \| with & in <impl Look for Shards>::look$",
    r"replace > with >= in Shard.*::remove_locked$",
    r"replace Shard.*::relocate -> Option<Slot> with None$",
];

/// Name, arguments for `cargo test`, and for binaries of tests.
type Stage = (&'static str, &'static str, &'static str);
const STAGES: [Stage; 4] = [
    ("unit tests", "--lib", "--test-threads=1"),
    (
        "tests of the public API",
        "--test=it --test=memory --test=refused_memory --test=serde",
        "--skip=stress:: --skip=rates:: --skip=capacity:: --skip=bulk:: --skip=batch:: --skip=operations::",
    ),
    (ALL_TESTS, "", "--include-ignored"),
    (MODELS, "--lib", "loom_tests::"),
];
const ALL_TESTS: &str = "all tests";
const MODELS: &str = "models";

/// Arguments for binaries of tests: without those that take most of the time of the unit tests.
const SKIP_SLOW_UNIT_TESTS: &str = "--skip=linearizability --skip=panic_safety --skip=contention";

const UNOPTIMISED: [(&str, &str); 2] = [("CARGO_PROFILE_TEST_OPT_LEVEL", "0"), ("PROPTEST_CASES", "8")];

/// What may come of a mutant. The first three settle it.
const KINDS: [&str; 4] = ["caught", "timeout", "unviable", "missed"];

/// Runs a test binary up to the first test that fails; cargo is told to run them so. A mutant that fails one test and has
/// another one run for ever is caught at once.
pub(crate) fn until_failure(words: &[String]) -> Result<()> {
    let (program, arguments) = words.split_first().context("no command")?;
    let mut command = Command::new(program);
    command.args(arguments);
    let (status, _) = run::each_line(command, |line| {
        println!("{line}");
        !(line.starts_with("test ") && line.ends_with(" FAILED"))
    })?;
    ensure!(status.success(), "{status}");
    Ok(())
}

fn tool() -> Result<Tool> {
    Tool::find("cargo-mutants", "27.1.0")
}

/// A command that tries mutants with `cargo test` and these arguments. Copies of the tree are in the target directory.
fn command(tool: &Tool, cargo: &str) -> Result<Command> {
    let mut command = tool.command("cargo mutants --no-shuffle --all-features --cargo-arg=--locked");
    command.args(cargo.split_whitespace().map(|argument| format!("--cargo-arg={argument}")));
    command.env("TMPDIR", tree::target("mutants")?);
    command.env("CARGO_INCREMENTAL", "1").env("CARGO_PROFILE_TEST_DEBUG", "false");
    let xtask = env::current_exe()?;
    command.arg(format!("--cargo-arg=--config=target.'cfg(all())'.runner=[{xtask:?},\"until-failure\"]"));
    Ok(command)
}

pub(crate) fn quick() -> Result<()> {
    let out = tree::target("mutants/quick")?;
    let mut command = command(&tool()?, "--lib")?;
    // Tests that fail without a mutant are for others to find.
    command.args(["--baseline=skip", "--timeout=60", "--file=src/layout/lanes.rs", "--file=src/raw/*.rs", "--output"]);
    command.arg(&out).args(HEART.map(|name| format!("--re={name}"))).envs(UNOPTIMISED);
    command.args(["--", "--", "lanes::", "raw::", "stalled_writer::"]);
    let (status, _) = run::loudly(command)?;
    // 3: a test ran too long, as the one does whose lookup never believes a miss.
    ensure!(matches!(status.code(), Some(0 | 3)), "not all were caught");
    let of_kind = |kind| lines(&out.join("mutants.out").join(kind));
    let (caught, named) = (&of_kind("caught.txt")? | &of_kind("timeout.txt")?, MUTANTS_OF_THE_HEART);
    ensure!(caught.len() == named, "{} of {named} mutants were caught: a name has changed? {caught:#?}", caught.len());
    println!("figure 8.1: {named} of {named} mutants of the heart caught");
    Ok(())
}

pub(crate) fn all(files: &[PathBuf]) -> Result<()> {
    let (tool, out) = (tool()?, results()?);
    let files: Vec<_> = files.iter().map(|file| format!("--file={}", file.display())).collect();
    let list = |more: &[&str]| {
        let mut list = tool.command("cargo mutants --list");
        list.args(&files).args(more);
        anyhow::Ok(run::stdout(list)?.lines().map(str::to_owned).collect::<BTreeSet<_>>())
    };
    let (mutants, without_equivalents) = (list(&[])?, out.join("mutants.toml"));
    let equivalents = equivalents(&without_equivalents)?;
    let config = ["--config", without_equivalents.to_str().context("a folder whose name is not UTF-8")?];
    for entry in equivalents.iter().filter(|_| files.is_empty()) {
        let named = list(&[config[0], config[1], "--re", entry])?;
        ensure!(!named.is_empty(), "{CONFIG} leaves out what is not there: {entry}");
    }
    let left_out = list(&config)?.difference(&mutants).count();

    // What a run before has left that was stopped.
    STAGES.iter().try_for_each(|(name, ..)| gather(&out.join(name)))?;
    for stage in STAGES {
        try_stage(&tool, &files, &out, stage, &mutants)?;
    }
    let count = |kinds: &[&str]| anyhow::Ok(run::thousands(of_kinds(&out, kinds)?.intersection(&mutants).count()));
    let (all, caught, timeout) = (run::thousands(mutants.len()), count(&["caught", "timeout"])?, count(&["timeout"])?);
    let (unviable, settled) = (count(&["unviable"])?, of_kinds(&out, &KINDS[..3])?);
    let missed: Vec<_> = mutants.difference(&settled).collect();
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
fn try_stage(
    tool: &Tool,
    files: &[String],
    out: &Path,
    (name, cargo, tests): Stage,
    mutants: &BTreeSet<String>,
) -> Result<()> {
    println!("\n-- {name}");
    let folder = out.join(name);
    let mut known = of_kinds(out, &KINDS[..3])?;
    known.extend(lines(&folder.join("missed.txt"))?);
    if mutants.is_subset(&known) {
        return Ok(());
    }
    // What --iterate reads.
    fs::create_dir_all(folder.join("mutants.out"))?;
    fs::write(folder.join("mutants.out/previously_caught.txt"), joined(&known))?;
    let mut command = command(tool, cargo)?;
    // Tests that take five times as long as without a mutant, and a minute at least, are taken to hang.
    command.args(["--iterate", "--timeout-multiplier=5", "--minimum-test-timeout=60", "--output"]).arg(&folder);
    command.arg(format!("--jobs={}", rayon::current_num_threads())).args(files);
    match name {
        MODELS => command.arg("--profile=loom").env("RUSTFLAGS", "--cfg cuckoo_loom"),
        ALL_TESTS => command.env("CARGO_PROFILE_TEST_OPT_LEVEL", "1"),
        // A mutant is compiled in a fraction of the time, which is what most of them cost.
        _ => command.envs(UNOPTIMISED),
    };
    let slow = if cargo == "--lib" && name != MODELS { SKIP_SLOW_UNIT_TESTS } else { "" };
    command.args(["--", "--"]).args(tests.split_whitespace()).args(slow.split_whitespace());
    let (status, _) = run::loudly(command)?;
    // 2: some were missed; 3: some took too long. Anything else, such as a test that fails without a mutant, is wrong.
    ensure!(matches!(status.code(), Some(0 | 2 | 3)), "{name}: cargo-mutants ended with {status}");
    gather(&folder)
}

/// The entries of the list that follows "# Equivalent". Each must leave out something, since code changes: writes the
/// configuration without them to a file.
fn equivalents(without: &Path) -> Result<Vec<String>> {
    let config = run::read(CONFIG)?;
    let Some((before, list)) = config.split_once("    # Equivalent") else {
        bail!("{CONFIG} has no list \"# Equivalent\"");
    };
    fs::write(without, format!("{before}]\n"))?;
    let entries = list.lines().filter_map(|line| line.trim().strip_prefix('\'')?.strip_suffix("',"));
    Ok(entries.map(str::to_owned).collect())
}

/// The folder of what came of the mutants in each stage: kept between runs, until code or tests change.
fn results() -> Result<PathBuf> {
    let files = "git ls-files --cached --others --exclude-standard Cargo.toml Cargo.lock .cargo src tests loom-tests";
    let files = run::stdout(run::plain(files))?;
    let existing = files.lines().filter(|file| Path::new(file).exists());
    let state = files.clone() + &run::stdout(run::command("git hash-object", existing))?;
    let out = tree::target("mutants/all")?;
    if run::read(out.join("state")).ok().as_ref() != Some(&state) {
        tree::remove(&out)?;
        fs::create_dir(&out)?;
        fs::write(out.join("state"), state)?;
    }
    Ok(out)
}

/// Adds what cargo-mutants has written to what came of a stage before.
fn gather(stage: &Path) -> Result<()> {
    for kind in KINDS.map(|kind| format!("{kind}.txt")) {
        let (new, all) = (stage.join("mutants.out").join(&kind), stage.join(&kind));
        if new.exists() {
            fs::write(&all, joined(&(&lines(&all)? | &lines(&new)?)))?;
            fs::remove_file(new)?;
        }
    }
    Ok(())
}

/// The mutants of which this came, in any stage.
fn of_kinds(out: &Path, kinds: &[&str]) -> Result<BTreeSet<String>> {
    let mut mutants = BTreeSet::new();
    for (stage, ..) in STAGES {
        // What does not compile for a model has been compiled before.
        for kind in kinds.iter().filter(|kind| (stage, **kind) != (MODELS, "unviable")) {
            mutants.extend(lines(&out.join(stage).join(format!("{kind}.txt")))?);
        }
    }
    Ok(mutants)
}

/// The lines of a file; none if it is not there.
fn lines(file: &Path) -> Result<BTreeSet<String>> {
    Ok(if file.exists() { run::read(file)?.lines().map(str::to_owned).collect() } else { BTreeSet::new() })
}

fn joined(lines: &BTreeSet<String>) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::{CONFIG, HEART};
    use crate::{run, tree};

    /// Types, functions and files that the patterns name exist. What a pattern says of operators is for cargo-mutants to judge.
    #[test]
    fn patterns_name_what_exists() {
        std::env::set_current_dir(tree::root()).unwrap();
        let files = run::stdout(run::plain("git ls-files src")).unwrap();
        let code: String = files.lines().filter_map(|file| run::read(file).ok()).collect();
        let code: std::collections::BTreeSet<_> =
            code.split(|c: char| !c.is_alphanumeric() && c != '_').chain(files.split(['/', '.'])).collect();
        let config = run::read(CONFIG).unwrap();
        let patterns = config.lines().filter_map(|line| line.trim().strip_prefix('\'')?.strip_suffix("',"));
        let mut gone = Vec::new();
        for pattern in patterns.chain(HEART) {
            // Without classes and marks, such as \b and \S, and the words of cargo-mutants.
            let bare = ["\\b", "\\S", "\\("].iter().fold(pattern.to_owned(), |bare, mark| bare.replace(mark, " "));
            let words = bare.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| word.len() > 3);
            let of_tool = ["replace", "delete", "with", "guard"];
            let is_gone = |word: &&str| !of_tool.contains(word) && !code.iter().any(|name| name.contains(word));
            gone.extend(words.filter(is_gone).map(|word| format!("{word} in {pattern}")));
        }
        assert!(gone.is_empty(), "patterns name what is not in src: {gone:#?}");
    }
}
