//! The operations, on filters in which each takes all of its possible steps.

use super::{By, Effect, Scenario, filter_of_shards, filter_of_thousands, is_full};
use crate::CuckooFilter;
use crate::error::InsertError;
use crate::internal::stalled_writer::{
    Filter, GROWING_WIDTHS, Operation, Outcome, WIDTHS, cases, empty, filled, growing, insertion_that_splits,
    stored_for_removal,
};
use crate::internal::thousands::thousands;
use crate::sys::steps::Step::{self, Bumped, Cleared, Copied, Counted, Locked, Published, Searched, WordWritten};
use std::{env, thread};

/// Kills the operation at every step, and returns their number. These steps must be among them.
fn kill(scenario: &Scenario, among: &[Step]) -> usize {
    let killed = scenario.kill_everywhere();
    for step in among {
        assert!(killed.contains(step), "{} at {} bits is not killed at {step:?}", scenario.name, scenario.width);
    }
    killed.len()
}

fn on_small(
    name: &'static str,
    width: u32,
    (stored, own): (Vec<u64>, Vec<u64>),
    effect: Effect,
    work: fn(&Filter, &[u64]),
) -> Scenario {
    let build = |width, stored: &[u64]| filled(empty, width, stored);
    Scenario { name, width, build, stored, own, effect, by: By::Thread, work }
}

/// The keys of an operation (a copy of each is inserted, or all are removed), its effect, and the operation.
type Work = (Vec<u64>, Effect, fn(&Filter, &[u64]));

fn of_operation(operation: Operation, stored: &[u64]) -> Work {
    match operation {
        Operation::Insert(own) => (vec![own], Effect::Adds, |filter, own| _ = filter.hashed().insert(&own[0])),
        Operation::InsertUnique(own) => {
            (vec![own], Effect::Adds, |filter, own| _ = filter.hashed().insert_unique(&own[0]))
        }
        Operation::Remove(own) => (vec![own], Effect::Removes, |filter, own| assert!(filter.hashed().remove(&own[0]))),
        Operation::RemoveAll(own) => {
            let copies = stored.iter().copied().filter(|&hash| hash == own).collect();
            (copies, Effect::Removes, |filter, own| assert_eq!(filter.hashed().remove_all(&own[0]), own.len()))
        }
        Operation::Clear => (stored.to_vec(), Effect::Removes, |filter, _| filter.clear()),
    }
}

#[test]
fn single_operations() {
    let mut killed = 0;
    for width in WIDTHS {
        for case in cases(width) {
            let stored = case.scenario.stored;
            let (own, effect, work) = of_operation(case.scenario.operation, &stored);
            let writes = !case.changes.is_empty() && case.scenario.operation != Operation::Clear;
            let always: &[Step] = match case.outcome {
                _ if writes => &[Locked, WordWritten],
                Outcome::Inserted(Err(InsertError::Full)) => &[Searched],
                _ => &[Locked],
            };
            let scenario = on_small(case.name, width, (stored, own), effect, work);
            killed += kill(&scenario, &[always, &case.changes].concat());
        }
        let (stored, hash) = stored_for_removal(width);
        let count = |filter: &Filter, own: &[u64]| assert_eq!(filter.hashed().count(&own[0]), 1);
        killed += kill(&on_small("count", width, (stored, vec![hash]), Effect::Nothing, count), &[Locked]);
    }
    println!(
        "\nfigure 5.1: a thread killed in the critical sections of insert, insert_unique, remove, remove_all, count and \
         clear, {} pairs of operation and step at {} widths: nothing locked, no other key lost, all usable",
        thousands(killed),
        WIDTHS.len()
    );
}

/// Another filter with these keys, filled by a thread that is not killed.
fn other(filter: &Filter, hashes: &[u64]) -> Filter {
    let builder =
        CuckooFilter::builder().capacity(filter.capacity()).fingerprint_bits(filter.config().fingerprint_bits);
    let other = builder.hasher(filter.hasher().clone()).build().unwrap();
    thread::scope(|scope| scope.spawn(|| assert_eq!(other.hashed().insert_batch(hashes).refused, [])).join().unwrap());
    other
}

/// A thread dies in a split. A table that it has filled and not published is never freed, so LeakSanitizer does not run this test.
#[test]
fn splits() {
    if env::var_os("ASAN_OPTIONS").is_some() {
        return;
    }
    let mut killed = 0;
    for width in GROWING_WIDTHS {
        let (stored, hash) = insertion_that_splits(width);
        for operation in [Operation::Insert(hash), Operation::InsertUnique(hash)] {
            let build = |width, stored: &[u64]| filled(growing, width, stored);
            let (own, effect, work) = of_operation(operation, &stored);
            let scenario = on_small("insertion that splits", width, (stored.clone(), own), effect, work);
            let among = [Locked, Copied, Published, WordWritten, Cleared, Counted];
            killed += kill(&Scenario { build, ..scenario }, &among);
        }
    }
    println!(
        "\nfigure 5.10: the same for insertions that split a table, {} pairs of operation and step at {} widths",
        thousands(killed),
        GROWING_WIDTHS.len()
    );
}

