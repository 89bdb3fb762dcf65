//! Models of table splits, concurrent with every other operation (docs/design/growth.md).

use super::harness::{Op, Race, contains_each, op};
use crate::layout::{Class, Mixed, Plan, SearchBudget};
use crate::raw::{Bare, Growing, Put, RawFilter, SlotKind};
use crate::sys::memory::HugePages;
use std::sync::Arc;

/// A growing filter of one shard that starts with a table of two buckets.
pub(super) struct World<K: SlotKind = Bare> {
    pub(super) raw: RawFilter<K>,
    /// The keys of the model, of different classes. Nothing else is stored.
    pub(super) keys: Vec<Mixed>,
    /// The first key, as a hash whose lookup reads first the bucket that holds it, and as one whose lookup reads the other first.
    sides: Option<[Mixed; 2]>,
}

#[derive(Clone, Copy)]
enum Doublings {
    Splits(u32),
    /// By a refill into a table of four buckets.
    Refill,
    RefillAndSplit,
}
use Doublings::{Refill, RefillAndSplit, Splits};

impl Doublings {
    fn world(self, bits: u32) -> World {
        match self {
            Splits(splits) => World::new(bits, splits),
            Refill | RefillAndSplit => {
                World::of(&Plan { reserve_bits: 2, extension_bits: 1, ..Plan::one_shard(bits, 4, 4) })
            }
        }
    }

    /// The cell of a key that moves to another table in each doubling.
    fn cell(self) -> usize {
        if let Splits(splits) = self { (1 << splits) - 1 } else { 1 }
    }

    fn steps(self) -> impl Iterator<Item = Op<World>> {
        let count = match self {
            Splits(splits) => splits,
            Refill => 1,
            RefillAndSplit => 2,
        };
        (0..count).map(|number| split(number as usize, number))
    }
}

#[derive(Clone, Copy, PartialEq)]
enum In {
    First,
    Second,
}

/// The bucket of the key under test: the one that a lookup reads first, or the one that it reads second.
const BUCKETS: [In; 2] = [In::First, In::Second];

/// Widths of the table that is split, chosen for the slots of its child: slots of 15 bits straddle words, 8 of 8 bits share a
/// word, 16 bits are read as two runs, and 4 bits hold the core alone.
const WIDTHS: [(u32, u32); 4] = [(16, 1), (9, 1), (17, 2), (5, 1)];

impl<K: SlotKind> World<K> {
    pub(super) fn of(plan: &Plan) -> Self {
        let raw = RawFilter::new(plan, HugePages::Unadvised).expect("memory");
        World { raw, keys: Vec::new(), sides: None }
    }

    pub(super) fn growing(&self) -> &Growing<K> {
        self.raw.growing().expect("it grows")
    }

    /// The same class as a hash that selects its other bucket first. The bucket comes from the upper half of a hash, so only that
    /// half differs.
    pub(super) fn turned(&self, key: Mixed) -> Mixed {
        let (class, lower) = (self.growing().cell_place(key).class, u64::from(key.get() as u32));
        let mut keys = (0..1 << 8).map(|upper| Mixed::of(Mixed::unmix(upper << 56 | lower)));
        keys.find(|&mixed| self.growing().cell_place(mixed).class == class.turned()).expect("a key")
    }

    /// Adds key number `number` among the keys of this cell whose first bucket is 0, or 1 in a filter with refills. The key is not
    /// stored.
    pub(super) fn key(mut self, cell: usize, number: usize) -> Self {
        let keys = (0..).map(Mixed::of).filter(|&mixed| {
            let place = self.growing().cell_place(mixed);
            place.cell == cell && place.class.first.get() == self.raw.plan().extension_bits
        });
        let key = keys.take(1000).nth(number).expect("a key");
        self.keys.push(key);
        self
    }

    pub(super) fn contains(&self, key: Mixed) -> bool {
        self.raw.contains(key)
    }

    pub(super) fn contains_in_batch(&self, key: Mixed) -> bool {
        self.contains_each([key])
    }

    fn contains_each<const KEYS: usize>(&self, keys: [Mixed; KEYS]) -> bool {
        contains_each(&self.raw, keys) == [true; KEYS]
    }
}

impl World {
    fn new(bits: u32, reserve: u32) -> Self {
        World::of(&Plan { reserve_bits: reserve, ..Plan::one_shard(bits, 2, 4) })
    }

