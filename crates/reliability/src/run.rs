//! What was asked of a run.

use indicatif::{ProgressBar, ProgressStyle};
use std::time::Duration;

pub(crate) struct Run {
    pub(crate) quick: bool,
    pub(crate) seed: u64,
    /// How long the exact stress takes.
    pub(crate) stress: Duration,
}

impl Run {
    pub(crate) fn choose<T>(&self, full: T, quick: T) -> T {
        if self.quick { quick } else { full }
    }
}

/// A progress bar on stderr, if that is a terminal.
pub(crate) fn progress(what: &'static str, length: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg:<28} {wide_bar} {percent:>3} %, {eta} to go");
    ProgressBar::new(length).with_style(style.expect("a valid template")).with_message(what)
}
