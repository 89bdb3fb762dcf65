//! Splits of tables, against all that may go on meanwhile (docs/design/growth.md).

use super::harness::{Model, Seen, in_both_orders, run_three, run_two};
use crate::batch::lookup_batch;
use crate::layout::{Mixed, Plan, SearchBudget};
use crate::raw::{Growing, Put, RawFilter};
use crate::sys::memory::HugePages;
use std::sync::Arc;

/// A growing filter of one shard, which begins with two buckets.
struct World {
    raw: RawFilter,
}

/// How the table of a key is doubled.
#[derive(Clone, Copy)]
enum Doublings {
    /// So many splits.
    Splits(u32),
    /// All goes to a table of four buckets, ...
    Refill,
    /// ... which is split.
    RefillAndSplit,
}

impl Doublings {
    fn world(self, bits: u32) -> Arc<World> {
        match self {
            Doublings::Splits(splits) => World::new(bits, splits),
            Doublings::Refill | Doublings::RefillAndSplit => {
                let shape = Plan::one_shard(bits, 4, 4);
                World::of(&Plan { reserve_bits: 2, extension_bits: 1, ..shape })
            }
        }
    }

    /// The cell of a key that goes through all of them.
    fn cell(self) -> usize {
        if let Doublings::Splits(splits) = self { (1 << splits) - 1 } else { 1 }
    }

    fn count(self) -> u32 {
        match self {
            Doublings::Splits(splits) => splits,
            Doublings::Refill => 1,
            Doublings::RefillAndSplit => 2,
        }
    }

    fn double(self, world: &World) {
        (0..self.count()).for_each(|number| _ = world.growing().split_table(number as usize, number));
    }

    /// Tables that cells name in the end.
    fn tables(self) -> usize {
        if let Doublings::Splits(splits) = self { 1 + splits as usize } else { self.count() as usize }
    }
}

/// The class of the key, in its first bucket or in its second one.
#[derive(Clone, Copy, PartialEq)]
enum In {
    First,
    Second,
}

/// What is looked up of two buckets: the one that is read first, or the one that is read second.
const BUCKETS: [In; 2] = [In::First, In::Second];

/// Widths of the table that is split: of its child's slots, 15 bits straddle words, 8 bits are parts of one, 16 bits are read
/// as two runs, and 4 bits are the core alone.
const WIDTHS: [(u32, u32); 4] = [(16, 1), (9, 1), (17, 2), (5, 1)];

impl World {
    fn new(bits: u32, reserve: u32) -> Arc<Self> {
        World::of(&Plan { reserve_bits: reserve, ..Plan::one_shard(bits, 2, 4) })
    }

    fn of(plan: &Plan) -> Arc<Self> {
        Arc::new(World { raw: RawFilter::new(plan, HugePages::Unadvised).expect("memory") })
    }

    fn growing(&self) -> &Growing {
        self.raw.growing().expect("it grows")
    }

    /// Key number `number` of those of this cell whose first bucket is 0, and after a refill 1.
    fn key(&self, cell: usize, number: usize) -> Mixed {
        let keys = (0..).map(Mixed::of).filter(|&mixed| {
            let aim = self.growing().aim(mixed);
            aim.cell == cell && aim.class.first.get() == self.raw.plan().extension_bits
        });
        keys.take(1000).nth(number).expect("a key")
    }

    /// The same, looked for from the other bucket.
    fn turned(&self, key: Mixed) -> Mixed {
        let class = self.growing().aim(key).class;
        let mut keys = (0..1 << 24).map(Mixed::of);
        keys.find(|&mixed| self.growing().aim(mixed).class == class.turned()).expect("a key")
    }

    fn insert(&self, key: Mixed) {
        assert_eq!(self.growing().insert_into_pair(key, Put::COPY), Some(0));
    }

    fn insert_unique(&self, key: Mixed) -> bool {
        self.growing().insert_into_pair(key, Put::UNIQUE).expect("there is room") == 0
    }

    /// Puts the key into this bucket of its pair.
    fn put(&self, key: Mixed, bucket: In) {
        assert!(self.growing().insert_into_first(key));
        if bucket == In::Second {
            assert!(self.growing().hop(key));
        }
    }

