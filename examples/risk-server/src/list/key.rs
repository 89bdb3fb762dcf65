//! What may be a key.

use thiserror::Error;

/// The bytes of the longest key.
pub const MAX_KEY_BYTES: usize = 1024;

/// Why a text is no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum KeyError {
    /// Nothing.
    #[error("the key is empty; a key has 1 to {MAX_KEY_BYTES} bytes")]
    Empty,
    /// More than [`MAX_KEY_BYTES`].
    #[error("the key has {bytes} bytes; a key has 1 to {MAX_KEY_BYTES} bytes")]
    TooLong {
        /// Its bytes.
        bytes: usize,
    },
    /// A control character, such as the end of a line.
    #[error(
        "the key has the control character U+{:04X} at byte {at}; a key is text of one line",
        u32::from(*character)
    )]
    Control {
        /// The character.
        character: char,
        /// Where it begins.
        at: usize,
    },
}

/// Says whether a text is a key: 1 to [`MAX_KEY_BYTES`] bytes of UTF-8 without control characters, so that a line of a
/// file can be one. Keys are compared byte for byte.
///
/// # Errors
/// Why it is none.
pub fn check_key(key: &str) -> Result<(), KeyError> {
    if key.is_empty() {
        return Err(KeyError::Empty);
    }
    if key.len() > MAX_KEY_BYTES {
        return Err(KeyError::TooLong { bytes: key.len() });
    }
    match key.char_indices().find(|(_, character)| character.is_control()) {
        Some((at, character)) => Err(KeyError::Control { character, at }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_one_line_is_a_key() {
        for key in ["a", " ", "two words", "schlüssel", "😀", "/../?#%", &"x".repeat(MAX_KEY_BYTES)] {
            assert_eq!(check_key(key), Ok(()), "{key:?}");
        }
    }

    #[test]
    fn nothing_too_much_and_control_characters_are_no_keys() {
        assert_eq!(check_key(""), Err(KeyError::Empty));
        let long = "ü".repeat(MAX_KEY_BYTES / 2) + "x";
        assert_eq!(check_key(&long), Err(KeyError::TooLong { bytes: 1025 }));
        for (key, character, at) in
            [("a\nb", '\n', 1), ("ü\0", '\0', 2), ("\u{7f}", '\u{7f}', 0), ("\u{85}", '\u{85}', 0)]
        {
            assert_eq!(check_key(key), Err(KeyError::Control { character, at }));
        }
        assert_eq!(
            check_key("a\r").unwrap_err().to_string(),
            "the key has the control character U+000D at byte 1; a key is text of one line"
        );
    }
}
