//! H7: a copy of a shard, made for a snapshot while other threads change the shard. Each copy is loaded into a shard again.

use super::exclusive::Change::{Insert, Remove};
use super::exclusive::{FullPair, task};
use super::harness::*;
use crate::layout::Class;
use std::sync::{Arc, Mutex};

/// A shard and its copy: the words, and the number of fingerprints in them.
struct Copied {
    world: Arc<World>,
    copy: Mutex<(Vec<u64>, u64)>,
}

fn copy() -> Op<Copied> {
    op(|Copied { world, copy }: &Copied| {
        let mut words = vec![0; world.plan().words as usize];
        let (count, _) = world.shard().copy_to(&mut words);
        *copy.lock().expect("no thread panics here") = (words, count);
    })
}

fn of(step: Op<World>) -> Op<Copied> {
    op(move |Copied { world, .. }: &Copied| step(world))
}

/// The number of copies of each class in the copied shard, in both buckets and in the first. The first class was present
/// throughout.
fn race(world: impl Fn() -> Arc<World> + Send + Sync + 'static, classes: &[Class], others: usize) -> Race<Copied> {
    let classes = classes.to_vec();
    let left = move |Copied { world, copy }: &Copied| {
        let (words, count) = &*copy.lock().expect("no thread panics here");
        let loaded = World::loaded(world.plan(), words.iter().copied(), *count);
        assert!(loaded.contains(classes[0]), "a key that was there throughout is not in the copy");
        let taken = loaded.shard().occupied();
        assert_eq!(taken, Some(*count), "the count of a copy is the number of slots taken in it");
        let in_first = classes.iter().map(|&class| loaded.in_first(class)).collect();
        [loaded.sums(&classes, others), in_first].concat()
    };
    let copied = move || Arc::new(Copied { world: world(), copy: Mutex::default() });
    Race::new("a copy is that of no moment", copied, left)
}

/// A key moves between the first and the last bucket, which are in different stripes. In either bucket, `below` slots below it are
/// in use.
fn copy_during_a_move_has_the_key((width, buckets, stripe_shift): (u32, u32, u32), below: u32) {
    let last = buckets - 1;
    let up = key_in(&plan(width, buckets, stripe_shift), 0, 0, last);
    // A copy that reads the buckets in order could lose the key that moves down, and have the key that moves up twice.
    for (moved, executions) in [(up.turned(), 18), (up, 15)] {
        let world =
            move || World::new(width, buckets, stripe_shift).full(0, below, 20).full(last, below, 30).with(moved);
        race(world, &[moved], 2 * below as usize).thread([copy()]).thread([of(moves(moved))]).explore([executions; 2]);
    }
}

models! {
    copy_during_a_move_has_the_key_at_16_bits => copy_during_a_move_has_the_key((16, 2, 0), 0);
    /// Slot 2 of bucket 0 straddles two words.
    copy_during_a_move_has_the_key_at_24_bits => copy_during_a_move_has_the_key((24, 4, 1), 2);
}

/// A lookup does not wait for a copy.
#[test]
fn copy_and_lookup_during_a_move_both_find_the_key() {
    for (moved, executions) in [(key(7, 1, 0), 7753), (key(7, 0, 1), 6553)] {
        race(move || World::new(16, 2, 0).with(moved), &[moved], 0)
            .threads(copy(), of(moves(moved)))
            .thread([of(finds(moved.turned()))])
            .at_most(3)
            .seen(&["repeated"])
            .explore([executions]);
    }
}

/// A key is inserted, upper bucket first, and the count tells whether it is in the copy. No deadlock.
fn insertion_is_in_the_copy_or_not(insert: fn(Class) -> Op<World>, executions: usize) {
    let (old, new) = (key(7, 0, 1), key(8, 1, 0));
    race(move || World::new(16, 2, 0).with(old), &[old, new], 0)
        .threads(copy(), of(insert(new)))
        .explore([executions; 2]);
}

models! {
    copy_during_an_insertion_counts_right => insertion_is_in_the_copy_or_not(insert, 15);
    /// The same under the lock of the upper bucket alone.
    copy_during_a_one_lock_insertion_counts_right => insertion_is_in_the_copy_or_not(insert_into_first, 12);
}

/// As in the models of equal_fingerprint: another key of the class is inserted into the other bucket, and its removal takes the
/// old copy.
#[test]
fn copy_during_the_removal_of_a_copy_has_the_class() {
    for (stays, executions) in [(key(7, 1, 0), [21, 36]), (key(7, 0, 1), [18, 36])] {
        race(move || World::new(16, 2, 0).with(stays), &[stays], 0)
            .thread([copy()])
            .thread([of(insert(stays.turned())), of(remove(stays))])
            .explore(executions);
    }
}

/// A copy has all changes of a bulk task or none, because the task holds the locks until it ends.
#[test]
fn copy_during_a_task_has_all_of_it_or_nothing() {
    for (from, executions) in [(3, 24), (0, 21)] {
        let pair = FullPair::new(16, 0, from, 0);
        let [new, other] = pair.absent();
        race(move || pair.world(), &[pair.moved(), new, other], 7)
            .threads(copy(), of(task([Insert(new), Remove(new), Insert(other)])))
            .explore([executions; 2]);
    }
}
