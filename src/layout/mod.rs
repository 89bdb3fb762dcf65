//! Pure computations: the places of keys, the sizes of filters, and the layout of slots in words.

mod format;
mod geometry;
mod growth;
mod lanes;
mod packed;
mod path;
mod plan;
mod tags;

pub(crate) use format::{Format, Matches, Packing, Slot};
pub(crate) use geometry::{Alternates, Bucket, CellPlace, Class, Fingerprint, Geometry, Mixed, Place};
pub(crate) use growth::{Accuracy, Doubled, Extent, LAST_LOAD, Ungrowable, growing_fingerprint_bits};
pub(crate) use lanes::{Lanes, SLOTS, hits_less, occupied_in, repeated};
pub(crate) use packed::{Packer, unpack};
pub(crate) use path::{FOUR_HOPS, Hop, Path, Search, SearchBudget, ShortPath, Steps, TWO_HOPS, find_short};
pub(crate) use plan::{
    FINGERPRINT_BITS, Plan, STRIPE_BYTES, expected_false_positive_rate, fingerprint_bits_for, lowest_rate,
};
pub(crate) use tags::{MAX_EPOCH, Moment, Tags};
