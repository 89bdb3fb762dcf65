//! Processes killed by the system: a process with two writing threads is killed at a chosen step of one of them, while the other
//! continues, or at a step of its own take-over. Each thread acknowledges its operations in a file of its own.

use crate::sys::steps::{Step, with_hook};
use crate::{CuckooFilter, SharedFilter, SharedReader, StableHashBuilder};
use std::collections::HashSet;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{env, thread};

type Filter = CuckooFilter<u64, StableHashBuilder>;

const THREADS: u64 = 2;
const OWN: u64 = 60;
const STABLE: u64 = 700;
/// The variable with the path of the filter, in the process that is killed.
const KILLED: &str = "CUCKOO_KILLED";

fn builder() -> crate::Builder<u64, StableHashBuilder> {
    CuckooFilter::builder().capacity(950).hasher(StableHashBuilder::with_seeds(1, 2))
}

fn hashes(filter: &Filter) -> Vec<u64> {
    let mut classes = HashSet::new();
    let is_new = |hash: &u64| classes.insert(crate::internal::panic_safety::class(filter, *hash));
    (0..)
        .map(|number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
        .filter(is_new)
        .take((STABLE + THREADS * OWN) as usize)
        .collect()
}

fn own(hashes: &[u64], thread: u64) -> &[u64] {
    &hashes[(STABLE + thread * OWN) as usize..][..OWN as usize]
}

/// The change with this number: the key, and its number of copies afterwards.
fn change(seed: u64, thread: u64, number: u64, copies: &[usize]) -> (usize, usize) {
    let mut random = fastrand::Rng::with_seed(seed ^ thread << 32 ^ number << 40);
    let key = random.usize(..copies.len());
    let then = match (copies[key], random.u32(..10)) {
        (0, _) | (1, 0..5) => copies[key] + 1,
        (2, 0..3) => 0,
        (had, _) => had - 1,
    };
    (key, then)
}

fn make(filter: &Filter, hash: u64, had: usize, then: usize) {
    if then > had {
        filter.hashed().insert(&hash).expect("room");
    } else if then + 1 == had {
        assert!(filter.hashed().remove(&hash));
    } else {
        assert_eq!(filter.hashed().remove_all(&hash), had);
    }
}

/// Reports that the step is reached, and waits for the kill.
fn wait_for_the_kill() {
    println!("now");
    thread::sleep(Duration::from_secs(60));
}

/// The process that is killed: a writer of the filter in this file.
fn write_until_killed(path: &str) {
    let seed: u64 = env::var("CUCKOO_SEED").unwrap().parse().unwrap();
    let mut random = fastrand::Rng::with_seed(seed);
    let acknowledged = File::options().write(true).open(format!("{path}.acknowledged")).unwrap();
    let steps = [Step::Intended, Step::WordWritten, Step::Copied, Step::Bumped, Step::Cleared, Step::Counted];
    let (victim, mut left) = (random.usize(..steps.len()), random.u32(..60));
    let killed_at = steps[victim];
    let hook = move |step| {
        if step == killed_at {
            match left {
                0 => wait_for_the_kill(),
                _ => left -= 1,
            }
        }
    };
    let take_over = random.u32(..3) == 0;
    let open = || SharedFilter::<Filter>::open(path).unwrap();
    // A third of the processes are killed at one of the first steps of their take-over, if it has any.
    let mut few = random.u32(..8);
    let in_take_over = move |_| {
        if take_over {
            match few {
                0 => wait_for_the_kill(),
                _ => few -= 1,
            }
        }
    };
    let filter = with_hook(in_take_over, open);
    let (filter, hashes) = (filter.writer().unwrap(), hashes(filter.writer().unwrap()));
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (hashes, acknowledged) = (own(&hashes, thread), &acknowledged);
            let work = move || {
                let mut copies: Vec<usize> = hashes.iter().map(|hash| filter.hashed().count(hash) as usize).collect();
                for number in 0.. {
                    let (key, then) = change(seed, thread, number, &copies);
                    make(filter, hashes[key], copies[key], then);
                    copies[key] = then;
                    acknowledged.write_all_at(&(number + 1).to_le_bytes(), 8 * thread).unwrap();
                }
            };
            if thread == 0 {
                scope.spawn(move || with_hook(hook, work));
            } else {
                // The windows of other threads are widened, so that the kill meets them.
                let widened = |step| {
                    if matches!(step, Step::Intended | Step::Copied | Step::Bumped | Step::WordWritten) {
                        thread::sleep(Duration::from_micros(20));
                    }
                };
                scope.spawn(move || with_hook(widened, work));
            }
        }
    });
}