    fn contains(&self, key: Mixed) -> bool {
        self.raw.contains(key)
    }

    /// As a batch of one key.
    fn contains_in_batch(&self, key: Mixed) -> bool {
        let mut found = [false];
        lookup_batch(&self.raw, &[key], |&mixed| mixed, &mut found);
        found[0]
    }

    /// Splits the first table that there was.
    fn split(&self) {
        self.growing().split_table(0, 0);
    }

    /// How many of these keys a bulk task has stored.
    fn insert_in_task(&self, keys: &[Mixed]) -> usize {
        let mut stored = vec![false; keys.len()];
        let note = |stored: &mut bool, result| *stored = result == Ok(0);
        let (mut budget, keys) = (SearchBudget::full(), keys.iter().copied());
        self.growing().insert_task(&mut budget, Put::COPY, note).run(keys.zip(&mut stored));
        stored.into_iter().filter(|&stored| stored).count()
    }

    /// What a copy of all tables has of this class.
    fn copied(&self, key: Mixed) -> usize {
        let growing = self.growing();
        let (class, mut copies) = (growing.aim(key).class, 0);
        let mut words = vec![0; self.raw.plan().words];
        let each = growing.copy_each(0..1, &mut words, |copy, words| {
            let alike = |found: &crate::layout::Class| *found == class || *found == class.turned();
            copies += self.raw.contents(copy, words).filter(|(aim, _)| alike(&aim.class)).count();
            assert_eq!(self.raw.contents(copy, words).count() as u64, copy.count, "a copy is of as many as it says");
            Ok::<(), ()>(())
        });
        each.map(|()| copies).expect("no copy is refused")
    }

    /// Once all threads have ended.
    fn assert_holds(&self, keys: &[(Mixed, usize)], tables: usize) {
        for &(key, copies) in keys {
            assert_eq!(self.raw.count(key), copies, "copies of a class");
            assert_eq!(self.contains(key), copies > 0, "a lookup agrees with the count");
            assert_eq!(self.copied(key), copies, "a snapshot agrees with the count");
        }
        assert_eq!(self.raw.len(), keys.iter().map(|&(_, copies)| copies).sum::<usize>());
        assert_eq!(self.growing().tables(), tables);
    }
}

fn explore(executions: usize, outcomes: &'static [&'static str], body: impl Fn(&Seen) + Send + Sync + 'static) {
    Model { executions, preemptions: None, outcomes }.explore(body);
}

/// A key that goes to the new table, in either bucket; and one that stays, whose lookup by itself never repeats.
fn lookup_during_a_split_finds(look: Look, executions: &[[usize; 3]]) {
    for ((bits, reserve), executions) in WIDTHS.into_iter().zip(executions) {
        let goes = BUCKETS.map(|bucket| ((1 << reserve) - 1, bucket));
        for ((cell, bucket), &executions) in goes.into_iter().chain([(0, In::Second)]).zip(executions) {
            let outcomes: &[&str] = if cell > 0 { &["found", "repeated"] } else { &["found"] };
            explore(executions, outcomes, move |seen| {
                let world = World::new(bits, reserve);
                let key = world.key(cell, 0);
                world.put(key, bucket);
                let seen = seen.clone();
                run_two(
                    &world,
                    false,
                    move |reader| {
                        assert!(look(reader, key), "a key was missed during a split");
                        seen.note("found");
                    },
                    move |splitter| splitter.split(),
                );
                world.assert_holds(&[(key, 1)], 2);
            });
        }
    }
}

#[test]
fn lookup_during_a_split_finds_its_key() {
    lookup_during_a_split_finds(World::contains, &[[45, 93, 3], [93, 93, 3], [45, 93, 3], [93, 93, 3]]);
}

/// The cells are read two blocks ahead, and asked for together by the turn: of two keys, and of one at each width.
#[test]
fn batch_during_a_split_finds_its_keys() {
    let look = |world: &World, key: Mixed| {
        let mut found = [false; 2];
        lookup_batch(&world.raw, &[key; 2], |&mixed| mixed, &mut found);
        found == [true; 2]
    };
    lookup_during_a_split_finds(look, &[[3345, 12195, 30]]);
    lookup_during_a_split_finds(
        World::contains_in_batch,
        &[[663, 1590, 30], [1590, 1590, 30], [663, 1590, 30], [1590, 1590, 30]],
    );
}

