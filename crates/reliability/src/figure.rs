//! Figures for the record.

use std::fmt::Display;
use std::time::Instant;
pub(crate) use testkit::thousands as count;

/// Prints the figure of this number: one line.
pub(crate) fn figure(id: &str, text: impl Display) {
    println!("figure {id}: {text}");
}

/// The time since then, in whole seconds.
pub(crate) fn seconds_since(start: Instant) -> impl Display {
    format!("{} s", count(start.elapsed().as_secs_f64().ceil() as u64))
}
