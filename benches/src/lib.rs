//! Benchmarks of concurrent-cuckoo-filter and of what one might use instead: contestants behind one trait, cases, the slices
//! in which they are timed, and the record. The criterion groups share the first of these.

mod cases;
pub mod clock;
pub mod contestants;
pub mod field;
mod record;
mod run;
mod slices;

pub use contestants::{Contestant, Family, Pass, Set, most};
pub use field::{Field, Size};
pub use run::main;
