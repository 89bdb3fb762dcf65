//! Made keys: each from its number, when it is needed, so a list of any length takes no memory.

use std::borrow::Borrow;
use std::ops::Range;

/// Sixteen digits and an ending that no real domain has.
const PATTERN: [u8; 24] = *b"0000000000000000.example";
const DIGITS: usize = 16;

/// Such as `00000000000f4240.example`.
pub(crate) struct MadeKey([u8; MadeKey::LEN]);

impl MadeKey {
    /// In bytes.
    pub(crate) const LEN: usize = PATTERN.len();

    #[inline]
    pub(crate) fn new(number: u64) -> Self {
        let mut text = PATTERN;
        for (place, digit) in text[..DIGITS].iter_mut().rev().enumerate() {
            *digit = b"0123456789abcdef"[(number >> (4 * place)) as usize % 16];
        }
        MadeKey(text)
    }

    #[inline]
    pub(crate) fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("ASCII")
    }
}

impl Borrow<str> for MadeKey {
    #[inline]
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

pub(crate) fn keys(numbers: Range<usize>) -> impl Iterator<Item = MadeKey> {
    numbers.map(|number| MadeKey::new(number as u64))
}
