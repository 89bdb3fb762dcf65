//! What may rot unseen: feature sets that no test builds, dependencies that nothing uses, licences and sources of
//! dependencies, the oldest Rust, and the public API, which is listed in a file so that a change shows in review.

use crate::run::{self, plain};
use crate::tools::{self, Skipped, Tool};
use anyhow::{Context, Result, bail, ensure};
use std::collections::BTreeSet;
use std::fs;

const API: &str = "docs/public-api.txt";
const CRATES_IO: &str = "source = \"registry+https://github.com/rust-lang/crates.io-index\"";

type Check = (&'static str, fn() -> Result<()>);
const CHECKS: [Check; 6] = [
    ("sources of dependencies", sources),
    ("licences of dependencies", licences),
    ("unused dependencies", unused_dependencies),
    ("feature sets", features),
    ("the public API", public_api),
    ("the oldest Rust", oldest_rust),
];

/// Runs all checks. What cannot be had is skipped, and the rest goes on.
pub(crate) fn check() -> Result<()> {
    for (what, check) in CHECKS {
        match check() {
            Err(error) if error.is::<Skipped>() => println!("skipped: {what}: {error}"),
            result => result.context(what)?,
        }
    }
    Ok(())
}

/// Of packages that are not published, too.
fn sources() -> Result<()> {
    for lock in ["Cargo.lock", "fuzz/Cargo.lock"] {
        let text = run::read(lock)?;
        let other = text.lines().find(|line| line.starts_with("source = ") && *line != CRATES_IO);
        ensure!(other.is_none(), "{lock} has one that is not crates.io: {}", other.unwrap_or_default());
    }
    Ok(())
}

fn licences() -> Result<()> {
    let tool = Tool::find("cargo-deny", "0.20.2")?;
    run::quietly(tool.command("cargo deny --locked check licenses bans sources"))?;
    let linked = "cargo tree --locked -p concurrent-cuckoo-filter --all-features --edges normal --prefix none";
    let linked = run::stdout(plain(linked))?;
    // Some are named twice, the second time with a star; the first is the crate itself.
    let count = linked.lines().map(|line| line.trim_end_matches(" (*)")).collect::<BTreeSet<_>>().len() - 1;
    let text = "all licences are allowed by deny.toml, all sources are crates.io";
    println!("figure 9.3: {text}; {count} dependencies are linked");
    Ok(())
}

fn unused_dependencies() -> Result<()> {
    run::quietly(Tool::find("cargo-machete", "0.9.2")?.command("cargo machete"))?;
    let manifests = "git ls-files --cached --others --exclude-standard Cargo.toml */Cargo.toml";
    let packages = run::stdout(plain(manifests))?.lines().count();
    println!("figure 9.2: 0 unused dependencies in {packages} packages");
    Ok(())
}

fn features() -> Result<()> {
    let tool = Tool::find("cargo-hack", "0.6.46")?;
    // clippy says what the compiler says, and denies warnings in this crate alone.
    let hack = "cargo hack clippy --locked --feature-powerset -p concurrent-cuckoo-filter --lib -- -D warnings";
    let said = run::quietly(tool.command(hack))?;
    let sets = said.lines().filter(|line| line.starts_with("info: running")).count();
    ensure!(sets > 1, "{said}\nno sets of features were built");
    println!("figure 9.1: {sets} sets of features build without a warning");
    Ok(())
}

/// The public API without blanket and automatic implementations: hundreds of lines that no reviewer reads.
fn list_public_api() -> Result<String> {
    tools::toolchain("nightly-")?;
    run::stdout(Tool::find("cargo-public-api", "0.52.0")?.command("cargo +nightly public-api --all-features -ss"))
}

pub(crate) fn write_public_api() -> Result<()> {
    fs::write(API, list_public_api()?).with_context(|| format!("cannot write {API}"))
}

fn public_api() -> Result<()> {
    let (found, listed) = (list_public_api()?, run::read(API)?);
    let (new, old): (BTreeSet<_>, BTreeSet<_>) = (found.lines().collect(), listed.lines().collect());
    old.difference(&new).for_each(|line| println!("-{line}"));
    new.difference(&old).for_each(|line| println!("+{line}"));
    if found != listed {
        bail!("it is not the one that {API} lists; if that is meant: cargo xtask lint --write");
    }
    let lines = run::thousands(listed.lines().count());
    println!("figure 9.4: the public API is the one that {API} lists, {lines} lines");
    Ok(())
}

/// Where that is not installed, clippy (incompatible_msrv) has checked what is used of std.
fn oldest_rust() -> Result<()> {
    let manifest = run::read("Cargo.toml")?;
    let version = manifest.lines().find_map(|line| line.strip_prefix("rust-version = \"")?.strip_suffix('"'));
    let version = version.context("Cargo.toml declares no rust-version")?;
    let toolchain = tools::toolchain(&format!("{version}-")).or_else(|_| tools::toolchain(&format!("{version}.")))?;
    run::quietly(plain(&format!("cargo +{toolchain} check --locked --all-features")))?;
    println!("figure 9.5: Rust {version} builds the library with all features");
    Ok(())
}
