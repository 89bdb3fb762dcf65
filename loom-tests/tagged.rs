//! Expiring keys: ticks concurrent with lookups and writers, on 16-bit slots with tags of 2 bits (a cycle of 4 epochs), and on
//! 12-bit slots with tags of 4 bits, where a slot straddles two words and its tag does not.

use super::harness::{self, Op, Race, finds, join, key, key_in, moves, op, plan, spawn};
use crate::layout::{Class, Extent, Hop, Plan, Tags};
use crate::raw::{Assembly, Fixed, IfPresent, Put, Tagging};
use crate::sys::memory::HugePages;
use std::sync::{Arc, Mutex};

/// The longest life with tags of 2 bits.
pub(super) const MOST: u32 = 3;

pub(super) type World = harness::World<Tagging>;

impl World {
    /// Two buckets, each of one word and one stripe.
    fn small() -> Arc<Self> {
        World::of(&small())
    }

    /// The same with one copy of class 0, in bucket 0, since an insertion takes the lower empty slot. The next copy goes to bucket
    /// 1.
    fn holding(value: u32) -> Arc<Self> {
        World::small().with(class(0), value)
    }

    /// Inserts, and returns the previous value of the class; `None` if there is no room.
    pub(super) fn put(&self, class: Class, value: u32, if_present: IfPresent) -> Option<u32> {
        self.place(class, Put { value, if_present })
    }

    /// Stores an absent class in the lower empty slot of its pair.
    pub(super) fn store(&self, class: Class, value: u32) {
        assert_eq!(self.put(class, value, IfPresent::Another), Some(0));
    }

    pub(super) fn with(self: Arc<Self>, class: Class, value: u32) -> Arc<Self> {
        self.store(class, value);
        self
    }

    /// Fills the lowest empty slots of this bucket with keys that have no other bucket.
    fn full(self: Arc<Self>, bucket: u32, slots: u32, from: u32, value: u32) -> Arc<Self> {
        (from..from + slots).fold(self, |world, fingerprint| world.with(key(fingerprint, bucket, bucket), value))
    }

    pub(super) fn later(self: Arc<Self>, ticks: u32) -> Arc<Self> {
        (0..ticks).for_each(|_| _ = self.raw.advance());
        self
    }

    pub(super) fn values(&self, class: Class) -> Vec<u32> {
        let mut values = self.raw.values(self.mixed(class)).to_vec();
        values.sort_unstable();
        values
    }
}

fn small() -> Plan {
    plan(16, 2, 0).with_tags(2)
}

/// 12-bit slots, which straddle words, with tags of 4 bits, which do not.
fn straddling() -> Plan {
    plan(12, 4, 2).with_tags(4)
}

fn class(number: usize) -> Class {
    key_in(&small(), number, 0, 1)
}

/// A race that ends with the values of these classes and the number of slots in use.
pub(super) fn race(
    rule: &'static str,
    world: impl Fn() -> Arc<World> + Send + Sync + 'static,
    classes: &[Class],
) -> Race<World> {
    let classes = classes.to_vec();
    Race::new(rule, world, move |world: &World| {
        let values = classes.iter().flat_map(|&class| world.values(class)).map(|value| value as usize);
        values.chain([world.raw.len()]).collect()
    })
}

/// A race that ends with the numbers of copies, and checks that dead keys stay dead and that the count of slots in use is right.
fn race_of_the_dead<const CLASSES: usize>(
    rule: &'static str,
    world: impl Fn() -> Arc<World> + Send + Sync + 'static,
    classes: [Class; CLASSES],
) -> Race<World> {
    Race::new(rule, world, move |world: &World| {
        let left = classes.iter().map(|&class| world.values(class).len()).collect();
        for _ in 0..4 {
            world.raw.advance();
            assert!(!classes.iter().any(|&class| world.contains(class)), "{rule}");
        }
        assert_eq!(world.raw.len(), 0, "slots in use are counted");
        left
    })
}

/// Applies `is` to the values that a reader finds.
fn reads(class: Class, is: fn(&[u32]) -> usize) -> Op<World> {
    op(move |world: &World| is(&world.values(class)))
}

fn store(class: Class, value: u32) -> Op<World> {
    op(move |world: &World| world.store(class, value))
}

fn put(class: Class, value: u32) -> Op<World> {
    op(move |world: &World| world.put(class, value, IfPresent::Another).is_some())
}

