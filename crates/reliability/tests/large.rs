//! One filter of a long list: 10^9 addresses of web pages, each computed from its number when it is needed. None is missed.

use concurrent_cuckoo_filter::CuckooFilter;
use std::fs;
use std::ops::Range;
use std::time::Instant;
use testkit::{choose, on_all_cores, thousands as count};

const BATCH: u64 = 1 << 12;

const JOB: u64 = 1 << 8;

/// An address of 64 bytes, such as `https://www.example.com/articles/000000003b9ac9ff/comments.html?`.
fn address(number: u64) -> [u8; 64] {
    let mut text = *b"https://www.example.com/articles/0000000000000000/comments.html?";
    for (place, digit) in text[33..49].iter_mut().rev().enumerate() {
        *digit = b"0123456789abcdef"[(number >> (4 * place)) as usize % 16];
    }
    text
}

#[test]
fn no_address_of_a_long_list_is_missed() {
    let keys: u64 = choose(1_000_000_000, 1_000_000);
    let absent = choose(100_000_000, 1_000_000);
    let filter = CuckooFilter::<Vec<u8>>::with_capacity(keys as usize);
    let start = Instant::now();
    let report = filter.bulk().max_listed(1).insert_iter((0..keys).map(address));
    let loaded = start.elapsed().as_secs_f64();
    assert_eq!(report.refused.first(), None, "a list within the capacity");
    println!(
        "figure 4.5: {} keys of 64 bytes into one filter, from an iterator: {loaded:.1} s, {:.1} M/s, {:.0} MiB of \
         filter, {:.2} bits a key, {} MiB at the peak of the process; load {:.3}, 0 refused",
        count(keys),
        keys as f64 / loaded / 1e6,
        filter.memory_usage() as f64 / f64::from(1 << 20),
        filter.memory_usage() as f64 * 8.0 / keys as f64,
        peak().map_or("unknown".into(), |bytes| count(bytes >> 20).to_string()),
        filter.load_factor(),
    );

    let start = Instant::now();
    let found = look_up(&filter, 0..keys);
    assert_eq!(found, keys, "keys of the list were missed");
    let (took, hits) = (start.elapsed().as_secs_f64(), look_up(&filter, keys..keys + absent));
    println!(
        "figure 4.6: 0 of {} missed, {:.1} M lookups/s on all cores; {} of {} absent keys found, {:.4} %, {:.4} % expected",
        count(keys),
        keys as f64 / took / 1e6,
        count(hits),
        count(absent),
        hits as f64 / absent as f64 * 100.0,
        filter.stats().expected_false_positive_rate * 100.0,
    );
}

fn look_up(filter: &CuckooFilter<Vec<u8>>, numbers: Range<u64>) -> u64 {
    let found = on_all_cores(|job| {
        let first = numbers.start + job as u64 * JOB * BATCH;
        let batches = (first..numbers.end.min(first + JOB * BATCH)).step_by(BATCH as usize);
        let mut found = vec![false; BATCH as usize];
        let in_job = batches.map(|first| {
            let keys: Vec<[u8; 64]> = (first..numbers.end.min(first + BATCH)).map(address).collect();
            filter.contains_batch(&keys, &mut found[..keys.len()]);
            found[..keys.len()].iter().filter(|&&found| found).count() as u64
        });
        (first < numbers.end).then(|| in_job.sum::<u64>())
    });
    found.into_iter().sum()
}

/// Returns the peak memory of the process in bytes, if the system reports it.
fn peak() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib << 10)
}
