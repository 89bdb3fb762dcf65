//! Every operation of this crate by table size, from 2^6 slots on, compared with an earlier commit if there is one.

use super::Plan;
use crate::clock::timed;
use crate::contestants::Many;
use crate::field::{Field, Key, Size, Text};
use crate::record::{Record, Table};
use crate::slices::{self, Case, against, part, speed};
use fastrand::Rng;
use std::cell::LazyCell;

/// Smaller tables are filled key by key, and not timed whole.
const WHOLE: u32 = 12;
/// Text is left out of larger tables: it takes too much memory.
const TEXT: u32 = 20;

/// A filter of one version at 95 % load.
struct Filled<K> {
    filter: Box<dyn Many<K>>,
    /// What went in, and some of it in random order.
    present: Vec<K>,
    hits: Vec<K>,
    /// Present or absent, by chance.
    mixed: Vec<K>,
}

impl<K: Key> Filled<K> {
    /// Fills 95 % of the slots that there are, not of those that were asked for. Small tables may refuse a key before.
    fn new(filter: Box<dyn Many<K>>, keys: &[K], absent: &[K]) -> Self {
        let mut present = vec![keys[0]];
        crate::most(filter.insert_all(&keys[..1]), 1);
        let room = (filter.slots() * 95 / 100).min(keys.len());
        if room < 1 << WHOLE {
            present.extend(keys[1..room].iter().filter(|key| filter.insert(key)));
        } else {
            assert_eq!(filter.par_insert(&keys[1..room]), room - 1, "a table at 95 % load");
            present.extend_from_slice(&keys[1..room]);
        }
        let mut random = Rng::with_seed(9);
        let hits: Vec<K> = absent.iter().map(|_| present[random.usize(..present.len())]).collect();
        let mixed = hits.iter().zip(absent).map(|(&hit, &miss)| if random.bool() { hit } else { miss }).collect();
        Filled { filter, present, hits, mixed }
    }

    /// Single calls and batches that change nothing.
    fn calls<'a>(&'a self, absent: &'a [K], kind: &str) -> Vec<Case<'a>> {
        let Filled { filter, hits, mixed, .. } = self;
        let few = |found: usize, of: usize| assert!(found <= of / 100, "{found} of {of} absent keys found");
        let all = |found: usize, of: usize| assert_eq!(found, of, "every present key is found");
        let half =
            |found: usize, of: usize| assert!(found.abs_diff(of / 2) < of / 8, "{found} of {of} mixed keys found");
        vec![
            Case::pass(format!("`contains`, absent{kind}"), absent, |keys| filter.contains_all(keys), few),
            Case::pass(format!("`contains`, present{kind}"), hits, |keys| filter.contains_all(keys), all),
            Case::pass(format!("`contains`, mixed{kind}"), mixed, |keys| filter.contains_all(keys), half),
            Case::batch(format!("`contains_batch`, absent{kind}"), &**filter, absent, few),
            Case::batch(format!("`contains_batch`, present{kind}"), &**filter, hits, all),
            Case::pass(
                format!("`insert_unique`{kind}"),
                hits,
                |keys| filter.insert_unique_all(keys),
                |stored, _| assert_eq!(stored, 0, "a present key was stored as unique"),
            ),
            Case::pass(
                format!("`count`{kind}"),
                hits,
                |keys| filter.count_all(keys),
                |sum, of| assert!(sum >= of, "present keys were not counted"),
            ),
        ]
    }

    /// A removal and an insertion. Small tables refuse keys now and then; what was lost so comes back before each slice.
    fn churn<'a>(&'a self, absent: &'a [K], kind: &str) -> Vec<Case<'a>> {
        let Filled { filter, present, .. } = self;
        // Small tables are too fast for the clock.
        let pairs = part(present, 0).len().min(absent.len());
        let passes = 1_000usize.div_ceil(pairs);
        vec![Case::new(format!("churn{kind}"), move |round| {
            let pass = |round| {
                let (out, into) = (part(present, round), part(absent, round));
                filter.churn(out, into);
                filter.churn(into, out);
            };
            pass(2 * round);
            if present.len() < 1 << WHOLE {
                present.iter().filter(|key| !filter.contains(key)).for_each(|key| _ = filter.insert(key));
            }
            timed(4 * pairs * passes, || (0..passes).for_each(|_| pass(2 * round + 1))).0
        })]
    }

