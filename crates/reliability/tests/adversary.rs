//! Harm, by intent or by mistake: chosen keys, floods of one key, full filters, removals of keys that were never inserted.

use concurrent_cuckoo_filter::InsertError::{Full, TooManyCopies};
use fastrand::Rng;
use reliability::{Times, draws, filled};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;
use testkit::rate::{Rate, classes, most};
use testkit::{ABSENT, Filter, Shape, choose, each_on_all_cores, slots, thousands};

/// Keys that were chosen to collide in one filter fill their class there, and are ordinary keys in every other filter.
#[test]
fn chosen_keys_collide_under_one_seed_only() {
    const CAPACITY: usize = 1000;
    let mut rng = draws();
    for (row, bits, wanted) in [("7.1", 8, choose(2000, 500)), ("7.2", 12, choose(300, 20))] {
        let target = Shape::new(CAPACITY, bits, &mut rng);
        let filter = target.build();
        let class = filter.class_of(&0);
        let keys: Vec<u64> = (0..).filter(|key| filter.class_of(key) == class).take(wanted).collect();
        let tried = keys[wanted - 1] + 1;
        // In another filter with the same seeds, the keys are all one class, too.
        let again = target.build();
        keys[..8].iter().for_each(|key| assert_eq!(again.insert(key), Ok(())));
        keys[8..].iter().for_each(|key| assert_eq!(again.insert(key), Err(TooManyCopies)));

        // Half of the keys are inserted into other filters, with as many ordinary keys as the capacity leaves room for; the other
        // half is looked up.
        let others: Vec<Shape> = (0..choose(20_000, 1000)).map(|_| Shape { seed: rng.u64(..), ..target }).collect();
        let behaviour = each_on_all_cores(&others, |other| {
            let (filter, (inserted, asked)) = (other.build(), keys.split_at(keys.len() / 2));
            let all: Vec<u64> = inserted.iter().copied().chain(ABSENT..).take(CAPACITY).collect();
            let refused = all.iter().filter(|key| filter.insert(key).is_err()).count();
            assert_eq!(all.iter().find(|key| refused == 0 && !filter.contains(key)), None, "missed in {other:?}");
            let found = asked.iter().filter(|key| filter.contains(key)).count();
            (refused > 0, Rate::of(asked.len() as u64, found as u64, slots(&filter), filter.load_factor(), bits))
        });
        let rate = Rate::pool(behaviour.iter().map(|behaviour| behaviour.1));
        let refused = behaviour.iter().filter(|behaviour| behaviour.0).count();
        let (measured, expected, sigmas) = (rate.measured(), rate.expected(), rate.sigmas());
        // The promise of the capacity: fewer than one filter in 10,000 refuses a key.
        assert!(
            refused as u64 <= most(others.len() as f64 / 10_000.0),
            "{refused} of {} filters refused",
            others.len()
        );
        assert!(rate.is_likely(), "a rate of {measured} for {expected} in other filters, off by {sigmas:+.1} sigma");
        println!(
            "figure {row}: {} keys of one class of a filter of {bits} bits, found among {} tried: with its seeds 8 are \
             stored and the others refused as too many copies; of {} filters of other seeds, filled to their capacity \
             with half of them and ordinary keys, {refused} refused a key, and the other half is found at a rate of \
             {measured:.4e} (formula {expected:.4e}, off by {sigmas:+.1} sigma)",
            thousands(keys.len()),
            thousands(tried),
            thousands(others.len()),
        );
    }
}

