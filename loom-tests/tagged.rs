//! Time in the slot: ticks during lookups and writes, on slots of 16 bits with tags of 2 (4 epochs come round), and of 12
//! with 4, where a slot straddles two words and its tag does not.

use super::harness::{Model, Seen, hop, in_both_orders, join, key, key_in, plan, run_three, run_two, spawn};
use crate::batch::lookup_batch;
use crate::layout::{Class, Extent, Plan, Tags};
use crate::raw::{Assembly, Fixed, IfPresent, Put, RawFilter, Shard, Tagged, Tagging};
use crate::sys::memory::HugePages;
use std::sync::Arc;

/// The longest life of tags of 2 bits.
const MOST: u32 = 3;

pub(super) struct World {
    pub(super) raw: RawFilter<Tagging>,
}

impl World {
    pub(super) fn new(plan: &Plan) -> Arc<Self> {
        Arc::new(World { raw: RawFilter::new(plan, HugePages::Unadvised).expect("memory") })
    }

    /// Two buckets, each a word and a stripe.
    fn small() -> Arc<Self> {
        World::new(&plan(16, 2, 0).with_tags(2))
    }

    /// The same with a class that is stored once.
    fn holding(value: u32) -> (Arc<Self>, Class) {
        let world = World::small();
        let class = world.key(0, 0, 1);
        // In bucket 0: the lower empty slot decides. The next copy goes to bucket 1.
        world.store(class, value);
        (world, class)
    }

    pub(super) fn key(&self, number: usize, first: u32, second: u32) -> Class {
        key_in(self.raw.plan(), number, first, second)
    }

    pub(super) fn shard(&self) -> Shard<'_, Tagged<'_>> {
        self.raw.flat().at(0)
    }

    /// As an insertion, where there is room; `None` if there is none.
    pub(super) fn put(&self, class: Class, value: u32, if_present: IfPresent) -> Option<u32> {
        let Ok(result) = self.shard().insert_into_pair(Fixed, class, Put { value, if_present });
        result.map(|result| result.expect("no refusal"))
    }

    /// Returns what the class had.
    fn raise(&self, class: Class, value: u32) -> u32 {
        let Ok(had) = self.shard().update(Fixed, class, None, |had| had.max(value));
        had
    }

    fn replace(&self, class: Class, from: u32, to: u32) -> bool {
        let Ok(had) = self.shard().update(Fixed, class, Some(from), |_| to);
        had != 0
    }

    /// Puts a class that is absent into the lower empty slot of its pair.
    pub(super) fn store(&self, class: Class, value: u32) {
        assert_eq!(self.put(class, value, IfPresent::Another), Some(0));
    }

    /// Puts keys that have no other bucket into the lowest empty slots of this one.
    fn fill(&self, bucket: u32, slots: u32, from: u32, value: u32) {
        (from..from + slots).for_each(|fingerprint| self.store(key(fingerprint, bucket, bucket), value));
    }

    fn contains(&self, class: Class) -> bool {
        self.raw.contains(self.raw.geometry().leading_to(class).expect("a hash"))
    }

    pub(super) fn values(&self, class: Class) -> Vec<u32> {
        let mut values = self.raw.values(self.raw.geometry().leading_to(class).expect("a hash")).to_vec();
        values.sort_unstable();
        values
    }

    pub(super) fn advance(&self) {
        self.raw.advance();
    }
}

