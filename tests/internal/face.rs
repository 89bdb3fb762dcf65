//! The parts of a layout.

use crate::Layout;
use crate::layout::Plan;
use proptest::prelude::*;

/// A layout with this number of shards of the minimum size.
fn layout(shards: usize) -> Layout<u64, ()> {
    let plan = Plan { shards, ..Plan::one_shard(13, 32, 4) };
    Layout::new(0, None, plan, ())
}

proptest! {
    #[test]
    fn a_key_is_in_one_part_and_parts_are_even(
        hash: u64,
        shards in prop_oneof![1..5_usize, 1..100_000_usize, 1..usize::MAX >> 8],
        parts in prop_oneof![1..5_usize, 1..100_000_usize, 1..=usize::MAX],
    ) {
        let layout = layout(shards);
        let part = layout.part_of_hash(hash, parts);
        prop_assert!(part < parts);
        let range = layout.part(part, parts);
        prop_assert!(range.contains(&layout.shard_of_hash(hash)));
        prop_assert!((shards / parts..=shards.div_ceil(parts)).contains(&range.len()));
        prop_assert_eq!(layout.part(0, parts).start, 0);
        prop_assert_eq!(layout.part(parts - 1, parts).end, shards);
        if part > 0 {
            prop_assert_eq!(layout.part(part - 1, parts).end, range.start);
        }
    }
}

#[test]
#[should_panic(expected = "part 3 of 3 was requested; parts are numbered from 0")]
fn a_part_that_is_not_there() {
    let _ = layout(10).part(3, 3);
}

#[test]
#[should_panic(expected = "0 parts were requested; at least 1 is needed")]
fn no_parts() {
    let _ = layout(10).part_of_hash(0, 0);
}