type Look = fn(&World, Mixed) -> bool;

/// A lookup of a key that goes through all splits, beside `work`, which is told the key as it is looked for from the bucket in which
/// it lies, and from the other one. The class is there all the time.
fn lookup_beside(
    model: Model,
    doublings: Doublings,
    bucket: In,
    look: Look,
    missed: &'static str,
    work: impl Fn(&World, Mixed, Mixed) + Copy + Send + Sync + 'static,
) {
    model.explore(move |seen| {
        let world = doublings.world(16);
        let key = world.key(doublings.cell(), 0);
        let (here, there) = if bucket == In::First { (key, world.turned(key)) } else { (world.turned(key), key) };
        world.put(here, In::First);
        let seen = seen.clone();
        run_two(
            &world,
            false,
            move |reader| {
                assert!(look(reader, key), "{missed}");
                seen.note("found");
            },
            move |writer| work(writer, here, there),
        );
        world.assert_holds(&[(key, 1)], doublings.tables());
    });
}

/// A move in the table before it is split, or in the new one afterwards.
fn lookup_during_a_split_and_a_move(look: Look, preemptions: usize, executions: [usize; 4]) {
    let cases = [(true, In::First), (true, In::Second), (false, In::First), (false, In::Second)];
    for ((before, bucket), executions) in cases.into_iter().zip(executions) {
        let model = Model { executions, preemptions: Some(preemptions), outcomes: &["found", "repeated"] };
        lookup_beside(
            model,
            Doublings::Splits(1),
            bucket,
            look,
            "a key was missed during a split and a move",
            move |world, here, _| {
                // Without a look at the cell, which this thread changes afterwards: that would blind the model.
                assert!(!before || world.growing().hop_in_table(0, here));
                world.split();
                assert!(before || world.growing().hop(here));
            },
        );
    }
}

#[test]
fn lookup_during_a_split_and_a_move_finds_its_key() {
    lookup_during_a_split_and_a_move(World::contains, 3, [1212, 1758, 1844, 6138]);
}

#[test]
fn batch_during_a_split_and_a_move_finds_its_key() {
    lookup_during_a_split_and_a_move(World::contains_in_batch, 2, [5988, 4400, 5376, 10813]);
}

/// H2 across a split: a copy where the lookup has read already, and the removal of the one that it has not.
#[test]
fn lookup_during_a_split_finds_an_equal_fingerprint() {
    for (look, preemptions, executions) in
        [(World::contains as Look, 3, [1844, 6138]), (World::contains_in_batch, 2, [5376, 10813])]
    {
        for (bucket, executions) in BUCKETS.into_iter().zip(executions) {
            let model = Model { executions, preemptions: Some(preemptions), outcomes: &["found", "repeated"] };
            lookup_beside(
                model,
                Doublings::Splits(1),
                bucket,
                look,
                "a class that was always there was missed",
                |world, here, there| {
                    world.split();
                    assert!(world.growing().insert_into_first(there));
                    assert!(world.raw.remove(here));
                },
            );
        }
    }
}

/// Of two tables that are split at the same time, one is that of the key. Each publication ends a turn of its own.
#[test]
fn batch_during_splits_of_two_tables_finds_its_key() {
    Model { executions: 4570, preemptions: Some(2), outcomes: &["found", "repeated"] }.explore(|seen| {
        let world = World::new(16, 2);
        let (key, other) = (world.key(3, 0), world.key(1, 0));
        world.put(key, In::First);
        world.put(other, In::First);
        world.split();
        let seen = seen.clone();
        run_three(
            &world,
            move |reader| {
                assert!(reader.contains_in_batch(key), "a key was missed during two splits at a time");
                seen.note("found");
            },
            |one| _ = one.growing().split_table(1, 1),
            |two| _ = two.growing().split_table(0, 1),
        );
        world.assert_holds(&[(key, 1), (other, 1)], 4);
    });
}

