//! Where a key lies and how slots lie in words: numbers in, numbers out. Nothing here is shared between threads.

mod format;
mod geometry;
mod lanes;
mod path;
mod plan;

pub(crate) use format::{Format, Matches, Packing, Slot};
pub(crate) use geometry::{Bucket, Class, Fingerprint, Geometry, Mixed, Place};
pub(crate) use lanes::{SLOTS, hits, occupied_in_words};
pub(crate) use path::{Hop, Path, Search, SearchBudget, ShortPath, find_short};
pub(crate) use plan::{
    FINGERPRINT_BITS, Plan, Unplannable, expected_false_positive_rate, fingerprint_bits_for, lowest_rate,
};
