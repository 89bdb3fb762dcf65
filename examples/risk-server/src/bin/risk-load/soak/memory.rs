//! Whether memory and disk creep: what is held later for as many keys must not be much more than what was held before.

use crate::text::{count, mebibytes};
use std::time::Duration;

/// After a start, until it is held what will be held: pages of the store, buffers.
const WARM_UP: Duration = Duration::from_secs(5);

/// Growth that is no creeping: this part of what was held before, and this many bytes.
const PART: f64 = 0.25;
const BYTES: u64 = 32 << 20;

/// So many samples in each half tell something.
const ENOUGH: usize = 5;

/// Numbers of keys that are compared with each other lie within one of so many equal ranges.
const RANGES: u64 = 5;

/// A server at one moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    /// Since the soak began.
    pub(super) at: Duration,
    /// Since the server was started.
    pub(super) age: Duration,
    /// The number of the start.
    pub(super) start: usize,
    pub(super) keys: u64,
    pub(super) memory: Option<u64>,
    pub(super) disk: u64,
}

/// What the samples say: lines for people, and what creeps.
pub(super) struct Verdict {
    pub(super) lines: String,
    pub(super) creeps: Option<String>,
}

/// Judges the memory of the last start, which lasted longest, and the disk of all.
pub(super) fn judge(samples: &[Sample]) -> Verdict {
    let last = samples.iter().map(|sample| sample.start).max();
    let last: Vec<Sample> =
        samples.iter().filter(|sample| Some(sample.start) == last && sample.age >= WARM_UP).copied().collect();
    let (before, after) = halves(&last);
    let memory = |sample: &Sample| sample.memory;
    let mut lines = range("memory in the first half of the last run", &before, memory);
    lines += &range("memory in its last half                 ", &after, memory);
    let memory = creeping("memory", &before, &after, memory);
    let (before, after) = halves(samples);
    let disk = |sample: &Sample| Some(sample.disk);
    lines += &range("disk in the first half of the soak      ", &before, disk);
    lines += &range("disk in its last half                   ", &after, disk);
    // A file that was large once stays so: the number of keys does not matter.
    let equal: [Vec<Sample>; 2] =
        [before, after].map(|half| half.iter().map(|sample| Sample { keys: 0, ..*sample }).collect());
    Verdict { lines, creeps: memory.or_else(|| creeping("disk", &equal[0], &equal[1], disk)) }
}

/// By time.
fn halves(samples: &[Sample]) -> (Vec<Sample>, Vec<Sample>) {
    let middle = samples.first().zip(samples.last()).map(|(first, last)| (first.at + last.at) / 2);
    samples.iter().partition(|sample| Some(sample.at) < middle)
}

fn range(what: &str, samples: &[Sample], bytes: impl Fn(&Sample) -> Option<u64>) -> String {
    let bytes: Vec<u64> = samples.iter().filter_map(bytes).collect();
    let keys = || samples.iter().map(|sample| sample.keys);
    match (bytes.iter().min(), bytes.iter().max(), keys().min(), keys().max()) {
        (Some(&least), Some(&most), Some(few), Some(many)) => {
            format!("{what} {} to {}, {} to {} keys\n", mebibytes(least), mebibytes(most), count(few), count(many))
        }
        _ => format!("{what} too short to tell, or not known\n"),
    }
}

/// What was held at the most for about as many keys, before and after.
fn creeping(what: &str, before: &[Sample], after: &[Sample], bytes: impl Fn(&Sample) -> Option<u64>) -> Option<String> {
    if before.len().min(after.len()) < ENOUGH {
        return None;
    }
    let most_keys = before.iter().chain(after).map(|sample| sample.keys).max()?;
    let place = |sample: &Sample| sample.keys * RANGES / (most_keys + 1);
    (0..RANGES).find_map(|range| {
        let most = |half: &[Sample]| half.iter().filter(|sample| place(sample) == range).filter_map(&bytes).max();
        let (before, after) = (most(before)?, most(after)?);
        let allowed = before + (before as f64 * PART) as u64 + BYTES;
        (after > allowed).then(|| {
            format!(
                "{what} creeps: for about {} keys, {} in the first half and {} in the last one; {} is allowed",
                count(most_keys * (2 * range + 1) / (2 * RANGES)),
                mebibytes(before),
                mebibytes(after),
                mebibytes(allowed)
            )
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 100 samples of one run, by their seconds.
    fn samples(keys: impl Fn(u64) -> u64, memory: impl Fn(u64) -> u64, disk: impl Fn(u64) -> u64) -> Vec<Sample> {
        let sample = |second| Sample {
            at: Duration::from_secs(second),
            age: Duration::from_secs(second),
            start: 3,
            keys: keys(second),
            memory: Some(memory(second) << 20),
            disk: disk(second) << 20,
        };
        (0..100).map(sample).collect()
    }

    #[test]
    fn what_goes_up_and_down_with_the_keys_does_not_creep() {
        let wave = |second: u64| 1000 + 900 * (second % 20);
        let verdict = judge(&samples(wave, |second| 50 + wave(second) / 50, |_| 80));
        assert_eq!(verdict.creeps, None);
        assert!(
            verdict.lines.contains("first half of the last run 70.0 MiB to 412.0 MiB, 1,000 to 18,100 keys"),
            "{}",
            verdict.lines
        );
    }

    #[test]
    fn what_grows_for_as_many_keys_creeps() {
        let verdict = judge(&samples(|_| 1000, |second| 50 + 3 * second, |_| 80));
        assert!(verdict.creeps.unwrap().starts_with("memory creeps: for about 900 keys"));
        let verdict = judge(&samples(|second| 1000 + second % 7, |_| 50, |second| 10 + 3 * second));
        assert!(verdict.creeps.unwrap().starts_with("disk creeps"));
    }

    #[test]
    fn a_warm_up_is_no_creeping_and_neither_are_few_samples() {
        assert_eq!(judge(&samples(|_| 1000, |second| 60 + 20 * second.min(4), |_| 80)).creeps, None);
        assert_eq!(judge(&samples(|_| 1000, |second| 50 + 1000 * second, |_| 80)[..12]).creeps, None);
        let verdict = judge(&[]);
        assert_eq!((verdict.creeps, verdict.lines.matches("not known").count()), (None, 4));
    }

    #[test]
    fn the_memory_of_earlier_starts_is_another_matter() {
        let mut samples = samples(|_| 1000, |_| 200, |_| 80);
        for sample in &mut samples[..60] {
            (sample.start, sample.memory) = (2, Some(1 << 20));
        }
        assert_eq!(judge(&samples).creeps, None);
    }
}
