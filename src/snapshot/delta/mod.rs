//! What has changed between two snapshots of one filter, for those who have the first.
//!
//! ```text
//! write    two snapshots, shard by shard: which classes have gone, which have come
//! apply    a delta that was read and checked as a whole, stored in a filter that serves
//! format   the bytes
//! ```
//!
//! A delta speaks of classes, not of words: a key that both snapshots have is in neither of its lists, wherever it was
//! relocated to meanwhile. So nothing that stays is touched, and lookups are right by the protocol of insertion and
//! removal.

mod apply;
mod format;
mod write;

pub use apply::DeltaReport;

use crate::layout::{Class, Mixed};
use crate::raw::Shard;

/// A class within its shard, the same whichever of its buckets a copy lies in: the lower one, and the fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Name {
    bucket: u32,
    fingerprint: u32,
}

impl Name {
    fn of(class: Class) -> Self {
        Name { bucket: class.first.min(class.second).get(), fingerprint: class.fingerprint.get() }
    }

    /// What one copy adds to the digest of a filter.
    fn digest(self, shard: usize) -> u64 {
        let key = u64::from(self.bucket) << 32 | u64::from(self.fingerprint);
        Mixed::of(Mixed::of(shard as u64).get() ^ key).get()
    }
}

/// The sum over all copies, which does not depend on where they lie.
fn digest(number: usize, shard: Shard<'_>) -> u64 {
    shard.classes(()).map(|(class, _)| Name::of(class).digest(number)).fold(0, u64::wrapping_add)
}
