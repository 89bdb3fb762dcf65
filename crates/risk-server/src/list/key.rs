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

/// The first text that is not a key, and why.
pub(super) fn find_invalid<'a>(mut keys: impl Iterator<Item = &'a str>) -> Option<(usize, String)> {
    let mut index = 0;
    keys.find_map(|key| {
        let error = check_key(key).err().map(|error| (index, error));
        index += 1;
        error
    })
}

/// A change of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// The key is on the list from now on.
    Put(Box<str>),
    /// The key is not on the list from now on.
    Delete(Box<str>),
}

impl Change {
    pub(crate) fn key(&self) -> &str {
        let (Change::Put(key) | Change::Delete(key)) = self;
        key
    }

    pub(super) fn is_put(&self) -> bool {
        matches!(self, Change::Put(_))
    }
}