/// Of the keys of a block, one is in a table of 17 bits, which is read as two runs, and one in its child of 16.
#[test]
fn batch_of_two_widths_finds_a_key_that_moves() {
    // Only out of the second bucket is a key missed; fewer executions of the other one would be said first.
    for (bucket, executions) in [(In::Second, 1194), (In::First, 1095)] {
        let outcomes: &[&str] = if bucket == In::First { &["found"] } else { &["found", "repeated"] };
        Model { executions, preemptions: Some(2), outcomes }.explore(move |seen| {
            let world = World::new(17, 2);
            let [moves, stays] = [0, 3].map(|cell| world.key(cell, 0));
            let here = if bucket == In::First { moves } else { world.turned(moves) };
            world.put(here, In::First);
            world.put(stays, In::First);
            world.split();
            let seen = seen.clone();
            run_two(
                &world,
                false,
                move |reader| {
                    let mut found = [false; 2];
                    lookup_batch(&reader.raw, &[moves, stays], |&mixed| mixed, &mut found);
                    assert!(found == [true; 2], "a key of a block of two widths was missed");
                    seen.note("found");
                },
                move |writer| assert!(writer.growing().hop(here)),
            );
            world.assert_holds(&[(moves, 1), (stays, 1)], 2);
        });
    }
}

/// A lookup that began at the first of three tables; with or without a move in the second one, before that is split.
#[test]
fn lookup_during_two_splits_finds_its_key() {
    for (bucket, moves, executions) in
        [(In::First, false, 422), (In::Second, false, 1985), (In::First, true, 4295), (In::Second, true, 8565)]
    {
        let preemptions = Some(if moves { 2 } else { 3 });
        let model = Model { executions, preemptions, outcomes: &["found", "repeated"] };
        lookup_beside(
            model,
            Doublings::Splits(2),
            bucket,
            World::contains,
            "a key was missed during two splits",
            move |world, here, _| {
                world.split();
                assert!(!moves || world.growing().hop_in_table(1, here));
                world.growing().split_table(1, 1);
            },
        );
    }
}

/// A writer of a key that goes to the new table, and in a second model from there to a third one; each in both spawn orders.
/// What it says, and the copies of the key afterwards.
fn writer_during_a_split(
    executions: [[usize; 2]; 2],
    present: bool,
    write: fn(&World, Mixed) -> usize,
    said: usize,
    copies: usize,
) {
    for (splits, executions) in [1, 2].into_iter().zip(executions) {
        writer_during(Doublings::Splits(splits), executions, present, write, [said, copies]);
    }
}

/// The same of these doublings.
fn writer_during(
    doublings: Doublings,
    executions: [usize; 2],
    present: bool,
    write: fn(&World, Mixed) -> usize,
    [said, copies]: [usize; 2],
) {
    for (swapped, executions) in [false, true].into_iter().zip(executions) {
        explore(executions, &[], move |_| {
            let world = doublings.world(16);
            let key = world.key(doublings.cell(), 0);
            if present {
                world.put(key, In::Second);
            }
            let double = move |world: &Arc<World>| doublings.double(world);
            let (found, ()) = run_two(&world, swapped, move |writer| write(writer, key), double);
            assert_eq!(found, said, "what a writer was told during a split");
            world.assert_holds(&[(key, copies)], doublings.tables());
        });
    }
}

/// Every writer beside a refill, and beside one and the split of the table that it makes.
#[test]
fn writers_during_a_refill_are_told_what_is() {
    type Case = (fn(&World, Mixed) -> usize, bool, [usize; 2], [[usize; 2]; 2]);
    let cases: [Case; 7] = [
        (|world, key| usize::from(world.insert_unique(key)), false, [1, 1], [[27, 30], [231, 396]]),
        (|world, key| usize::from(world.growing().insert_into_first(key)), false, [1, 1], [[27, 30], [231, 396]]),
        (|world, key| world.insert_in_task(&[key]), false, [1, 1], [[27, 30], [231, 396]]),
        (|world, key| usize::from(world.raw.remove(key)), true, [1, 0], [[60, 60], [660, 909]]),
        (|world, key| world.raw.remove_all(key), true, [1, 0], [[27, 30], [231, 396]]),
        (|world, key| world.raw.count(key), true, [1, 1], [[27, 30], [231, 396]]),
        (|world, _| world.raw.len(), true, [1, 1], [[3, 15], [3, 42]]),
    ];
    for (write, present, told, executions) in cases {
        for (doublings, executions) in [Doublings::Refill, Doublings::RefillAndSplit].into_iter().zip(executions) {
            writer_during(doublings, executions, present, write, told);
        }
    }
}

