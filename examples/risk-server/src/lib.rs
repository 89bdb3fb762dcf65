//! An exact list of keys behind HTTP, with a concurrent cuckoo filter in front of its store.
//!
//! ```text
//! main -> server -> http -> list -> concurrent_cuckoo_filter, redb
//! ```
//!
//! A look-up asks the filter first, in memory and without a lock: "no" is certain and is the answer. "Maybe" is
//! confirmed by the store, so every answer is exact. The filter is changed only when the store was, so repeated puts
//! and deletes are harmless, and what was acknowledged is on disk.
//!
//! The store is redb: pure Rust, one file with ACID transactions and a stable format, readers that see one moment of
//! it beside the one writer, and well kept.

pub mod config;
pub mod http;
pub mod list;
pub mod server;