/// A lookup by each of its candidates first, concurrently with what `writer` does; the class is never absent. `repeats` says of each
/// candidate whether lookups by it must have been seen to begin again.
fn never_missed(
    executions: [usize; 4],
    make: fn() -> (Arc<World>, Class),
    writer: fn(&World, Class),
    repeats: [bool; 2],
) {
    let configurations = [(false, false), (false, true), (true, false), (true, true)];
    for ((swapped, turned), executions) in configurations.into_iter().zip(executions) {
        let outcomes: &[&str] = if repeats[usize::from(turned)] { &["found", "repeated"] } else { &["found"] };
        Model { executions, preemptions: None, outcomes }.explore(move |seen| {
            let (world, class) = make();
            let seen = seen.clone();
            run_two(
                &world,
                swapped,
                move |looks| {
                    let asked = if turned { class.turned() } else { class };
                    assert!(looks.contains(asked), "a key that lives was missed");
                    seen.note("found");
                },
                move |writes| writer(writes, class),
            );
            assert!(world.contains(class), "a key that lives was missed at the end");
        });
    }
}

/// One copy dies and is swept; another of the class was stored before that, where the lookup may have read already.
#[test]
fn stored_again_before_death_is_never_missed() {
    never_missed(
        [36, 168, 288, 660],
        || {
            let world = World::small();
            let class = world.key(0, 0, 1);
            // The lower empty slot decides: the copy of one tick lies in bucket 0, the next one in bucket 1.
            world.store(class, 1);
            (world, class)
        },
        |world, class| {
            world.store(class, MOST);
            world.advance();
            // Here it is swept.
            world.advance();
        },
        [false, true],
    );
}

/// As before, but stored by one thread, and the tick made by another that waited for it and locks nothing, for all is swept:
/// whoever sees the tick sees the copy.
#[test]
fn stored_again_by_another_thread_is_never_missed() {
    in_both_orders([30, 20], &["found"], |seen, swapped| {
        let (world, class) = World::holding(1);
        assert!(!world.raw.sweep(2), "nothing is left to sweep");
        let (writes, seen) = (Arc::clone(&world), seen.clone());
        run_two(
            &world,
            swapped,
            move |looks| {
                assert!(looks.contains(class), "a key that lives was missed");
                seen.note("found");
            },
            move |ticks| {
                join(spawn(move || writes.store(class, MOST)));
                ticks.advance();
            },
        );
        assert_eq!(world.values(class), [MOST - 1]);
    });
}

/// After a tick a copy that is renewed for the longest time has the tag that was dead before it.
#[test]
fn renewed_beside_a_tick_is_never_missed() {
    never_missed(
        [54, 54, 72, 72],
        || World::holding(2),
        |world, class| {
            world.advance();
            assert_eq!(world.raise(class, MOST), 1);
        },
        [true, true],
    );
}

/// As before, in a block of a batch.
#[test]
fn renewed_beside_a_tick_is_never_missed_by_a_batch() {
    in_both_orders([174, 150], &["found", "repeated"], |seen, swapped| {
        let (world, class) = World::holding(2);
        let seen = seen.clone();
        run_two(
            &world,
            swapped,
            move |looks| {
                let (key, mut found) = (looks.raw.geometry().leading_to(class).expect("a hash"), [false]);
                lookup_batch(&looks.raw, &[key], |&mixed| mixed, &mut found);
                assert!(found[0], "a key that lives was missed");
                seen.note("found");
            },
            move |writes| {
                writes.advance();
                assert_eq!(writes.raise(class, MOST), 1);
            },
        );
    });
}

/// The tag that was dead when the lookup began comes round while it is under way.
#[test]
fn a_lookup_that_sleeps_while_epochs_come_round_misses_nothing() {
    never_missed(
        [11661, 11661, 25239, 25239],
        || World::holding(2),
        |world, class| {
            world.advance();
            assert_eq!(world.raise(class, MOST), 1);
            world.advance();
            world.advance();
            assert_eq!(world.raise(class, MOST), 1);
            world.advance();
        },
        [true, true],
    );
}

/// The slot straddles two words, its tag lies in one: a lookup sees the old deadline or the new one, both alive.
#[test]
fn renewed_in_a_straddling_slot_is_never_missed() {
    never_missed(
        [12, 12, 15, 15],
        || {
            let world = World::new(&plan(12, 4, 2).with_tags(4));
            let class = world.key(0, 1, 2);
            // Epoch 5. The tag goes from 6 to 9: by halves it would pass through 5, which is dead.
            (0..5).for_each(|_| world.advance());
            world.fill(1, 1, 20, 15);
            world.fill(2, 4, 30, 15);
            world.store(class, 1);
            (world, class)
        },
        |world, class| assert_eq!(world.raise(class, 4), 1),
        [false, false],
    );
}

