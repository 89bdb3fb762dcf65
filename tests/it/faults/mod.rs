//! Faults outside the filter leave it intact.

mod capacity;
mod panics;
mod pools;
mod snapshots;
mod user_code;
