//! What may rot unseen: feature sets that no test builds, dependencies that nothing uses, licences and sources of
//! dependencies, the oldest Rust, and the public API, which is listed in a file so that a change shows in review.

use crate::tools::{self, Skipped, Tool};
use crate::{run, tree};
use anyhow::{Context, Result, ensure};
use std::collections::BTreeSet;
use std::fs;

const API: &str = "docs/public-api.txt";
const CRATES_IO: &str = "source = \"registry+https://github.com/rust-lang/crates.io-index\"";

/// Runs all checks. What cannot be had is skipped, and the rest goes on.
pub(crate) fn check() -> Result<()> {
    for (what, check) in [
        ("sources", sources as fn() -> Result<()>),
        ("feature sets", features),
        ("unused dependencies", unused_dependencies),
        ("licences", licences),
        ("the public API", public_api),
        ("the oldest Rust", oldest_rust),
    ] {
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
        ensure!(other.is_none(), "{lock} has another source than crates.io: {}", other.unwrap_or_default());
    }
    Ok(())
}

fn features() -> Result<()> {
    let tool = Tool::find("cargo-hack", "0.6.46")?;
    // clippy says what the compiler says, and denies warnings in this crate alone.
    let said = run::quietly(
        &mut tool.command(
            "cargo hack clippy --locked --feature-powerset --package concurrent-cuckoo-filter --lib -- -D warnings",
        ),
        &tree::target("lint")?.join("features.log"),
    )?;
    let sets = said.lines().filter(|line| line.starts_with("info: running")).count();
    ensure!(sets > 1, "{said}\nno sets of features were built");
    println!("figure 9.1: {sets} sets of features build without a warning");
    Ok(())
}

fn unused_dependencies() -> Result<()> {
    let tool = Tool::find("cargo-machete", "0.9.2")?;
    run::quietly(&mut tool.command("cargo machete"), &tree::target("lint")?.join("unused.log"))?;
    let manifests = run::command("git ls-files --cached --others --exclude-standard", ["Cargo.toml", "*/Cargo.toml"]);
    let packages = run::output(&mut { manifests })?.lines().count();
    println!("figure 9.2: 0 unused dependencies in {packages} packages");
    Ok(())
}

fn licences() -> Result<()> {
    let tool = Tool::find("cargo-deny", "0.20.2")?;
    let log = tree::target("lint")?.join("licences.log");
    run::quietly(&mut tool.command("cargo deny --locked check licenses bans sources"), &log)?;
    let linked = run::output(&mut run::plain(
        "cargo tree --locked --package concurrent-cuckoo-filter --all-features --edges normal --prefix none",
    ))?;
    // Some are named twice, the second time with a star; the first is the crate itself.
    let dependencies = linked.lines().map(|line| line.trim_end_matches(" (*)")).collect::<BTreeSet<_>>().len() - 1;
    println!(
        "figure 9.3: all licences are allowed by deny.toml, all sources are crates.io; {dependencies} dependencies are \
         linked"
    );
    Ok(())
}

/// The public API without blanket and automatic implementations: hundreds of lines that nobody reads.
fn list_public_api() -> Result<String> {
    tools::nightly()?;
    let tool = Tool::find("cargo-public-api", "0.52.0")?;
    run::output(&mut tool.command("cargo +nightly public-api --all-features -ss"))
}

pub(crate) fn write_public_api() -> Result<()> {
    fs::write(API, list_public_api()?).with_context(|| format!("cannot write {API}"))
}

fn public_api() -> Result<()> {
    let (found, listed) = (list_public_api()?, run::read(API)?);
    let new = tree::target("lint")?.join("public-api.txt");
    fs::write(&new, &found)?;
    if found != listed {
        run::quietly(&mut run::command("diff -u", [API.as_ref(), new.as_path()]), &new.with_extension("diff"))
            .with_context(|| {
                format!("it is not the one that {API} lists; if that is meant: cargo xtask lint --write")
            })?;
    }
    let lines = run::thousands(listed.lines().count());
    println!("figure 9.4: the public API is the one that {API} lists, {lines} lines");
    Ok(())
}

/// clippy (incompatible_msrv) has checked what is used of std.
fn oldest_rust() -> Result<()> {
    let manifest = run::read("Cargo.toml")?;
    let version = manifest.lines().find_map(|line| line.strip_prefix("rust-version = \"")?.strip_suffix('"'));
    let version = version.context("Cargo.toml declares no rust-version")?;
    let toolchain = [".", "-"].iter().find_map(|end| tools::toolchain(&format!("{version}{end}")));
    let toolchain = toolchain.ok_or_else(|| Skipped(format!("Rust {version} is not installed")))?;
    let log = tree::target("lint")?.join("oldest.log");
    run::quietly(&mut run::plain(&format!("cargo +{toolchain} check --locked --all-features")), &log)?;
    println!("figure 9.5: Rust {version} builds the library with all features");
    Ok(())
}
