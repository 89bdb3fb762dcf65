//! The list over HTTP: routes, the rules that stand before them, metrics, and a page.
//!
//! ```text
//! service (places, hosts, origins, counts) -> routes -> check, keys, upload, stats, metrics, health, page -> app
//! ```
//!
//! A look-up that the front answers with "no" is answered on the executor's thread. Everything that may block has
//! threads of its own, because an executor's thread that waits for a disk keeps the requests of all its connections
//! waiting: reads of the store and long parsing go to `spawn_blocking`, and changes go to the list's writer.

mod answer;
mod app;
mod body;
mod check;
mod counters;
mod front;
mod health;
mod histogram;
mod host;
mod key;
mod keys;
mod lines;
mod metrics;
mod page;
mod route;
mod routes;
mod service;
mod stats;
#[cfg(test)]
mod tests;
mod token;
mod upload;

pub use app::{Access, App, Limits};
pub use front::Front;
pub use host::Hosts;
pub use service::Service;
pub use token::{MAX_TOKEN_BYTES, Token, TokenError};
