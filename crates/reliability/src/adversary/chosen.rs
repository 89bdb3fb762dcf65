//! Keys chosen to collide in one filter: there they fill their class, elsewhere they are keys like all others.

use crate::figure::{count, figure, seconds_since};
use crate::run::Run;
use concurrent_cuckoo_filter::InsertError;
use fastrand::Rng;
use std::time::Instant;
use testkit::rate::{Rate, most};
use testkit::{ABSENT, Filter, Promise, Shape, broken, each_on_all_cores, slots};

const CAPACITY: usize = 1000;

/// Keys that an attacker tries at once.
const CHUNK: u64 = 1 << 14;

pub(super) fn run(run: &Run, rng: &mut Rng) {
    for (id, bits, chosen) in [("7.1", 8, run.choose(2000, 500)), ("7.2", 12, run.choose(300, 20))] {
        let start = Instant::now();
        let target = Shape::new(CAPACITY, bits, rng);
        let (keys, tried) = choose(&target, chosen);
        let refused = collide(&target, &keys);

        let others: Vec<Shape> = (0..run.choose(20_000, 1000)).map(|_| target.with_other_seeds(rng)).collect();
        let behaviour = each_on_all_cores(&others, |other| meet(other, bits, &keys));
        let rate = Rate::pool(behaviour.iter().map(|behaviour| behaviour.rate));
        let all_refused = behaviour.iter().filter(|behaviour| behaviour.refused > 0).count();
        // The promise of the capacity: fewer than one filter in 10,000 refuses a key.
        if all_refused as u64 > most(others.len() as f64 / 10_000.0) {
            let what = format_args!("{all_refused} of {} other filters refused some", others.len());
            broken(Promise::Seeds, &target, keys[0], what);
        }
        if !rate.is_likely() {
            let what = format_args!("rate {} for {} in other filters", rate.measured(), rate.expected());
            broken(Promise::Seeds, &target, keys[0], format_args!("{what}, off by {:+.1} sigma", rate.sigmas()));
        }
        figure(
            id,
            format_args!(
                "{} keys of one class of a filter of {bits} bits, found among {} tried: there, and in a filter built with its \
                 seeds, 8 go in and {} are refused as too many copies; in {} filters of other seeds, filled to their \
                 capacity with half of them and ordinary keys, {all_refused} refused a key, and the other half is found at a \
                 rate of {:.4e} (formula {:.4e}, off by {:+.1} sigma): {}",
                count(keys.len()),
                count(tried),
                count(refused),
                count(others.len()),
                rate.measured(),
                rate.expected(),
                rate.sigmas(),
                seconds_since(start)
            ),
        );
    }
}

/// Finds keys of the class of key 0 by asking a filter that holds nothing else. Returns also how many keys that took.
fn choose(target: &Shape, wanted: usize) -> (Vec<u64>, u64) {
    let filter = target.build();
    filter.insert(&0).expect("an empty filter");
    let (mut chosen, mut found) = (vec![0], vec![false; CHUNK as usize]);
    let mut next = 1;
    while chosen.len() < wanted {
        let keys: Vec<u64> = (next..next + CHUNK).collect();
        filter.contains_batch(&keys, &mut found);
        chosen.extend(keys.iter().zip(&found).filter_map(|(key, found)| found.then_some(*key)));
        next += CHUNK;
    }
    chosen.truncate(wanted);
    (chosen, next)
}

/// With the seeds known, the keys are all one class again. Returns how many are refused.
fn collide(target: &Shape, keys: &[u64]) -> usize {
    let again = target.build();
    let results: Vec<_> = keys.iter().map(|key| again.insert(key)).collect();
    let (first, rest) = results.split_at(8);
    let too_many = |result: &Result<(), InsertError>| matches!(result, Err(InsertError::TooManyCopies));
    if !first.iter().all(Result::is_ok) || !rest.iter().all(too_many) {
        let what = "keys of one class, of which 8 should go in and the others be too many copies";
        broken(Promise::Copies, target, keys[0], what);
    }
    rest.len()
}

struct Behaviour {
    refused: usize,
    rate: Rate,
}

/// Half of the keys go into a filter, with as many ordinary ones as its capacity leaves room for; the other half is asked
/// for.
fn meet(other: &Shape, bits: u32, keys: &[u64]) -> Behaviour {
    let filter: Filter = other.build();
    let (inserted, asked) = keys.split_at(keys.len() / 2);
    let ordinary: Vec<u64> = (ABSENT..).take(CAPACITY - inserted.len()).collect();
    let refused = inserted.iter().chain(&ordinary).filter(|key| filter.insert(key).is_err()).count();
    let found = asked.iter().filter(|key| filter.contains(key)).count();
    if let Some(missed) = inserted.iter().chain(&ordinary).find(|key| refused == 0 && !filter.contains(key)) {
        broken(Promise::Present, other, *missed, "contains missed it");
    }
    let rate = Rate::of(asked.len() as u64, found as u64, slots(&filter), filter.load_factor(), bits);
    Behaviour { refused, rate }
}