fn put_under_one_lock(class: Class, value: u32) -> Op<World> {
    op(move |world: &World| world.shard().insert_into(Fixed, class.first, class, value) == Ok(true))
}

pub(super) fn adds(class: Class, value: u32, renews: bool) -> Op<World> {
    op(move |world: &World| world.put(class, value, IfPresent::Add { renews }).expect("there is room") as usize)
}

fn raise(class: Class, value: u32) -> Op<World> {
    op(move |world: &World| world.shard().update(Fixed, class, None, |had| had.max(value)).is_ok_and(|had| had > 0))
}

fn replace(class: Class, from: u32, to: u32) -> Op<World> {
    op(move |world: &World| world.shard().update(Fixed, class, Some(from), |_| to).is_ok_and(|had| had > 0))
}

pub(super) fn tick() -> Op<World> {
    op(|world: &World| _ = world.raw.advance())
}

/// Lookups that read either bucket first, concurrent with a writer. The class is present throughout. `repeats` states for each of
/// the two lookups whether a repetition must occur.
fn never_missed(
    executions: [usize; 4],
    world: fn() -> Arc<World>,
    class: Class,
    writes: impl Fn() -> Vec<Op<World>>,
    repeats: [bool; 2],
) {
    for (number, asked) in [class, class.turned()].into_iter().enumerate() {
        race("a key that lives was missed", world, &[class])
            .thread([finds(asked)])
            .thread(writes())
            .seen(if repeats[number] { &["repeated"] } else { &[] })
            .explore([executions[number], executions[number + 2]]);
    }
}

/// One copy dies at the second tick and is swept. Another copy of the class is stored before that, in bucket 1, which the lookup
/// may already have read.
#[test]
fn stored_again_before_death_is_never_missed() {
    let writes = || vec![store(class(0), MOST), tick(), tick()];
    never_missed([36, 168, 288, 660], || World::holding(1), class(0), writes, [false, true]);
}

/// As before, but one thread stores, and another one waits for it and makes the tick, under no lock since all is swept: a thread
/// that sees the tick sees the copy.
#[test]
fn stored_again_by_another_thread_is_never_missed() {
    let world = || {
        let world = World::holding(1);
        assert!(!world.raw.sweep(2), "nothing is left to sweep");
        Arc::new(world)
    };
    let store_elsewhere = op(|world: &Arc<World>| {
        let world = Arc::clone(world);
        join(spawn(move || world.store(class(0), MOST)));
    });
    let left = |world: &Arc<World>| world.values(class(0)).into_iter().map(|value| value as usize).collect();
    Race::new("a key that lives was missed", world, left)
        .thread([op(|world: &Arc<World>| world.contains(class(0)))])
        .thread([store_elsewhere, op(|world: &Arc<World>| _ = world.raw.advance())])
        .explore([30, 20]);
}

/// A copy that is renewed for the longest time after a tick has the tag that was dead before the tick.
#[test]
fn renewed_beside_a_tick_is_never_missed() {
    let writes = || vec![tick(), raise(class(0), MOST)];
    never_missed([54, 54, 72, 72], || World::holding(2), class(0), writes, [true, true]);
}

/// As before, for a block of a batch.
#[test]
fn renewed_beside_a_tick_is_never_missed_by_a_batch() {
    race("a key that lives was missed", || World::holding(2), &[class(0)])
        .thread([op(|world: &World| world.contains_each([class(0)])[0])])
        .thread([tick(), raise(class(0), MOST)])
        .seen(&["repeated"])
        .explore([174, 150]);
}

/// The tag that is dead when the lookup begins is in use again before it ends.
#[test]
fn a_lookup_that_sleeps_while_epochs_come_round_misses_nothing() {
    let raise = || raise(class(0), MOST);
    let writes = || vec![tick(), raise(), tick(), tick(), raise(), tick()];
    never_missed([11661, 11661, 25239, 25239], || World::holding(2), class(0), writes, [true, true]);
}

/// The slot straddles two words, and its tag is in one: a lookup sees the old deadline or the new one, both alive.
#[test]
fn renewed_in_a_straddling_slot_is_never_missed() {
    // Epoch 5. The tag changes from 6 to 9; written in halves, it would pass through 5, which is dead.
    let world = || {
        let world = World::of(&straddling()).later(5).full(1, 1, 20, 15).full(2, 4, 30, 15);
        world.with(key_in(&straddling(), 0, 1, 2), 1)
    };
    let class = key_in(&straddling(), 0, 1, 2);
    never_missed([12, 12, 15, 15], world, class, || vec![raise(class, 4)], [false, false]);
}

