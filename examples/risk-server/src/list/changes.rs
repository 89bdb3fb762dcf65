//! The log of the store: the changes of the list, in order.

use super::error::StoreError;
use super::front::Side;
use super::store::{CHANGES, DELETE, PUT};
use redb::ReadTransaction;

/// What came of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Replayed {
    /// How many changes there were.
    pub(super) changes: u64,
    /// The number of the last one.
    pub(super) sequence: u64,
    /// Changes that cannot have followed what the side held. There are none unless something is broken.
    pub(super) faults: u64,
}

/// Makes the changes after the given one on a side that holds the list as it was then.
pub(super) fn replay(transaction: &ReadTransaction, after: u64, side: &Side) -> Result<Replayed, StoreError> {
    let table = transaction.open_table(CHANGES)?;
    let mut replayed = Replayed { changes: 0, sequence: after, faults: 0 };
    for entry in table.range(after.saturating_add(1)..)? {
        let (sequence, change) = entry?;
        let sound = match change.value() {
            (PUT, key) => {
                side.insert(key);
                true
            }
            (DELETE, key) => side.remove(key),
            _ => false,
        };
        replayed.faults += u64::from(!sound || sequence.value() != replayed.sequence + 1);
        replayed.changes += 1;
        replayed.sequence = sequence.value();
    }
    Ok(replayed)
}
