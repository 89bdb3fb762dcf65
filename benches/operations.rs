//! The operations of this crate by table size and width: `cargo bench -p compare --bench operations -- 'lookup/2^20'`. The groups
//! are lookup, insert, remove, mixed and bulk. Peers and earlier commits are compared by the command `compare`, in one process.
//!
//! A size is built only if the filter on the command line leaves something to run at it. `BENCH_SLOTS=27,29` asks for
//! tables of 2^27 and 2^29 slots in place of 2^16, 2^20 and 2^24. With `--test` only 2^16 is run.

use compare::clock::on_threads;
use compare::contestants::ours::{self, Of};
use compare::{Field, Set, Size, most};
use concurrent_cuckoo_filter::{CuckooFilter, MappedFilter};
use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, SamplingMode, Throughput};
use std::cell::{Cell, LazyCell};
use std::time::{Duration, Instant};

const WIDTHS: [u32; 3] = [8, 13, 16];

/// The load factors between which insertions are timed, in percent.
const STEPS: [(usize, usize); 4] = [(0, 50), (50, 75), (75, 90), (90, 95)];
/// The number of parts into which each of these steps is divided.
const PARTS: usize = 16;

/// The names of the mixes, and the number of lookups per write.
const MIXES: [(&str, usize); 2] = [("90 to 10", 9), ("50 to 50", 1)];
/// The number of operations per pass of a mix, on all threads together.
const MIXED: usize = 1 << 17;

fn main() {
    // Few samples, so that all cases take only minutes.
    let mut criterion = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(100))
        .measurement_time(Duration::from_millis(400))
        .configure_from_args();
    // Criterion takes the filter as a regular expression, in which the ^ of 2^16 would match the beginning of a name.
    if let Some(filter) = std::env::args().find(|argument| argument.contains("2^")) {
        criterion = criterion.with_filter(filter.replace("2^", r"2\^"));
    }
    for log2 in sizes() {
        let field: Lazy<Field> = LazyCell::new(Box::new(move || Field::new(log2, 1 << (log2 + 2).min(20))));
        for bits in WIDTHS {
            let filter: Lazy<Filter> = LazyCell::new(Box::new(move || Of(ours::build(Size::new(log2, bits)))));
            let case = Case {
                name: format!("2^{log2}/{bits} bits"),
                size: Size::new(log2, bits),
                field: &field,
                filter: &filter,
            };
            for (name, run) in [
                ("lookup", lookup as fn(&Case, &mut Group)),
                ("insert", insert),
                ("remove", remove),
                ("mixed", mixed),
                ("bulk", bulk),
            ] {
                let mut group = criterion.benchmark_group(name);
                run(&case, group.sampling_mode(SamplingMode::Flat));
            }
        }
    }
    criterion.final_summary();
}

fn sizes() -> Vec<u32> {
    if let Ok(list) = std::env::var("BENCH_SLOTS") {
        return list.split(',').map(size).collect();
    }
    let has = |option: &str| std::env::args().any(|argument| argument == option);
    // Criterion treats a run without --bench as a test.
    if has("--test") || !has("--bench") { vec![16] } else { vec![16, 20, 24] }
}

fn size(text: &str) -> u32 {
    text.parse().ok().filter(|log2| (16..=32).contains(log2)).unwrap_or_else(|| {
        eprintln!(
            "BENCH_SLOTS: numbers from 16 to 32 with commas between them, such as 27,29, are needed, not {text:?}"
        );
        std::process::exit(2);
    })
}

type Filter = Of<CuckooFilter<u64>>;
type Lazy<T> = LazyCell<T, Box<dyn FnOnce() -> T>>;
type Group<'a> = BenchmarkGroup<'a, WallTime>;

/// A size and a width. The keys and the filter are built on first use.
struct Case<'a> {
    name: String,
    size: Size,
    field: &'a Lazy<Field>,
    filter: &'a Lazy<Filter>,
}

impl Case<'_> {
    /// Returns the filter, filled with the first `count` of the present keys.
    fn filled(&self, count: usize) -> &Filter {
        self.filter.0.clear();
        most(self.filter.0.par_insert(&self.field.present[..count]).inserted, count);
        self.filter
    }

    /// Returns the filter at 95 % load.
    fn full(&self) -> &Filter {
        self.filled(self.size.keys)
    }

    fn id(&self, operation: &str) -> String {
        format!("{operation}/{}", self.name)
    }
}

/// Returns the time of some passes over `count` keys, without that of `prepare`, which runs before each.
fn passes(passes: u64, count: usize, mut prepare: impl FnMut(), mut pass: impl FnMut() -> usize) -> Duration {
    let time = |_| {
        prepare();
        let clock = Instant::now();
        let done = pass();
        let time = clock.elapsed();
        most(done, count);
        time
    };
    (0..passes).map(time).sum()
}

