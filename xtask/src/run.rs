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

/// What variables begin with that a shell may have set for its own builds and runs, and cargo for this package.
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

/// A command as one types it, without quotes, and further arguments.
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

/// The same without further arguments.
pub(crate) fn plain(line: &str) -> Command {
    command(line, [""; 0])
}

/// Runs the command and returns its output. Hands each line of it to `goes_on`, which says whether the command may.
pub(crate) fn each_line(command: Command, mut goes_on: impl FnMut(&str) -> bool) -> Result<(ExitStatus, String)> {
    let (reader, writer) = std::io::pipe()?;
    let mut child = {
        let mut command = command;
        command.stdout(writer.try_clone()?).stderr(writer);
        command.spawn().with_context(|| format!("cannot run {}", shown(&command)))?
        // Our ends of the pipe are closed here: it ends when the child does.
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

/// Runs the command and shows its output as it comes.
pub(crate) fn loudly(command: Command) -> Result<(ExitStatus, String)> {
    each_line(command, |line| {
        println!("{line}");
        true
    })
}

/// Runs the command without showing its output.
pub(crate) fn silently(command: Command) -> Result<(ExitStatus, String)> {
    each_line(command, |_| true)
}

/// Runs the command; a failure shows all its output.
pub(crate) fn quietly(command: Command) -> Result<String> {
    let shown = shown(&command);
    let (status, output) = silently(command)?;
    if !status.success() {
        bail!("{output}\nfailed, {status}: {shown}");
    }
    Ok(output)
}

/// What the command prints on stdout; a failure shows what it prints on stderr.
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
