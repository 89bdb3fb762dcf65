//! What the example does with bad input and with snapshots.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A folder of this test's own.
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

/// What stands on stdout after a run that succeeds.
fn succeeds(folder: &Path, arguments: &[&str]) -> String {
    let output = run(folder, arguments);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The one line on stderr after a run that fails with exit code 1.
#[track_caller]
fn fails(folder: &Path, arguments: &[&str]) -> String {
    let output = run(folder, arguments);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), error.lines().count()), (Some(1), 1), "{arguments:?}: {error}");
    error
}

/// The same of a run that is refused before it prints anything.
#[track_caller]
fn refuses(folder: &Path, arguments: &[&str]) -> String {
    let output = run(folder, arguments);
    assert_eq!(output.stdout, b"", "{arguments:?}");
    fails(folder, arguments)
}

#[test]
fn bad_input_is_one_line_on_stderr() {
    let folder = folder("bad_input");
    fs::write(folder.join("empty"), "").unwrap();
    fs::write(folder.join("not-utf-8"), b"a.com\n\xff\xfe.com\n").unwrap();
    refuses(&folder, &["--list", "missing"]);
    refuses(&folder, &["--list", "empty"]);
    let error = refuses(&folder, &["--list", "not-utf-8"]);
    assert!(error.contains("line 2"), "{error}");
    refuses(&folder, &["--rate", "1.5"]);
    refuses(&folder, &["--threads", "0"]);
    refuses(&folder, &["--keys", "18446744073709551615"]);
    refuses(&folder, &["--ips", "0"]);
}

#[test]
fn snapshots_are_saved_and_loaded_and_damaged_ones_refused() {
    let folder = folder("snapshots");
    let report = |word: &str, said: String| {
        assert!(said.lines().any(|line| line.starts_with("snapshot ") && line.contains(word)), "{said}");
    };
    report(" saved in ", succeeds(&folder, &["--snapshot", "snapshot"]));
    report(" loaded in ", succeeds(&folder, &["--snapshot", "snapshot"]));

    let snapshot = fs::read(folder.join("snapshot")).unwrap();
    let write = |name: &str, bytes: &[u8]| fs::write(folder.join(name), bytes).unwrap();
    write("empty", b"");
    write("not-utf-8", b"a.com\n\xff\xfe.com\n");
    write("header-cut-off", &snapshot[..100]);
    for name in ["missing/snapshot", ".", "empty", "not-utf-8", "header-cut-off"] {
        refuses(&folder, &["--snapshot", name]);
    }
    refuses(&folder, &["--snapshot", "snapshot", "--rate", "0.01"]);

    // What is wrong behind the header is found when memory has been announced.
    write("cut-off", &snapshot[..10_000]);
    fails(&folder, &["--snapshot", "cut-off"]);
    write("damaged", &[&snapshot[..9_999], &[0; 8], &snapshot[10_007..]].concat());
    let error = fails(&folder, &["--snapshot", "damaged"]);
    assert!(error.contains("shard 0 ") && error.contains(" is damaged"), "{error}");
    write("longer", &[&snapshot[..], b"more\n"].concat());
    fails(&folder, &["--snapshot", "longer"]);
}

#[test]
fn made_addresses_stand_in_for_a_list() {
    let folder = folder("addresses");
    let report = succeeds(&folder, &["--ips", "100001"]);
    assert!(report.contains("100,001 keys") && report.contains("repeated lines"), "{report}");
    assert!(report.contains("left out: 0 blank lines, 0 repeated lines"), "{report}");
}

#[test]
fn a_filter_for_a_thousand_keys_grows_during_the_run() {
    let report = succeeds(&folder("growth"), &["--grow", "--keys", "200000"]);
    assert!(report.contains("growth           from 1,000 keys: 200,000 added one by one during the run"), "{report}");
    assert!(report.contains("refused 0;") && report.contains("missed           0 of "), "{report}");
}
