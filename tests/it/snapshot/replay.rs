//! A log of changes replayed over a snapshot that was taken during them, as described at `Snapshot::metadata`. (`model` tests
//! snapshots at rest.)

use crate::support::{Stable as Filter, hasher, stable, written_while};

/// Keys are inserted before each piece of a snapshot of two shards: some are in it, some are not.
#[test]
fn over_one_taken_during_writes_insertions_can_be_replayed_if_nothing_is_ever_removed() {
    for bits in [4, 13, 32] {
        let live = stable(300_000, bits);
        assert_eq!(live.config().shards, 2);
        let mut keys = 0..;
        let mut insert = |_| keys.by_ref().take(1000).for_each(|key| live.insert(&key).unwrap());
        insert(0);
        let loaded = Filter::read_from(&written_while(&live, insert)[..], hasher()).unwrap();
        let keys = live.len() as u64;
        assert!(loaded.len() > 1000 && loaded.len() < live.len(), "{} of {keys} keys", loaded.len());
        for key in 1000..keys {
            loaded.insert_unique(&key).unwrap();
        }
        assert!((0..keys).all(|key| loaded.contains(&key)), "{bits} bits");
        assert!(loaded.len() <= live.len(), "{bits} bits: a key is there twice");
        assert!(bits < 32 || loaded.len() == live.len(), "no two keys are alike at this width");
    }
}
