//! Mutation testing: changes operators, conditions and results of the library, one at a time. Some test must fail for each.

use crate::{Args, run, tree, trees};
use anyhow::{Context, Result, ensure};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::{env, fs};

const CONFIG: &str = ".cargo/mutants.toml";
/// The exit code of `skip` in checks.sh.
const SKIPPED: i32 = 77;

/// A name, arguments of `cargo test`, and arguments of the test binaries. Each stage tries the mutants that no earlier one caught.
const STAGES: [(&str, &str, &str); 4] = [
    ("unit tests", "--lib", "--test-threads=1 --skip=linearizability --skip=panic_safety --skip=contention"),
    (
        "tests of the public API",
        "--test=it --test=memory --test=refused_memory --test=serde",
        "--skip=stress:: --skip=rates:: --skip=capacity:: --skip=bulk:: --skip=operations::",
    ),
    (ALL_TESTS, "", "--include-ignored"),
    (MODELS, "--lib", "loom_tests::"),
];
const ALL_TESTS: &str = "all tests";
const MODELS: &str = "models";

const UNOPTIMISED: [(&str, &str); 2] = [("CARGO_PROFILE_TEST_OPT_LEVEL", "0"), ("PROPTEST_CASES", "8")];

/// Runs a test binary up to the first failing test: the runner that cargo calls. So a mutant that fails one test and blocks another
/// is caught at once.
pub(crate) fn until_failure(words: &Args) -> Result<()> {
    let (program, arguments) = words.0.split_first().context("no command")?;
    let mut command = Command::new(program);
    command.args(arguments);
    let (status, _) = run::each_line(command, |line| {
        println!("{line}");
        !(line.starts_with("test ") && line.ends_with(" FAILED"))
    })?;
    ensure!(status.success(), "{status}");
    Ok(())
}

pub(crate) fn check(args: &Args) -> Result<()> {
    let output = run::plain("xtask/checks.sh tool cargo-mutants 27.1.0").output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(SKIPPED) {
        println!("skipped: {}", said.lines().last().unwrap_or_default());
        return Ok(());
    }
    ensure!(output.status.success(), "{said}\nchecks.sh tool: {}", output.status);
    let path = String::from_utf8(output.stdout)?;
    let path = path.trim();
    all(path, &args.names())
}

/// Returns a command that tries mutants with `cargo test` and these arguments, in copies of the tree in the target directory.
fn command(path: &str, cargo: &str, out: &Path) -> Result<Command> {
    let mut command = run::plain("cargo mutants --no-shuffle --all-features --cargo-arg=--locked --output");
    command.env("PATH", path);
    command.arg(out).args(cargo.split_whitespace().map(|argument| format!("--cargo-arg={argument}")));
    command.env("TMPDIR", tree::target("mutants")?);
    command.env("CARGO_INCREMENTAL", "1").env("CARGO_PROFILE_TEST_DEBUG", "false");
    let xtask = env::current_exe()?;
    command.arg(format!("--cargo-arg=--config=target.'cfg(all())'.runner=[{xtask:?},\"until-failure\"]"));
    Ok(command)
}

/// Tries all mutants of these files, or of all files. Until code or tests change, an interrupted run continues with the mutants that
/// were not caught.
fn all(path: &str, files: &[String]) -> Result<()> {
    let (out, index) = (tree::target("mutants/all")?, tree::target("mutants")?.join("index"));
    let state = trees::trees(&["src", "tests", "loom-tests", ".cargo"], &index).map_err(anyhow::Error::msg)?;
    if run::read(out.join("state")).ok().as_ref() != Some(&state) {
        tree::remove(&out)?;
        fs::create_dir(&out)?;
        fs::write(out.join("state"), state)?;
    }
    let files: Vec<_> = files.iter().map(|file| format!("--file={file}")).collect();
    let mut list = run::plain("cargo mutants --list");
    list.env("PATH", path).args(&files);
    let all = run::stdout(list)?.lines().count();
    let mut timeouts = BTreeSet::new();
    for (name, cargo, tests) in STAGES {
        println!("\n-- {name}");
        // Mutants that were caught, or do not compile, are not tried again.
        let mut command = command(path, cargo, &out)?;
        command.args(["--iterate", "--timeout-multiplier=5", "--minimum-test-timeout=60"]).args(&files);
        command.arg(format!("--jobs={}", rayon::current_num_threads()));
        match name {
            MODELS => command.arg("--profile=loom").env("RUSTFLAGS", "--cfg cuckoo_model --cfg cuckoo_loom"),
            ALL_TESTS => command.env("CARGO_PROFILE_TEST_OPT_LEVEL", "1"),
            // Most of the time of a mutant is compilation, which takes a fraction without optimization.
            _ => command.envs(UNOPTIMISED),
        };
        command.args(["--", "--"]).args(tests.split_whitespace());
        let (status, _) = run::loudly(command)?;
        // 2: some were missed. 3: some took too long. Any other code is an error, such as a test that fails without a mutant.
        ensure!(matches!(status.code(), Some(0 | 2 | 3)), "{name}: cargo-mutants ended with {status}");
        // A test that ran too long has caught its mutant, too.
        timeouts.append(&mut lines(&out, "timeout")?);
        let caught = Vec::from_iter(&lines(&out, "caught")? | &timeouts).join("\n");
        fs::write(out.join("mutants.out/caught.txt"), caught + "\n")?;
    }
    // Mutants that do not compile here have compiled in an earlier stage.
    let missed = &lines(&out, "missed")? | &lines(&out, "unviable")?;
    let missed: Vec<_> = missed.difference(&timeouts).collect();
    println!(
        "figure 8.1: {} mutants: {} missed, {} caught by a test that ran too long; {CONFIG} names the equivalent ones",
        run::thousands(all),
        missed.len(),
        timeouts.len()
    );
    ensure!(missed.is_empty(), "missed: {missed:#?}");
    Ok(())
}

/// Returns the mutants of this kind in the last run.
fn lines(out: &Path, kind: &str) -> Result<BTreeSet<String>> {
    Ok(run::read(out.join("mutants.out").join(kind).with_extension("txt"))?.lines().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::CONFIG;
    use crate::{run, tree};

    /// The types, functions and files that the patterns name exist. Operators in patterns are not checked.
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
        for pattern in patterns {
            // Without character classes such as \S, anchors such as \b, and the words of cargo-mutants.
            let bare = ["\\b", "\\S", "\\("].iter().fold(pattern.to_owned(), |bare, mark| bare.replace(mark, " "));
            let words = bare.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| word.len() > 3);
            let of_tool = ["replace", "delete", "with", "guard"];
            let is_gone = |word: &&str| !of_tool.contains(word) && !code.iter().any(|name| name.contains(word));
            gone.extend(words.filter(is_gone).map(|word| format!("{word} in {pattern}")));
        }
        assert!(gone.is_empty(), "patterns name what is not in src: {gone:#?}");
    }
}
