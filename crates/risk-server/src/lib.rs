//! An exact list of keys behind HTTP, with a concurrent cuckoo filter in front of its store.
//!
//! ```text
//! main -> server (connections, signals) -> http -> list -> concurrent_cuckoo_filter, redb
//! ```
//!
//! A lookup asks the filter first, in memory and without a lock: "no" is certain and is the answer. "Maybe" is confirmed
//! by the store, so every answer is exact. The filter follows the store, so repeated puts and deletes are harmless, and
//! what was acknowledged is on disk.

mod config;
mod connections;
mod http;
mod list;
mod server;

pub use config::{Config, LogFormat, Token};
pub use http::Front;
pub use server::{run, runtime};