    fn put(self, cell: usize, number: usize, bucket: In) -> Self {
        let world = self.key(cell, number);
        let key = world.keys[world.keys.len() - 1];
        assert!(world.growing().insert_into_first(key));
        assert!(bucket == In::First || world.growing().hop(key));
        world
    }

    /// Adds a key and stores it in this bucket, with the hashes that select either bucket first.
    fn put_as_side(self, cell: usize, bucket: In) -> Self {
        let world = self.key(cell, 0);
        let (key, turned) = (world.keys[0], world.turned(world.keys[0]));
        let sides = if bucket == In::First { [key, turned] } else { [turned, key] };
        assert!(world.growing().insert_into_first(sides[0]));
        World { sides: Some(sides), ..world }
    }

    fn split(self) -> Self {
        self.growing().split_table(0, 0);
        self
    }

    /// Inserts the keys by a bulk task, and returns how many it stored.
    fn insert_in_task(&self, keys: &[Mixed]) -> usize {
        let mut stored = vec![false; keys.len()];
        let note = |stored: &mut bool, result| *stored = result == Ok(0);
        let (mut budget, keys) = (SearchBudget::full(), keys.iter().copied());
        self.growing().insert_task(&mut budget, Put::COPY, note).run(keys.zip(&mut stored));
        stored.into_iter().filter(|&stored| stored).count()
    }

    fn copied(&self, key: Mixed) -> usize {
        let (class, mut copies) = (self.growing().cell_place(key).class, 0);
        let mut words = vec![0; self.raw.plan().words as usize];
        let each = self.raw.copy_each(0..1, &mut words, |copy, words| {
            let alike = |found: &Class| *found == class || *found == class.turned();
            copies += self.raw.contents(copy, words).filter(|(place, _)| alike(&place.class)).count();
            assert_eq!(self.raw.contents(copy, words).count() as u64, copy.count, "a copy is of as many as it says");
            Ok::<(), ()>(())
        });
        each.map(|()| copies).expect("no copy is refused")
    }

    /// The number of copies of each key and the number of tables, once all threads have ended.
    fn left(&self) -> Vec<usize> {
        let copies = self.keys.iter().map(|&key| {
            let copies = self.raw.count(key);
            assert_eq!(self.contains(key), copies > 0, "a lookup agrees with the count");
            assert_eq!(self.copied(key), copies, "a snapshot agrees with the count");
            copies
        });
        let copies: Vec<usize> = copies.collect();
        assert_eq!(self.raw.len(), copies.iter().sum::<usize>(), "all that is stored is counted");
        [copies, vec![self.growing().tables()]].concat()
    }
}

fn race(rule: &'static str, world: impl Fn() -> World + Send + Sync + 'static) -> Race<World> {
    Race::new(rule, move || Arc::new(world()), World::left)
}

/// Splits the table of this cell if it comes from this number of doublings, and returns whether it did.
pub(super) fn split<K: SlotKind>(cell: usize, doublings: u32) -> Op<World<K>> {
    op(move |world: &World<K>| world.growing().split_table(cell, doublings))
}

type Act = fn(&World, Mixed) -> usize;

fn on(key: usize, act: Act) -> Op<World> {
    op(move |world: &World| act(world, world.keys[key]))
}

fn on_side(side: usize, act: Act) -> Op<World> {
    op(move |world: &World| act(world, world.sides.expect("it has sides")[side]))
}

const FINDS: Act = |world, key| world.contains(key).into();
const FINDS_IN_BATCH: Act = |world, key| world.contains_in_batch(key).into();
const INSERT: Act = |world, key| usize::from(world.growing().insert_into_pair(key, Put::COPY) == Some(0));
const INSERT_UNIQUE: Act = |world, key| usize::from(world.growing().insert_into_pair(key, Put::UNIQUE) == Some(0));
const INSERT_INTO_FIRST: Act = |world, key| world.growing().insert_into_first(key).into();
const INSERT_ALONE: Act = |world, key| {
    world.growing().insert_alone(key);
    0
};
const INSERT_IN_TASK: Act = |world, key| world.insert_in_task(&[key]);
const INSERT_WHOLE: Act = |world, key| world.raw.put(key, Put::COPY).is_ok().into();
const REMOVE: Act = |world, key| world.raw.remove(key).into();
const REMOVE_ALL: Act = |world, key| world.raw.remove_all(key);
const COUNT: Act = |world, key| world.raw.count(key);
const LEN: Act = |world, _| world.raw.len();
const HOP: Act = |world, key| world.growing().hop(key).into();