/// A lookup, a renewal and a relocation of one key.
#[test]
fn renewed_beside_a_relocation_is_never_missed() {
    Model { executions: 7680, preemptions: Some(3), outcomes: &["found", "repeated"] }.explore(|seen| {
        let (world, class) = World::holding(1);
        let seen = seen.clone();
        run_three(
            &world,
            move |looks| {
                assert!(looks.contains(class.turned()), "a key that lives was missed");
                seen.note("found");
            },
            move |raises| assert_eq!(raises.raise(class, MOST), 1),
            move |moves| assert!(moves.shard().hop(hop(class))),
        );
        assert_eq!(world.values(class), [MOST], "the renewal goes with the copy that stays");
    });
}

/// A writer that waited for its lock while time went on judges by the new epoch: what looks dead by the old one may be a
/// key that was stored a moment ago.
#[test]
fn overwriting_takes_no_live_slot() {
    in_both_orders([54, 126], &["first", "second"], |seen, swapped| {
        let world = World::small();
        let (one, other) = (world.key(0, 0, 1), world.key(1, 0, 1));
        world.fill(0, 3, 20, MOST);
        world.fill(1, 4, 30, MOST);
        let stored = run_two(
            &world,
            swapped,
            move |writes| writes.put(one, MOST, IfPresent::Another).is_some(),
            move |ticks| {
                ticks.advance();
                ticks.put(other, MOST, IfPresent::Another).is_some()
            },
        );
        let wins = seen.one_winner(["first", "second"], stored, "one slot takes one key");
        assert_eq!([one, other].map(|class| world.values(class).len()), wins, "what was stored lives");
        assert_eq!(world.raw.len(), 8);
    });
}

/// Where one lock, or the two of a hop, are enough for a writer, it reads the epoch under them, too.
fn overwriting_without_the_pair_takes_no_live_slot(executions: [usize; 2], store: fn(&World, Class, Class) -> bool) {
    in_both_orders(executions, &["first", "second"], move |seen, swapped| {
        let world = World::small();
        let [one, other, moves] = [0, 1, 2].map(|number| world.key(number, 0, 1));
        world.fill(0, 3, 20, MOST);
        world.fill(1, 3, 30, MOST);
        world.store(moves, MOST);
        let stored = run_two(
            &world,
            swapped,
            move |writes| store(writes, one, moves),
            move |ticks| {
                ticks.advance();
                ticks.put(other, MOST, IfPresent::Another).is_some()
            },
        );
        let wins = seen.one_winner(["first", "second"], stored, "one slot takes one key");
        assert_eq!([one, other].map(|class| world.values(class).len()), wins, "what was stored lives");
        assert_eq!((world.values(moves).len(), world.raw.len()), (1, 8));
    });
}

#[test]
fn overwriting_under_one_lock_takes_no_live_slot() {
    overwriting_without_the_pair_takes_no_live_slot([27, 51], |world, class, _| {
        let Ok(stored) = world.shard().insert_into(Fixed, class.second, class, MOST);
        stored
    });
}

#[test]
fn overwriting_by_a_last_hop_takes_no_live_slot() {
    overwriting_without_the_pair_takes_no_live_slot([54, 126], |world, class, moves| {
        let put = Put { value: MOST, if_present: IfPresent::Another };
        let Ok(result) = world.shard().carry_out(Fixed, [hop(moves)], class, put);
        result.is_some()
    });
}