/// No cell names the table any more that a copy has found.
#[test]
fn copy_during_a_refill_has_the_key_once() {
    for (doublings, executions) in [(Doublings::Refill, [9, 21]), (Doublings::RefillAndSplit, [18, 75])] {
        writer_during(doublings, executions, true, World::copied, [1, 1]);
    }
}

/// In the table that is refilled or in the new one, with a move in either, or a second copy and the removal of the first.
#[test]
fn lookup_during_a_refill_finds_its_key() {
    type Work = fn(&World, Mixed, Mixed);
    let only: Work = |world, _, _| world.split();
    let after_a_move: Work = |world, here, _| {
        assert!(world.growing().hop_in_table(0, here));
        world.split();
    };
    let before_a_move: Work = |world, here, _| {
        world.split();
        assert!(world.growing().hop(here));
    };
    let two_copies: Work = |world, here, there| {
        world.split();
        assert!(world.growing().insert_into_first(there));
        assert!(world.raw.remove(here));
    };
    let and_split: Work = |world, _, _| Doublings::RefillAndSplit.double(world);
    let cases: [(Doublings, Work, &[[usize; 2]]); 5] = [
        (Doublings::Refill, only, &[[65, 105], [542, 767]]),
        (Doublings::Refill, after_a_move, &[[1212, 1758], [7468, 5427]]),
        (Doublings::Refill, before_a_move, &[[2116, 6958]]),
        (Doublings::Refill, two_copies, &[[2116, 6958]]),
        (Doublings::RefillAndSplit, and_split, &[[825, 1518], [11_543, 16_467]]),
    ];
    for (doublings, work, executions) in cases {
        for ((look, preemptions), executions) in
            [(World::contains as Look, 3), (World::contains_in_batch, 2)].into_iter().zip(executions)
        {
            for (bucket, &executions) in BUCKETS.into_iter().zip(executions) {
                let model = Model { executions, preemptions: Some(preemptions), outcomes: &["found", "repeated"] };
                lookup_beside(model, doublings, bucket, look, "a key was missed during a refill", work);
            }
        }
    }
}

/// A thread that waited for the locks of a retired table finds that no cell names the table, and does not publish a second
/// child of it.
#[test]
fn a_table_that_was_refilled_is_not_doubled_again() {
    explore(15, &[], |_| {
        let world = Doublings::RefillAndSplit.world(16);
        let keys = [0, 1].map(|cell| world.key(cell, 0));
        keys.into_iter().for_each(|key| world.put(key, In::First));
        let again = |world: &Arc<World>| {
            world.growing().split_table(0, 0);
            world.growing().split_table(0, 1);
        };
        run_two(&world, false, move |one| one.split(), again);
        world.assert_holds(&keys.map(|key| (key, 1)), 1);
    });
}

#[test]
fn insertion_during_a_split_is_kept() {
    let insert = |world: &World, key| {
        world.insert(key);
        0
    };
    writer_during_a_split([[27, 30], [231, 396]], false, insert, 0, 1);
}

#[test]
fn insertion_under_one_lock_during_a_split_is_kept() {
    let insert = |world: &World, key| usize::from(world.growing().insert_into_first(key));
    writer_during_a_split([[27, 30], [231, 396]], false, insert, 1, 1);
}

#[test]
fn insertion_under_all_locks_during_a_split_is_kept() {
    let insert = |world: &World, key| {
        world.growing().insert_alone(key);
        0
    };
    writer_during_a_split([[27, 30], [231, 396]], false, insert, 0, 1);
}

#[test]
fn task_during_a_split_is_kept() {
    writer_during_a_split([[27, 30], [231, 396]], false, |world, key| world.insert_in_task(&[key]), 1, 1);
}

