//! Memory that the system refuses. A program of its own, because its allocator refuses memory on demand.

mod bytes;
mod operations;
mod refusing;
