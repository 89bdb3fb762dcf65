//! An error about memory names the number of bytes that were refused.

use crate::refusing::{ARMED, LARGE, LEFT, REFUSED, TAKES_PART};
use concurrent_cuckoo_filter::{CuckooFilter, MergeError, SnapshotError};
use std::sync::atomic::Ordering;
use testkit::{assert_matches, hasher};

/// A shard of 2658 buckets of 128 bits.
const SHARD: usize = 2658 * 16;

/// Runs the work while all allocations of at least the size of a shard fail.
fn refused<T>(work: impl FnOnce() -> T) -> T {
    ARMED.store(true, Ordering::Relaxed);
    let result = work();
    ARMED.store(false, Ordering::Relaxed);
    result
}

#[test]
fn the_bytes_that_are_refused_are_told() {
    TAKES_PART.set(true);
    LARGE.store(SHARD, Ordering::Relaxed);
    LEFT.store(usize::MAX, Ordering::Relaxed);
    let build = || {
        let builder = CuckooFilter::<u64>::builder().capacity(10_000).fingerprint_bits(32);
        builder.hasher(hasher()).build().unwrap()
    };
    let (filter, other, mut written) = (build(), build(), Vec::new());
    let error = refused(|| filter.merge_from(&other)).unwrap_err();
    assert!(error.to_string().contains(&format!("{SHARD} bytes")), "{error}");
    assert_matches!(error, MergeError::OutOfMemory { bytes: SHARD, .. });
    // Padded to a whole line of the file.
    let error = refused(|| filter.write_to(&mut written)).unwrap_err();
    let padded = SHARD.next_multiple_of(64);
    assert!(error.to_string().contains(&format!("{padded} bytes")), "{error}");
    assert_matches!(error, SnapshotError::OutOfMemory { bytes, .. } if bytes == padded);
    assert_eq!(REFUSED.load(Ordering::Relaxed), 2);
}