fn clear() -> Op<World> {
    op(|world: &World| world.raw.clear())
}

/// Moves the key within the first table without reading the cell: a thread that reads the cell and changes it later would hide
/// interleavings from loom.
const HOP_IN_FIRST_TABLE: Act = |world, key| world.growing().hop_in_table(0, key).into();

/// Looks up a key that moves to the new table, from either bucket, and one that stays, whose lookup must not repeat.
fn lookup_during_a_split_finds(look: Act, executions: &[[usize; 3]]) {
    for ((bits, reserve), executions) in WIDTHS.into_iter().zip(executions) {
        let goes = BUCKETS.map(|bucket| ((1 << reserve) - 1, bucket));
        for ((cell, bucket), &executions) in goes.into_iter().chain([(0, In::Second)]).zip(executions) {
            race("a key was missed during a split", move || World::new(bits, reserve).put(cell, 0, bucket))
                .threads(on(0, look), split(0, 0))
                .seen(if cell > 0 { &["repeated"] } else { &[] })
                .explore([executions]);
        }
    }
}

#[test]
fn lookup_during_a_split_finds_its_key() {
    lookup_during_a_split_finds(FINDS, &[[45, 93, 3], [93, 93, 3], [45, 93, 3], [93, 93, 3]]);
}

/// A batch reads its cells two blocks ahead, and checks them together by the turn. Batches of two keys, and of one key at each
/// width.
#[test]
fn batch_during_a_split_finds_its_keys() {
    lookup_during_a_split_finds(|world, key| world.contains_each([key; 2]).into(), &[[5100, 17_700, 30]]);
    let of_one = [[1197, 2685, 30], [2685, 2685, 30], [1197, 2685, 30], [2685, 2685, 30]];
    lookup_during_a_split_finds(FINDS_IN_BATCH, &of_one);
}

/// A lookup, and the largest number of preemptions per execution.
type Look = (Act, usize);

const LOOK: Look = (FINDS, 3);
const LOOK_IN_BATCH: Look = (FINDS_IN_BATCH, 2);

/// A lookup of a key whose table is doubled by another thread, with further steps. The class is present throughout.
fn lookup_beside(
    rule: &'static str,
    doublings: Doublings,
    bucket: In,
    (look, preemptions): Look,
    executions: usize,
    steps: impl IntoIterator<Item = Op<World>>,
) {
    race(rule, move || doublings.world(16).put_as_side(doublings.cell(), bucket))
        .thread([on(0, look)])
        .thread(steps)
        .at_most(preemptions)
        .seen(&["repeated"])
        .explore([executions]);
}

/// The key moves in the first table before the split, or in the new table after it.
fn lookup_during_a_split_and_a_move(look: Look, executions: [usize; 4]) {
    let cases = [true, false].into_iter().flat_map(|before| BUCKETS.map(|bucket| (before, bucket)));
    for ((before, bucket), executions) in cases.zip(executions) {
        let (split, rule) = (split(0, 0), "a key was missed during a split and a move");
        let steps = if before { [on_side(0, HOP_IN_FIRST_TABLE), split] } else { [split, on_side(0, HOP)] };
        lookup_beside(rule, Splits(1), bucket, look, executions, steps);
    }
}

models! {
    lookup_during_a_split_and_a_move_finds_its_key => lookup_during_a_split_and_a_move(LOOK, [1212, 1758, 1844, 6138]);
    batch_during_a_split_and_a_move_finds_its_key =>
        lookup_during_a_split_and_a_move(LOOK_IN_BATCH, [7919, 5850, 17_092, 30_907]);
}

/// A split, an insertion of a copy into the bucket that the lookup has read, and the removal of the copy in the bucket that it has
/// not.
fn split_and_trade() -> [Op<World>; 3] {
    [split(0, 0), on_side(1, INSERT_INTO_FIRST), on_side(0, REMOVE)]
}

/// H2 across a split.
#[test]
fn lookup_during_a_split_finds_an_equal_fingerprint() {
    for (look, executions) in [(LOOK, [1844, 6138]), (LOOK_IN_BATCH, [17_092, 30_907])] {
        for (bucket, executions) in BUCKETS.into_iter().zip(executions) {
            let rule = "a class that was always there was missed";
            lookup_beside(rule, Splits(1), bucket, look, executions, split_and_trade());
        }
    }
}

