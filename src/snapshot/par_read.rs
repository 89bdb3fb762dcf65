//! Reading on several threads: one reads, the others check and build what it has read.

use super::read::{Arrived, Arriving, Parts};
use crate::error::SnapshotError;
use crate::shard::Shard;
use std::io::Read;
use std::sync::mpsc;

/// What became of the bytes of a shard, and their memory, for the next.
struct Built {
    number: usize,
    shard: Result<Shard, SnapshotError>,
    bytes: Vec<u8>,
}

impl Built {
    fn of(arrived: Arrived) -> Self {
        Built { number: arrived.number, shard: arrived.shard(), bytes: arrived.bytes }
    }
}

/// Adds all shards to the parts. As when one thread reads, the error is that of the first shard that has one.
pub(super) fn read(mut arriving: Arriving<impl Read>, parts: &mut Parts) -> Result<(), SnapshotError> {
    let (give, built) = mpsc::channel();
    let (mut under_way, mut spare, mut failed) = (0, Vec::new(), None);
    let mut keep = |Built { number, shard, bytes }: Built, spare: &mut Vec<Vec<u8>>| {
        spare.push(bytes);
        let Err(error) = shard.and_then(|shard| parts.push(number, shard)) else { return false };
        if failed.as_ref().is_none_or(|&(first, _)| number < first) {
            failed = Some((number, error));
        }
        true
    };
    let threads = rayon::current_num_threads();
    let read = rayon::in_place_scope(|scope| {
        while let Some(arrived) = arriving.next(spare.pop().unwrap_or_default())? {
            // With all threads at work this one builds too: it may be the only one, and must not wait for the others.
            let now = if under_way < threads {
                under_way += 1;
                let give = give.clone();
                // Nobody listens any more after an error, which is what was to be told.
                scope.spawn(move |_| drop(give.send(Built::of(arrived))));
                None
            } else {
                Some(Built::of(arrived))
            };
            let others = built.try_iter().inspect(|_| under_way -= 1);
            // Behind a failure, what this does not ask for any more was read later.
            if others.chain(now).any(|built| keep(built, &mut spare)) {
                break;
            }
        }
        Ok(())
    });
    drop(give);
    for built in built {
        keep(built, &mut spare);
    }
    // What went wrong with the reading itself stands behind every shard that had arrived.
    failed.map_or(read, |(_, error)| Err(error))
}