/// Whatever epoch the insertion has read, the key has its time, less the tick at the most.
#[test]
fn tick_and_insertion_for_the_longest_time() {
    in_both_orders([45, 69], &["before", "after"], |seen, swapped| {
        let world = World::small();
        let class = world.key(0, 0, 1);
        run_two(&world, swapped, move |writes| writes.store(class, MOST), move |ticks| ticks.advance());
        let values = world.values(class);
        assert!(values == [MOST] || values == [MOST - 1], "a key that lives was swept: {values:?}");
        seen.note(if values == [MOST] { "after" } else { "before" });
    });
}

/// A pass waits for the writer that holds a stripe: nothing is stored by an epoch before the last one. Else what should be
/// long dead would live again.
fn stalled_writer_stores_by_the_last_epoch(executions: [usize; 2], store: fn(&World, Class)) {
    in_both_orders(executions, &["dead", "alive"], move |seen, swapped| {
        let world = World::small();
        let class = world.key(0, 0, 1);
        run_two(
            &world,
            swapped,
            move |writes| store(writes, class),
            move |ticks| {
                ticks.advance();
                ticks.advance();
            },
        );
        let values = world.values(class);
        assert!(values.is_empty() || values == [1], "a dead key lives again: {values:?}");
        seen.note(if values.is_empty() { "dead" } else { "alive" });
        for _ in 0..4 {
            world.advance();
            assert!(!world.contains(class), "a dead key lives again");
        }
        assert_eq!(world.raw.len(), 0);
    });
}

#[test]
fn stalled_writer_stores_by_the_last_epoch_or_this_one() {
    stalled_writer_stores_by_the_last_epoch([102, 303], |world, class| world.store(class, 1));
}

#[test]
fn stalled_one_lock_writer_stores_by_the_last_epoch_or_this_one() {
    stalled_writer_stores_by_the_last_epoch([51, 111], |world, class| {
        assert_eq!(world.shard().insert_into(Fixed, class.first, class, 1), Ok(true));
    });
}

/// From a stripe that is not yet swept to one that is, only what lives is moved.
#[test]
fn relocation_beside_a_sweep_brings_nothing_back() {
    in_both_orders([378, 474], &["moved", "dead"], |seen, swapped| {
        let world = World::small();
        let (dead, dies) = (world.key(0, 1, 0), world.key(1, 1, 0));
        world.fill(0, 4, 20, 1);
        world.store(dead, 1);
        world.store(dies, 2);
        world.advance();
        // Now the fillers make room in bucket 0, which is swept first.
        let (moved, ()) = run_two(
            &world,
            swapped,
            move |moves| {
                moves.shard().hop(hop(dead));
                moves.shard().hop(hop(dies))
            },
            move |ticks| ticks.advance(),
        );
        seen.note(if moved { "moved" } else { "dead" });
        for _ in 0..4 {
            assert!(!world.contains(dead) && !world.contains(dies), "what was dead lives again");
            world.advance();
        }
        assert_eq!(world.raw.len(), 0, "slots in use are counted");
    });
}

/// Of two that see a key at the same time, one is told that it is new.
#[test]
fn seen_twice_is_new_once() {
    Model { executions: 12, preemptions: None, outcomes: &["first", "second"] }.explore(|seen| {
        let world = World::small();
        let class = world.key(0, 0, 1);
        let [one, other] = [class, class.turned()]
            .map(|class| move |world: &Arc<World>| world.put(class, MOST, IfPresent::Raise) == Some(0));
        let new = run_two(&world, false, one, other);
        seen.one_winner(["first", "second"], new, "exactly one is told that the key is new");
        assert_eq!(world.values(class), [MOST]);
    });
}

/// No addition is lost during a relocation, whichever copy it finds.
#[test]
fn counted_beside_a_relocation_adds_up() {
    Model { executions: 1714, preemptions: Some(3), outcomes: &["1 then 2", "2 then 1"] }.explore(|seen: &Seen| {
        let (world, class) = World::holding(1);
        let (one, other, ()) = run_three(
            &world,
            move |one| one.put(class, 1, IfPresent::Add { renews: false }),
            move |other| other.put(class.turned(), 1, IfPresent::Add { renews: false }),
            move |moves| assert!(moves.shard().hop(hop(class))),
        );
        seen.note(format!("{} then {}", one.expect("present"), other.expect("present")));
        assert_eq!(world.values(class), [3], "each addition counts");
    });
}