/// A lookup, a renewal and a relocation of one key.
#[test]
fn renewed_beside_a_relocation_is_never_missed() {
    race("the renewal goes with the copy that stays", || World::holding(1), &[class(0)])
        .threads(finds(class(0).turned()), raise(class(0), MOST))
        .thread([moves(class(0))])
        .at_most(3)
        .seen(&["repeated"])
        .explore([7680]);
}

/// A writer that waited for its locks during a tick must judge by the new epoch: a slot that is dead by the old one may hold a
/// key that was just stored.
fn takes_no_live_slot(executions: [usize; 2], store: Op<World>) {
    let world = || World::small().full(0, 3, 20, MOST).full(1, 3, 30, MOST).with(class(2), MOST);
    let copies = |world: &World| {
        [0, 1, 2].map(|number| world.values(class(number)).len()).into_iter().chain([world.raw.len()]).collect()
    };
    Race::new("one slot takes one key", world, copies)
        .thread([store])
        .thread([tick(), put(class(1), MOST)])
        .explore(executions);
}

/// Moves class 2 to its other bucket, and stores class 0 in its slot.
fn displace_class_2() -> Op<World> {
    op(|world: &World| {
        let put = Put { value: MOST, if_present: IfPresent::Another };
        let Ok(result) = world.shard().relocate_along(Fixed, [Hop::of(class(2))], class(0), put);
        result.is_some()
    })
}

models! {
    overwriting_takes_no_live_slot => takes_no_live_slot([54, 126], put(class(0), MOST));
    overwriting_under_one_lock_takes_no_live_slot =>
        takes_no_live_slot([27, 51], put_under_one_lock(class(0).turned(), MOST));
    overwriting_by_a_last_hop_takes_no_live_slot => takes_no_live_slot([54, 126], displace_class_2());
}

/// Whichever epoch the insertion has read, the key has its time, less at most the tick.
#[test]
fn tick_and_insertion_for_the_longest_time() {
    race("a key that lives was swept", World::small, &[class(0)])
        .threads(store(class(0), MOST), tick())
        .explore([45, 69]);
}

/// A tick waits for the writer that holds a stripe, so no key is stored with the tag of an epoch before the last one; such a key
/// could live again after its death.
fn stalled_writer_stores_by_the_last_epoch(executions: [usize; 2], store: Op<World>) {
    race_of_the_dead("a dead key lives again", World::small, [class(0)])
        .thread([store])
        .thread([tick(), tick()])
        .explore(executions);
}

models! {
    stalled_writer_stores_by_the_last_epoch_or_this_one =>
        stalled_writer_stores_by_the_last_epoch([102, 303], store(class(0), 1));
    stalled_one_lock_writer_stores_by_the_last_epoch_or_this_one =>
        stalled_writer_stores_by_the_last_epoch([51, 111], put_under_one_lock(class(0), 1));
}

/// A relocation from a stripe that has not been swept to one that has moves live copies only.
#[test]
fn relocation_beside_a_sweep_brings_nothing_back() {
    // The fillers make room in bucket 0, which is swept first.
    let (dead, dies) = (class(0).turned(), class(1).turned());
    let world = move || World::small().full(0, 4, 20, 1).with(dead, 1).with(dies, 2).later(1);
    race_of_the_dead("what was dead lives again", world, [dead, dies])
        .thread([op(move |world: &World| _ = world.shard().hop(Hop::of(dead))), moves(dies)])
        .thread([tick()])
        .explore([378, 474]);
}

/// Of two threads that see a key at the same time, one is told that it is new.
#[test]
fn seen_twice_is_new_once() {
    let sees = |class| op(move |world: &World| world.put(class, MOST, IfPresent::Raise) == Some(0));
    race("exactly one is told that the key is new", World::small, &[class(0)])
        .threads(sees(class(0)), sees(class(0).turned()))
        .explore([12]);
}

/// No addition is lost during a relocation, whichever copy it finds.
#[test]
fn counted_beside_a_relocation_adds_up() {
    race("each addition counts", || World::holding(1), &[class(0)])
        .threads(adds(class(0), 1, false), adds(class(0).turned(), 1, false))
        .thread([moves(class(0))])
        .never(|_, left| left[0] != 3)
        .at_most(3)
        .explore([1714]);
}

