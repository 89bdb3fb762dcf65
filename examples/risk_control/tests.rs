//! The example with bad input and with snapshots.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// An empty folder.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir(&folder).unwrap();
    folder
}

/// Runs the example in the folder for a moment.
fn run(folder: &Path, arguments: &[&str]) -> Output {
    let mut program = Command::new(env!("CARGO_BIN_EXE_risk_control"));
    program.args(["--seconds", "0.2"]).args(arguments).current_dir(folder).output().unwrap()
}

/// Returns the report of a run that succeeds.
fn succeeds(folder: &Path, arguments: &[&str]) -> String {
    let output = run(folder, arguments);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the line on stderr of a run that fails at once.
#[track_caller]
fn refuses(folder: &Path, arguments: &[&str]) -> String {
    let output = run(folder, arguments);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), error.lines().count()), (Some(1), 1), "{arguments:?}: {error}");
    assert_eq!(output.stdout, b"", "{arguments:?}");
    error
}

#[test]
fn bad_input_is_one_line_on_stderr() {
    let folder = folder("bad_input");
    fs::write(folder.join("empty"), "").unwrap();
    fs::write(folder.join("not-utf-8"), b"a.com\n\xff\xfe.com\n").unwrap();
    for list in ["missing", "empty", "not-utf-8"] {
        assert!(refuses(&folder, &["--list", list]).contains(list));
    }
    refuses(&folder, &["--rate", "1.5"]);
    assert_eq!(run(&folder, &["--threads", "0"]).status.code(), Some(2));
}

#[test]
fn snapshots_are_saved_and_loaded_and_damaged_ones_refused() {
    let folder = folder("snapshots");
    assert!(succeeds(&folder, &["--snapshot", "snapshot"]).contains("\nsnapshot         saved within "));
    let saved = fs::read(folder.join("snapshot")).unwrap();
    succeeds(&folder, &["--snapshot", "snapshot"]);
    for (name, bytes) in [
        ("empty", vec![]),
        ("cut-off", saved[..10_000].to_vec()),
        ("damaged", [&saved[..9_999], &[0; 8], &saved[10_007..]].concat()),
        ("longer", [&saved[..], b"more\n"].concat()),
    ] {
        fs::write(folder.join(name), bytes).unwrap();
        assert!(refuses(&folder, &["--snapshot", name]).contains(name));
    }
    refuses(&folder, &["--ips", "1000", "--snapshot", "snapshot"]);
}

#[test]
fn generated_addresses_replace_a_list() {
    assert!(succeeds(&folder("addresses"), &["--ips", "100001"]).contains("100,001 keys"));
}

#[test]
fn a_filter_for_a_thousand_keys_grows_during_the_run() {
    let report = succeeds(&folder("growth"), &["--grow", "20000"]);
    assert!(report.contains("growth           20,000 keys inserted") && report.contains("missed           0 of "));
}
