//! A log of changes replayed over a snapshot that was taken during them: what `Snapshot::metadata` says of it, where it goes
//! well and where not. (Over one that was taken at rest: `model`.)

use crate::support::{Stable as Filter, hasher, stable};
use std::io::{self, Write};

/// A writer before each of whose pieces something happens to the filter that is written: before the header, three times
/// in each shard, and before the trailer.
struct Interrupted<F> {
    bytes: Vec<u8>,
    happens: F,
}

impl<F: FnMut(usize)> Write for Interrupted<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (self.happens)(self.bytes.len());
        self.bytes.extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The filter of a snapshot in which something happened meanwhile; it is told the bytes that are written.
fn taken_while(filter: &Filter, happens: impl FnMut(usize)) -> Filter {
    let mut writer = Interrupted { bytes: Vec::new(), happens };
    filter.write_to(&mut writer).unwrap();
    Filter::read_from(&writer.bytes[..], hasher()).unwrap()
}

/// Keys are inserted before each piece of a snapshot of two shards: some are in it, some are not.
#[test]
fn over_one_taken_during_writes_insertions_can_be_replayed_if_nothing_is_ever_removed() {
    for bits in [4, 13, 32] {
        let live = stable(300_000, bits);
        assert_eq!(live.config().shards, 2);
        let mut keys = 0..;
        let mut insert = |_| keys.by_ref().take(1000).for_each(|key| live.insert(&key).unwrap());
        insert(0);
        let loaded = taken_while(&live, insert);
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

/// Two keys that a filter cannot tell apart.
fn twins() -> [u64; 2] {
    let filter = stable(100, 4);
    filter.insert(&0).unwrap();
    [0, (1..).find(|key| filter.contains(key)).unwrap()]
}

/// A filter with the first of them, and a snapshot of it that was taken before, in whose shards the key is.
fn with_first_inserted_meanwhile(a: u64) -> [Filter; 2] {
    let live = stable(100, 4);
    let loaded = taken_while(&live, |at| {
        if at == 0 {
            live.insert(&a).unwrap()
        }
    });
    [live, loaded]
}

#[test]
fn over_one_taken_during_writes_an_insertion_leaves_a_copy_and_a_removal_loses_another_key() {
    let [a, b] = twins();
    let [live, loaded] = with_first_inserted_meanwhile(a);
    loaded.insert(&a).unwrap();
    assert!(loaded.remove(&a));
    assert!(loaded.contains(&a), "one copy was in the snapshot, and one was replayed");

    live.insert(&b).unwrap();
    let loaded = taken_while(&live, |at| assert!(at > 0 || live.remove(&a)));
    assert!(loaded.contains(&b));
    assert!(loaded.remove(&a), "it was removed before, so this is the other one's copy");
    assert!(live.contains(&b) && !loaded.contains(&b));
}

#[test]
fn after_insertions_were_replayed_as_unique_a_removal_loses_another_key() {
    let [a, b] = twins();
    let [_, loaded] = with_first_inserted_meanwhile(a);
    assert_eq!(loaded.insert_unique(&a), Ok(false));
    assert_eq!(loaded.insert_unique(&b), Ok(false), "it is taken for the other one");
    assert!(loaded.contains(&a) && loaded.contains(&b));
    assert!(loaded.remove(&a));
    assert!(!loaded.contains(&b));
}