/// A bulk task that finds its table full splits it, and has the keys that are left in both tables.
fn during_a_task_that_splits<T: Send + 'static>(
    executions: usize,
    other: fn(&World, [Mixed; 3]) -> T,
    said: fn(T) -> bool,
    copies: [usize; 3],
) {
    Model { executions, preemptions: Some(2), outcomes: &[] }.explore(move |_| {
        let world = World::new(16, 1);
        let keys: [_; 11] = core::array::from_fn(|number| world.key(number % 2, number / 2));
        keys[..8].iter().for_each(|&key| world.insert(key));
        let others = [keys[0], keys[7], keys[10]];
        let (stored, answer) =
            run_two(&world, false, move |bulk| bulk.insert_in_task(&keys[8..10]), move |beside| other(beside, others));
        assert!(stored == 2 && said(answer), "what a writer was told beside a task that splits");
        let mut expected = keys.map(|key| (key, 1));
        (expected[0].1, expected[7].1, expected[10].1) = (copies[0], copies[1], copies[2]);
        world.assert_holds(&expected, 2);
    });
}

#[test]
fn lookups_during_a_task_that_splits_find_their_keys() {
    let look = |world: &World, [stays, goes, _]: [Mixed; 3]| world.contains(goes) && world.contains(stays);
    during_a_task_that_splits(577, look, |found| found, [1, 1, 0]);
}

#[test]
fn insertion_during_a_task_that_splits_is_kept() {
    let insert = |world: &World, [.., new]: [Mixed; 3]| world.raw.insert(new);
    during_a_task_that_splits(8713, insert, |result| result == Ok(()), [1, 1, 1]);
}

#[test]
fn removal_during_a_task_that_splits_removes() {
    during_a_task_that_splits(2771, |world, [_, goes, _]| world.raw.remove(goes), |removed| removed, [1, 0, 0]);
}

/// Of two threads that find a table full, one splits it, and neither is refused.
#[test]
fn two_insertions_into_a_full_table_split_it_once() {
    Model { executions: 27470, preemptions: Some(2), outcomes: &[] }.explore(|_| {
        let world = World::new(16, 2);
        let keys: [_; 10] = core::array::from_fn(|number| world.key(number % 4, number / 4));
        keys[..8].iter().for_each(|&key| world.insert(key));
        let insert = |key| move |world: &Arc<World>| assert_eq!(world.raw.insert(key), Ok(()));
        run_two(&world, false, insert(keys[8]), insert(keys[9]));
        world.assert_holds(&keys.map(|key| (key, 1)), 2);
        assert_eq!(world.raw.totals().refused_full, 0);
    });
}

#[test]
fn removal_during_a_split_removes() {
    writer_during_a_split([[60, 60], [660, 909]], true, |world, key| usize::from(world.raw.remove(key)), 1, 0);
}

#[test]
fn removal_of_all_during_a_split_removes() {
    writer_during_a_split([[27, 30], [231, 396]], true, |world, key| world.raw.remove_all(key), 1, 0);
}

#[test]
fn count_during_a_split_is_exact() {
    writer_during_a_split([[27, 30], [231, 396]], true, |world, key| world.raw.count(key), 1, 1);
}

#[test]
fn copy_during_a_split_has_the_key_once() {
    writer_during_a_split([[9, 12], [18, 39]], true, World::copied, 1, 1);
}

#[test]
fn len_during_a_split_is_exact() {
    writer_during_a_split([[3, 15], [3, 42]], true, |world, _| world.raw.len(), 1, 1);
}

/// `len` never counts a removal from the new table without the insertion into the old one.
#[test]
fn len_during_an_insertion_a_split_and_a_removal_is_that_of_some_moment() {
    in_both_orders([12, 69], &["without the key", "with the key"], |seen, swapped| {
        let world = World::new(16, 1);
        let [key, stays] = [world.key(1, 0), world.key(0, 0)];
        world.put(stays, In::First);
        let (len, ()) = run_two(
            &world,
            swapped,
            move |reader| reader.raw.len(),
            move |writer| {
                writer.put(key, In::First);
                writer.split();
                assert!(writer.raw.remove(key));
            },
        );
        assert!((1..=2).contains(&len), "a sum of {len} was that of no moment");
        seen.note(if len == 1 { "without the key" } else { "with the key" });
        world.assert_holds(&[(stays, 1), (key, 0)], 2);
    });
}