    /// The filter as a whole: keys are put in after all have been removed.
    fn whole(&self) -> Vec<Case<'_>> {
        let Filled { filter, present, .. } = self;
        let snapshot = LazyCell::new(|| {
            filter.clear();
            assert_eq!(filter.par_insert(present), present.len());
            filter.save()
        });
        vec![
            Case::new("`insert`, whole", |_| {
                filter.clear();
                let (nanos, inserted) = timed(present.len(), || filter.insert_all(present));
                crate::most(inserted, present.len());
                nanos
            }),
            Case::new("`remove`, whole", |_| {
                let (nanos, removed) = timed(present.len(), || filter.remove_all(present));
                crate::most(removed, present.len());
                nanos
            }),
            Case::new("`insert_unique`, whole", |_| {
                filter.clear();
                let (nanos, inserted) = timed(present.len(), || filter.insert_unique_all(present));
                crate::most(inserted, present.len());
                nanos
            }),
            Case::new("`par_insert`", |_| {
                filter.clear();
                let (nanos, inserted) = timed(present.len(), || filter.par_insert(present));
                assert_eq!(inserted, present.len());
                nanos
            }),
            Case::new("`insert_batch`", |_| {
                filter.clear();
                let (nanos, inserted) = timed(present.len(), || filter.insert_batch(present));
                assert_eq!(inserted, present.len());
                nanos
            }),
            Case::new("`read_from`", move |_| {
                let snapshot: &[u8] = &snapshot;
                // One that is not timed, for the machine may have taken back the pages of the last one, seconds ago.
                filter.load(snapshot);
                let (nanos, loaded) = timed(present.len(), || filter.load(snapshot));
                assert_eq!(loaded, present.len());
                nanos
            }),
        ]
    }
}

pub(super) fn run(plan: &Plan, record: &mut Record) {
    record.heading("Operations by table size");
    record.text(&format!(
        "u64 keys, one thread but for `par_insert` ({} threads), filters filled to 95 % of their slots. *Mixed* keys are \
         present or absent by chance. *Churn* is a removal and an insertion, each counted; `insert_unique` and `count` \
         are of keys that are present. *Whole*, `par_insert`, `insert_batch` and `read_from`, from memory, are of whole \
         filters, in keys a second.{}",
        rayon::current_num_threads(),
        match plan.versions().get(1) {
            Some(earlier) => format!(" In brackets: how many times as fast as {} this crate is.", earlier.name),
            None => String::new(),
        }
    ));
    let sizes: Vec<u32> = if plan.quick { vec![6, 14] } else { vec![6, 9, 12, 16, 20, 24] };
    let large = (plan.large > 24).then_some(plan.large);
    let sizes: Vec<u32> = sizes.into_iter().chain(large).collect();
    for bits in [13, 16] {
        let columns: Vec<Vec<(String, String)>> = sizes
            .iter()
            .map(|&log2| {
                plan.step(&format!("operations, 2^{log2} slots, {bits} bits"));
                column(plan, log2, bits)
            })
            .collect();
        let heads = sizes.iter().map(|log2| format!("2^{log2}"));
        let mut table = Table::new(std::iter::once(format!("{bits} bits, slots")).chain(heads));
        let longest = columns.iter().max_by_key(|column| column.len()).expect("a size");
        for (name, _) in longest {
            let cells = columns.iter().map(|column| {
                column.iter().find(|(other, _)| other == name).map_or("-".into(), |(_, cell)| cell.clone())
            });
            table.row(std::iter::once(name.clone()).chain(cells));
        }
        record.table(table);
    }
}

/// The cells of one size, named.
fn column(plan: &Plan, log2: u32, bits: u32) -> Vec<(String, String)> {
    let (size, probes) = (Size::new(log2, bits), if plan.quick { 1 << 12 } else { 1 << 20 });
    let versions = plan.versions();
    let mut cells = Vec::new();
    {
        let field = Field::<u64>::new(log2, probes);
        let filled: Vec<_> = versions
            .iter()
            .map(|version| Filled::new((version.numbers)(size), &field.present, &field.misses))
            .collect();
        cells.extend(compared(plan.rounds, filled.iter().map(|filled| filled.calls(&field.misses, "")).collect()));
        cells.extend(compared(plan.rounds, filled.iter().map(|filled| filled.churn(&field.misses, "")).collect()));
        if log2 >= WHOLE {
            cells.extend(compared(plan.few(), filled.iter().map(Filled::whole).collect()));
        }
    }
    if (WHOLE..=TEXT).contains(&log2) {
        let field = Field::<Text>::new(log2, probes.min(1 << 19));
        let filled: Vec<_> =
            versions.iter().map(|version| Filled::new((version.text)(size), &field.present, &field.misses)).collect();
        let text = ", text";
        cells.extend(compared(plan.rounds, filled.iter().map(|filled| filled.calls(&field.misses, text)).collect()));
        cells.extend(compared(plan.rounds, filled.iter().map(|filled| filled.churn(&field.misses, text)).collect()));
    }
    cells
}

/// The same cases of each version, in turn: the speed of the first version, and how many times that of the second it is.
fn compared(rounds: usize, versions: Vec<Vec<Case>>) -> Vec<(String, String)> {
    let kinds = versions[0].len();
    let mut cases: Vec<Case> = versions.into_iter().flatten().collect();
    let nanos = slices::take(rounds, &mut cases);
    let cell = |kind: usize| match nanos.get(kinds + kind) {
        Some(&earlier) => against(nanos[kind], earlier),
        None => speed(nanos[kind]),
    };
    (0..kinds).map(|kind| (cases[kind].name.clone(), cell(kind))).collect()
}
