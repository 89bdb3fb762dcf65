//! Threads that change and query a filter concurrently, with each answer checked. The work is bounded by numbers of operations,
//! not by time.

use fastrand::Rng;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use testkit::stress::Exact;
use testkit::{builder, choose, thousands, watchdog};

const WRITERS: usize = 4;
const READERS: usize = 2;

/// For filters of these capacities and stripes, with 32 bits.
fn every_answer_is_exact(shapes: &[(usize, usize)]) {
    let _alive = watchdog();
    let mut rng = Rng::with_seed(1);
    for &(capacity, stripes) in shapes {
        let outcome = Exact::new(capacity, Some(stripes), &mut rng).run(WRITERS, READERS, 100_000, &mut rng);
        println!("capacity {capacity}, {stripes} stripes: {outcome:?}");
    }
}

#[test]
fn every_answer_of_small_filters_is_exact() {
    every_answer_is_exact(&[(10, 1), (1000, 8)]);
}

#[test]
#[ignore = "long: cargo xtask full runs it"]
fn every_answer_of_larger_filters_is_exact() {
    every_answer_is_exact(&[(60, 4), (20_000, 1), (20_000, 100), (500_000, 1000)]);
}

/// For ten minutes with `CUCKOO_FULL=1`.
#[test]
#[ignore = "long: cargo xtask full runs it"]
fn every_answer_under_lasting_stress_is_exact() {
    let (capacity, seconds) = choose((1_200_000, 600), (600_000, 4));
    let mut rng = Rng::with_seed(5);
    let field = &Exact::new(capacity, None, &mut rng);
    let outcome = std::thread::scope(|scope| {
        scope.spawn(move || {
            std::thread::sleep(Duration::from_secs(seconds));
            field.stop();
        });
        field.run(2 * WRITERS, READERS, u64::MAX, &mut rng)
    });
    let [full, copies] = field.refused();
    println!(
        "figure 3.1: {} operations of {} threads at a mean load of {:.1} %, {} lookups and counts, every answer exact; at the \
         end the counts of {} keys and their sum equal the flags; {seconds} s",
        thousands(outcome.tally.operations),
        2 * WRITERS,
        100.0 * outcome.mean_load,
        thousands(outcome.tally.lookups),
        thousands(outcome.keys)
    );
    println!(
        "figure 3.2: {} snapshots read back with nothing missing, {} calls of stats; {} relocations (longest path {}), {} keys \
         refused as full and {} as too many copies, as stats counts them",
        thousands(outcome.snapshots),
        thousands(outcome.stats_calls),
        thousands(outcome.stats.relocations),
        outcome.stats.longest_path,
        thousands(full),
        thousands(copies)
    );
}

/// A write is visible to every thread when it returns: of two threads that each write one key and then look up the other's, at
/// least one finds it. On x86-64 this relies on the unlock of a stripe being a locked instruction. With a lock that is released by
/// a plain store, one round in some tens of thousands fails on two cores.
#[test]
fn of_two_threads_that_write_and_then_ask_one_sees_the_other() {
    const ROUNDS: u64 = 200_000;
    // In different stripes, most of them.
    const KEYS: u64 = 64;
    let filter = &builder(10_000, 32).stripes(64).build().unwrap();
    let arrived = &[AtomicU64::new(0), AtomicU64::new(0)];
    let answers = [0, 1].map(|own| {
        let other = 1 - own;
        let meet = move |phase: u64| {
            arrived[own].store(phase, Ordering::Release);
            for spins in 1.. {
                if arrived[other].load(Ordering::Acquire) >= phase {
                    break;
                }
                // Both threads may share one core.
                if spins % 100 == 0 {
                    std::thread::yield_now();
                }
                std::hint::spin_loop();
            }
        };
        move || {
            let rounds = (0..ROUNDS).map(|round| {
                let key = |thread: usize| 2 * (round % KEYS) + thread as u64;
                meet(2 * round + 1);
                let inserted = filter.insert(&key(own)).is_ok();
                let saw_insertion = filter.contains(&key(other));
                meet(2 * round + 2);
                let removed = filter.remove(&key(own));
                let saw_removal = !filter.contains(&key(other));
                // Reported at the end: a thread that panics here would leave the other one waiting.
                (inserted && removed, [saw_insertion, saw_removal])
            });
            rounds.collect::<Vec<_>>()
        }
    });
    let [one, other] = std::thread::scope(|scope| {
        answers.map(|thread| scope.spawn(thread)).map(|thread| thread.join().expect("no thread panics"))
    });
    let mut unseen = [0; 2];
    for ((changed, saw), (other_changed, other_saw)) in one.into_iter().zip(other) {
        assert!(changed && other_changed, "no other thread has these keys");
        for ((unseen, saw), other_saw) in unseen.iter_mut().zip(saw).zip(other_saw) {
            *unseen += u32::from(!saw && !other_saw);
        }
    }
    assert_eq!(unseen, [0; 2], "insertions and removals that neither thread saw, of {ROUNDS}");
}