/// A hop of a path, whose fingerprint may have gone to the other table: then it is spoiled.
#[test]
fn move_during_a_split_keeps_the_key() {
    in_both_orders([12, 9], &["moved", "spoiled"], |seen, swapped| {
        let world = World::new(16, 1);
        let key = world.key(1, 0);
        world.put(key, In::First);
        // Looked for in the table that is split, as by a path that was found before.
        let (moved, ()) = run_two(
            &world,
            swapped,
            move |mover| mover.growing().hop_in_table(0, key),
            move |splitter| splitter.split(),
        );
        seen.note(if moved { "moved" } else { "spoiled" });
        world.assert_holds(&[(key, 1)], 2);
    });
}

/// A key that makes room by the last hop of a path, out of a table that is being split.
#[test]
fn last_hop_during_a_split_is_kept() {
    for (admission, executions) in [(Put::COPY, [27, 30]), (Put::UNIQUE, [27, 30])] {
        for (swapped, executions) in [false, true].into_iter().zip(executions) {
            explore(executions, &["stored", "begins anew"], move |seen| {
                let world = World::new(16, 1);
                let [key, stays] = [world.key(1, 0), world.key(0, 0)];
                world.put(stays, In::First);
                let seen = seen.clone();
                run_two(
                    &world,
                    swapped,
                    move |writer| match writer.growing().displace(stays, key, admission) {
                        Some(stored) => {
                            assert_eq!(stored, 0, "there was room");
                            seen.note("stored");
                        }
                        None => {
                            seen.note("begins anew");
                            writer.insert(key);
                        }
                    },
                    move |splitter| splitter.split(),
                );
                world.assert_holds(&[(key, 1), (stays, 1)], 2);
            });
        }
    }
}

#[test]
fn unique_during_a_split_admits_one() {
    in_both_orders([57, 84], &["first", "second"], |seen, swapped| {
        let world = World::new(16, 1);
        let key = world.key(1, 0);
        let admitted = run_two(
            &world,
            swapped,
            move |one| one.insert_unique(key),
            move |other| {
                other.split();
                other.insert_unique(key)
            },
        );
        seen.one_winner(["first", "second"], admitted, "exactly one is admitted");
        world.assert_holds(&[(key, 1)], 2);
    });
}

#[test]
fn two_splits_of_one_table_are_one() {
    explore(9, &[], |_| {
        let world = World::new(16, 2);
        let [goes, stays] = [world.key(3, 0), world.key(0, 0)];
        world.put(goes, In::First);
        world.put(stays, In::First);
        run_two(&world, false, move |one| one.split(), move |other| other.split());
        world.assert_holds(&[(goes, 1), (stays, 1)], 2);
    });
}

/// The new table is found in the list before cells name it. Split at once, it would have cells of its child's overwritten.
#[test]
fn split_of_a_child_waits_for_the_split_that_makes_it() {
    explore(51, &["split", "not there yet"], |seen| {
        let world = World::new(16, 2);
        let keys = [0, 1, 2, 3].map(|cell| world.key(cell, 0));
        keys.into_iter().for_each(|key| world.put(key, In::First));
        let ((), split) =
            run_two(&world, false, move |one| one.split(), move |other| other.growing().split_table(1, 1));
        seen.note(if split { "split" } else { "not there yet" });
        world.assert_holds(&keys.map(|key| (key, 1)), if split { 3 } else { 2 });
    });
}

/// A clear empties both the old table and the new one.
fn clear_leaves_nothing(doublings: Doublings, executions: [usize; 2]) {
    in_both_orders(executions, &[], move |_, swapped| {
        let world = doublings.world(16);
        let keys = [world.key(1, 0), world.key(0, 0)];
        keys.into_iter().for_each(|key| world.put(key, In::First));
        run_two(
            &world,
            swapped,
            move |clearer| {
                clearer.raw.clear();
                assert!(keys.iter().all(|&key| !clearer.contains(key)), "a key was found after a clear");
            },
            move |splitter| splitter.split(),
        );
        world.assert_holds(&keys.map(|key| (key, 0)), doublings.tables());
    });
}

#[test]
fn clear_during_a_split_leaves_nothing() {
    clear_leaves_nothing(Doublings::Splits(1), [282, 102]);
}

