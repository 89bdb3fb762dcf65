//! What goes wrong outside the filter leaves it whole.

mod capacity;
mod panics;
mod pools;
mod snapshots;
mod user_code;
