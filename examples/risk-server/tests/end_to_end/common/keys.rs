//! Keys: the real list of the examples, and made ones.

use std::sync::LazyLock;

static DOMAINS: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../data/disposable-email-domains.txt"));

/// The real list as a file: one key a line.
pub(crate) fn domains_text() -> &'static str {
    DOMAINS
}

/// The real list: 121,570 domains.
pub(crate) fn domains() -> &'static [&'static str] {
    static LINES: LazyLock<Vec<&str>> = LazyLock::new(|| DOMAINS.lines().collect());
    &LINES
}

/// `name-0` to `name-(number - 1)`.
pub(crate) fn made(name: &str, number: usize) -> Vec<String> {
    (0..number).map(|i| format!("{name}-{i}")).collect()
}

/// Keys as the body of a request: one a line.
pub(crate) fn lines<K: AsRef<str>>(keys: &[K]) -> String {
    keys.iter().flat_map(|key| [key.as_ref(), "\n"]).collect()
}
