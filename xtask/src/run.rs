//! Commands, and what becomes of their output.

use anyhow::{Context, Result, bail};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

/// What a shell may have set for its own builds and runs.
const NOT_OURS: [&str; 6] = [
    "CARGO_BUILD_RUSTFLAGS",
    "CARGO_BUILD_TARGET",
    "CARGO_ENCODED_RUSTFLAGS",
    "CUCKOO_FULL",
    "RUSTFLAGS",
    "RUST_BACKTRACE",
];

/// Arguments for binaries of tests: without those that take most of the time of the unit tests.
pub(crate) const SKIP_SLOW_UNIT_TESTS: &str = "--skip=histories --skip=killed_writer --skip=storm";

/// A command as one types it, without quotes, and further arguments. Variables that belong to other builds are not handed
/// on.
pub(crate) fn command(line: &str, more: impl IntoIterator<Item: AsRef<OsStr>>) -> Command {
    let mut words = line.split_whitespace();
    let mut command = Command::new(words.next().expect("a program"));
    command.args(words).args(more).env("CARGO_TERM_COLOR", "never");
    NOT_OURS.iter().for_each(|name| _ = command.env_remove(name));
    // Limits and traces of loom.
    let names = std::env::vars_os().map(|(name, _)| name);
    names.filter(|name| name.to_string_lossy().starts_with("LOOM_")).for_each(|name| _ = command.env_remove(name));
    command
}

/// The same without further arguments.
pub(crate) fn plain(line: &str) -> Command {
    command(line, [""; 0])
}

/// Runs the command, with all its output in the file.
pub(crate) fn logged(command: &mut Command, log: &Path) -> Result<ExitStatus> {
    let file = File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
    command.stdout(file.try_clone()?).stderr(file).status().with_context(|| cannot_run(command))
}

/// Runs the command, with all its output in the file, and returns it; a failure shows it whole.
pub(crate) fn quietly(command: &mut Command, log: &Path) -> Result<String> {
    let status = logged(command, log)?;
    let output = read(log)?;
    if !status.success() {
        bail!("{output}\nfailed, {status}: {}", shown(command));
    }
    Ok(output)
}

/// Runs the command, shows its output line by line, and keeps it in the file.
pub(crate) fn loudly(command: &mut Command, log: &Path) -> Result<(ExitStatus, String)> {
    let mut file = File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
    let (reader, writer) = std::io::pipe()?;
    command.stdout(writer.try_clone()?).stderr(writer);
    let mut child = command.spawn().with_context(|| cannot_run(command))?;
    // Closes our ends of the pipe, so that it ends when the child does.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    for line in BufReader::new(reader).split(b'\n') {
        let line = line?;
        println!("{}", String::from_utf8_lossy(&line));
        file.write_all(&line)?;
        file.write_all(b"\n")?;
    }
    Ok((child.wait()?, read(log)?))
}

/// What the command prints on stdout.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| cannot_run(command))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{said}\nfailed, {}: {}", output.status, shown(command));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A file as text, whatever bytes a program under test has printed.
pub(crate) fn read(file: impl AsRef<Path>) -> Result<String> {
    let bytes = fs::read(&file).with_context(|| format!("cannot read {}", file.as_ref().display()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The tests that passed, by what cargo and libtest printed; none is an error.
pub(crate) fn passed_tests(output: &str) -> Result<usize> {
    let counts = output.lines().filter_map(|line| line.strip_prefix("test result: ok. ")?.split(' ').next());
    let passed = counts.map(|count| count.parse::<usize>()).sum::<Result<_, _>>()?;
    if passed == 0 {
        bail!("{output}\nno test ran");
    }
    Ok(passed)
}

/// 1234567 as 1,234,567.
pub(crate) fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let groups = digits.as_bytes().rchunks(3).rev().map(|group| str::from_utf8(group).expect("digits"));
    groups.collect::<Vec<_>>().join(",")
}

/// Processes, which are ended when one of them has failed.
#[derive(Default)]
pub(crate) struct Children(pub(crate) Vec<Child>);

impl Drop for Children {
    fn drop(&mut self) {
        self.0.iter_mut().for_each(|child| _ = child.kill());
    }
}

fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
}

fn cannot_run(command: &Command) -> String {
    format!("cannot run {}", shown(command))
}
