//! Reading on several threads: one thread reads, and the others check and store.

use super::arriving::{Arrived, Arriving};
use super::join::Store;
use crate::error::SnapshotError;
use crate::raw::SlotKind;
use std::io::Read;
use std::sync::mpsc;

/// Stores all records. As with one thread, the error is that of the first failing record.
pub(super) fn read<K: SlotKind>(
    mut first: Option<Arrived>,
    mut arriving: Arriving<'_, impl Read>,
    store: &Store<K>,
) -> Result<(), SnapshotError> {
    let add = |arrived: Arrived| {
        let result = store.add(&arrived);
        (arrived, result)
    };
    let (give, stored) = mpsc::channel();
    let (mut under_way, mut spare, mut failed) = (0, Vec::new(), None);
    let mut keep = |(arrived, result): (Arrived, Result<(), SnapshotError>), spare: &mut Vec<Vec<u8>>| {
        spare.push(arrived.bytes);
        let Err(error) = result else { return false };
        failed = failed
            .take()
            .into_iter()
            .chain([(arrived.head.record.extent.first_cell, error)])
            .min_by_key(|&(cell, _)| cell);
        true
    };
    let threads = rayon::current_num_threads();
    let read = rayon::in_place_scope(|scope| {
        loop {
            let next = if first.is_some() { first.take() } else { arriving.next(spare.pop().unwrap_or_default())? };
            let Some(arrived) = next else { return Ok(()) };
            // If all threads are busy, this thread stores, too: it may be the only one, and must not wait for the others.
            let now = if under_way < threads {
                under_way += 1;
                let give = give.clone();
                // After an error the receiver is gone, and the result is not needed.
                scope.spawn(move |_| drop(give.send(add(arrived))));
                None
            } else {
                Some(add(arrived))
            };
            let others = stored.try_iter().inspect(|_| under_way -= 1);
            // Results that are not received after a failure belong to later records.
            if others.chain(now).any(|stored| keep(stored, &mut spare)) {
                return Ok(());
            }
        }
    });
    drop(give);
    for stored in stored {
        keep(stored, &mut spare);
    }
    // An error of the reader comes after every shard that arrived.
    failed.map_or(read, |(_, error)| Err(error))
}