/// A flood of one key ends with the ninth copy at the latest, and changes nothing else.
#[test]
fn floods_of_one_key_change_nothing_else() {
    let mut rng = draws();
    let (floods, refusals) = choose((200_000, 1_000_000), (10_000, 50_000));
    let shape = Shape::of_slots(1 << 20, 16, &mut rng);
    let filter = filled(&shape, 0.9);
    let stored = filter.len() as u64;
    let mut full = 0;
    for key in ABSENT..ABSENT + floods {
        let before = filter.count(&key);
        let (copies, is_full) = flood(&filter, key);
        full += u64::from(is_full);
        assert!(
            (0..copies).all(|_| filter.remove(&key)) && filter.count(&key) == before,
            "{copies} copies of {key} stay"
        );
    }
    assert_eq!(filter.len() as u64, stored, "filter of {shape:?}");
    assert_eq!((0..stored).find(|key| filter.count(key) == 0), None, "lost in a flood of another key: {shape:?}");
    // A key cannot leave its two buckets to make room for a key with the same two. A bucket forms pairs with half of the others of
    // its shard.
    let shards = filter.config().shards as f64;
    let buckets = slots(&filter) / 4.0 / shards;
    let expected = floods as f64 * stored as f64 / shards / (buckets * buckets / 4.0);
    assert!(full <= most(expected), "{full} floods ended as full, {expected:.1} expected: filter of {shape:?}");
    let copies = thousands(floods - full);
    let floods = thousands(floods);
    println!(
        "figure 7.3: of {floods} floods of one key into a filter at 90 % load {copies} ended as too many copies when all \
         8 slots held its class, and {full} sooner as full, where another key has the same two buckets ({expected:.1} \
         expected); the other keys stayed as they were"
    );

    // The time of each refusal, alone and concurrently with writers. Without writers, not a byte of the filter changes.
    let mut keys = std::iter::repeat_with(|| ABSENT + rng.u64(..ABSENT / 2));
    let key = keys.find(|key| !flood(&filter, *key).1).expect("endless");
    let refuse = || {
        let mut times = Times::default();
        for _ in 0..refusals {
            let refused = times.time(|| filter.insert(&key));
            assert_eq!(refused, Err(TooManyCopies), "key {key} of 8 copies, filter of {shape:?}");
        }
        times
    };
    let before = testkit::written(|to| filter.write_to(to));
    let (alone, stop, barrier) = (refuse(), &AtomicBool::new(false), &Barrier::new(3));
    assert!(testkit::written(|to| filter.write_to(to)) == before, "refusals changed a filter of {shape:?}");
    let contended = thread::scope(|scope| {
        for number in [2, 3] {
            let (filter, own) = (&filter, number * ABSENT..number * ABSENT + 1024);
            scope.spawn(move || {
                barrier.wait();
                while !stop.load(Ordering::Relaxed) {
                    own.clone().for_each(|key| assert_eq!(filter.insert(&key), Ok(()), "{key}"));
                    own.clone().for_each(|key| assert!(filter.remove(&key), "{key} is missing"));
                }
            });
        }
        barrier.wait();
        let times = refuse();
        stop.store(true, Ordering::Relaxed);
        times
    });
    assert_eq!(filter.count(&key), 8, "filter of {shape:?}");
    let refusals = thousands(refusals);
    println!("figure 7.4: {refusals} refusals as too many copies: alone {alone}; beside 2 writers {contended}");
}

/// Inserts a key until it is refused. Returns the number of copies that were stored, and whether the refusal was for lack of room.
fn flood(filter: &Filter, key: u64) -> (usize, bool) {
    for copies in 0..=8 {
        match (filter.insert(&key), filter.count(&key)) {
            (Ok(()), _) => {}
            (Err(TooManyCopies), 8) => return (copies, false),
            (Err(Full), ..8) => return (copies, true),
            (Err(error), there) => panic!("{there} copies of the class of {key}, then: {error}"),
        }
    }
    panic!("a ninth copy of {key} was stored")
}

/// A full filter: the time of a refusal, and of lookups meanwhile.
#[test]
fn a_full_filter_refuses_and_loses_nothing() {
    let mut rng = draws();
    let refusals = choose(100_000, 2_000);
    for (row, log2) in [("7.5", 10), ("7.6", 16), ("7.7", choose(20, 18)), ("7.8", choose(24, 20))] {
        let shape = Shape::of_slots(1 << log2, 16, &mut rng);
        let filter = filled(&shape, 0.94);
        let mut present: Vec<u64> = (0..filter.len() as u64).collect();
        // Full means that 20 keys in a row were refused.
        let (mut next, mut in_a_row) = (present.len() as u64, 0);
        while in_a_row < 20 {
            match filter.insert(&next) {
                Ok(()) => {
                    present.push(next);
                    in_a_row = 0;
                }
                Err(_) => in_a_row += 1,
            }
            next += 1;
        }
        let look_up = |go_on: &dyn Fn(&Times) -> bool| {
            let (mut times, mut rng) = (Times::default(), Rng::with_seed(shape.seed));
            while go_on(&times) {
                let key = present[rng.usize(..present.len())];
                assert!(times.time(|| filter.contains(&key)), "missed {key} in a full filter of {shape:?}");
            }
            times
        };
        let alone = look_up(&|times| times.count() < 1 << 20);
        let (stop, barrier) = (AtomicBool::new(false), Barrier::new(2));
        let (refused, late, beside) = thread::scope(|scope| {
            let reader = scope.spawn(|| {
                barrier.wait();
                look_up(&|_| !stop.load(Ordering::Relaxed))
            });
            barrier.wait();
            let (mut times, mut late) = (Times::default(), Vec::new());
            let mut keys = next..;
            while times.count() < refusals {
                let key = keys.next().expect("endless");
                // The least of three attempts, which all do the same work: the system may interrupt one of them.
                let three: Option<Vec<u64>> = (0..3).map(|_| refusal(&filter, key)).collect();
                match three.and_then(|three| three.into_iter().min()) {
                    Some(nanos) => times.note(nanos),
                    None => late.push(key),
                }
            }
            stop.store(true, Ordering::Relaxed);
            (times, late, reader.join().expect("a thread that found nothing wrong"))
        });
        // Refusals have changed nothing, and the keys that found a place after all are stored.
        let lost = present.iter().chain(&late).find(|key| !filter.contains(key));
        assert_eq!((lost, filter.len()), (None, present.len() + late.len()), "filter of {shape:?}");
        println!(
            "figure {row}: 2^{log2} slots of 16 bits at a load of {:.3}: {} distinct keys refused 3 times each, the \
             least time of each: {refused}; {} lookups of present keys beside them, {beside} (without them {alone})",
            filter.load_factor(),
            thousands(refused.count()),
            thousands(beside.count())
        );
    }
}

