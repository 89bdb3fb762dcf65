//! The list as a whole, through its face.

mod common;
mod growth;
mod killed;
mod model;
mod opening;
mod order;
mod replacement;
mod snapshots;
