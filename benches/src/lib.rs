//! Benchmarks of concurrent-cuckoo-filter and of what one might use instead: contestants behind one small trait, cases, the
//! slices in which they are timed, and the record of what came of them. The criterion groups share the first of these.

mod cases;
pub mod clock;
pub mod contestants;
pub mod field;
mod record;
mod run;
mod slices;

pub use contestants::{Contestant, Contested, Kind, Many, Passes, Set, Version, most};
pub use field::{Field, Key, Size, Text};
pub use run::main;
