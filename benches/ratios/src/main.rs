//! Speed as ratios, in one process: short slices, all contestants in turn, and the 10th percentile of each one's slices.
//! On a machine that is busy with other work two runs agree within a few percent, where medians wander by half.

mod contestants;

use clap::Parser;
use contestants::{Contestant, contestants};
use std::hint::black_box;
use std::time::Instant;

/// Compares the speed of the filter with that of an earlier commit and of peers.
#[derive(Parser)]
struct Options {
    /// Logarithms of the numbers of slots.
    #[arg(long, value_delimiter = ',', default_value = "16,20,24")]
    slots: Vec<u32>,
    /// Bits of a fingerprint.
    #[arg(long, value_delimiter = ',', default_value = "13,16")]
    bits: Vec<u32>,
    /// What is measured.
    #[arg(long, value_delimiter = ',', default_values_t = Case::NAMES.map(String::from))]
    cases: Vec<String>,
    /// Timed slices of each contestant.
    #[arg(long, default_value_t = 160)]
    rounds: usize,
    /// Part of the slots that are taken.
    #[arg(long, default_value_t = 0.95)]
    load: f64,
    /// Leaves the peers out.
    #[arg(long)]
    no_peers: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Case {
    Absent,
    Present,
    BatchAbsent,
    BatchPresent,
    /// A removal and an insertion.
    Churn,
    /// `insert_unique` of a key that is there.
    Unique,
    Count,
    /// Absent keys of 24 bytes.
    Text,
}

impl Case {
    const ALL: [Case; 8] = [
        Case::Absent,
        Case::Present,
        Case::BatchAbsent,
        Case::BatchPresent,
        Case::Churn,
        Case::Unique,
        Case::Count,
        Case::Text,
    ];
    const NAMES: [&str; 8] = ["absent", "present", "batch-absent", "batch-present", "churn", "unique", "count", "text"];

    fn named(name: &str) -> Case {
        let place = Case::NAMES.iter().position(|&known| known == name);
        Case::ALL[place.unwrap_or_else(|| panic!("no case {name}; there are {}", Case::NAMES.join(", ")))]
    }
}

/// Keys of a slice.
const SLICE: usize = 25_000;

/// Keys of a slice that are removed and inserted.
const CHURNED: usize = 5_000;

fn main() {
    let options = Options::parse();
    for &log in &options.slots {
        for &bits in &options.bits {
            let slots = 1 << log;
            let stored = (slots as f64 * options.load) as usize;
            let mut rng = fastrand::Rng::with_seed(u64::from(log));
            // Stored keys are even, the others odd.
            let present: Vec<u64> = (0..stored).map(|_| rng.u64(..) & !1).collect();
            let absent: Vec<u64> = (0..stored.max(1 << 20)).map(|_| rng.u64(..) | 1).collect();
            let texts: Vec<String> = absent.iter().take(1 << 20).map(|key| format!("{key:024}")).collect();
            let contestants = contestants(slots, bits, !options.no_peers);
            for contestant in &contestants {
                let refused = present.iter().filter(|&&key| !contestant.filter.insert(key)).count();
                if refused > 0 {
                    println!("{} refused {refused} of {stored} keys", contestant.name);
                }
            }
            for name in &options.cases {
                let speeds = measure(&contestants, Case::named(name), &present, &absent, &texts, options.rounds);
                print!("2^{log} slots, {bits:>2} bits, {name:<13}");
                for (contestant, speed) in contestants.iter().zip(&speeds) {
                    if speed.is_finite() {
                        print!("  {} {speed:.1}", contestant.name);
                    }
                }
                println!("  M/s; today/earlier {:.2}", speeds[0] / speeds[1]);
            }
        }
    }
}

/// Millions of operations a second, of each contestant.
fn measure(
    contestants: &[Contestant],
    case: Case,
    present: &[u64],
    absent: &[u64],
    texts: &[String],
    rounds: usize,
) -> Vec<f64> {
    let mut times = vec![Vec::new(); contestants.len()];
    let mut found = vec![false; SLICE];
    let keys = match case {
        Case::Present | Case::BatchPresent | Case::Unique | Case::Count => present,
        _ => absent,
    };
    let slice = |round: usize| {
        let length = SLICE.min(keys.len());
        let begin = round * SLICE % (keys.len() - length + 1);
        &keys[begin..][..length]
    };
    let churned = |keys: &[u64], round: usize| {
        let begin = round * CHURNED % (keys.len() - CHURNED);
        begin..begin + CHURNED
    };
    for round in 0..rounds {
        for (contestant, times) in contestants.iter().zip(&mut times) {
            let filter = &contestant.filter;
            let mut run = |round: usize| {
                let keys = slice(round);
                match case {
                    Case::Absent | Case::Present => _ = black_box(filter.contains(keys)),
                    Case::BatchAbsent | Case::BatchPresent => filter.contains_batch(keys, &mut found[..keys.len()]),
                    Case::Unique => _ = black_box(filter.insert_unique(keys)),
                    Case::Count => _ = black_box(filter.count(keys)),
                    Case::Text => {
                        let begin = round * SLICE % (texts.len() - SLICE + 1);
                        _ = black_box(filter.contains_text(&texts[begin..][..SLICE]));
                    }
                    Case::Churn => {
                        let (out, into) = (&present[churned(present, round)], &absent[churned(absent, round)]);
                        filter.churn(out, into);
                        filter.churn(into, out);
                    }
                }
            };
            // The table is in the cache as its size allows, and the keys are, whoever was before.
            run(2 * round);
            black_box(slice(2 * round + 1).iter().fold(0, |sum, key| sum ^ key));
            let begin = Instant::now();
            run(2 * round + 1);
            times.push(begin.elapsed().as_secs_f64());
        }
    }
    let operations = match case {
        Case::Churn => 4 * CHURNED,
        _ => SLICE.min(keys.len()),
    };
    let speed = |(contestant, times): (&Contestant, &mut Vec<f64>)| {
        times.sort_by(f64::total_cmp);
        if contestant.filter.has(case) { operations as f64 / times[times.len() / 10] / 1e6 } else { f64::NAN }
    };
    contestants.iter().zip(&mut times).map(speed).collect()
}
