//! Progress bars on stderr, gone when they are dropped; nothing at all where that is no terminal.

use indicatif::{ProgressBar, ProgressFinish, ProgressStyle};

/// A bar, or nothing if there is too little to do for anyone to read it.
pub(crate) fn bar(doing: &'static str, length: u64, shown_from: u64) -> ProgressBar {
    if length < shown_from {
        return ProgressBar::hidden();
    }
    styled(ProgressBar::new(length), doing, "{msg} {wide_bar} {percent:>3} %")
}

/// The same for a pipe, whose end is not known.
pub(crate) fn spinner(doing: &'static str) -> ProgressBar {
    styled(ProgressBar::no_length(), doing, "{msg} {spinner} {bytes}")
}

fn styled(progress: ProgressBar, doing: &'static str, template: &str) -> ProgressBar {
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    progress.with_style(style).with_message(doing).with_finish(ProgressFinish::AndClear)
}
