//! Many keys at once, and snapshots.

use super::Plan;
use super::entrants::entrants;
use crate::clock::timed;
use crate::contestants::ours;
use crate::field::{Field, Size, keys};
use crate::record::{Record, Table};
use crate::slices::{self, Case, speed};
use concurrent_cuckoo_filter::{CuckooFilter, SnapshotReader};
use rayon::prelude::*;
use std::cell::RefCell;

/// What a parallel loop hands to a thread at once.
const PIECE: usize = 1 << 12;

pub(super) fn run(plan: &Plan, record: &mut Record) {
    record.heading("Many keys at once");
    record.text(&format!(
        "Whole filters of 13 bits and u64 keys, batches and loops on one thread, bulk operations and parallel loops on \
         rayon's {} threads. Inserts fill an empty table to 95 %, removes empty it, lookups are of absent keys.",
        rayon::current_num_threads()
    ));
    peers(plan, record);
    overfull(plan, record);
    snapshots(plan, record);
}

/// Parallel loops of the peers, compared with this crate's bulk operations.
fn peers(plan: &Plan, record: &mut Record) {
    let log2 = if plan.quick { 12 } else { 22 };
    plan.step(&format!("parallel loops, 2^{log2} slots"));
    let field = Field::<u64>::new(log2, 1 << log2.min(20));
    let (present, absent) = (&field.present, &field.misses);
    let entrants = entrants::<u64>(log2, |_| true);
    let sets: Vec<_> = entrants.iter().map(|entrant| RefCell::new(entrant.build())).collect();
    let bulk = ours::build::<u64>(Size::new(log2, 13));
    let mut found = vec![false; absent.len()];
    let few = |found: usize| assert!(found <= absent.len() / 20, "{found} of {} absent keys found", absent.len());

    let mut cases = vec![
        Case::new("this crate, bulk", |_| {
            bulk.clear();
            let (nanos, report) = timed(present.len(), || bulk.par_insert(present));
            crate::most(report.inserted, present.len());
            nanos
        }),
        Case::new("", |_| {
            let (nanos, ()) = timed(absent.len(), || bulk.par_contains(absent, &mut found));
            few(found.iter().filter(|&&found| found).count());
            nanos
        }),
    ];
    for (entrant, set) in entrants.iter().zip(&sets) {
        cases.push(Case::new(format!("{}, loop", entrant.label), move |_| {
            set.replace(entrant.build());
            let set = &**set.borrow();
            let insert = || present.par_chunks(PIECE).map(|keys| set.insert_all(keys)).sum();
            let (nanos, inserted) = timed(present.len(), insert);
            crate::most(inserted, present.len());
            nanos
        }));
        cases.push(Case::new("", move |_| {
            let set = &**set.borrow();
            let (nanos, found) =
                timed(absent.len(), || absent.par_chunks(PIECE).map(|keys| set.contains_all(keys)).sum());
            few(found);
            nanos
        }));
    }
    let nanos = slices::take(plan.few().min(3), &mut cases);
    record.text(&format!(
        "Bulk operations of this crate beside parallel loops over pieces of {PIECE} keys, 2^{log2} slots; in brackets how \
         many times as fast as that row the bulk operation is:"
    ));
    let mut table = Table::new(["", "inserts", "lookups"]);
    let cell = |nanos: f64, bulk: f64| format!("{} ({:.2})", speed(nanos), nanos / bulk);
    for (number, case) in cases.iter().enumerate().step_by(2) {
        table.row([case.name.clone(), cell(nanos[number], nanos[0]), cell(nanos[number + 1], nanos[1])]);
    }
    record.table(table);
}

/// A load of more keys than there is room for does not slow to a crawl.
fn overfull(plan: &Plan, record: &mut Record) {
    let log2 = if plan.quick { 12 } else { 22 };
    let filter = ours::build::<u64>(Size::new(log2, 13));
    let mut table =
        Table::new([format!("`par_insert`, 2^{log2} slots"), "M keys/s".into(), "inserted, % of slots".into()]);
    for share in [95, 120] {
        let keys: Vec<u64> = keys(5, (share << log2) / 100);
        let mut load = 0.0;
        let case = Case::new("", |_| {
            filter.clear();
            let (nanos, _) = timed(keys.len(), || filter.bulk().max_listed(0).insert(&keys));
            load = filter.load_factor();
            nanos
        });
        let nanos = slices::take(plan.few(), &mut [case])[0];
        table.row([format!("keys for {share} % of the slots"), speed(nanos), format!("{:.2}", load * 100.0)]);
    }
    record.table(table);
}

/// Snapshots to and from memory, compared with plain copies of as many bytes.
fn snapshots(plan: &Plan, record: &mut Record) {
    let log2 = plan.large;
    plan.step(&format!("snapshots, 2^{log2} slots"));
    let filter = ours::build::<u64>(Size::new(log2, 13));
    let present: Vec<u64> = keys(1, Size::new(log2, 13).keys);
    crate::most(filter.par_insert(&present).inserted, present.len());
    let mut bytes = Vec::new();
    filter.write_to(&mut bytes).expect("memory");
    // Memory for another one: it has been touched, which costs more than a copy.
    let memory = RefCell::new(bytes.clone());
    let hasher = || filter.hasher().clone();
    let checked = |loaded: CuckooFilter<u64>| assert_eq!(loaded.len(), filter.len());
    let save = |memory: &mut Vec<u8>| {
        memory.clear();
        filter.write_to(&mut *memory).expect("memory");
        assert_eq!(memory.len(), bytes.len());
    };
    let copy = |memory: &mut Vec<u8>| {
        memory.clear();
        memory.extend_from_slice(&bytes);
    };
    let mut cases = [
        Case::new("a plain copy", |_| timed(bytes.len(), || copy(&mut memory.borrow_mut())).0),
        Case::new("a copy to fresh memory", |_| timed(bytes.len(), || bytes.to_vec()).0),
        Case::new("`write_to`", |_| timed(bytes.len(), || save(&mut memory.borrow_mut())).0),
        Case::new("`read_from`", |_| {
            let (nanos, loaded) = timed(bytes.len(), || CuckooFilter::read_from(&bytes[..], hasher()));
            checked(loaded.expect("a snapshot"));
            nanos
        }),
        Case::new("`SnapshotReader::in_parallel`", |_| {
            let load = || SnapshotReader::new(&bytes[..])?.in_parallel().into_filter(hasher());
            let (nanos, loaded) = timed(bytes.len(), load);
            checked(loaded.expect("a snapshot"));
            nanos
        }),
    ];
    let nanos = slices::take(plan.few(), &mut cases);
    record
        .text(&format!("Snapshots in memory, 2^{log2} slots; in brackets the ratio to a plain copy of as many bytes:"));
    let mut table = Table::new(["", "GB/s"]);
    for (case, nanos_a_byte) in cases.iter().zip(&nanos) {
        table.row([case.name.clone(), format!("{:.2} ({:.2})", 1.0 / nanos_a_byte, nanos[0] / nanos_a_byte)]);
    }
    record.table(table);
}