/// Two tables are split concurrently, and one of them is that of the key. Each publication ends a turn of its own.
#[test]
fn batch_during_splits_of_two_tables_finds_its_key() {
    let world = || World::new(16, 2).put(3, 0, In::First).put(1, 0, In::First).split();
    race("a key was missed during two splits at a time", world)
        .threads(on(0, FINDS_IN_BATCH), split(1, 1))
        .thread([split(0, 1)])
        .at_most(2)
        .seen(&["repeated"])
        .explore([12_899]);
}

/// A block with one key in a table of 17-bit slots, which are read as two runs, and one key in its child of 16-bit slots.
#[test]
fn batch_of_two_widths_finds_a_key_that_moves() {
    // Only a key that moves out of the second bucket can be missed. That case comes first, so that a fault fails by a missed key
    // and not by the number of executions.
    for (bucket, executions) in [(In::Second, 1194), (In::First, 1095)] {
        let world = move || World::new(17, 2).put_as_side(0, bucket).put(3, 0, In::First).split();
        race("a key of a block of two widths was missed", world)
            .threads(op(|world: &World| world.contains_each([world.keys[0], world.keys[1]])), on_side(0, HOP))
            .at_most(2)
            .seen(if bucket == In::First { &[] } else { &["repeated"] })
            .explore([executions]);
    }
}

/// A lookup that started at the first of three tables, with or without a move in the second table before that is split.
#[test]
fn lookup_during_two_splits_finds_its_key() {
    let cases = [false, true].into_iter().flat_map(|moves| BUCKETS.map(|bucket| (moves, bucket)));
    for ((moves, bucket), executions) in cases.zip([422, 1985, 4295, 8565]) {
        let hop = on_side(0, |world, key| world.growing().hop_in_table(1, key).into());
        let steps = if moves { vec![split(0, 0), hop, split(1, 1)] } else { vec![split(0, 0), split(1, 1)] };
        let look = (FINDS, if moves { 2 } else { 3 });
        lookup_beside("a key was missed during two splits", Splits(2), bucket, look, executions, steps);
    }
}

/// A writer of a key that moves to another table, and in a second model to a third one, with the threads spawned in both orders.
fn writer_during(doublings: [Doublings; 2], executions: [[usize; 2]; 2], present: bool, write: Act) {
    for (doublings, executions) in doublings.into_iter().zip(executions) {
        let world = move || match doublings.world(16) {
            world if present => world.put(doublings.cell(), 0, In::Second),
            world => world.key(doublings.cell(), 0),
        };
        race("what a writer was told during a split", world)
            .thread([on(0, write)])
            .thread(doublings.steps())
            .explore(executions);
    }
}

const SPLITS: [Doublings; 2] = [Splits(1), Splits(2)];
const REFILLS: [Doublings; 2] = [Refill, RefillAndSplit];

/// A writer concurrent with splits, and one with refills: loom explores equally many executions of both.
fn writer_during_doublings(executions: [[usize; 2]; 2], present: bool, write: Act) {
    [SPLITS, REFILLS].into_iter().for_each(|doublings| writer_during(doublings, executions, present, write));
}

/// The table is refilled, and the key moves in the old or the new table, or a second copy is inserted and the first removed.
#[test]
fn lookup_during_a_refill_finds_its_key() {
    type Steps = fn() -> Vec<Op<World>>;
    let cases: [(Doublings, Steps, &[[usize; 2]]); 5] = [
        (Refill, || vec![split(0, 0)], &[[65, 105], [1525, 2018]]),
        (Refill, || vec![on_side(0, HOP_IN_FIRST_TABLE), split(0, 0)], &[[1212, 1758], [10_783, 7957]]),
        (Refill, || vec![split(0, 0), on_side(0, HOP)], &[[2116, 6958]]),
        (Refill, || split_and_trade().to_vec(), &[[2116, 6958]]),
        (RefillAndSplit, || RefillAndSplit.steps().collect(), &[[825, 1518], [42_009, 54_760]]),
    ];
    for (doublings, steps, executions) in cases {
        for (look, executions) in [LOOK, LOOK_IN_BATCH].into_iter().zip(executions) {
            for (bucket, &executions) in BUCKETS.into_iter().zip(executions) {
                lookup_beside("a key was missed during a refill", doublings, bucket, look, executions, steps());
            }
        }
    }
}

/// A thread that waited for the locks of a retired table finds that no cell names that table, and does not publish a second child
/// of it.
#[test]
fn a_table_that_was_refilled_is_not_doubled_again() {
    let world = || RefillAndSplit.world(16).put(0, 0, In::First).put(1, 0, In::First);
    race("a table is doubled once", world).thread([split(0, 0)]).thread([split(0, 0), split(0, 1)]).explore([15]);
}