/// A value that is there throughout is read, though another of the class is found too.
#[test]
fn values_beside_a_relocation_are_all_read() {
    in_both_orders([744, 696], &["read", "repeated"], |seen, swapped| {
        let (world, class) = World::holding(1);
        world.store(class, 2);
        let seen = seen.clone();
        run_two(
            &world,
            swapped,
            move |looks| {
                let values = looks.values(class);
                assert!([1, 2].iter().all(|value| values.contains(value)), "a value was missed: {values:?}");
                seen.note("read");
            },
            move |moves| assert!(moves.shard().hop(hop(class.turned()))),
        );
    });
}

/// Store buffering between the epoch and a word: a tick and an insertion have both returned, so one of the two threads
/// sees what the other did.
#[test]
fn ticks_are_visible_when_they_return() {
    Model { executions: 204, preemptions: None, outcomes: &["both", "one"] }.explore(|seen| {
        let world = World::small();
        let class = world.key(0, 0, 1);
        let (ticked, found) = run_two(
            &world,
            false,
            move |writes| {
                writes.store(class, MOST);
                writes.raw.epoch() == 1
            },
            move |ticks| {
                ticks.advance();
                ticks.contains(class)
            },
        );
        assert!(ticked || found, "neither sees what the other has done");
        seen.note(if ticked && found { "both" } else { "one" });
    });
}

/// A snapshot copies one shard after the other, with ticks in between: the tags of each are meant by the epoch at which it was
/// copied, and what is read goes on at the latest.
#[test]
fn shards_copied_at_different_epochs_keep_their_deadlines() {
    in_both_orders([657, 1686], &["0 0", "0 1", "0 2", "1 2", "2 2"], |seen, swapped| {
        let mut plan = plan(16, 2, 1).with_tags(2);
        plan.shards = 2;
        let world = World::new(&plan);
        let (dies, stays) = (world.key(0, 0, 1), world.key(1, 0, 1));
        for (number, class, value) in [(0, dies, 1), (1, stays, MOST)] {
            let put = Put { value, if_present: IfPresent::Another };
            assert_eq!(world.raw.flat().at(number).insert_into_pair(Fixed, class, put), Ok(Some(Ok(0))));
        }
        let copy = move |world: &Arc<World>| {
            let shards = world.raw.flat().each().map(|shard| {
                let mut words = vec![0; plan.words];
                let (count, epoch) = shard.copy_to(&mut words);
                (words, count, epoch)
            });
            shards.collect::<Vec<_>>()
        };
        let tick = move |world: &Arc<World>| {
            world.advance();
            world.advance();
            assert_eq!(world.raw.flat().at(1).update(Fixed, stays, None, |had| had.max(MOST)), Ok(1));
        };
        let (copied, ()) = run_two(&world, swapped, copy, tick);
        let assembly = Assembly::<Tagging>::new(&plan, HugePages::Unadvised).expect("memory");
        let mut epochs = Vec::new();
        for (first_cell, (words, count, epoch)) in copied.into_iter().enumerate() {
            let extent = Extent { first_cell, depth: 0, dropped: 0 };
            let added = assembly.add(&extent, epoch, |shard| {
                shard.fill_with(words.into_iter(), count);
                Ok::<_, ()>(())
            });
            assert!(added.is_ok());
            epochs.push(epoch);
        }
        seen.note(format!("{} {}", epochs[0], epochs[1]));
        let read = assembly.finish().expect("memory");
        let [first, second] = [0, 1].map(|number| {
            let live = read.flat().at(number).classes(Tags::new(&plan).moment(read.epoch()));
            live.map(|(_, value)| value).collect::<Vec<_>>()
        });
        let now = epochs[1] as u32;
        assert_eq!(first, vec![1; usize::from(now == 0)], "what is dead lives in what was read");
        assert!(second == [MOST - now] || now == 2 && second == [MOST], "a deadline was changed: {second:?} at {now}");
    });
}

