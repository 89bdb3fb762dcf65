//! The real program, over real HTTP. Each test starts a server of its own, on a free port and in a folder of its own.

// Servers are ended by signals.
#![cfg(unix)]

mod access;
mod bad_requests;
mod common;
mod limits;
mod logs;
mod lookups;
mod metrics;
mod page;
mod replacement;
mod shutdown;
mod start;
mod uploads;
