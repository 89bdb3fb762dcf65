//! The exact list and the filter in front of it.
//!
//! ```text
//! List, Replacement      what others call                  Options, Change, ListStats, errors
//! writer                 the one thread that changes       group, copy, growth, replacement, doubt, chores
//! open, grow, snapshot   what takes long, elsewhere        load, changes (the log), file
//! front, store           what look-ups see, what is so     overflow; redb
//! ```
//!
//! # What holds at every moment
//!
//! 1. Each key of the committed store is in the front, so the front's "no" is right.
//! 2. Each key of the store is once in the filter, or once in the overflow, which has the keys that the filter refused;
//!    nothing else is, but for the moments named below. So a removal never takes the fingerprint of another key.
//! 3. What was acknowledged is on disk: redb has synced the file when a commit returns. (Where that failed and the file,
//!    opened again, has the commit all the same, it is acknowledged too: a disk that loses what it was told to sync is
//!    not covered.)
//!
//! # In which order the store and the front change
//!
//! One thread changes both, for one transaction after the other. Look-ups go on at every step. A look-up asks the front
//! and then, after a "maybe", the store as it is at that moment.
//!
//! - *A put of an absent key*: front, commit. A look-up between them says "maybe" and the store "no": it came before
//!   the put. Had the commit come first, the front would deny a key that is on the list.
//! - *A delete of a present key*: commit, front. Between them, as before. The other way round, the front would deny a
//!   key that is still on the list, and will be if the commit fails.
//! - *A put of a present key, a delete of an absent one*: the store says that it changes nothing, so the front is left
//!   alone. This is why repeats are harmless, where a filter alone would count or remove too much.
//! - *Several changes of one key in one transaction*: only the state before and the state after count. Absent, then
//!   present: one insertion before the commit. Present, then absent: one removal after it. The same before and after:
//!   nothing; a put with a delete after it is never in the store, and a delete with a put after it leaves the one
//!   fingerprint where it is. The log gets the same net changes. Were each change made on the filter in turn, copies
//!   would pile up before the commit (a key has room for 8), and one that the filter refuses would be in the filter and
//!   the overflow at a time.
//! - *A commit that fails* may be on disk or not, and redb refuses everything until it is opened again. Until then the
//!   front keeps the puts and keeps the deletes, which is right in both cases. Then the number of the last change
//!   tells: if the commit was made, the deletes are removed; if not, the puts are, which have surely been inserted. A
//!   failure before the commit comes before any change of the front.
//! - *A larger filter* is loaded from one moment of the store, and gets the changes after it from the log; the last
//!   ones, and its installation, come between two transactions, so it has neither one less nor one more. Look-ups that
//!   began before see the full one, which has all keys of that moment. If the store was opened again meanwhile, it is
//!   thrown away: it may have read what was not committed.
//! - *A replacement* gathers its keys in the spare table and builds a filter of them. Between two transactions: both
//!   filters in front (1), one commit that makes the spare table the list (2), the new filter alone in front (3).
//!   Before (2) a key of the old list is in the front, after (2) a key of the new one; a key on both always is, and the
//!   store has it before and after. If (2) surely failed, the old filter alone is in front again; if that is not known,
//!   both stay until it is. The log begins anew at (2): a snapshot from before is refused by its number.
//!
//! # After a crash, at each point
//!
//! The front is gone; the store is as the last commit left it. It is built again from
//!
//! - the snapshot and the log after it. A snapshot is copied between two transactions, so it is exactly the list after
//!   the change that it names, and replaying puts and deletes over it is exact too. A crash before its file is renamed
//!   leaves the one before, whose changes are still in the log: only a snapshot on disk lets the log be trimmed.
//! - all keys of the store, if there is no snapshot, or anything about it is not as it should be: another list's, older
//!   than the log, newer than the store, of another rate, damaged, or with another number of keys in the end.
//!
//! A crash amid a replacement leaves keys in the spare table; they are removed after the next start, before the next
//! replacement. A crash between its commit and the next snapshot leaves a snapshot that is too old, and is refused.

mod change;
mod changes;
mod error;
mod file;
mod front;
mod grow;
mod handle;
mod key;
mod load;
mod open;
mod options;
mod overflow;
mod replace;
mod shared;
mod snapshot;
mod stats;
mod store;
#[cfg(test)]
mod tests;
mod writer;

pub use change::Change;
pub use error::{ChangeError, CloseError, OpenError, ReplaceError, SnapshotError, StoreError};
pub use handle::{List, Opened};
pub use key::{KeyError, MAX_KEY_BYTES, check_key};
pub use open::Start;
pub use options::Options;
pub use replace::{Replaced, Replacement};
pub use snapshot::Saved;
pub use stats::{FilterStats, ListStats, Refusals, SnapshotStats};
