//! The list: from a file to keys.

use crate::progress::{bar, spinner};
use std::collections::HashSet;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

/// A longer line is no key, and reading on could take all the memory there is. In bytes.
const LONGEST_LINE: u64 = 4096;

/// A shorter list is read before anybody could read a progress bar. In bytes.
const LONG_LIST: u64 = 1 << 23;

/// Lines between two movements of the progress bar.
const STEP: usize = 1 << 12;

/// The keys of a file, one a line, nothing around them.
pub(crate) struct Text {
    pub(crate) keys: String,
    pub(crate) blank_lines: usize,
}

/// Reads the keys, or says in one line why not.
pub(crate) fn read(path: &Path) -> Result<Text, String> {
    let cannot = |error| format!("cannot read {path:?}: {error}");
    let file = File::open(path).map_err(cannot)?;
    let about = file.metadata().map_err(cannot)?;
    let reading = "reading the list";
    let progress = if about.is_file() { bar(reading, about.len(), LONG_LIST) } else { spinner(reading) };
    let mut file = BufReader::with_capacity(1 << 16, file);

    let mut text = Text { keys: String::new(), blank_lines: 0 };
    let mut line = Vec::new();
    let mut unshown = 0;
    for number in 1.. {
        line.clear();
        let bytes = file.by_ref().take(LONGEST_LINE + 1).read_until(b'\n', &mut line).map_err(cannot)?;
        if bytes == 0 {
            break;
        }
        if bytes as u64 > LONGEST_LINE {
            return Err(format!("{path:?} is not a list of keys: line {number} is longer than {LONGEST_LINE} bytes"));
        }
        let line =
            std::str::from_utf8(&line).map_err(|_| format!("{path:?} is not UTF-8: line {number} cannot be read"))?;
        // Some editors begin a file with a byte order mark.
        let line = if number == 1 { line.trim_start_matches('\u{feff}') } else { line };
        match line.trim() {
            "" => text.blank_lines += 1,
            key => {
                text.keys.push_str(key);
                text.keys.push('\n');
            }
        }
        unshown += bytes as u64;
        if number % STEP == 0 {
            progress.inc(std::mem::take(&mut unshown));
        }
    }
    if text.keys.is_empty() {
        return Err(format!("{path:?} holds no keys; give a file with one key a line"));
    }
    Ok(text)
}

/// The distinct keys of a text.
pub(crate) struct List<'t> {
    /// In the order of the file.
    pub(crate) keys: Vec<&'t str>,
    /// The same keys, to know for certain what is listed.
    pub(crate) exact: HashSet<&'t str>,
    pub(crate) repeated_lines: usize,
}

impl<'t> List<'t> {
    pub(crate) fn new(text: &'t Text) -> Self {
        let mut exact = HashSet::new();
        let mut repeated_lines = 0;
        let mut keys = Vec::new();
        for key in text.keys.lines() {
            if exact.insert(key) {
                keys.push(key);
            } else {
                repeated_lines += 1;
            }
        }
        List { keys, exact, repeated_lines }
    }
}
