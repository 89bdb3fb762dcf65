//! What the benchmarks share: the contestants behind one small trait, sizes and keys, clocks.

pub mod clock;
pub mod field;
pub mod limit;
pub mod peers;
pub mod set;

pub use field::{Field, Key, Size, Text};
pub use set::{Contestant, Passes, Set};