/// A value that is present throughout is read, even if the reader finds another copy of the class.
#[test]
fn values_beside_a_relocation_are_all_read() {
    race("a value was missed", || World::holding(1).with(class(0), 2), &[class(0)])
        .thread([reads(class(0), |values| [1, 2].iter().all(|value| values.contains(value)).into())])
        .thread([moves(class(0).turned())])
        .seen(&["repeated"])
        .explore([744, 696]);
}

/// Store buffering between the epoch and a word: once a tick and an insertion have both returned, at least one of the two threads
/// sees what the other did.
#[test]
fn ticks_are_visible_when_they_return() {
    Race::new("neither sees what the other has done", World::small, |_| Vec::new())
        .thread([store(class(0), MOST), op(|world: &World| world.raw.epoch() == 1)])
        .thread([tick(), finds(class(0))])
        .explore([204]);
}

/// Four epochs are a whole cycle, which a long advance skips. A clone contains the keys inserted after the clear and no expired ones,
/// and advances like the filter.
#[test]
fn a_clone_beside_a_long_advance_is_as_old_as_the_filter() {
    let advance = op(|world: &World| world.raw.advance_to(4) as usize);
    let stored_or_kept = op(|world: &World| {
        let is_stored = world.put(class(0), MOST, IfPresent::Keep) == Some(0);
        let clone = world.raw.try_clone(&mut vec![0; world.raw.plan().words as usize]).expect("memory");
        clone.advance_to(4);
        is_stored != clone.contains(world.mixed(class(0)))
    });
    race("a clone lost a key that the filter keeps, or keeps one that has died", || World::holding(1), &[class(0)])
        .threads(advance, stored_or_kept)
        .explore([180, 621]);
}

/// A key inserted after a long advance has cleared the table expires no earlier in a clone than in the filter.
#[test]
fn a_clone_beside_a_long_advance_keeps_what_is_stored_meanwhile() {
    let lost = op(|world: &World| {
        let clone = world.raw.try_clone(&mut vec![0; world.raw.plan().words as usize]).expect("memory");
        let had = clone.contains(world.mixed(class(1)));
        clone.advance_to(4);
        had && !clone.contains(world.mixed(class(1)))
    });
    race("a clone lost a key that the filter keeps", || World::holding(1), &[class(1)])
        .thread([op(|world: &World| world.raw.advance_to(4) as usize)])
        .thread([store(class(1), MOST)])
        .thread([lost])
        .at_most(3)
        .explore([5800]);
}

/// A snapshot copies one shard after the other, with ticks in between. The tags of each shard refer to the epoch at which it was
/// copied, and the loaded filter continues from the latest of them.
#[test]
fn shards_copied_at_different_epochs_keep_their_deadlines() {
    /// The world, and the words, the count and the epoch of each shard that was copied.
    type Copied = (Arc<World>, Mutex<Vec<(Vec<u64>, u64, u64)>>);
    let plan = Plan { shards: 2, ..plan(16, 2, 1).with_tags(2) };
    let (dies, stays) = (key_in(&plan, 0, 0, 1), key_in(&plan, 1, 0, 1));
    let world = move || {
        let world = World::of(&plan);
        for (number, class, value) in [(0, dies, 1), (1, stays, MOST)] {
            let put = Put { value, if_present: IfPresent::Another };
            assert_eq!(world.raw.flat().at(number).insert_into_pair(Fixed, class, put), Ok(Some(Ok(0))));
        }
        Arc::new((world, Mutex::default()))
    };
    let copy = |number: usize| {
        op(move |(world, copied): &Copied| {
            let mut words = vec![0; world.raw.plan().words as usize];
            let (count, epoch) = world.raw.flat().at(number).copy_to(&mut words);
            copied.lock().expect("no thread panics here").push((words, count, epoch));
        })
    };
    let tick = || op(|(world, _): &Copied| _ = world.raw.advance());
    let renew = move |(world, _): &Copied| {
        assert_eq!(world.raw.flat().at(1).update(Fixed, stays, None, |had| had.max(MOST)), Ok(1));
    };
    let left = move |(_, copied): &Copied| {
        let copied = copied.lock().expect("no thread panics here");
        let assembly = Assembly::<Tagging>::new(&plan, HugePages::Unadvised).expect("memory");
        for (first_cell, (words, count, epoch)) in copied.iter().enumerate() {
            let added = assembly.add(&Extent { first_cell, depth: 0, dropped: 0 }, *epoch, |shard| {
                shard.fill_with(words.iter().copied(), *count);
                Ok::<_, ()>(())
            });
            assert!(added.is_ok());
        }
        let read = assembly.finish().expect("memory");
        let [first, second] = [0, 1].map(|number| {
            let (tags, slots) = (Tags::new(&plan), read.flat().at(number).contents());
            let moment = tags.moment(read.epoch());
            let live = slots.filter(|&(_, slot)| tags.fingerprint(slot, moment).is_some());
            live.map(|(_, slot)| tags.value(slot, moment)).collect::<Vec<_>>()
        });
        let now = copied[1].2 as u32;
        assert_eq!(first, vec![1; usize::from(now == 0)], "what is dead lives in what was read");
        assert!(second == [MOST - now] || now == 2 && second == [MOST], "a deadline was changed: {second:?} at {now}");
        copied.iter().map(|copied| copied.2 as usize).collect()
    };
    Race::new("shards are copied at epochs of no order", world, left)
        .thread([copy(0), copy(1)])
        .thread([tick(), tick(), op(renew)])
        .explore([657, 1686]);
}

