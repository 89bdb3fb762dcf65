//! A process that is killed at any moment.

use crate::common::{boxed, check, delete, open, options, put, runtime};
use fastrand::Rng;
use risk_server::list::{List, Options, Start};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

/// Set for the process that is to be killed: its folder, and the number of its first step.
const FOLDER: &str = "RISK_LIST_KILLED_FOLDER";
const STEP: &str = "RISK_LIST_KILLED_STEP";

/// Keys that there can be.
const KEYS: u64 = 2000;

fn list_options(folder: &Path) -> Options {
    // Small enough to grow now and then.
    options(folder, 100)
}

/// What a step does to the set. Every 25th puts a new list in its place.
fn step(number: u64, model: &mut BTreeSet<u64>) -> (Vec<u64>, Vec<u64>) {
    let mut random = Rng::with_seed(number);
    if number % 25 == 24 {
        *model = (0..random.u64(100..KEYS)).filter(|_| random.bool()).collect();
        return (vec![], vec![]);
    }
    let puts: Vec<u64> = (0..30).map(|_| random.u64(..KEYS)).collect();
    let deletes: Vec<u64> = (0..20).map(|_| random.u64(..KEYS)).collect();
    model.extend(&puts);
    for number in &deletes {
        model.remove(number);
    }
    (puts, deletes)
}

fn model(steps: u64) -> BTreeSet<u64> {
    let mut model = BTreeSet::new();
    for number in 0..steps {
        step(number, &mut model);
    }
    model
}

/// Makes steps for ever, and says of each when it was acknowledged; saves snapshots all the time.
async fn work(list: List, first: u64) -> std::io::Result<()> {
    let saver = list.clone();
    tokio::spawn(async move {
        loop {
            saver.save_snapshot().await.unwrap();
        }
    });
    let mut model = model(first);
    for number in first.. {
        let (puts, deletes) = step(number, &mut model);
        if puts.is_empty() {
            let mut replacement = list.begin_replacement().await.unwrap();
            for part in model.iter().copied().collect::<Vec<_>>().chunks(300) {
                replacement.add(part.iter().copied().map(boxed).collect()).await.unwrap();
            }
            replacement.commit().await.unwrap();
        } else {
            list.change(puts.into_iter().map(put).chain(deletes.into_iter().map(delete)).collect()).await.unwrap();
        }
        std::io::stdout().write_all(format!("\nmade {number}\n").as_bytes())?;
    }
    Ok(())
}

#[test]
fn nothing_that_was_acknowledged_is_lost_when_the_process_is_killed() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        let first = std::env::var(STEP).unwrap().parse().unwrap();
        let list = open(&list_options(folder.as_ref())).list;
        // It is killed; if the test was instead, nobody reads, and this ends with an error.
        return runtime().block_on(work(list, first)).unwrap();
    }
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = Rng::with_seed(seed);
    let folder = tempfile::tempdir().unwrap();
    let (mut made, mut replays) = (0, 0);
    for _ in 0..12 {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args([
                "killed::nothing_that_was_acknowledged_is_lost_when_the_process_is_killed",
                "--exact",
                "--nocapture",
            ])
            .env(FOLDER, folder.path())
            .env(STEP, made.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let mut steps = lines
            .by_ref()
            .map_while(Result::ok)
            .filter_map(|line| line.strip_prefix("made ").map(|number| number.parse::<u64>().unwrap()));
        let before = made;
        for _ in 0..random.u64(1..60) {
            made = steps.next().expect("the process was not told to end") + 1;
        }
        std::thread::sleep(std::time::Duration::from_micros(random.u64(..3000)));
        process.kill().unwrap();
        process.wait().unwrap();
        made = steps.last().map_or(made, |number| number + 1);
        assert!(made > before);
        let opened = open(&list_options(folder.path()));
        replays += usize::from(matches!(opened.how, Start::Snapshot { .. }));
        // The step that was under way may have been made or not, but not in part.
        let mut present = model(made);
        if opened.keys != present.len() as u64 || !holds(&opened.list, &present) {
            step(made, &mut present);
            made += 1;
        }
        check(&opened.list, &present, KEYS);
        // The next process finds what the killed one left, or the snapshot that is saved here.
        if random.bool() {
            runtime().block_on(opened.list.close()).unwrap();
        }
    }
    println!("{made} steps, {replays} starts from a snapshot");
    assert!(replays > 3, "{replays} starts from a snapshot");
}

fn holds(list: &List, model: &BTreeSet<u64>) -> bool {
    let keys: Vec<String> = model.iter().copied().map(crate::common::key).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    list.confirm(&keys).unwrap().into_iter().all(|listed| listed)
}
