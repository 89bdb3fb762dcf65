//! Allocations that fail. A program of its own, because its allocator fails on demand.

mod bytes;
mod meanwhile;
mod operations;
mod refusing;
