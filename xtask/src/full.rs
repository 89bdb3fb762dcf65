//! The record of reliability: runs the long forms of all checks, and writes their figures into its tables.

use crate::{Args, run, tree, trees};
use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use std::fs;

const RECORD: &str = "docs/reliability.md";
const BENCHMARKS: &str = "docs/benchmarks/README.md";

/// A name, the rows that the piece must fill or their sections, the folders of its program beside `src`, and a shell command.
type Piece = (&'static str, &'static str, &'static [&'static str], &'static str);
const LONG: &[&str] = &["crates/reliability", "crates/testkit"];
const PIECES: [Piece; 20] = [
    ("loom", "1.1", &["loom-tests"], "cargo xtask loom"),
    ("schedules", "1.2 1.3", &["tests", "loom-tests"], "cargo xtask schedules --full"),
    ("linearizability", "2", &["tests"], "test --lib linearizability::threads"),
    ("stress", "3", &["tests", "crates/testkit"], "test --test it stress::"),
    ("scale", "4.1 4.2 4.3 4.4", LONG, "test -p reliability --test scale"),
    ("capacity", "", &["tests"], "test --test it capacity && test --test it overfull"),
    ("compare", "", &["benches"], "cargo test --locked -p compare --all-targets"),
    ("large", "4.5 4.6", LONG, "test -p reliability --test large"),
    (
        "faults",
        "5",
        &["tests"],
        "test --lib panic_safety && test --features shared --lib shared:: && test --test it faults:: && \
         test --test refused_memory operations::refused",
    ),
    ("contention", "6", &["tests"], "test --lib contention"),
    ("adversary", "7", LONG, "test -p reliability --test adversary"),
    ("growth", "10", LONG, "test -p reliability --test growth"),
    ("mutants", "8.1", &["tests", "loom-tests"], "cargo xtask mutants"),
    ("coverage", "8.2", &["tests"], "cargo xtask coverage"),
    ("fuzz", "8.3 8.4 8.5 8.6", &["fuzz", "crates/testkit"], "cargo xtask fuzz --full"),
    ("sanitizers", "8.7 8.8", &["tests"], "cargo xtask asan && cargo xtask miri"),
    ("lint", "9.1 9.2 9.3 9.4 9.5 9.8 9.9 9.10 9.11", &["xtask"], "cargo xtask lint --full"),
    ("servers", "", &["crates/cuckoo-valkey"], "SERVERS='redis-server valkey-server' crates/cuckoo-valkey/test.sh"),
    (
        "python",
        "",
        &["python"],
        "python/test.sh oldest && python/test.sh versions && python/test.sh cluster && python/test.sh connect",
    ),
    ("machines", "9.6 9.7", &["tests"], "cargo xtask machines"),
];

/// The shell function `test` of these commands: runs tests with their large numbers.
const TEST: &str =
    "test() { CUCKOO_FULL=1 cargo test --locked --release \"$@\" -- --include-ignored --nocapture --test-threads=1; }";

pub(crate) fn check(args: &Args) -> Result<()> {
    let names = args.names();
    let unknown = names.iter().find(|name| PIECES.iter().all(|piece| piece.0 != *name));
    ensure!(unknown.is_none(), "there is no piece {unknown:?}; cargo xtask full --list names them");
    let chosen = PIECES.iter().filter(|piece| names.is_empty() || names.iter().any(|name| name == piece.0));
    if args.has("--list") {
        println!("{TEST}");
        chosen.for_each(|(name, rows, _, command)| println!("{name:16} {rows:38} {command}"));
        return earlier_states();
    }
    let (mut failed, mut skipped) = (Vec::new(), Vec::new());
    for piece in chosen {
        println!("\n== {}: {}", piece.0, piece.3);
        if let Err(error) = run_piece(piece, &mut skipped) {
            println!("{} failed: {error:#}", piece.0);
            failed.push(piece.0);
        }
    }
    skipped.iter().for_each(|line| println!("{line}"));
    earlier_states()?;
    ensure!(failed.is_empty(), "failed: {}", failed.join(" "));
    println!("\nall pieces passed; the figures are in {RECORD}");
    Ok(())
}

/// Prints which figures were measured on other trees than the present ones.
fn earlier_states() -> Result<()> {
    let (record, mut rows) = (run::read(RECORD)?, Vec::new());
    for (_, expected, programs, _) in PIECES {
        let now = trees(programs)?;
        for line in record.lines() {
            if let [_, id, .., figure, _, has, _] = cells(line)[..]
                && !figure.is_empty()
                && is_of(id, expected)
            {
                rows.push((id, has != now));
            }
        }
    }
    let benchmarks = run::read(BENCHMARKS)?;
    let has = benchmarks.lines().find_map(|line| line.strip_prefix("- trees: ")).unwrap_or_default();
    rows.push((BENCHMARKS, has != trees(&["benches"])?));
    let earlier: Vec<_> = rows.iter().filter(|row| row.1).map(|row| row.0).collect();
    println!("measured on an earlier state, {} of {} rows and pages: {}", earlier.len(), rows.len(), earlier.join(" "));
    Ok(())
}