/// A reader sees the old tag or the new one, wherever the copy is.
#[test]
fn a_tag_changed_beside_a_relocation_is_read() {
    // A copy that is being moved may be seen in both buckets.
    let one_tag = |values: &[u32]| match values {
        [] => 0,
        [first, rest @ ..] => {
            if rest.iter().all(|value| value == first) {
                *first as usize
            } else {
                9
            }
        }
    };
    race("the new tag goes with the copy that stays", || World::holding(1), &[class(0)])
        .threads(reads(class(0).turned(), one_tag), replace(class(0), 1, 2))
        .thread([moves(class(0))])
        .at_most(3)
        .seen(&["repeated"])
        .explore([15_999]);
}

/// Another copy of the class is stored with the same tag, and one of the two gets a new tag; either may.
#[test]
fn a_tag_that_stays_is_read_while_a_copy_gets_another() {
    // In bucket 1, the first bucket of `mate`.
    let mate = class(0).turned();
    race("a tag that stays is left out", move || World::small().with(mate, 1), &[class(0)])
        .thread([reads(class(0), |values| values.contains(&1).into())])
        .thread([store(mate, 1), replace(mate, 1, 2)])
        .explore([744]);
}

/// A key moves into the slot that another key has left, while a reader reads the two words of that slot.
#[test]
fn values_in_two_words_are_of_one_key() {
    let class = key_in(&straddling(), 0, 1, 2);
    // The sixth slot begins at bit 60: its tag is at the end of one word, its fingerprint in the next.
    let world = move || World::of(&straddling()).full(1, 4, 20, 15).with(class, 1);
    let leaves = |world: &World| world.shard().remove(Fixed, key(21, 1, 1), None) == Ok(15);
    race("the value of another key", world, &[class])
        .thread([reads(class, |values| (values.contains(&1) && !values.contains(&15)).into())])
        .thread([op(leaves), moves(class.turned())])
        .at_most(2)
        .explore([5025]);
}

/// A key is stored in an empty slot of two words. At epoch 1, the tag 0 of the empty slot would have 15 ticks left.
#[test]
fn values_in_two_words_beside_an_insertion_are_its_own() {
    let class = key_in(&straddling(), 0, 1, 2);
    let world = move || World::of(&straddling()).later(1).full(1, 1, 20, 15).full(2, 4, 30, 15);
    race("the value of an empty slot", world, &[class])
        .threads(reads(class, |values| [&[][..], &[3]].contains(&values).into()), store(class, 3))
        .explore([114]);
}

/// The same key is cleared with the whole filter.
#[test]
fn values_in_two_words_beside_a_clear_are_its_own() {
    let class = key_in(&straddling(), 0, 1, 2);
    let world = move || World::of(&straddling()).later(1).full(1, 1, 20, 15).full(2, 4, 30, 15).with(class, 3);
    race("the value of a cleared tag", world, &[class])
        .threads(reads(class, |values| [&[][..], &[3]].contains(&values).into()), op(|world: &World| world.raw.clear()))
        .explore([83790]);
}

/// A slot in two words is swept. Its tag becomes one that is alive only when its fingerprint is gone.
#[test]
fn dead_while_it_is_swept() {
    let class = key_in(&straddling(), 0, 1, 2);
    let world = move || World::of(&straddling()).full(1, 1, 20, 15).full(2, 4, 30, 15).with(class, 1).later(1);
    race("a dead key lives again", world, &[class])
        .threads(finds(class), op(|world: &World| _ = world.raw.sweep(4)))
        .explore([69]);
}
