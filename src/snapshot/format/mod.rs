//! The bytes of a snapshot (docs/format.md). Bytes in, values out; all numbers are little-endian.
//!
//! ```text
//! header | record | record | ... | trailer
//!          head, words
//! ```
//!
//! Each piece begins at a multiple of [`ALIGN`] from the beginning of the snapshot, and so do the words of a record: a
//! file can be mapped. A head describes its words completely, so a reader knows their length and contents in advance.

mod fields;
mod header;
mod kind;
mod record;
mod trailer;

pub(super) use header::{Header, MAX_METADATA, MAX_NAME, PREFIX, origin, too_short};
pub(crate) use kind::Kind;
pub(super) use kind::{Expiring, GrowingFields};
pub(super) use record::{RECORD_HEAD, Record, padded, with_head};
pub(super) use trailer::{COUNT as TRAILER_COUNT, TRAILER, trailer};

use crate::error::{SnapshotError, SnapshotPlace};

/// Bytes of a checksum.
const CHECKSUM: usize = 4;

/// A cache line.
const ALIGN: usize = 64;

/// Returns the error for a number that no writer stores.
fn invalid(place: SnapshotPlace, field: &'static str, found: impl ToString) -> SnapshotError {
    SnapshotError::Invalid { place, field, found: found.to_string() }
}
