//! Store buffering: a write is visible to every thread when it returns, so of two threads that each write one key and then look up
//! the other's, at least one finds it. No model of a single class shows this.

use super::exclusive::Change::Insert;
use super::exclusive::{FullPair, task};
use super::harness::*;
use crate::layout::Class;
use crate::raw::Put;
use std::sync::Arc;

/// Each thread changes a world of its own and then looks up the key in the other world, so that the threads have no lock in
/// common.
fn is_visible_when_it_returns(
    executions: usize,
    world: impl Fn() -> Arc<World> + Copy + Send + Sync + 'static,
    change: Op<World>,
    key: Class,
) {
    type Two = (Arc<World>, Arc<World>);
    let (here, there) = (Arc::clone(&change), change);
    let left = move |(one, other): &Two| [one, other].map(|world| usize::from(world.contains(key))).to_vec();
    Race::new("neither of two writes that had returned was seen", move || Arc::new((world(), world())), left)
        .thread([op(move |(own, _): &Two| here(own)), op(move |(_, other): &Two| other.contains(key))])
        .thread([op(move |(_, own): &Two| there(own)), op(move |(other, _): &Two| other.contains(key))])
        .explore([executions]);
}

fn pair(executions: usize, copies: usize, change: fn(Class) -> Op<World>) {
    let class = key(7, 0, 1);
    let world = move || World::new(16, 2, 0).with_copies(copies, class);
    is_visible_when_it_returns(executions, world, change(class), class);
}

models! {
    insertions_are_visible_when_they_return => pair(30, 0, insert);
    one_lock_insertions_are_visible_when_they_return => pair(30, 0, insert_into_first);
    unique_insertions_are_visible_when_they_return => pair(30, 0, insert_unique);
}

/// The key is stored in the slot that a last hop has freed.
#[test]
fn insertions_by_a_path_are_visible_when_they_return() {
    let full = FullPair::new(16, 0, 0, 0);
    let new = full.key(7, 0, 1);
    is_visible_when_it_returns(3825, move || full.world(), path([full.moved()], new, Put::COPY), new);
}

models! {
    removals_are_visible_when_they_return => pair(30, 1, remove);
    removals_of_all_copies_are_visible_when_they_return => pair(2604, 2, remove_all);
    clears_are_visible_when_they_return => pair(288, 1, |_| clear());
    tasks_are_visible_when_they_return => pair(30, 0, |key| task([Insert(key)]));
}