#[test]
fn clear_during_a_refill_leaves_nothing() {
    clear_leaves_nothing(Doublings::Refill, [1191, 411]);
}

/// A clear takes a class once: not in the table that is doubled and, stored again, in the new one.
fn clear_takes_a_class_once(doublings: Doublings, executions: usize) {
    explore(executions, &["1", "2"], move |seen| {
        let world = doublings.world(16);
        let key = world.key(1, 0);
        let ((), admitted) = run_two(
            &world,
            false,
            move |clearer| clearer.raw.clear(),
            move |writer| {
                let first = writer.growing().insert_unique_in_first_table(key);
                let second = writer.growing().insert_unique_in_first_table(key);
                writer.split();
                [first, second].into_iter().filter(|&had| had == 0).count() + usize::from(writer.insert_unique(key))
            },
        );
        seen.note(admitted.to_string());
        assert!(admitted <= 2, "one clear has taken a class twice");
        let left = world.raw.count(key);
        world.assert_holds(&[(key, left)], doublings.tables());
    });
}

#[test]
fn clear_during_a_split_takes_a_class_once() {
    clear_takes_a_class_once(Doublings::Splits(1), 114);
}

#[test]
fn clear_during_a_refill_takes_a_class_once() {
    clear_takes_a_class_once(Doublings::Refill, 114);
}

/// A lookup that finds its key in the table that is split, while it has gone from the new one.
fn lookups_during_a_split_do_not_find_what_was_gone(executions: usize, take: fn(&World, Mixed)) {
    Model { executions, preemptions: Some(2), outcomes: &["found", "missed"] }.explore(move |seen| {
        let world = World::new(16, 1);
        let key = world.key(1, 0);
        world.put(key, In::First);
        let seen = seen.clone();
        run_three(
            &world,
            move |reader| {
                if reader.contains(key) {
                    seen.note("found");
                } else {
                    seen.note("missed");
                    assert!(!reader.contains(key), "a key that was gone was found again");
                }
            },
            move |taker| take(taker, key),
            move |splitter| splitter.split(),
        );
        world.assert_holds(&[(key, 0)], 2);
    });
}

#[test]
fn lookups_during_a_split_and_a_clear_do_not_find_what_was_gone() {
    lookups_during_a_split_do_not_find_what_was_gone(3650, |world, _| world.raw.clear());
}

/// Also between the lock of the new table and the clear of the old one.
#[test]
fn lookups_during_a_split_and_a_removal_do_not_find_what_was_gone() {
    lookups_during_a_split_do_not_find_what_was_gone(1966, |world, key| assert!(world.raw.remove(key)));
}

/// Store buffering where the split lets two threads have no lock in common (models *_are_visible_when_they_return).
#[test]
fn insertions_during_a_split_are_visible_when_they_return() {
    Model { executions: 1836, preemptions: Some(2), outcomes: &["both", "one"] }.explore(|seen| {
        let world = World::new(16, 1);
        let [stays, goes] = [world.key(0, 0), world.key(1, 0)];
        let insert = |own, other| {
            move |world: &Arc<World>| {
                world.insert(own);
                world.contains(other)
            }
        };
        let (one, other, ()) = run_three(&world, insert(stays, goes), insert(goes, stays), |world| world.split());
        assert!(one || other, "neither of two insertions that had returned was seen");
        seen.note(if one && other { "both" } else { "one" });
        world.assert_holds(&[(stays, 1), (goes, 1)], 2);
    });
}

/// The load for which a split is asked for is read without locks.
#[test]
fn a_table_that_was_emptied_is_not_split() {
    explore(30, &["1", "2"], |seen| {
        let world = World::new(16, 2);
        let keys: [_; 8] = core::array::from_fn(|number| world.key(number % 4, number / 4));
        keys.into_iter().for_each(|key| world.insert(key));
        let clear = |world: &Arc<World>| {
            world.raw.clear();
            world.growing().tables()
        };
        let ((), tables) = run_two(&world, false, move |splitter| splitter.growing().relieve_home(keys[0]), clear);
        seen.note(tables.to_string());
        assert_eq!(world.growing().tables(), tables, "a table was split that had been emptied");
        world.assert_holds(&keys.map(|key| (key, 0)), tables);
    });
}
