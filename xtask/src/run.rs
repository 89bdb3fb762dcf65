//! Commands and their output.

use anyhow::{Context, Result, bail};
use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, ExitStatus};

#[path = "../../tests/internal/thousands.rs"]
#[allow(unreachable_pub)]
mod thousands;
pub(crate) use thousands::thousands;

/// The prefixes of variables that a shell may have set for its own builds and runs, or cargo for this package.
const NOT_OURS: [&str; 9] = [
    "CARGO_BUILD_RUSTFLAGS",
    "CARGO_BUILD_TARGET",
    "CARGO_ENCODED_RUSTFLAGS",
    "CARGO_MANIFEST_",
    "CARGO_PKG_",
    "CUCKOO_FULL",
    "LOOM_",
    "RUSTFLAGS",
    "RUST_BACKTRACE",
];

/// Returns the command of a line without quotes, with more arguments.
pub(crate) fn command(line: &str, more: impl IntoIterator<Item: AsRef<OsStr>>) -> Command {
    let mut words = line.split_whitespace();
    let mut command = Command::new(words.next().expect("a program"));
    command.args(words).args(more).env("CARGO_TERM_COLOR", "never");
    for (name, _) in std::env::vars_os() {
        if NOT_OURS.iter().any(|begin| name.to_string_lossy().starts_with(begin)) {
            command.env_remove(name);
        }
    }
    command
}

/// Returns the command of a line without quotes.
pub(crate) fn plain(line: &str) -> Command {
    command(line, [""; 0])
}

/// Runs the command and returns its output. Passes each line to `goes_on`, and stops the command when that returns `false`.
pub(crate) fn each_line(command: Command, mut goes_on: impl FnMut(&str) -> bool) -> Result<(ExitStatus, String)> {
    let (reader, writer) = std::io::pipe()?;
    let mut child = {
        let mut command = command;
        command.stdout(writer.try_clone()?).stderr(writer);
        command.spawn().with_context(|| format!("cannot run {}", shown(&command)))?
        // Closes our ends of the pipe, so that it ends when the child does.
    };
    let mut output = String::new();
    for bytes in BufReader::new(reader).split(b'\n') {
        let text = String::from_utf8_lossy(&bytes?).into_owned() + "\n";
        if !goes_on(text.trim_end()) {
            child.kill()?;
            break;
        }
        output += &text;
    }
    Ok((child.wait()?, output))
}

/// Runs the command, prints its output line by line, and returns it.
pub(crate) fn loudly(command: Command) -> Result<(ExitStatus, String)> {
    each_line(command, |line| {
        println!("{line}");
        true
    })
}

/// Runs the command, and returns its output without printing it.
pub(crate) fn silently(command: Command) -> Result<(ExitStatus, String)> {
    each_line(command, |_| true)
}

/// Runs the command, and returns its output. The error of a failure has all of it.
pub(crate) fn quietly(command: Command) -> Result<String> {
    let shown = shown(&command);
    let (status, output) = silently(command)?;
    if !status.success() {
        bail!("{output}\nfailed, {status}: {shown}");
    }
    Ok(output)
}

/// Returns what the command prints on stdout. The error of a failure has its stderr.
pub(crate) fn stdout(mut command: Command) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot run {}", shown(&command)))?;
    if !output.status.success() {
        bail!("{}\nfailed, {}: {}", String::from_utf8_lossy(&output.stderr), output.status, shown(&command));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

pub(crate) fn read(file: impl AsRef<Path>) -> Result<String> {
    std::fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.as_ref().display()))
}

fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
}
