//! Keys: the real list of the examples, and made-up ones.

/// The real list, one key a line.
pub(crate) const REAL: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/data/disposable-email-domains.txt"));

/// What a made-up key is for. No key is made for two of them.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// On the list, from the start to the end.
    Listed,
    /// Never on the list.
    Absent,
    /// Comes and goes.
    Changing,
}

/// A made-up domain: always the same one for a number, and another one for every other number or kind.
pub(crate) fn made(kind: Kind, number: u64) -> String {
    let number = number * 3 + kind as u64;
    let mut random = fastrand::Rng::with_seed(number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut key = String::with_capacity(24);
    for _ in 0..random.usize(2..5) {
        key.push(char::from(b"bcdfghklmnprstvz"[random.usize(..16)]));
        key.push(char::from(b"aeiou"[random.usize(..5)]));
    }
    // The real list has no key of this form.
    let ending = ["com", "com", "com", "net", "org", "xyz", "info", "top"][random.usize(..8)];
    format!("{key}-{number:x}--.{ending}")
}

/// As [`made`], but some are not domains: they need escapes, or more than one byte a character.
pub(crate) fn spiced(kind: Kind, number: u64) -> String {
    let key = made(kind, number);
    match number % 40 {
        0 => format!("{key}/ü 100%?#"),
        1 => format!("\"{key}\\😀"),
        2 => key.repeat(1000 / key.len()),
        _ => key,
    }
}
