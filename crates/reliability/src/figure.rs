//! Figures for the record.

use indicatif::HumanCount;
use std::fmt::Display;
use std::time::Instant;

/// Prints the figure of this number: one line.
pub(crate) fn figure(id: &str, text: impl Display) {
    println!("figure {id}: {text}");
}

/// A number with thousands separators.
pub(crate) fn count(number: impl TryInto<u64, Error: std::fmt::Debug>) -> HumanCount {
    HumanCount(number.try_into().expect("a count"))
}

/// The time since then, in whole seconds.
pub(crate) fn seconds_since(start: Instant) -> impl Display {
    format!("{} s", count(start.elapsed().as_secs_f64().ceil() as u64))
}
