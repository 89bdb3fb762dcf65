//! Lookups and writes of one thread while another thread works on the same filter. The figures are medians, because in the fastest
//! slices the other thread did not run.

use super::Plan;
use crate::clock::{hash, on_threads, timed, with};
use crate::contestants::{self, Contestant, Set, most};
use crate::field::Field;
use crate::record::{Record, Table};
use crate::slices::{self, Case, against, speed};
use std::sync::atomic::{AtomicBool, Ordering};

/// The cases, each with the index of the case that it is compared with.
const CASES: [(&str, usize); 8] = [
    ("lookups", 0),
    ("lookups on two threads (ratio to one)", 0),
    ("lookups, while another hashes", 0),
    ("lookups, while another removes and inserts (ratio to hashes)", 2),
    ("lookups, while another fills from 40 to 85 % (ratio to hashes)", 2),
    ("removals and insertions", 5),
    ("removals and insertions, while another looks up (ratio)", 5),
    ("removals and insertions on two threads (ratio to one)", 5),
];

pub(super) fn run(plan: &Plan, record: &mut Record) {
    record.heading("One thread beside another");
    record.text("13 bits, 95 % load, M/s on one thread; the median of the slices.");
    for log2 in [16, 20].map(|log2| plan.log2(log2)) {
        plan.step(&format!("one thread beside another, 2^{log2} slots"));
        let ours = contestants::all(Contestant::is_default);
        let versions: Vec<_> = ours.iter().chain(plan.earlier.iter().filter(|one| one.is_default())).collect();
        let present = Field::new(log2, 0).present;
        let sets: Vec<_> = versions.iter().map(|version| version.filled(log2, &present)).collect();
        let slots = 1 << log2;
        let less: Vec<_> = versions.iter().map(|version| version.filled(log2, &present[..slots * 2 / 5])).collect();
        let mut cases: Vec<_> =
            sets.iter().zip(&less).flat_map(|(set, less)| cases([&**set, &**less], &present, slots)).collect();
        let nanos = slices::medians(plan.rounds, &mut cases);
        let heads = versions.iter().map(|version| version.name.clone());
        let mut table = Table::new(std::iter::once(format!("2^{log2} slots")).chain(heads));
        for (row, (name, base)) in CASES.into_iter().enumerate() {
            let cell = |of: &[f64]| if row == base { speed(of[row]) } else { against(of[row], of[base] / of[row]) };
            table.row(std::iter::once(name.to_owned()).chain(nanos.chunks(CASES.len()).map(cell)));
        }
        record.table(&table);
    }
}

/// The cases of a filter with all keys, and of one with the first of them, up to 40 % load.
fn cases<'a>([set, less]: [&'a dyn Set; 2], present: &'a [u64], slots: usize) -> [Case<'a>; CASES.len()] {
    let (own, stable) = present.split_at(slots / 8);
    // Both filters have them.
    let stable = &stable[..(slots / 4).min(1 << 17)];
    let lookups_in = move |set: &dyn Set| {
        // Long enough for the other thread to have an effect.
        let passes = (1usize << 16).div_ceil(stable.len());
        let (nanos, found) =
            timed(passes * stable.len(), || (0..passes).map(|_| set.contains_all(stable)).sum::<usize>());
        most(found, passes * stable.len());
        nanos
    };
    let read = move || lookups_in(set);
    let more = &present[slots * 2 / 5..slots * 17 / 20];
    let fill = move |_: usize, stop: &AtomicBool| {
        more.iter().take_while(|key| !stop.load(Ordering::Relaxed) && less.insert(key)).count()
    };
    // Each thread has keys of its own.
    let keys = move |number: usize| &own[number * own.len() / 2..][..own.len() / 2];
    let changes = move |number: usize, stop: &AtomicBool| {
        let keys = keys(number).iter().cycle().take_while(|_| !stop.load(Ordering::Relaxed));
        keys.filter(|key| !set.remove(key) | !set.insert(key)).count()
    };
    let write = move |number: usize| {
        let keys = keys(number);
        timed(2 * keys.len(), || keys.iter().for_each(|key| assert!(set.remove(key) & set.insert(key)))).0
    };
    let lookups = move |_: usize, stop: &AtomicBool| {
        while !stop.load(Ordering::Relaxed) {
            most(set.contains_all(&stable[..1000]), 1000);
        }
        0
    };
    let twice = |(_, nanos): (_, Vec<f64>)| nanos.iter().sum::<f64>() / 4.0;
    [
        Case::new(move |_| read()),
        Case::new(move |_| twice(on_threads(2, |_| read()))),
        Case::new(move |_| with(1, |_, stop| hash(stop), read).0),
        Case::new(move |_| {
            let (nanos, failed) = with(1, changes, read);
            assert_eq!(failed, 0, "writes that failed");
            nanos
        }),
        Case::new(move |_| {
            let (nanos, inserted) = with(1, fill, || lookups_in(less));
            assert_eq!(less.remove_all(&more[..inserted]), inserted);
            nanos
        }),
        Case::new(move |_| write(0)),
        Case::new(move |_| with(1, lookups, || write(0)).0),
        Case::new(move |_| twice(on_threads(2, write))),
    ]
}
