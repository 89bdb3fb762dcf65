//! Keys and changes.

/// The length of the longest key, in bytes.
pub(crate) const MAX_KEY_BYTES: usize = 1024;

/// Checks that a text is a key: 1 to [`MAX_KEY_BYTES`] bytes of UTF-8 without control characters, so that a line of a
/// file can be one. Keys are compared byte for byte. An error says what is wrong with it.
pub(crate) fn check_key(key: &str) -> Result<(), String> {
    match key.len() {
        0 => return Err(format!("the key is empty; a key has 1 to {MAX_KEY_BYTES} bytes")),
        bytes if bytes > MAX_KEY_BYTES => {
            return Err(format!("the key has {bytes} bytes; a key has 1 to {MAX_KEY_BYTES} bytes"));
        }
        _ => {}
    }
    key.char_indices().find(|(_, character)| character.is_control()).map_or(Ok(()), |(at, character)| {
        let code = u32::from(character);
        Err(format!("the key has the control character U+{code:04X} at byte {at}; a key is text of one line"))
    })
}

/// A key that [`check_key`] lets pass, and whether it is on the list from now on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) key: Box<str>,
    pub(crate) put: bool,
}
