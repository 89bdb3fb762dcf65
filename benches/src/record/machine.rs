//! Where and from what a record was measured.

#[path = "../../../xtask/src/trees.rs"]
mod trees;

use super::Record;
use jiff::Timestamp;
use std::fs;
use std::process::Command;

/// The day in UTC, as `2026-01-31`.
pub(crate) fn today() -> String {
    Timestamp::now().strftime("%F").to_string()
}

/// Adds command, trees, machine and toolchain.
pub(crate) fn describe(record: &mut Record, rounds: usize) {
    let cores = std::thread::available_parallelism().map_or_else(|_| unknown(), |cores| cores.to_string());
    let lines = [
        ("command", command()),
        ("rounds", rounds.to_string()),
        ("trees", trees()),
        ("processor", field("/proc/cpuinfo", "model name").unwrap_or_else(|| std::env::consts::ARCH.into())),
        ("cores", cores),
        ("caches", caches()),
        ("memory", memory()),
        ("huge pages", huge_pages()),
        ("system", system()),
        ("compiler", output("rustc", &["--version"]).unwrap_or_else(unknown)),
        ("RUSTFLAGS", option_env!("RUSTFLAGS").filter(|flags| !flags.is_empty()).unwrap_or("none").into()),
    ];
    let lines: Vec<String> = lines.into_iter().map(|(name, value)| format!("- {name}: {value}")).collect();
    record.text(&lines.join("\n"));
}

fn unknown() -> String {
    "unknown".into()
}

fn command() -> String {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let given = if arguments.is_empty() { String::new() } else { format!(" -- {}", arguments.join(" ")) };
    format!("`cargo run --release -p compare{given}`")
}

/// The trees of the library and of this program: what `git rev-parse COMMIT:src` begins with where they are committed.
fn trees() -> String {
    let index = std::env::temp_dir().join(format!("compare-{}.index", std::process::id()));
    let trees = trees::trees(&["src", "benches"], &index);
    let _ = fs::remove_file(index);
    trees.unwrap_or_else(|_| unknown())
}

fn caches() -> String {
    let of = |index: usize, file: &str| {
        let path = format!("/sys/devices/system/cpu/cpu0/cache/index{index}/{file}");
        fs::read_to_string(path).map(|text| text.trim().to_string())
    };
    let described: Vec<String> = (0..)
        .map_while(|index| {
            let (level, kind, size) = (of(index, "level").ok()?, of(index, "type").ok()?, of(index, "size").ok()?);
            let kind = if kind == "Unified" { String::new() } else { format!(" {}", kind.to_lowercase()) };
            Some(format!("L{level}{kind} {size}"))
        })
        .collect();
    if described.is_empty() { unknown() } else { described.join(", ") }
}

fn memory() -> String {
    field("/proc/meminfo", "MemTotal")
        .and_then(|size| size.trim_end_matches(" kB").trim().parse::<f64>().ok())
        .map_or_else(unknown, |kib| format!("{:.1} GiB", kib / f64::from(1 << 20)))
}

/// The mode in use stands in brackets.
fn huge_pages() -> String {
    fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").map_or_else(
        |_| unknown(),
        |modes| modes.split(['[', ']']).nth(1).map_or_else(unknown, |mode| format!("transparent, {mode}")),
    )
}

fn system() -> String {
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("{} {}", std::env::consts::OS, kernel.trim()).trim_end().into()
}

/// The value after `name:` in a file of the system's.
fn field(path: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_string())
}

/// What a program prints, if it can be run.
fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_string())
}
