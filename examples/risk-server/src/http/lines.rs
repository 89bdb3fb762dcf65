//! A body of lines: from pieces, cut anywhere, to keys.

use crate::list::{KeyError, MAX_KEY_BYTES, check_key};
use thiserror::Error;

/// Some editors begin a file with a byte order mark.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// A longer line is no key, whatever it holds: room for a mark and a carriage return is left. Nothing longer is kept.
const MAX_LINE_BYTES: usize = MAX_KEY_BYTES + MARK.len() + 1;

/// Cuts pieces into lines. Each line is a key; blank ones are skipped.
#[derive(Default)]
pub(crate) struct Lines {
    /// The beginning of a line whose end has not come.
    begun: Vec<u8>,
    /// Lines that have come to their end.
    ended: u64,
}

/// A line that is no key.
#[derive(Debug, PartialEq, Eq, Error)]
#[error("line {number}: {error}")]
pub(crate) struct BadLine {
    /// From 1.
    pub(crate) number: u64,
    error: LineError,
}

#[derive(Debug, PartialEq, Eq, Error)]
enum LineError {
    #[error("the line is not UTF-8 from byte {at} on")]
    NotUtf8 { at: usize },
    #[error("the line is longer than a key, which has 1 to {MAX_KEY_BYTES} bytes")]
    TooLong,
    #[error(transparent)]
    Key(#[from] KeyError),
}

impl Lines {
    /// Hands over the keys whose lines end in this piece. After an error nothing more may be given.
    pub(crate) fn push(&mut self, mut piece: &[u8], mut key: impl FnMut(&str)) -> Result<(), BadLine> {
        while let Some(end) = piece.iter().position(|&byte| byte == b'\n') {
            let (line, rest) = (&piece[..end], &piece[end + 1..]);
            if self.begun.is_empty() {
                self.line(line, &mut key)?;
            } else {
                self.begin(line)?;
                self.end(&mut key)?;
            }
            piece = rest;
        }
        self.begin(piece)
    }

    /// Hands over the key of a last line that no newline ended.
    pub(crate) fn end(&mut self, key: impl FnMut(&str)) -> Result<(), BadLine> {
        if self.begun.is_empty() {
            return Ok(());
        }
        let mut line = std::mem::take(&mut self.begun);
        self.line(&line, key)?;
        line.clear();
        self.begun = line;
        Ok(())
    }

    /// Keeps what the next piece goes on with, unless it is too long already.
    fn begin(&mut self, part: &[u8]) -> Result<(), BadLine> {
        if self.begun.len() + part.len() > MAX_LINE_BYTES {
            return Err(BadLine { number: self.ended + 1, error: LineError::TooLong });
        }
        self.begun.extend_from_slice(part);
        Ok(())
    }

    fn line(&mut self, line: &[u8], mut key: impl FnMut(&str)) -> Result<(), BadLine> {
        self.ended += 1;
        if line.len() > MAX_LINE_BYTES {
            return Err(BadLine { number: self.ended, error: LineError::TooLong });
        }
        let line = if self.ended == 1 { line.strip_prefix(MARK).unwrap_or(line) } else { line };
        match judge(line) {
            Ok(Some(text)) => key(text),
            Ok(None) => {}
            Err(error) => return Err(BadLine { number: self.ended, error }),
        }
        Ok(())
    }
}

/// The key in a line, if it is not blank.
fn judge(line: &[u8]) -> Result<Option<&str>, LineError> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.iter().all(|&byte| byte == b' ' || byte == b'\t') {
        return Ok(None);
    }
    let key = std::str::from_utf8(line).map_err(|error| LineError::NotUtf8 { at: error.valid_up_to() })?;
    check_key(key)?;
    Ok(Some(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All keys, and the error if there was one, of a body that comes in pieces of `size` bytes.
    fn cut(body: &[u8], size: usize) -> (Vec<String>, Option<String>) {
        let (mut lines, mut keys) = (Lines::default(), Vec::new());
        for piece in body.chunks(size) {
            if let Err(bad) = lines.push(piece, |key| keys.push(key.to_owned())) {
                return (keys, Some(bad.to_string()));
            }
            assert!(lines.begun.len() <= MAX_LINE_BYTES);
        }
        let error = lines.end(|key| keys.push(key.to_owned())).err();
        (keys, error.map(|bad| bad.to_string()))
    }

    #[test]
    fn keys_are_the_same_however_the_body_is_cut() {
        let body = "\u{feff}first\r\nzwei ü😀\n\n   \n\t\r\n\r\n two words \nlast".as_bytes();
        for size in 1..=body.len() {
            assert_eq!(
                cut(body, size),
                (["first", "zwei ü😀", " two words ", "last"].map(String::from).to_vec(), None)
            );
        }
        assert_eq!(cut(b"", 1), (vec![], None));
        assert_eq!(cut(b"a\n", 1), (vec!["a".to_owned()], None));
    }

    #[test]
    fn a_bad_line_is_named_by_its_number_and_what_came_before_it_is_kept() {
        for (line, expected) in [
            (&b"b\xffc"[..], "line 3: the line is not UTF-8 from byte 1 on"),
            (b"\xf0\x9f\x98", "line 3: the line is not UTF-8 from byte 0 on"),
            (b"a\rb", "line 3: the key has the control character U+000D at byte 1; a key is text of one line"),
            ("\u{feff}".repeat(342).as_bytes(), "line 3: the key has 1026 bytes; a key has 1 to 1024 bytes"),
        ] {
            let body = [b"a\n\n", line, b"\nd\n"].concat();
            for size in 1..=body.len() {
                assert_eq!(cut(&body, size), (vec!["a".to_owned()], Some(expected.to_owned())));
            }
        }
    }

    #[test]
    fn the_longest_key_is_taken_with_mark_and_carriage_return() {
        let key = "x".repeat(MAX_KEY_BYTES);
        let body = format!("\u{feff}{key}\r\n");
        for size in [1, 7, 1027, 1028, body.len()] {
            assert_eq!(cut(body.as_bytes(), size), (vec![key.clone()], None));
        }
    }

    #[test]
    fn a_line_that_does_not_end_is_refused_before_it_fills_the_memory() {
        let too_long = "line 1: the line is longer than a key, which has 1 to 1024 bytes";
        for byte in [b'x', b' ', 0xff] {
            for size in [1, 100, MAX_LINE_BYTES, MAX_LINE_BYTES + 1, 1 << 20] {
                let (keys, error) = cut(&vec![byte; 1 << 20], size);
                assert_eq!((keys.len(), error.as_deref()), (0, Some(too_long)), "{size}");
            }
        }
    }
}