models! {
    insertion_during_a_split_is_kept => writer_during_doublings([[27, 30], [231, 396]], false, INSERT);
    unique_insertion_during_a_split_is_kept => writer_during_doublings([[27, 30], [231, 396]], false, INSERT_UNIQUE);
    insertion_under_one_lock_during_a_split_is_kept =>
        writer_during_doublings([[27, 30], [231, 396]], false, INSERT_INTO_FIRST);
    insertion_under_all_locks_during_a_split_is_kept =>
        writer_during_doublings([[27, 30], [231, 396]], false, INSERT_ALONE);
    task_during_a_split_is_kept => writer_during_doublings([[27, 30], [231, 396]], false, INSERT_IN_TASK);
    removal_during_a_split_removes => writer_during_doublings([[60, 60], [660, 909]], true, REMOVE);
    removal_of_all_during_a_split_removes => writer_during_doublings([[27, 30], [231, 396]], true, REMOVE_ALL);
    count_during_a_split_is_exact => writer_during_doublings([[27, 30], [231, 396]], true, COUNT);
    len_during_a_split_is_exact => writer_during_doublings([[3, 27], [3, 120]], true, LEN);
    copy_during_a_split_has_the_key_once => writer_during(SPLITS, [[9, 12], [18, 39]], true, World::copied);
    /// The copy has found a table that no cell names any more.
    copy_during_a_refill_has_the_key_once => writer_during(REFILLS, [[9, 21], [18, 75]], true, World::copied);
}

/// A full table of eight keys, one per cell in turn, and further keys that are not stored.
fn full_table(reserve: u32, keys: usize) -> World {
    let cells = 1 << reserve;
    let world = (0..keys).fold(World::new(16, reserve), |world, number| world.key(number % cells, number / cells));
    world.keys[..8].iter().for_each(|&key| assert_eq!(INSERT(&world, key), 1));
    world
}

/// A bulk task that finds its table full splits it, and stores its remaining keys in both tables.
fn during_a_task_that_splits(executions: usize, beside: Op<World>) {
    race("what a writer was told beside a task that splits", || full_table(1, 11))
        .threads(op(|world: &World| world.insert_in_task(&world.keys[8..10])), beside)
        .at_most(2)
        .explore_with_watched_locks([executions]);
}

#[test]
fn lookups_during_a_task_that_splits_find_their_keys() {
    let look = |world: &World| [7, 0].iter().all(|&number| world.contains(world.keys[number]));
    during_a_task_that_splits(577, op(look));
}

models! {
    insertion_during_a_task_that_splits_is_kept => during_a_task_that_splits(17_918, on(10, INSERT_WHOLE));
    removal_during_a_task_that_splits_removes => during_a_task_that_splits(3455, on(7, REMOVE));
}

/// Two threads find a table full: one of them splits it, and neither insertion is refused.
#[test]
fn two_insertions_into_a_full_table_split_it_once() {
    race("a table is split once", || full_table(2, 10))
        .threads(on(8, INSERT_WHOLE), on(9, INSERT_WHOLE))
        .at_most(2)
        .explore([40_050]);
}

/// `len` never counts a removal from the new table without the insertion into the old one.
#[test]
fn len_during_an_insertion_a_split_and_a_removal_is_that_of_some_moment() {
    race("a sum that was that of no moment", || World::new(16, 1).key(1, 0).put(0, 0, In::First))
        .thread([on(0, LEN)])
        .thread([on(0, INSERT_INTO_FIRST), split(0, 0), on(0, REMOVE)])
        .explore([36, 129]);
}

/// A hop of a path is spoiled if its fingerprint has moved to another table.
#[test]
fn move_during_a_split_keeps_the_key() {
    // Searched in the table that is split, like a path that was found before the split.
    race("a key that moves is kept", || World::new(16, 1).put(1, 0, In::First))
        .threads(on(0, HOP_IN_FIRST_TABLE), split(0, 0))
        .explore([12, 9]);
}

/// The last hop of a path moves a key out of a table that is being split, and stores the new key in its slot.
#[test]
fn last_hop_during_a_split_is_kept() {
    for put in [Put::COPY, Put::UNIQUE] {
        let displace = move |world: &World| {
            let stored = world.growing().displace(world.keys[1], world.keys[0], put);
            stored.map_or_else(|| INSERT(world, world.keys[0]), |had| usize::from(had == 0))
        };
        race("there was room", || World::new(16, 1).key(1, 0).put(0, 0, In::First))
            .threads(op(displace), split(0, 0))
            .explore([27, 30]);
    }
}

