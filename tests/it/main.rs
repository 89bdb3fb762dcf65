//! Tests of the public API, in one program. A test that needs a process of its own has a program of its own next to this folder:
//! `memory` and `refused_memory` replace the allocator.

mod builder;
mod bulk;
mod capacity;
mod classes;
mod counting;
mod debug;
mod expiring;
mod faults;
mod growth;
mod kinds;
mod merge;
mod model;
mod parts;
mod rates;
#[cfg(feature = "serde")]
mod serde;
#[cfg(all(feature = "shared", target_os = "linux"))]
mod shared;
mod snapshot;
mod stats;
mod stress;
mod support;
mod tagging;
mod types;
#[cfg(feature = "mmap")]
mod view;