#[test]
fn batches_snapshots_and_merging() {
    let mut killed = 0;
    for width in WIDTHS {
        let stored: Vec<u64> = (0..180).collect();
        let own: Vec<u64> = (500..550).collect();
        let insert = |filter: &Filter, own: &[u64]| drop(filter.hashed().insert_batch(own));
        let adds = on_small("insert_batch", width, (stored.clone(), own), Effect::Adds, insert);
        killed += kill(&adds, &[Locked, WordWritten, Copied, Bumped, Cleared, Counted]);
        let merge = |filter: &Filter, own: &[u64]| drop(filter.merge_from(&other(filter, own)).unwrap());
        let merge = Scenario { name: "merge_from", work: merge, ..adds.clone() };
        killed += kill(&merge, &[Locked, WordWritten, Counted]);

        let remove = |filter: &Filter, own: &[u64]| assert_eq!(filter.hashed().remove_batch(own).removed, own.len());
        let few = (stored.clone(), stored[172..].to_vec());
        let scenario = on_small("remove_batch", width, few, Effect::Removes, remove);
        killed += kill(&scenario, &[Locked, WordWritten, Cleared, Counted]);

        let write = |filter: &Filter, _: &[u64]| filter.write_to(Vec::new()).unwrap();
        let write = on_small("write_to", width, (stored, vec![]), Effect::Nothing, write);
        killed += kill(&write, &[Locked]);
        let merged = |filter: &Filter, _: &[u64]| drop(other(filter, &[]).merge_from(filter).unwrap());
        killed += kill(&Scenario { name: "merge_from this", work: merged, ..write }, &[Locked]);
    }
    println!(
        "\nfigure 5.2: the same for insert_batch, remove_batch, merge_from and snapshots, {} pairs of operation and \
         step at {} widths",
        thousands(killed),
        WIDTHS.len()
    );
}

fn bulk_scenarios(width: u32, by: By) -> [Scenario; 2] {
    let insert = |filter: &Filter, own: &[u64]| drop(filter.hashed().par_insert(own));
    let remove = |filter: &Filter, own: &[u64]| assert_eq!(filter.hashed().bulk().remove(own).removed, own.len());
    let (few, many): (Vec<u64>, Vec<u64>) = ((0..700).collect(), (1000..5200).collect());
    let all = [&few[..], &many].concat();
    let (name, effect, build) = ("par_insert", Effect::Adds, filter_of_thousands);
    let adds = Scenario { name, width, build, stored: few, own: many, effect, by, work: insert };
    let removes = Scenario { name: "par_remove", stored: all, effect: Effect::Removes, work: remove, ..adds.clone() };
    [adds, removes]
}

/// Without relocations, since these filters are far from full.
fn bulk_operations_of_shards(width: u32, by: By) -> usize {
    let [adds, removes] = bulk_scenarios(width, by);
    let build = filter_of_shards;
    let batch = |filter: &Filter, own: &[u64]| drop(filter.hashed().insert_batch(own));
    let few =
        Scenario { name: "insert_batch", own: (1000..1010).collect(), by: By::Thread, work: batch, ..adds.clone() };
    kill(&Scenario { build, ..few }, &[Locked, WordWritten, Counted])
        + kill(&Scenario { build, ..adds }, &[Locked, WordWritten, Counted])
        + kill(&Scenario { build, ..removes }, &[Locked, WordWritten, Cleared, Counted])
}

#[test]
fn bulk_operations_of_shards_at_13_bits() {
    bulk_operations_of_shards(13, By::Pool(2));
}

#[test]
#[ignore = "long: cargo xtask full runs it"]
fn bulk_operations() {
    let insert_iter = |filter: &Filter, own: &[u64]| drop(filter.hashed().bulk().insert_iter(own.iter().copied()));
    let mut killed = 0;
    let widths = if is_full() { &WIDTHS[..] } else { &[13, 16] };
    for &width in widths {
        for by in [By::Pool(1), By::Pool(2)] {
            let [adds, removes] = bulk_scenarios(width, by);
            let steps = [Locked, WordWritten, Copied, Bumped, Cleared, Counted];
            killed += kill(&adds, &steps);
            killed += kill(&Scenario { name: "par_insert_iter", work: insert_iter, ..adds }, &steps);
            killed += kill(&removes, &[Locked, WordWritten, Cleared, Counted]);
            killed += bulk_operations_of_shards(width, by);
        }
    }
    println!(
        "\nfigure 5.3: the same for par_insert, par_insert_iter and par_remove on pools of one and two threads, in \
         one shard and in several, {} pairs of operation and step at {} widths: each panic reached the caller",
        thousands(killed),
        widths.len()
    );
}
