//! The record of reliability: long forms of all checks, and their figures in a table.

use crate::{run, tree};
use anyhow::{Context, Result, bail, ensure};
use std::collections::BTreeMap;
use std::fs;

const RECORD: &str = "docs/reliability.md";

struct Piece {
    name: &'static str,
    /// The rows that it must fill, or what their numbers begin with.
    rows: &'static [&'static str],
    /// For a shell.
    command: &'static str,
}

macro_rules! unit_tests {
    ($name:literal) => {
        concat!("CUCKOO_FULL=1 cargo test --locked --release --lib ", $name, " -- --nocapture --test-threads=1")
    };
}

macro_rules! reliability {
    ($section:literal) => {
        concat!("cargo run --locked --release -p reliability -- ", $section)
    };
}

const PIECES: &[Piece] = &[
    Piece { name: "loom", rows: &["1.1"], command: "cargo xtask loom" },
    Piece { name: "schedules", rows: &["1.2", "1.3"], command: "cargo xtask schedules --full" },
    Piece { name: "histories", rows: &["2"], command: unit_tests!("histories") },
    Piece { name: "stress", rows: &["3"], command: reliability!("stress") },
    Piece { name: "scale", rows: &["4"], command: reliability!("scale") },
    Piece {
        name: "faults",
        rows: &["5"],
        command: concat!(
            unit_tests!("killed"),
            " && CUCKOO_FULL=1 cargo test --locked --test faults_panics --test faults_snapshots --test faults_rayon \
             --test faults_capacity --test faults_memory -- --nocapture --test-threads=1"
        ),
    },
    Piece { name: "storm", rows: &["6"], command: unit_tests!("storm") },
    Piece { name: "adversary", rows: &["7"], command: reliability!("adversary") },
    Piece { name: "mutants", rows: &["8.1"], command: "cargo xtask mutants" },
    Piece { name: "coverage", rows: &["8.2"], command: "cargo xtask coverage" },
    Piece { name: "fuzz", rows: &["8.3", "8.4", "8.5", "8.6"], command: "cargo xtask fuzz --full" },
    Piece { name: "asan", rows: &["8.7"], command: "cargo xtask asan --full" },
    Piece { name: "lint", rows: &["9.1", "9.2", "9.3", "9.4", "9.5"], command: "cargo xtask lint" },
    Piece { name: "machines", rows: &["9.6", "9.7"], command: "cargo xtask machines --full" },
];

pub(crate) fn check(list: bool, names: &[String]) -> Result<()> {
    let mut chosen: Vec<&Piece> = Vec::new();
    for name in names {
        let piece = PIECES.iter().find(|piece| piece.name == name);
        chosen.push(piece.with_context(|| format!("there is no piece {name}; cargo xtask full --list names them"))?);
    }
    if names.is_empty() {
        chosen.extend(PIECES);
    }
    if list {
        chosen.iter().for_each(|piece| println!("{:10} {:20} {}", piece.name, piece.rows.join(" "), piece.command));
        return Ok(());
    }
    let (mut failed, mut skipped) = (Vec::new(), Vec::new());
    for piece in &chosen {
        println!("\n== {}: {}", piece.name, piece.command);
        match piece.run(&mut skipped) {
            Ok(()) => {}
            Err(error) => {
                println!("{} failed: {error:#}", piece.name);
                failed.push(piece.name);
            }
        }
    }
    skipped.iter().for_each(|line| println!("{line}"));
    ensure!(failed.is_empty(), "failed: {}", failed.join(" "));
    println!("\nall {} pieces passed; the figures are in {RECORD}", chosen.len());
    Ok(())
}

impl Piece {
    fn run(&self, skipped: &mut Vec<String>) -> Result<()> {
        let log = tree::target("full")?.join(self.name).with_extension("log");
        let (status, said) = run::loudly(&mut run::command("sh -c", [self.command]), &log)?;
        let lines = said.lines().filter(|line| line.starts_with("skipped: "));
        let before = skipped.len();
        skipped.extend(lines.map(|line| format!("{} {line}", self.name)));
        let rows = if skipped.len() > before { &[] } else { self.rows };

        let date = run::output(&mut run::plain("date +%F"))?;
        let (record, wrong) = write_down(&run::read(RECORD)?, &figures(&said), rows, date.trim())?;
        fs::write(RECORD, record).with_context(|| format!("cannot write {RECORD}"))?;
        ensure!(status.success(), "{status}");
        if !wrong.is_empty() {
            bail!("{}", wrong.join(", "));
        }
        Ok(())
    }
}

/// The lines "figure ROW: TEXT"; of two for one row, the later.
fn figures(said: &str) -> BTreeMap<&str, &str> {
    said.lines().filter_map(|line| line.strip_prefix("figure ")?.split_once(": ")).collect()
}

/// The record with these figures in their rows, and what is wrong: figures without a row, and rows whose numbers begin
/// with one of `expected` and that got no figure.
fn write_down(
    record: &str,
    figures: &BTreeMap<&str, &str>,
    expected: &[&str],
    date: &str,
) -> Result<(String, Vec<String>)> {
    let (mut written, mut without_row, mut wrong) = (String::new(), figures.clone(), Vec::new());
    for line in record.lines() {
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        let id =
            cells.get(1).filter(|id| id.split('.').count() == 2 && id.split('.').all(|n| n.parse::<u32>().is_ok()));
        match id.map(|id| (id, figures.get(id))) {
            Some((id, Some(figure))) => {
                ensure!(cells.len() == 7, "row {id} of {RECORD} has {} cells instead of 5", cells.len() - 2);
                ensure!(!figure.contains('|'), "a figure for row {id} has a \"|\" in it: {figure}");
                written += &format!("| {id} | {} | {} | {figure} | {date} |\n", cells[2], cells[3]);
                without_row.remove(id);
                continue;
            }
            Some((id, None)) if expected.iter().any(|row| id == row || id.starts_with(&format!("{row}."))) => {
                wrong.push(format!("no figure for row {id}"));
            }
            _ => {}
        }
        written = written + line + "\n";
    }
    wrong.extend(without_row.keys().map(|id| format!("no row for figure {id}")));
    Ok((written, wrong))
}
