//! What is asked of a list, and the filters that follow from it.

use concurrent_cuckoo_filter::{BuildError, CuckooFilter, StableHashBuilder};
use std::path::PathBuf;

/// The filter in front of the store. Its hash function is the same in every build of the program, so that a snapshot
/// outlives the program that saved it.
pub(super) type Filter = CuckooFilter<str, StableHashBuilder>;

/// How a list is opened.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where the store and the snapshot are; made if absent.
    pub folder: PathBuf,
    /// Keys that the filter is to hold at least; it grows by itself.
    pub capacity: usize,
    /// The part of absent keys that may cost a read of the store: above 0, below 1.
    pub false_positive_rate: f64,
    /// Beyond so many refused keys, puts wait for the larger filter.
    pub overflow_limit: usize,
    /// Memory for the pages of the store.
    pub cache_bytes: usize,
}

impl Options {
    /// The file of the store.
    pub(super) fn store(&self) -> PathBuf {
        self.folder.join("list.redb")
    }

    /// The file of the snapshot.
    pub(super) fn snapshot(&self) -> PathBuf {
        self.folder.join("filter.snapshot")
    }

    /// An empty filter for so many keys and a quarter more, and for what was asked at the least.
    pub(super) fn filter_for(&self, keys: u64) -> Result<Filter, BuildError> {
        let keys = usize::try_from(keys).unwrap_or(usize::MAX);
        self.filter_of(self.capacity.max(keys.saturating_add(keys / 4)))
    }

    /// An empty filter of this capacity.
    pub(super) fn filter_of(&self, capacity: usize) -> Result<Filter, BuildError> {
        CuckooFilter::builder()
            .capacity(capacity.max(1))
            .false_positive_rate(self.false_positive_rate)
            .hasher(StableHashBuilder::new())
            .build()
    }

    /// The capacity of the filter that takes the place of one of `old` keys, when the list has `keys`: twice as many as
    /// there are. A filter that refused a key well below its capacity is followed by one of twice its own.
    pub(super) fn grown(&self, keys: u64, old: usize, refused: bool) -> usize {
        let keys = usize::try_from(keys).unwrap_or(usize::MAX);
        let wanted = self.capacity.max(keys.saturating_mul(2));
        if refused && wanted <= old { old.saturating_mul(2) } else { wanted }
    }
}

#[cfg(test)]
impl Options {
    /// What tests ask for, where it does not matter.
    pub(crate) fn of_test(folder: &std::path::Path, capacity: usize) -> Self {
        Options {
            folder: folder.to_owned(),
            capacity,
            false_positive_rate: 0.001,
            overflow_limit: 100_000,
            cache_bytes: 1 << 20,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(capacity: usize) -> Options {
        Options::of_test("folder".as_ref(), capacity)
    }

    #[test]
    fn a_filter_is_at_least_as_large_as_asked_and_has_room_for_a_quarter_more() {
        assert_eq!(options(100).filter_for(10).unwrap().capacity(), 100);
        assert_eq!(options(100).filter_for(100).unwrap().capacity(), 125);
        assert_eq!(options(0).filter_for(0).unwrap().capacity(), 1);
    }

    #[test]
    fn a_grown_filter_is_never_as_small_as_the_one_that_refused() {
        assert_eq!(options(10).grown(100, 100, true), 200);
        assert_eq!(options(1000).grown(100, 100, false), 1000);
        assert_eq!(options(100).grown(40, 100, true), 200);
        assert_eq!(options(100).grown(40, 100, false), 100);
        assert_eq!(options(1).grown(u64::MAX, 5, true), usize::MAX);
    }
}
