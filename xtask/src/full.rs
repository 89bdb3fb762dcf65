//! The record of reliability: long forms of all checks, and their figures in a table.

use crate::{run, tree, trees};
use anyhow::{Context, Result, bail, ensure};
use std::collections::BTreeMap;
use std::fs;

const RECORD: &str = "docs/reliability.md";

/// Name, the rows that it must fill, or what their numbers begin with, the folders of its program beside `src`, and a command
/// for a shell.
type Piece = (&'static str, &'static [&'static str], &'static [&'static str], &'static str);
const PIECES: [Piece; 17] = [
    ("loom", &["1.1"], &["loom-tests"], "cargo xtask loom"),
    ("schedules", &["1.2", "1.3"], &["tests", "loom-tests"], "cargo xtask schedules --full"),
    (
        "linearizability",
        &["2"],
        &["tests"],
        "CUCKOO_FULL=1 cargo test --locked --release --lib linearizability::threads -- --include-ignored --nocapture \
         --test-threads=1",
    ),
    (
        "stress",
        &["3"],
        &["crates/reliability", "crates/testkit"],
        "cargo run --locked --release -p reliability -- stress",
    ),
    (
        "scale",
        &["4"],
        &["crates/reliability", "crates/testkit"],
        "cargo run --locked --release -p reliability -- scale",
    ),
    (
        "faults",
        &["5"],
        &["tests"],
        "export CUCKOO_FULL=1; cargo test --locked --release --lib panic_safety -- --include-ignored --nocapture \
         --test-threads=1 && \
         cargo test --locked --release --features shared --lib shared:: -- --include-ignored --nocapture --test-threads=1 && \
         cargo test --locked --test it faults:: -- --nocapture --test-threads=1 && \
         cargo test --locked --test refused_memory operations:: -- --include-ignored --nocapture --test-threads=1",
    ),
    (
        "contention",
        &["6"],
        &["tests"],
        "CUCKOO_FULL=1 cargo test --locked --release --lib contention -- --nocapture --test-threads=1",
    ),
    (
        "adversary",
        &["7"],
        &["crates/reliability", "crates/testkit"],
        "cargo run --locked --release -p reliability -- adversary",
    ),
    (
        "growth",
        &["10"],
        &["crates/reliability", "crates/testkit"],
        "cargo run --locked --release -p reliability -- growth",
    ),
    ("mutants", &["8.1"], &["tests", "loom-tests"], "cargo xtask mutants"),
    ("coverage", &["8.2"], &["tests"], "cargo xtask coverage"),
    ("fuzz", &["8.3", "8.4", "8.5", "8.6"], &["fuzz", "crates/testkit"], "cargo xtask fuzz --full"),
    ("asan", &["8.7"], &["tests"], "cargo xtask asan"),
    ("miri", &["8.8"], &["tests"], "cargo xtask miri"),
    ("lint", &["9.1", "9.2", "9.3", "9.4", "9.5", "9.8", "9.9", "9.10", "9.11"], &["xtask"], "cargo xtask lint --full"),
    ("servers", &[], &["crates/cuckoo-valkey"], "SERVERS='redis-server valkey-server' crates/cuckoo-valkey/test.sh"),
    ("machines", &["9.6", "9.7"], &["tests"], "cargo xtask machines"),
];

pub(crate) fn check(list: bool, names: &[String]) -> Result<()> {
    let piece = |name: &String| {
        let piece = PIECES.iter().find(|(known, ..)| known == name);
        piece.with_context(|| format!("there is no piece {name}; cargo xtask full --list names them"))
    };
    let chosen: Vec<_> = names.iter().map(piece).collect::<Result<_>>()?;
    let chosen = if names.is_empty() { PIECES.iter().collect() } else { chosen };
    if list {
        chosen.iter().for_each(|(name, rows, _, command)| println!("{name:10} {:20} {command}", rows.join(" ")));
        return earlier_states();
    }
    let (mut failed, mut skipped) = (Vec::new(), Vec::new());
    for piece in &chosen {
        println!("\n== {}: {}", piece.0, piece.3);
        if let Err(error) = run_piece(piece, &mut skipped) {
            println!("{} failed: {error:#}", piece.0);
            failed.push(piece.0);
        }
    }
    skipped.iter().for_each(|line| println!("{line}"));
    earlier_states()?;
    ensure!(failed.is_empty(), "failed: {}", failed.join(" "));
    println!("\nall {} pieces passed; the figures are in {RECORD}", chosen.len());
    Ok(())
}

/// Says which figures were measured on other trees than those of today.
fn earlier_states() -> Result<()> {
    let (record, mut all, mut earlier) = (run::read(RECORD)?, 0, Vec::new());
    let mut judge = |row: String, has: &str, is: &str| {
        all += 1;
        earlier.extend((has != is).then_some(row));
    };
    for (_, expected, programs, _) in PIECES {
        let now = trees(programs)?;
        for line in record.lines() {
            let cells: Vec<_> = line.split('|').map(str::trim).collect();
            if let [_, id, .., figure, _, has, _] = cells[..]
                && !figure.is_empty()
                && is_of(id, expected)
            {
                judge(id.to_owned(), has, &now);
            }
        }
    }
    let now = trees(&["benches"])?;
    for entry in fs::read_dir("docs/benchmarks").context("no folder docs/benchmarks")? {
        let path = entry?.path();
        if path.file_stem().is_some_and(|stem| stem.to_string_lossy().starts_with("20")) && path.is_file() {
            let text = run::read(&path)?;
            let has = text.lines().find_map(|line| line.strip_prefix("- trees: ")).unwrap_or_default();
            judge(path.display().to_string(), has, &now);
        }
    }
    println!("measured on an earlier state, {} of {all} rows and records: {}", earlier.len(), earlier.join(" "));
    Ok(())
}

/// The trees of the library and of these folders.
fn trees(programs: &[&str]) -> Result<String> {
    trees::trees(&[&["src"], programs].concat(), &tree::target("full")?.join("index")).map_err(anyhow::Error::msg)
}

/// Whether the number of a row is one of these, or begins with one.
fn is_of(id: &str, rows: &[&str]) -> bool {
    let is_row =
        id.split_once('.').is_some_and(|(section, row)| [section, row].iter().all(|n| n.parse::<u32>().is_ok()));
    is_row && rows.iter().any(|row| id == *row || id.starts_with(&format!("{row}.")))
}

fn run_piece(&(name, rows, programs, command): &Piece, skipped: &mut Vec<String>) -> Result<()> {
    // Of what is run, not of what may have been changed meanwhile.
    let trees = trees(programs)?;
    let (status, said) = run::loudly(run::command("sh -c", [command]))?;
    fs::write(tree::target("full")?.join(name).with_extension("log"), &said)?;
    let before = skipped.len();
    skipped.extend(said.lines().filter(|line| line.starts_with("skipped: ")).map(|line| format!("{name} {line}")));
    let rows = if skipped.len() > before { &[] } else { rows };
    let date = run::stdout(run::plain("date +%F"))?;
    let (record, wrong) = write_down(&run::read(RECORD)?, &said, rows, &format!("{} | {trees}", date.trim()))?;
    fs::write(RECORD, record).with_context(|| format!("cannot write {RECORD}"))?;
    ensure!(status.success(), "{status}");
    if !wrong.is_empty() {
        bail!("{}", wrong.join(", "));
    }
    Ok(())
}

/// The record with the figures of these lines, "figure ROW: TEXT", in their rows, and what is wrong: figures without a row,
/// and rows that got no figure and whose numbers are expected, or begin with one that is.
fn write_down(record: &str, said: &str, expected: &[&str], when: &str) -> Result<(String, Vec<String>)> {
    let figures = said.lines().filter_map(|line| line.strip_prefix("figure ")?.split_once(": "));
    let mut figures: BTreeMap<_, _> = figures.collect();
    let (mut written, mut wrong) = (String::new(), Vec::new());
    for line in record.lines() {
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        let row = cells.get(1).filter(|id| is_of(id, &["1", "2", "3", "4", "5", "6", "7", "8", "9", "10"])).copied();
        if let Some((id, figure)) = row.and_then(|id| figures.remove_entry(id)) {
            ensure!(cells.len() == 8, "row {id} of {RECORD} has {} cells instead of 6", cells.len() - 2);
            ensure!(!figure.contains('|'), "a figure for row {id} has a \"|\" in it: {figure}");
            written += &format!("| {id} | {} | {} | {figure} | {when} |\n", cells[2], cells[3]);
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

    const RECORD: &str =
        "| 1. promise | 1.1 |\n| 1.1 | what | command | old | old | old |\n| 1.2 | what | command | | | |\n";

    #[test]
    fn figures_go_into_their_rows() {
        let (record, wrong) =
            write_down(RECORD, "noise\nfigure 1.1: 7 of 7: all\n", &["1.1"], "today | src 1").unwrap();
        assert_eq!(record, RECORD.replace("old | old | old", "7 of 7: all | today | src 1"));
        assert!(wrong.is_empty());
    }

    #[test]
    fn rows_and_figures_that_miss_each_other_are_named() {
        let (record, wrong) = write_down(RECORD, "figure 1.3: 7\n", &["1"], "today").unwrap();
        assert_eq!(record, RECORD);
        assert_eq!(wrong, ["no figure for row 1.1", "no figure for row 1.2", "no row for figure 1.3"]);
        assert!(write_down("| 1.1 | what | figure |\n", "figure 1.1: 7\n", &[], "today").is_err());
    }
}
