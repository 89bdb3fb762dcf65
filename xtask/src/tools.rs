//! Tools: cargo subcommands at pinned versions, and the nightly toolchain.

use crate::{run, tree};
use anyhow::{Result, bail};
use std::env;
use std::path::PathBuf;
use std::process::Command;

/// Ends a check as passed: what it needs cannot be had here.
#[derive(Debug)]
pub(crate) struct Skipped(pub(crate) String);

impl std::fmt::Display for Skipped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Skipped {}

/// A cargo subcommand at a pinned version.
pub(crate) struct Tool {
    /// The folder that is put in front of the PATH.
    folder: Option<PathBuf>,
}

impl Tool {
    /// The tool on the PATH if it is of this version, else one that is installed into target/tools, where it stays. It is
    /// built without optimisation, in a fraction of the time.
    pub(crate) fn find(name: &str, version: &str) -> Result<Tool> {
        let subcommand = name.strip_prefix("cargo-").expect("a cargo subcommand");
        let found = run::output(&mut run::plain(&format!("cargo {subcommand} --version"))).unwrap_or_default();
        if found.lines().next().is_some_and(|line| line.ends_with(&format!(" {version}"))) {
            return Ok(Tool { folder: None });
        }
        let root = tree::target(&format!("tools/{name}-{version}"))?;
        let folder = root.join("bin");
        if !folder.join(name).exists() {
            let line = format!("cargo install {name} --debug --locked --version {version} --root");
            let mut install = run::command(&line, [&root]);
            // In one folder: they share many dependencies.
            install.env("CARGO_TARGET_DIR", tree::target("tools/build")?).env("CARGO_PROFILE_DEV_DEBUG", "0");
            let log = root.join("install.log");
            if !run::logged(&mut install, &log)?.success() {
                let said = run::read(&log)?;
                let error = said.lines().find(|line| line.starts_with("error")).unwrap_or("see its log");
                bail!(Skipped(format!("{name} {version} cannot be installed ({}): {error}", log.display())));
            }
        }
        Ok(Tool { folder: Some(folder) })
    }

    /// A command that finds the tool.
    pub(crate) fn command(&self, line: &str) -> Command {
        let mut command = run::plain(line);
        if let Some(folder) = &self.folder {
            let path = env::var_os("PATH").unwrap_or_default();
            let folders = std::iter::once(folder.clone()).chain(env::split_paths(&path));
            command.env("PATH", env::join_paths(folders).expect("folders of a PATH"));
        }
        command
    }
}

/// Whether rustup has a toolchain whose name begins so.
pub(crate) fn toolchain(prefix: &str) -> Option<String> {
    let list = run::output(&mut run::plain("rustup toolchain list")).unwrap_or_default();
    list.split_whitespace().find(|name| name.starts_with(prefix)).map(str::to_owned)
}

/// An error unless there is a nightly toolchain.
pub(crate) fn nightly() -> Result<()> {
    match toolchain("nightly-") {
        Some(_) => Ok(()),
        None => bail!(Skipped("no nightly toolchain is installed".into())),
    }
}

/// The value that `rustc -vV` gives for this name, such as "host".
pub(crate) fn rustc(toolchain: &str, name: &str) -> Result<String> {
    let said = run::output(&mut run::plain(&format!("rustc {toolchain} -vV")))?;
    let value = said.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    Ok(value.ok_or_else(|| anyhow::anyhow!("rustc -vV names no {name}"))?.to_owned())
}