/// Returns the nanoseconds in which the key was refused; `None` if it was stored.
fn refusal(filter: &Filter, key: u64) -> Option<u64> {
    let start = Instant::now();
    let refused = filter.insert(&key);
    let nanos = start.elapsed().as_nanos() as u64;
    match refused {
        Ok(()) => None,
        Err(Full) => Some(nanos),
        Err(error) => panic!("{key} was refused not as full, but: {error}"),
    }
}

/// Removals of keys that were never inserted: how many succeed, and how many stored keys are missed afterwards.
#[test]
fn removals_of_absent_keys_do_the_documented_harm() {
    const LOAD: f64 = 0.9;
    let mut rng = draws();
    let (removals, repeats, log2) = choose((1_000_000_u64, 8, 20), (200_000, 2, 18));
    for (row, bits) in [("7.9", 8), ("7.10", 12), ("7.11", 13), ("7.12", 16)] {
        let shapes: Vec<_> = (0..repeats).map(|_| Shape::of_slots(1 << log2, bits, &mut rng)).collect();
        let harm = each_on_all_cores(&shapes, |shape| {
            let filter = filled(shape, LOAD);
            let stored = filter.len() as u64;
            let removed = (ABSENT..ABSENT + removals).filter(|key| filter.remove(key)).count() as u64;
            assert_eq!(filter.len() as u64, stored - removed, "filter of {shape:?}");
            [removed, (0..stored).filter(|key| !filter.contains(key)).count() as u64]
        });
        let slots = shapes[0].slots() as f64;
        let classes = classes(slots, bits);
        let expected = harms((LOAD * slots).floor() / classes, removals as f64 / classes);
        let [removed, missed] = [0, 1].map(|what| {
            let measured = harm.iter().map(|harm| harm[what]).sum::<u64>() as f64 / f64::from(repeats);
            let (mean, sigma) = (expected[what].0 * classes, (expected[what].1 * classes / f64::from(repeats)).sqrt());
            let off = (measured - mean) / sigma;
            assert!(off.abs() <= 6.0, "{bits} bits: {measured}, {mean:.0} expected, off by {off:+.1} sigma");
            format!("{} ({} expected)", thousands(measured.round() as u64), thousands(mean.round() as u64))
        });
        let removals = thousands(removals);
        println!(
            "figure {row}: of {removals} removals of keys never inserted, {bits} bits at 90 % load, {removed} succeeded, \
             and {missed} stored keys were then missed, the means of {repeats} filters of 2^{log2} slots"
        );
    }
}

/// The mean and the variance of the number of successful removals of one class, and of the number of its keys that are missed
/// afterwards.
///
/// Absent keys are spread over the classes as the stored keys are. So a class has a number `x` of keys and a number `y` of
/// removals, Poisson variables with the means of keys and removals per class, almost independent of each other and of those of
/// other classes. In any order, `min(x, y)` of the removals succeed, which accounts for the load that falls meanwhile. All keys of
/// a class are found while one copy is left, and all `x` are missed when none is left, if `y >= x`. The numbers of all keys and of
/// all removals are fixed, which makes the true variance slightly smaller.
///
/// With few keys and removals per class, about removals times 1 - exp(-8 load / (2^f - 1)) succeed, and as many keys are missed.
fn harms(keys: f64, removals: f64) -> [(f64, f64); 2] {
    let poisson = |mean: f64| {
        let next = move |&(value, part): &(u32, f64)| Some((value + 1, part * mean / f64::from(value + 1)));
        std::iter::successors(Some((0, (-mean).exp())), next).take(40)
    };
    let mut moments = [(0.0, 0.0); 2];
    for (x, of_keys) in poisson(keys) {
        for (y, of_removals) in poisson(removals) {
            for ((mean, square), value) in moments.iter_mut().zip([x.min(y), if y >= x { x } else { 0 }].map(f64::from))
            {
                *mean += of_keys * of_removals * value;
                *square += of_keys * of_removals * value * value;
            }
        }
    }
    moments.map(|(mean, square)| (mean, square - mean * mean))
}