/// A reader sees the old tag or the new one, wherever the copy is.
#[test]
fn a_tag_changed_beside_a_relocation_is_read() {
    Model { executions: 15_999, preemptions: Some(3), outcomes: &["old", "new", "repeated"] }.explore(|seen| {
        let (world, class) = World::holding(1);
        let seen = seen.clone();
        run_three(
            &world,
            move |looks| {
                let values = looks.values(class.turned());
                // A copy that is being moved may be seen in both buckets.
                let each = |tag| !values.is_empty() && values.iter().all(|&value| value == tag);
                assert!(each(1) || each(2), "neither the old tag nor the new one: {values:?}");
                seen.note(if each(1) { "old" } else { "new" });
            },
            move |changes| assert!(changes.replace(class, 1, 2)),
            move |moves| assert!(moves.shard().hop(hop(class))),
        );
        assert_eq!(world.values(class), [2], "the new tag goes with the copy that stays");
    });
}

/// A class mate comes with the tag of a key, and gets another one: of two copies with one tag, either may be the one that
/// gets it.
#[test]
fn a_tag_that_stays_is_read_while_a_copy_gets_another() {
    Model { executions: 744, preemptions: None, outcomes: &["[1]", "[1, 1]", "[1, 2]"] }.explore(|seen| {
        let world = World::small();
        let class = world.key(0, 0, 1);
        // In bucket 1, the first of its mate.
        world.store(class.turned(), 1);
        let seen = seen.clone();
        run_two(
            &world,
            false,
            move |looks| {
                let values = looks.values(class);
                seen.note(format!("{values:?}"));
                assert!(values.contains(&1), "a tag that stays is left out: {values:?}");
            },
            move |changes| {
                changes.store(class.turned(), 1);
                assert!(changes.replace(class.turned(), 1, 2));
            },
        );
    });
}

/// A key moves into the slot that another one has left, while the slot's two words are read.
#[test]
fn values_in_two_words_are_of_one_key() {
    Model { executions: 5681, preemptions: Some(2), outcomes: &["[1]", "[1, 1]"] }.explore(|seen| {
        let world = World::new(&plan(12, 4, 2).with_tags(4));
        let class = world.key(0, 1, 2);
        // The sixth slot begins at bit 60: its tag is the end of one word, its fingerprint lies in the next.
        world.fill(1, 4, 20, 15);
        world.store(class, 1);
        let seen = seen.clone();
        run_two(
            &world,
            false,
            move |looks| {
                let values = looks.values(class);
                seen.note(format!("{values:?}"));
                assert!(values.contains(&1) && !values.contains(&15), "the value of another key: {values:?}");
            },
            move |writes| {
                assert_eq!(writes.shard().remove(Fixed, key(21, 1, 1), None), Ok(15));
                assert!(writes.shard().hop(hop(class.turned())));
            },
        );
    });
}

/// A slot in two words is cleared: its tag turns into one that lives, when its fingerprint is gone.
#[test]
fn dead_while_it_is_swept() {
    Model { executions: 69, preemptions: None, outcomes: &[""] }.explore(|seen| {
        let world = World::new(&plan(12, 4, 2).with_tags(4));
        let class = world.key(0, 1, 2);
        world.fill(1, 1, 20, 15);
        world.fill(2, 4, 30, 15);
        world.store(class, 1);
        world.advance();
        run_two(
            &world,
            false,
            move |looks| assert!(!looks.contains(class), "a dead key lives again"),
            move |sweeps| _ = sweeps.raw.sweep(4),
        );
        seen.note("");
    });
}
