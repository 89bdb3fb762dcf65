//! A moment of the comparison: every variant answers as it should. (`soak --quick` needs the server's program as well,
//! and is run by `.ci/run`.)

use std::process::Command;

#[test]
fn every_variant_answers_as_it_should() {
    let output = Command::new(env!("CARGO_BIN_EXE_risk-load")).args(["compare", "--quick"]).output().unwrap();
    let (table, log) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{log}");
    assert_eq!(table.matches("| **the filter** |").count(), 4, "{table}");
    // Of each of four loads: the filter, and what there is in its place. Beside them, two lines of headings.
    assert_eq!(table.lines().filter(|line| line.starts_with('|')).count(), 2 + 14, "{table}\n{log}");
}