#[test]
fn unique_during_a_split_admits_one() {
    race("exactly one is admitted", || World::new(16, 1).key(1, 0))
        .thread([on(0, INSERT_UNIQUE)])
        .thread([split(0, 0), on(0, INSERT_UNIQUE)])
        .explore([57, 84]);
}

#[test]
fn two_splits_of_one_table_are_one() {
    race("a table is split once", || World::new(16, 2).put(3, 0, In::First).put(0, 0, In::First))
        .threads(split(0, 0), split(0, 0))
        .explore([9]);
}

/// A new table is in the list before cells name it. A split of it at that moment would let its cells be overwritten.
#[test]
fn split_of_a_child_waits_for_the_split_that_makes_it() {
    let world = || (0..4).fold(World::new(16, 2), |world, cell| world.put(cell, 0, In::First));
    race("a child is there when cells name it", world).thread([split(0, 0)]).thread([split(1, 1)]).explore([51]);
}

/// A clear empties both the old table and the new one.
fn clear_leaves_nothing(doublings: Doublings, executions: [usize; 2]) {
    race("a key was found after a clear", move || doublings.world(16).put(1, 0, In::First).put(0, 0, In::First))
        .thread([clear(), op(|world: &World| world.keys.iter().any(|&key| world.contains(key)))])
        .thread([split(0, 0)])
        .explore(executions);
}

models! {
    clear_during_a_split_leaves_nothing => clear_leaves_nothing(Splits(1), [282, 102]);
    clear_during_a_refill_leaves_nothing => clear_leaves_nothing(Refill, [1191, 411]);
}

/// A clear removes a class once: it must not remove the copy in the doubled table and, after the class was stored again, the one
/// in the new table.
fn clear_takes_a_class_once(doublings: Doublings) {
    let unique = || on(0, |world, key| world.growing().insert_unique_in_first_table(key) as usize);
    race("one clear has taken a class twice", move || doublings.world(16).key(1, 0))
        .thread([clear()])
        .thread([unique(), unique(), split(0, 0), on(0, INSERT_UNIQUE)])
        .explore([114]);
}

models! {
    clear_during_a_split_takes_a_class_once => clear_takes_a_class_once(Splits(1));
    clear_during_a_refill_takes_a_class_once => clear_takes_a_class_once(Refill);
}

/// A lookup must not find its key in the table that is split after it has been removed from the new table.
fn lookups_during_a_split_do_not_find_what_was_gone(executions: usize, take: Op<World>) {
    let finds_no_more = |world: &World, key| match FINDS(world, key) {
        0 => 2 * FINDS(world, key),
        found => found,
    };
    race("a key that was gone was found again", || World::new(16, 1).put(1, 0, In::First))
        .threads(on(0, finds_no_more), take)
        .thread([split(0, 0)])
        .at_most(2)
        .explore([executions]);
}

models! {
    lookups_during_a_split_and_a_clear_do_not_find_what_was_gone =>
        lookups_during_a_split_do_not_find_what_was_gone(3650, clear());
    /// Also between the lock of the new table and the clear of the old one.
    lookups_during_a_split_and_a_removal_do_not_find_what_was_gone =>
        lookups_during_a_split_do_not_find_what_was_gone(1966, on(0, REMOVE));
}

/// Store buffering, where the split leaves two threads without a common lock (models *_are_visible_when_they_return).
#[test]
fn insertions_during_a_split_are_visible_when_they_return() {
    race("neither of two insertions that had returned was seen", || World::new(16, 1).key(0, 0).key(1, 0))
        .thread([on(0, INSERT), on(1, FINDS)])
        .thread([on(1, INSERT), on(0, FINDS)])
        .thread([split(0, 0)])
        .at_most(2)
        .explore([1836]);
}

/// The load that calls for a split is read without locks.
#[test]
fn a_table_that_was_emptied_is_not_split() {
    let split_if_nearly_full = |world: &World| _ = world.growing().split_owner_if_nearly_full(world.keys[0]);
    race("a table was split that had been emptied", || full_table(2, 8))
        .thread([op(split_if_nearly_full)])
        .thread([clear(), op(|world: &World| world.growing().tables())])
        .explore([27]);
}
