//! A process that is killed while it saves leaves a complete file: the previous one or the new one.
//!
//! This does not test durability. What a killed process has written is with the system, which continues to write it to the disk; a
//! power cut stops the system, too. Tests in `src/snapshot/file` check that the file is synced before it is renamed, and the
//! folder afterwards.

use crate::support::Folder;
use concurrent_cuckoo_filter::{CuckooFilter, SnapshotReader};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use std::{env, thread};

/// The variable with the path, for the process that is killed.
const SAVED_TO: &str = "SNAPSHOT_CRASH_SAVED_TO";

const ROUNDS: usize = 30;

/// In microseconds, from the start of a process or, in every other round, from its first save, however slow the disk is. By then it has
/// saved several times, or never.
const LIFE: std::ops::Range<u64> = 0..150_000;

/// The number of keys that each version adds: version `v` has the keys `0..v * MORE`.
const MORE: u64 = 10;

fn save(filter: &CuckooFilter<u64>, version: u64, path: &Path) {
    filter.snapshot().metadata(&version.to_le_bytes()).save(path).unwrap();
}

/// Loads the file and checks that it is one complete version.
fn load(path: &Path) -> (u64, CuckooFilter<u64>) {
    let filter = CuckooFilter::<u64>::load(path).unwrap();
    let header = SnapshotReader::new(File::open(path).unwrap()).unwrap();
    let version = u64::from_le_bytes(header.header().metadata[..].try_into().unwrap());
    assert_eq!(filter.len() as u64, version * MORE, "version {version}");
    for key in 0..version * MORE {
        assert!(filter.contains(&key), "key {key} is not in version {version}");
    }
    (version, filter)
}

/// Continues from the present version, and reports each saved version. Ends when the filter is full, or the pipe is closed.
fn save_for_ever(path: &Path) {
    let (mut version, filter) = load(path);
    loop {
        for key in version * MORE..(version + 1) * MORE {
            filter.insert(&key).unwrap();
        }
        version += 1;
        save(&filter, version, path);
        io::stderr().write_all(format!("{version}\n").as_bytes()).unwrap();
    }
}

/// Starts this program as the process that saves.
fn start(test: &str, path: &Path) -> Child {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]).env(SAVED_TO, path);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn a_process_killed_while_it_saves_leaves_a_whole_file() {
    if let Some(path) = env::var_os(SAVED_TO) {
        save_for_ever(Path::new(&path));
    }
    let (folder, path) = Folder::with_path("crash");
    save(&CuckooFilter::with_capacity(300_000), 0, &path);

    let mut rng = fastrand::Rng::with_seed(9);
    let mut before = 0;
    for round in 0..ROUNDS {
        let mut child = start("snapshot::crash::a_process_killed_while_it_saves_leaves_a_whole_file", &path);
        let (mut said, mut stderr) = (String::new(), BufReader::new(child.stderr.take().unwrap()));
        if round % 2 == 0 {
            stderr.read_line(&mut said).unwrap();
        }
        thread::sleep(Duration::from_micros(rng.u64(LIFE)));
        child.kill().unwrap();
        child.wait().unwrap();
        stderr.read_to_string(&mut said).unwrap();
        let number = |line: &str| line.parse().unwrap_or_else(|_| panic!("the process said: {said}"));
        let returned = said.lines().next_back().map_or(before, number);
        let (version, _) = load(&path);
        assert!(
            version == returned || version == returned + 1,
            "round {round}: version {version} is there; version {returned} was the last for which `save` returned"
        );
        before = version;
    }

    // Files that killed processes left next to this one did no harm.
    let left = fs::read_dir(&folder.0).unwrap().count() - 1;
    println!("{before} versions saved, {ROUNDS} processes killed, {left} of them while they wrote");
    assert!(before > 0 && left > 0, "no process was killed while it saved: this has shown nothing");
}
