//! Tools: cargo subcommands at pinned versions, and toolchains.

use crate::{run, tree};
use anyhow::{Context, Result, bail};
use std::path::PathBuf;
use std::process::Command;
use std::{env, fmt};

/// Ends a check as passed: what it needs cannot be had here.
#[derive(Debug)]
pub(crate) struct Skipped(pub(crate) String);

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Skipped {}

/// A cargo subcommand, and the folder in which it was installed, if it was.
pub(crate) struct Tool(Option<PathBuf>);

impl Tool {
    /// The tool on the PATH if it is of this version, else one that is installed into target/tools, where it stays. It is
    /// built without optimisation, in a fraction of the time.
    pub(crate) fn find(name: &str, version: &str) -> Result<Tool> {
        let subcommand = name.strip_prefix("cargo-").context("not a cargo subcommand")?;
        let found = run::stdout(run::plain(&format!("cargo {subcommand} --version"))).unwrap_or_default();
        if found.lines().next().is_some_and(|line| line.ends_with(&format!(" {version}"))) {
            return Ok(Tool(None));
        }
        let root = tree::target(&format!("tools/{name}-{version}"))?;
        let folder = root.join("bin");
        if !folder.join(name).exists() {
            let line = format!("cargo install {name} --debug --locked --version {version} --root");
            let mut install = run::command(&line, [&root]);
            // In one folder: they share many dependencies.
            install.env("CARGO_TARGET_DIR", tree::target("tools/build")?).env("CARGO_PROFILE_DEV_DEBUG", "0");
            let (status, output) = run::silently(install)?;
            if !status.success() {
                let error = output.lines().find(|line| line.starts_with("error")).unwrap_or(&output);
                bail!(Skipped(format!("{name} {version} cannot be installed: {error}")));
            }
        }
        Ok(Tool(Some(folder)))
    }

    /// A command that finds the tool.
    pub(crate) fn command(&self, line: &str) -> Command {
        let mut command = run::plain(line);
        if let Tool(Some(folder)) = self {
            let path = env::var_os("PATH").unwrap_or_default();
            let folders = std::iter::once(folder.clone()).chain(env::split_paths(&path));
            command.env("PATH", env::join_paths(folders).expect("folders of a PATH"));
        }
        command
    }
}

/// The toolchain of rustup whose name begins so.
pub(crate) fn toolchain(begin: &str) -> Result<String> {
    let list = run::stdout(run::plain("rustup toolchain list")).unwrap_or_default();
    let name = list.split_whitespace().find(|name| name.starts_with(begin));
    Ok(name.ok_or_else(|| Skipped(format!("no toolchain {begin}* is installed")))?.to_owned())
}

/// Adds the standard library for this target to the active toolchain.
pub(crate) fn add_target(target: &str) -> Result<()> {
    let added = run::quietly(run::plain(&format!("rustup target add {target}")));
    Ok(added.map(drop).map_err(|error| Skipped(format!("rustup cannot add the target {target}: {error:#}")))?)
}

/// The machine that this toolchain builds for, such as x86_64-unknown-linux-gnu.
pub(crate) fn host(toolchain: &str) -> Result<String> {
    let said = run::stdout(run::plain(&format!("rustc {toolchain} -vV")))?;
    let host = said.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc names no host")?.to_owned())
}
