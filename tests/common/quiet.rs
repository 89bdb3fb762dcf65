//! Panics that are meant, of which there are thousands.

use std::panic::{self, PanicHookInfo};

/// Prints no panic that says one of these.
pub(super) fn print_no_panic_of(meant: &'static [&'static str]) {
    let print = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        if !meant.iter().any(|meant| message(panic).contains(meant)) {
            print(panic);
        }
    }));
}

fn message<'a>(panic: &'a PanicHookInfo<'_>) -> &'a str {
    let payload = panic.payload();
    payload
        .downcast_ref::<String>()
        .map_or_else(|| payload.downcast_ref::<&str>().copied().unwrap_or(""), String::as_str)
}
