//! What may rot unseen: feature sets that no test builds, dependencies that nothing uses, licences and sources of
//! dependencies, the oldest Rust, and the public API, which is listed in a file so that a change shows in review.

use crate::run::{self, plain};
use crate::tools::{self, Skipped, Tool};
use crate::{Args, tree};
use anyhow::{Context, Result, ensure};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

const API: &str = "docs/public-api.txt";
const CRATES_IO: &str = "source = \"registry+https://github.com/rust-lang/crates.io-index\"";

type Check = (&'static str, fn() -> Result<()>);
/// What only a change of dependencies can break: for the full form, since their tools take minutes to install.
const OF_DEPENDENCIES: [Check; 2] =
    [("licences of dependencies", licences), ("unused dependencies", unused_dependencies)];
const CHECKS: [Check; 8] = [
    ("sources of dependencies", sources),
    ("feature sets", features),
    ("WebAssembly", web_assembly),
    ("AArch64", aarch64),
    ("the package", package),
    ("the public API", public_api),
    ("what is gone from the public API", semver),
    ("the oldest Rust", oldest_rust),
];

/// What cannot be had is skipped, and the rest goes on.
pub(crate) fn check(args: &Args) -> Result<()> {
    if args.has("--write") {
        return fs::write(API, list_public_api()?).with_context(|| format!("cannot write {API}"));
    }
    let of_dependencies = OF_DEPENDENCIES.into_iter().filter(|_| args.has("--full"));
    for (what, check) in of_dependencies.chain(CHECKS) {
        match check() {
            Err(error) if error.is::<Skipped>() => println!("skipped: {what}: {error}"),
            result => result.context(what)?,
        }
    }
    Ok(())
}

/// Of packages that are not published, too.
fn sources() -> Result<()> {
    for lock in ["Cargo.lock", "fuzz/Cargo.lock", "python/Cargo.lock"] {
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

/// Without features, and with those that need no system.
fn web_assembly() -> Result<()> {
    let target = "wasm32-unknown-unknown";
    tools::add_target(target)?;
    for features in ["", "snapshot,serde"] {
        let build = format!("cargo build --locked --lib --target {target} --no-default-features --features");
        run::quietly(run::command(&build, [features]))?;
    }
    println!("figure 9.8: {target} is built without features, and with snapshots");
    Ok(())
}

/// What is compiled for other processors than x86-64 only, such as the fence behind a writer. No linker is needed.
fn aarch64() -> Result<()> {
    let target = "aarch64-unknown-linux-gnu";
    tools::add_target(target)?;
    run::quietly(plain(&format!("cargo clippy --locked --lib --all-features --target {target} -- -D warnings")))?;
    println!("figure 9.11: {target} builds the library with all features, without a warning");
    Ok(())
}

/// The public API without blanket and automatic implementations: hundreds of lines that no reviewer reads.
fn list_public_api() -> Result<String> {
    tools::toolchain("nightly-")?;
    run::stdout(Tool::find("cargo-public-api", "0.52.0")?.command("cargo +nightly public-api --all-features -ss"))
}

fn public_api() -> Result<()> {
    let (found, listed) = (list_public_api()?, run::read(API)?);
    let (new, old): (BTreeSet<_>, BTreeSet<_>) = (found.lines().collect(), listed.lines().collect());
    old.difference(&new).for_each(|line| println!("-{line}"));
    new.difference(&old).for_each(|line| println!("+{line}"));
    ensure!(found == listed, "it is not the one that {API} lists; if that is meant: cargo xtask lint --write");
    let lines = run::thousands(listed.lines().count());
    println!("figure 9.4: the public API is the one that {API} lists, {lines} lines");
    Ok(())
}

/// What the listing of the branch `main` has, and this one has not, breaks users' code: a line of the changelog must say so.
fn semver() -> Result<()> {
    let landed = |file: &str| run::stdout(plain(&format!("git show main:{file}")));
    let (Ok(before), Ok(changes)) = (landed(API), landed("CHANGELOG.md")) else {
        return Err(Skipped(String::from("there is no branch main with a listing")).into());
    };
    let (now, changelog) = (run::read(API)?, run::read("CHANGELOG.md")?);
    let gone: Vec<_> = before.lines().filter(|line| !now.lines().any(|other| other == *line)).collect();
    gone.iter().for_each(|line| println!("-{line}"));
    let said = changelog.lines().any(|line| line.starts_with("- (BREAKING") && !changes.lines().any(|old| old == line));
    ensure!(
        gone.is_empty() || said,
        "{} lines are gone, and no new line of CHANGELOG.md begins with (BREAKING)",
        gone.len()
    );
    println!("figure 9.10: {} lines of the public API of main are gone", gone.len());
    Ok(())
}

/// What a package has, and whether the pages in it lead to others that are in it.
fn package() -> Result<()> {
    let listed = run::stdout(plain("cargo package --locked --list --allow-dirty -p concurrent-cuckoo-filter"))?;
    let files: BTreeSet<_> = listed.lines().map(Path::new).collect();
    let mut links = 0;
    for page in files.iter().filter(|file| file.extension().is_some_and(|kind| kind == "md")) {
        let text = run::read(page)?;
        let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        for target in targets.filter(|target| !target.contains("://") && !target.starts_with('#')) {
            let mut path = page.parent().unwrap_or(Path::new("")).to_path_buf();
            for step in Path::new(target.split('#').next().unwrap_or_default()).components() {
                if step == Component::ParentDir {
                    path.pop()
                } else {
                    path.push(step);
                    true
                };
            }
            ensure!(files.contains(&*path), "{} leads to {target}, which is not in the package", page.display());
            links += 1;
        }
    }
    let unpacked = unpack()?;
    // In a workspace of its own: it lies in the folder of this one.
    let manifest = unpacked.join("Cargo.toml");
    fs::write(&manifest, run::read(&manifest)? + "\n[workspace]\n")?;
    let mut tests = plain("cargo test --no-run --all-features --profile dev --config profile.dev.debug=false");
    tests.current_dir(&unpacked).env("CARGO_TARGET_DIR", tree::target("package-tests")?);
    run::quietly(tests)?;
    let count = files.len();
    println!(
        "figure 9.9: the package has {count} files, its tests compile; {links} links of its pages lead to files in it"
    );
    Ok(())
}

/// Packs the library, and unpacks what users get.
fn unpack() -> Result<PathBuf> {
    let folder = tree::target("package")?;
    tree::remove(&folder)?;
    run::quietly(plain("cargo package --locked --allow-dirty --no-verify -p concurrent-cuckoo-filter"))?;
    let packed = fs::read_dir(&folder)?.filter_map(|entry| Some(entry.ok()?.path()));
    let packed = packed.filter(|path| path.extension().is_some_and(|kind| kind == "crate")).max();
    let packed = packed.context("cargo package leaves no package")?;
    run::quietly(run::command("tar -xzf", [packed.as_path(), "-C".as_ref(), &folder]))?;
    Ok(packed.with_extension(""))
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