/// Returns the trees of the library and of these folders.
fn trees(programs: &[&str]) -> Result<String> {
    trees::trees(&[&["src"], programs].concat(), &tree::target("full")?.join("index")).map_err(anyhow::Error::msg)
}

fn cells(line: &str) -> Vec<&str> {
    line.split('|').map(str::trim).collect()
}

/// Returns whether a row is one of these, or in a section that is one of these.
fn is_of(id: &str, rows: &str) -> bool {
    let is_row =
        id.split_once('.').is_some_and(|(section, row)| [section, row].iter().all(|n| n.parse::<u32>().is_ok()));
    is_row && rows.split(' ').any(|row| id == row || id.split_once('.').is_some_and(|(section, _)| section == row))
}

fn run_piece(&(name, rows, programs, command): &Piece, skipped: &mut Vec<String>) -> Result<()> {
    // Before the run, during which files may change.
    let trees = trees(programs)?;
    let (status, said) = run::loudly(run::command("sh -c", [format!("{TEST}; {command}")]))?;
    fs::write(tree::target("full")?.join(name).with_extension("log"), &said)?;
    let before = skipped.len();
    skipped.extend(said.lines().filter(|line| line.starts_with("skipped: ")).map(|line| format!("{name} {line}")));
    let rows = if skipped.len() > before { "" } else { rows };
    let date = run::stdout(run::plain("date +%F"))?;
    let (record, wrong) = write_down(&run::read(RECORD)?, &said, rows, &format!("{} | {trees}", date.trim()))?;
    fs::write(RECORD, record).with_context(|| format!("cannot write {RECORD}"))?;
    ensure!(status.success(), "{status}");
    ensure!(wrong.is_empty(), "{}", wrong.join(", "));
    Ok(())
}

/// Returns the record with the figures of the lines "figure ROW: TEXT" in their rows, and the errors: figures without a row, and
/// expected rows without a figure.
fn write_down(record: &str, said: &str, expected: &str, when: &str) -> Result<(String, Vec<String>)> {
    let figures = said.lines().filter_map(|line| line.split_once("figure ")?.1.split_once(": "));
    let mut figures: BTreeMap<_, _> = figures.filter(|(id, _)| is_of(id, id)).collect();
    let (mut written, mut wrong) = (String::new(), Vec::new());
    for line in record.lines() {
        let cells = cells(line);
        let row = cells.get(1).filter(|id| is_of(id, id)).copied();
        if let Some((id, figure)) = row.and_then(|id| figures.remove_entry(id)) {
            ensure!(cells.len() == 7, "row {id} of {RECORD} has {} cells instead of 5", cells.len() - 2);
            ensure!(!figure.contains('|'), "a figure for row {id} has a \"|\" in it: {figure}");
            written += &format!("| {id} | {} | {figure} | {when} |\n", cells[2]);
            continue;
        }
        wrong.extend(row.filter(|id| is_of(id, expected)).map(|id| format!("no figure for row {id}")));
        written = written + line + "\n";
    }
    wrong.extend(figures.keys().map(|id| format!("no row for figure {id}")));
    Ok((written, wrong))
}

#[cfg(test)]
mod tests {
    use super::write_down;

    const RECORD: &str = "| 1. promise | 1.1 |\n| 1.1 | what | old | old | old |\n| 1.2 | what | | | |\n";

    #[test]
    fn figures_go_into_their_rows() {
        let said = "noise\ntest a ... figure 1.1: 7 of 7: all\n";
        let (record, wrong) = write_down(RECORD, said, "1.1", "today | src 1").unwrap();
        assert_eq!(record, RECORD.replace("old | old | old", "7 of 7: all | today | src 1"));
        assert!(wrong.is_empty());
    }

    #[test]
    fn rows_and_figures_that_miss_each_other_are_named() {
        let (record, wrong) = write_down(RECORD, "figure 1.3: 7\n", "1", "today").unwrap();
        assert_eq!(record, RECORD);
        assert_eq!(wrong, ["no figure for row 1.1", "no figure for row 1.2", "no row for figure 1.3"]);
        assert!(write_down("| 1.1 | what | figure |\n", "figure 1.1: 7\n", "", "today").is_err());
    }
}
