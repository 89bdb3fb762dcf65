//! Where and from what a record was measured.

#[path = "../../../xtask/src/trees.rs"]
mod trees;

use super::Record;
use jiff::Timestamp;
use std::fs;
use std::process::Command;

/// Adds date, command, trees, machine and compiler.
pub(crate) fn describe(record: &mut Record) {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let lines = [
        ("date", Timestamp::now().strftime("%F").to_string()),
        ("command", format!("`cargo run --release -p compare -- {}`", arguments.join(" ")).replace(" -- `", "`")),
        ("trees", trees()),
        ("processor", field("/proc/cpuinfo", "model name")),
        ("cores", cores.to_string()),
        ("caches", caches()),
        ("memory", field("/proc/meminfo", "MemTotal")),
        ("huge pages", text("/sys/kernel/mm/transparent_hugepage/enabled")),
        ("system", format!("{} {}", std::env::consts::OS, text("/proc/sys/kernel/osrelease"))),
        ("compiler", compiler()),
    ];
    let lines = lines.into_iter().filter(|(_, value)| !value.is_empty());
    record.text(&lines.map(|(name, value)| format!("- {name}: {value}")).collect::<Vec<_>>().join("\n"));
}

/// The trees of the library and of this program: what `git rev-parse COMMIT:src` begins with where they are committed.
fn trees() -> String {
    let index = std::env::temp_dir().join(format!("compare-{}.index", std::process::id()));
    let trees = trees::trees(&["src", "benches"], &index);
    let _ = fs::remove_file(index);
    trees.unwrap_or_default()
}

fn caches() -> String {
    let of = |index: usize, file: &str| text(&format!("/sys/devices/system/cpu/cpu0/cache/index{index}/{file}"));
    let levels = (0..8).filter(|&index| of(index, "type") != "Instruction" && !of(index, "size").is_empty());
    levels.map(|index| format!("L{} {}", of(index, "level"), of(index, "size"))).collect::<Vec<_>>().join(", ")
}

/// A file of the system's, if there is one.
fn text(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

/// The value after `name:` in a file of the system's.
fn field(path: &str, name: &str) -> String {
    let lines = text(path);
    let line = lines.lines().find(|line| line.starts_with(name));
    line.and_then(|line| line.split_once(':')).map_or_else(String::new, |(_, value)| value.trim().to_owned())
}

fn compiler() -> String {
    let output = Command::new("rustc").arg("--version").output();
    output.map_or_else(|_| String::new(), |output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
