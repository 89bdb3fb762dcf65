//! Memory that the system refuses. A program of its own, because its allocator refuses memory on demand.

mod bytes;
mod meanwhile;
mod operations;
mod refusing;