fn lookup(case: &Case, group: &mut Group) {
    type Probes = (&'static str, fn(&Field) -> &[u64], f64);
    const KINDS: [Probes; 3] =
        [("miss", |field| &field.misses, 0.0), ("hit", |field| &field.hits, 1.0), ("half", |field| &field.half, 0.5)];
    group.throughput(Throughput::Elements(1 << (case.size.slots.ilog2() + 2).min(20)));
    for (name, keys, present) in KINDS {
        // The narrowest fingerprints have a false-positive rate of 3 %.
        let check = |found: usize, all: usize| {
            let share = found as f64 / all as f64;
            assert!((present - 0.01..present + 0.05).contains(&share), "{found} of {all} found");
        };
        group.bench_function(case.id(name), |bencher| {
            let (filter, keys) = (case.full(), keys(case.field));
            bencher.iter(|| check(filter.contains_all(keys), keys.len()));
        });
        group.bench_function(case.id(&format!("{name}, batch")), |bencher| {
            let (filter, keys) = (case.full(), keys(case.field));
            let mut found = vec![false; keys.len()];
            bencher.iter(|| filter.0.contains_batch(keys, &mut found));
            check(found.iter().filter(|&&found| found).count(), keys.len());
        });
        group.bench_function(case.id(&format!("{name}, mapped")), |bencher| {
            let (mapped, keys) = (mapped(case.full()), keys(case.field));
            bencher.iter(|| check(keys.iter().filter(|key| mapped.contains(key)).count(), keys.len()));
        });
    }
}

/// Saves the filter, and maps the file.
fn mapped(filter: &Filter) -> MappedFilter<CuckooFilter<u64>> {
    let path = std::env::temp_dir().join(format!("operations-{}.filter", std::process::id()));
    filter.0.save(&path).expect("a folder that can be written to");
    let mapped = MappedFilter::<CuckooFilter<u64>>::open_with_hasher(&path, filter.0.hasher().clone());
    std::fs::remove_file(&path).expect("the file is ours");
    mapped.expect("the filter that was saved")
}

fn insert(case: &Case, group: &mut Group) {
    for (from, to) in STEPS {
        let (start, end) = (case.size.slots * from / 100, case.size.slots * to / 100);
        let part = (end - start) / PARTS;
        group.throughput(Throughput::Elements(part as u64));
        group.bench_function(case.id(&format!("{from}-{to} %")), |bencher| {
            let (filter, len) = (case.filled(start), Cell::new(start));
            let present = &case.field.present;
            // A full step is emptied first.
            let prepare = || {
                if len.get() + part > end {
                    filter.remove_all(&present[start..len.replace(start)]);
                }
            };
            let pass = || filter.insert_all(&present[len.get()..][..part]);
            bencher.iter_custom(|count| {
                passes(count, part, prepare, || {
                    let inserted = pass();
                    len.set(len.get() + part);
                    inserted
                })
            });
        });
    }
}

fn remove(case: &Case, group: &mut Group) {
    let part = case.size.keys / 64;
    group.throughput(Throughput::Elements(part as u64));
    group.bench_function(&case.name, |bencher| {
        let (filter, present, turn) = (case.full(), &case.field.present, Cell::new(0));
        let keys = || &present[turn.get() % 64 * part..][..part];
        let prepare = || {
            filter.insert_all(keys());
            turn.set(turn.get() + 1);
        };
        filter.remove_all(keys());
        bencher.iter_custom(|count| passes(count, part, prepare, || filter.remove_all(keys())));
    });
}

fn mixed(case: &Case, group: &mut Group) {
    for (name, lookups) in MIXES {
        for threads in [1, 2, 4] {
            let writes = MIXED / threads / (lookups + 1);
            group.throughput(Throughput::Elements((threads * writes * (lookups + 1)) as u64));
            group.bench_function(case.id(&format!("{name}/{threads} threads")), |bencher| {
                let (filter, field): (_, &Field) = (case.full(), case.field);
                let part = |keys: &[u64], thread| keys.len() / threads * thread;
                let work = |thread| {
                    let (asked, changed) = (part(&field.half, thread), part(&field.present, thread));
                    mix(filter, &field.half[asked..], &field.present[changed..], lookups, writes);
                };
                bencher.iter_custom(|count| (0..count).map(|_| on_threads(threads, work).0).sum());
            });
        }
    }
}

/// Runs the operations of one thread: some lookups, a write, and so on. Writes alternate: one removes a key, the next inserts it
/// again.
fn mix(filter: &Filter, asked: &[u64], changed: &[u64], lookups: usize, writes: usize) {
    let mut asked = asked.iter().cycle();
    let (mut found, mut written) = (0, 0);
    for write in 0..writes {
        found += asked.by_ref().take(lookups).filter(|key| filter.contains(key)).count();
        let key = &changed[write / 2 % 1000];
        written += usize::from(if write % 2 == 0 { filter.remove(key) } else { filter.insert(key) });
    }
    most(written, writes);
    let all = writes * lookups;
    assert!((all * 45 / 100..all * 60 / 100).contains(&found), "{found} of {all} found");
}

fn bulk(case: &Case, group: &mut Group) {
    let all = case.size.keys;
    group.throughput(Throughput::Elements(all as u64));
    let mut bench = |name: &str, full: bool, pass: &dyn Fn(&Filter, &[u64]) -> usize| {
        group.bench_function(case.id(name), |bencher| {
            let (filter, present) = (case.filter, &case.field.present);
            let prepare = || if full { _ = case.full() } else { filter.0.clear() };
            bencher.iter_custom(|count| passes(count, all, prepare, || pass(filter, present)));
        });
    };
    bench("insert_batch", false, &|filter, keys| filter.0.insert_batch(keys).inserted);
    bench("par_insert", false, &|filter, keys| filter.0.par_insert(keys).inserted);
    bench("par_insert_iter", false, &|filter, keys| filter.0.bulk().insert_iter(keys.iter().copied()).inserted);
    bench("remove_batch", true, &|filter, keys| filter.0.remove_batch(keys).removed);
    bench("par_remove", true, &|filter, keys| filter.0.bulk().remove(keys).removed);
    bench("par_contains", true, &|filter, keys| {
        let mut found = vec![false; keys.len()];
        filter.0.par_contains(keys, &mut found);
        found.into_iter().filter(|&found| found).count()
    });
    bench("save and load", true, &|filter, _| {
        let mut snapshot = Vec::new();
        filter.0.write_to(&mut snapshot).expect("memory");
        CuckooFilter::<u64>::read_from(&snapshot[..], filter.0.hasher().clone()).expect("a snapshot").len()
    });
}
