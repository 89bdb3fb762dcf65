//! How fast keys go in as a table fills.

use crate::record::figure::{Axis, Figure};
use crate::record::{Record, Table};
use crate::sections::Plan;
use crate::sections::contestants::{Entrant, entrants};
use crate::sections::turns::median;
use compare::clock::timed;
use compare::field;

/// A step is 5 % of the slots.
const STEPS: usize = 19;

/// The steps in the table.
const SHOWN: [usize; 7] = [0, 4, 9, 14, 16, 17, 18];

/// More turns tell nothing new.
const TURNS: usize = 3;

const PEERS: [&str; 2] = ["atomic-cuckoo-filter", "cuckoofilter + RwLock"];

/// What the steps of a filling took, in nanoseconds a key, and how many keys were refused.
struct Filling {
    steps: [f64; STEPS],
    refused: usize,
}

pub(crate) fn run(plan: &Plan, record: &mut Record) {
    let log2 = if plan.quick { 12 } else { 22 };
    let mut ours = entrants(log2, |contestant| contestant.name == "this crate");
    ours[0].size.bits = 12;
    let rest = entrants(log2, |contestant| contestant.name == "this crate" || PEERS.contains(&contestant.name));
    let all: Vec<Entrant<u64>> = ours.into_iter().chain(rest).collect();
    let keys = field::keys(u64::from(log2), (STEPS << log2) / 20);
    let turns = plan.turns.min(TURNS);
    let mut fillings: Vec<Vec<Filling>> = all.iter().map(|_| Vec::new()).collect();
    for turn in 0..turns {
        plan.step(&format!("inserts by occupancy, turn {}", turn + 1));
        for (entrant, fillings) in all.iter().zip(&mut fillings) {
            fillings.push(fill(entrant, &keys));
        }
    }
    let names: Vec<String> =
        all.iter().map(|entrant| format!("{}, {} bits", entrant.name, entrant.size.bits)).collect();
    let speed = |number: usize, step: usize| {
        1e3 / median(&fillings[number].iter().map(|filling| filling.steps[step]).collect::<Vec<_>>())
    };

    let title = format!("Insertions by occupancy, one thread, 2^{log2} slots");
    record.text(&format!("{title}: M/s within steps of 5 % of the slots, medians of {turns} turns."));
    let mut table = Table::new(std::iter::once("from, to").chain(names.iter().map(String::as_str)));
    for step in SHOWN {
        let cells = (0..all.len()).map(|number| format!("{:.1}", speed(number, step)));
        table.row(std::iter::once(format!("{} %, {} %", step * 5, step * 5 + 5)).chain(cells));
    }
    let refused = fillings.iter().map(|fillings| fillings.iter().map(|filling| filling.refused).max().unwrap_or(0));
    table.row(std::iter::once("keys refused".to_string()).chain(refused.map(|refused| refused.to_string())));
    record.table(table);
    let falls = names.iter().enumerate().map(|(number, name)| {
        let fall = speed(number, 0) / speed(number, STEPS - 1);
        format!("{fall:.1} times slower with {name}")
    });
    record.text(&format!(
        "The fuller the table, the longer the search for a place: in the last step insertions are {}.",
        falls.collect::<Vec<_>>().join("; ")
    ));

    let x = Axis::linear("occupancy at the end of a step, %").ticks((0..=10).map(|tenth| f64::from(tenth) * 10.0));
    let mut figure = Figure::new(&title, x, Axis::log("M/s"));
    for (number, entrant) in all.iter().enumerate() {
        let points = (0..STEPS).map(|step| ((step * 5 + 5) as f64, speed(number, step)));
        figure = if entrant.name == "this crate" {
            figure.ours(&names[number], points)
        } else {
            figure.coloured(entrant.colour, &names[number], points)
        };
    }
    record.figure("paper-occupancy", &title, figure.svg());
}

fn fill(entrant: &Entrant<u64>, keys: &[u64]) -> Filling {
    let set = entrant.build();
    let mut steps = [0.0; STEPS];
    let mut inserted = 0;
    for (step, nanos) in steps.iter_mut().enumerate() {
        let keys = &keys[keys.len() * step / STEPS..keys.len() * (step + 1) / STEPS];
        let (each, went_in) = timed(keys.len(), || set.insert_all(keys));
        *nanos = each;
        inserted += went_in;
    }
    let found = set.contains_all(keys);
    if entrant.faithful {
        assert_eq!((inserted, found), (keys.len(), keys.len()), "every key goes in and is found");
    } else {
        // Of those that another key's refusal or the lack of a lock has cost.
        assert!(found * 100 >= inserted * 99, "{} finds {found} of {inserted} keys", entrant.name);
    }
    Filling { steps, refused: keys.len() - inserted }
}