/// Runs a process until it is killed, while a reader looks up the keys that stay.
fn round(path: &Path, seed: u64, stays: &[u64]) -> u64 {
    let mut child = Command::new(env::current_exe().unwrap())
        .args([
            "--exact",
            "internal::shared::kills::killed_processes_leave_every_acknowledged_change",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(KILLED, path)
        .env("CUCKOO_SEED", seed.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (ended, mut looked_up) = (AtomicBool::new(false), 0);
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let reader = SharedReader::<Filter>::open(path).unwrap();
            let mut looked_up = 0;
            loop {
                let last = ended.load(Ordering::Relaxed);
                stays
                    .iter()
                    .for_each(|&hash| assert!(reader.hashed().contains(&hash), "a reader misses a key that stays"));
                looked_up += stays.len() as u64;
                if last {
                    return looked_up;
                }
                thread::yield_now();
            }
        });
        let (mut said, mut byte) = (Vec::new(), [0]);
        while !said.ends_with(b"now\n") && child.stdout.as_mut().unwrap().read_exact(&mut byte).is_ok() {
            said.push(byte[0]);
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(said.ends_with(b"now\n"), "killed at its step: {}", String::from_utf8_lossy(&said));
        ended.store(true, Ordering::Relaxed);
        looked_up = reader.join().unwrap();
    });
    looked_up
}

#[test]
fn killed_processes_leave_every_acknowledged_change() {
    if let Ok(path) = env::var(KILLED) {
        return write_until_killed(&path);
    }
    let rounds = if env::var_os("CUCKOO_FULL").is_some() { 10_000 } else { 300 };
    let path: PathBuf = env::temp_dir().join(format!("concurrent-cuckoo-filter.kills-{}", std::process::id()));
    let acknowledged = PathBuf::from(format!("{}.acknowledged", path.display()));
    let filter = SharedFilter::create(&path, builder()).unwrap();
    let hashes = hashes(filter.writer().unwrap());
    hashes[..STABLE as usize].iter().for_each(|&hash| filter.writer().unwrap().hashed().insert(&hash).unwrap());
    drop(filter);
    let mut copies = vec![vec![0; OWN as usize]; THREADS as usize];
    let (mut changes, mut looked_up, mut under_way) = (0, 0, 0);
    for seed in 0..rounds {
        std::fs::write(&acknowledged, [0; 8 * THREADS as usize]).unwrap();
        looked_up += round(&path, seed, &hashes[..STABLE as usize]);
        let mut bytes = [0; 8 * THREADS as usize];
        File::open(&acknowledged).unwrap().read_exact(&mut bytes).unwrap();
        let filter = SharedFilter::<Filter>::open(&path).unwrap();
        let filter = filter.writer().unwrap();
        for (thread, copies) in (0..THREADS).zip(&mut copies) {
            let at = 8 * thread as usize;
            let made = u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
            for number in 0..made {
                let (key, then) = change(seed, thread, number, copies);
                copies[key] = then;
            }
            changes += made;
            let found: Vec<usize> =
                own(&hashes, thread).iter().map(|hash| filter.hashed().count(hash) as usize).collect();
            if found != *copies {
                // The operation under way may have been completed.
                let (key, then) = change(seed, thread, made, copies);
                copies[key] = then;
                under_way += 1;
                assert_eq!(found, *copies, "round {seed}, thread {thread}, after {made} changes");
            }
        }
        let total = STABLE as usize + copies.iter().flatten().sum::<usize>();
        assert_eq!(filter.len(), total, "round {seed}: nothing is left that nobody inserted");
    }
    println!("{rounds} rounds, {changes} changes, {under_way} of them under way and done, {looked_up} lookups");
    std::fs::remove_file(&path).unwrap();
    std::fs::remove_file(&acknowledged).unwrap();
}
