//! H1: lookups in blocks of two keys, concurrent with the relocation of one key or both.

use super::harness::*;
use super::relocation::relocation_is_never_missed;
use crate::layout::Class;

fn first_of_a_block(world: &World, key: Class) -> bool {
    world.contains_each([key, bystander(world)])[0]
}

fn second_of_a_block(world: &World, key: Class) -> bool {
    world.contains_each([bystander(world), key])[1]
}

/// Looks up the only key of the second block of a batch.
fn short_block(world: &World, key: Class) -> bool {
    world.contains_each([bystander(world), bystander(world), key])[2]
}

/// A key whose buckets and stripe no thread writes, so that it adds no executions.
fn bystander(world: &World) -> Class {
    let buckets = world.plan().buckets;
    key_in(world.plan(), 0, buckets - 2, buckets - 1)
}

models! {
    batch_lookup_during_relocation_at_4_bits =>
        relocation_is_never_missed(4, 2, 3, first_of_a_block, [1890, 1890, 1890, 1890, 1935, 1935, 1935, 1935]);
    batch_lookup_during_relocation_at_12_bits =>
        relocation_is_never_missed(12, 2, 1, first_of_a_block, [9906, 9906, 33039, 33039, 8817, 8817, 27456, 27456]);
    batch_lookup_during_relocation_at_16_bits =>
        relocation_is_never_missed(16, 0, 0, first_of_a_block, [744, 738, 744, 738, 696, 639, 696, 639]);
    batch_lookup_during_relocation_at_24_bits =>
        relocation_is_never_missed(24, 1, 1, first_of_a_block, [9306, 8547, 28542, 33774, 6294, 5583, 22278, 21240]);
    batch_lookup_of_the_second_key_during_relocation =>
        relocation_is_never_missed(16, 0, 0, second_of_a_block, [744, 738, 744, 738, 696, 639, 696, 639]);
    short_batch_during_relocation_at_4_bits =>
        relocation_is_never_missed(4, 2, 3, short_block, [1890, 1890, 1890, 1890, 1935, 1935, 1935, 1935]);
    short_batch_during_relocation_at_16_bits =>
        relocation_is_never_missed(16, 0, 0, short_block, [744, 738, 744, 738, 696, 639, 696, 639]);
}

/// Both keys of a block are present throughout. Some of them move, one after the other, each out of the bucket that the lookup
/// reads last. A block that met a move looks up both of its keys again.
fn neither_key_of_a_block_is_missed<const MOVED: usize>(
    stripe_shift: u32,
    preemptions: Option<usize>,
    moved: [usize; MOVED],
    executions: [usize; 2],
) {
    let plan = plan(16, 4, stripe_shift);
    let keys = [key_in(&plan, 0, 0, 1), key_in(&plan, 0, 2, 3)];
    let world = move || World::new(16, 4, stripe_shift).with(keys[0]).with(keys[1]);
    race("a key that only moved was missed in a block", world, &keys, 0)
        .thread([op(move |world: &World| world.contains_each(keys.map(Class::turned)) == [true; 2])])
        .thread(moved.map(|number| moves(keys[number])))
        .at_most(preemptions)
        .seen(&["repeated"])
        .explore(executions);
}

models! {
    block_during_a_move_of_its_first_key_misses_neither => neither_key_of_a_block_is_missed(0, None, [0], [744, 696]);
    block_during_a_move_of_its_second_key_misses_neither => neither_key_of_a_block_is_missed(0, None, [1], [744, 696]);
    /// The second key first: each may move after the block has read the other.
    block_during_moves_of_both_keys_misses_neither => neither_key_of_a_block_is_missed(0, Some(3), [1, 0], [9508; 2]);
    block_during_moves_in_one_stripe_misses_neither => neither_key_of_a_block_is_missed(2, Some(3), [0, 1], [30348; 2]);
}
