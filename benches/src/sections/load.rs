//! Throughput by load factor, on one thread.

use super::Plan;
use super::contestants::{Entrant, OURS, entrants};
use super::turns::median;
use crate::record::figure::{Axis, Figure};
use crate::record::{Record, Table};
use compare::{Field, clock};

const LOADS: [usize; 6] = [10, 25, 50, 75, 90, 95];
const KINDS: [&str; 3] = ["Lookups of absent keys", "Lookups of present keys", "Inserts"];
const CONTESTANTS: [&str; 5] = [OURS, "atomic-cuckoo-filter", "cuckoofilter + RwLock", "fastbloom", "DashSet"];

/// Nanoseconds an operation of each kind, at each load.
type Climb = [[f64; LOADS.len()]; KINDS.len()];

pub(crate) fn run(plan: &Plan, record: &mut Record) {
    let (log2, probes) = if plan.quick { (12, 1 << 12) } else { (20, 1 << 18) };
    let field = Field::<u64>::new(log2, probes);
    let entrants = entrants::<u64>(log2, |contestant| CONTESTANTS.contains(&contestant.name));
    let mut climbs: Vec<Vec<Climb>> = vec![Vec::new(); entrants.len()];
    for turn in 0..plan.turns {
        plan.step(&format!("by load factor, turn {} of {}", turn + 1, plan.turns));
        for (entrant, climbs) in entrants.iter().zip(&mut climbs) {
            climbs.push(climb(entrant, &field));
        }
    }
    let speed = |entrant: usize, kind: usize, load: usize| {
        let nanos: Vec<f64> = climbs[entrant].iter().map(|climb| climb[kind][load]).collect();
        1e3 / median(&nanos)
    };
    let ratio = |entrant: usize, kind: usize, load: usize| {
        let turns = climbs[entrant].iter().zip(&climbs[0]);
        median(&turns.map(|(theirs, ours)| theirs[kind][load] / ours[kind][load]).collect::<Vec<_>>())
    };

    record.heading("Throughput by load factor");
    record.text(&format!(
        "One thread, u64 keys, 2^{log2} slots, 16 bits a slot (cuckoofilter: 8): M/s, and in brackets how many times as fast \
         this crate was, the median of the turns. Inserts are those from the load of the column before up to this one. \
         Building is not timed, so where the system supplies memory as it is used, the first inserts pay for it."
    ));
    for (kind, name) in KINDS.into_iter().enumerate() {
        record.text(&format!("{name}:"));
        let loads = LOADS.iter().map(|load| format!("{load} %"));
        let mut table = Table::new(std::iter::once("load".to_string()).chain(loads));
        for (number, entrant) in entrants.iter().enumerate() {
            let cells = (0..LOADS.len())
                .map(|load| format!("{:.1} ({:.2})", speed(number, kind, load), ratio(number, kind, load)));
            table.row(std::iter::once(entrant.name.to_string()).chain(cells));
        }
        record.table(table);

        let title = format!("{name} by load factor, one thread, 2^{log2} slots");
        let x = Axis::linear("load factor, %").ticks(LOADS.map(|load| load as f64));
        let mut figure = Figure::new(&title, x, Axis::log("M/s"));
        for (number, entrant) in entrants.iter().enumerate() {
            let points = (0..LOADS.len()).map(|load| (LOADS[load] as f64, speed(number, kind, load)));
            figure = if number == 0 {
                figure.ours(entrant.name, points)
            } else {
                figure.coloured(entrant.colour, entrant.name, points)
            };
        }
        record.figure(["load-misses", "load-hits", "load-inserts"][kind], &title, figure.svg());
    }
}

/// Fills a table step by step.
fn climb(entrant: &Entrant<u64>, field: &Field<u64>) -> Climb {
    let set = entrant.build();
    let (misses, probes) = (&field.misses, field.misses.len());
    let mut random = fastrand::Rng::with_seed(1);
    let mut climb = Climb::default();
    let mut filled = 0;
    for (step, load) in LOADS.into_iter().enumerate() {
        let keys = &field.present[filled..entrant.size.slots * load / 100];
        let (nanos, inserted) = clock::timed(keys.len(), || set.insert_all(keys));
        filled += keys.len();
        let hits: Vec<u64> = (0..probes).map(|_| field.present[random.usize(..filled)]).collect();
        let (miss, wrong) = clock::warm_timed(probes, || set.contains_all(misses));
        assert!(wrong < probes / 20, "{} found {wrong} of {probes} absent keys", entrant.name);
        let (hit, found) = clock::warm_timed(probes, || set.contains_all(&hits));
        // The others lose a key now and then.
        let least = if entrant.faithful && inserted == keys.len() { probes } else { probes * 99 / 100 };
        assert!(found >= least, "{} found {found} of {probes} present keys", entrant.name);
        for (kind, nanos) in [miss, hit, nanos].into_iter().enumerate() {
            climb[kind][step] = nanos;
        }
    }
    climb
}
