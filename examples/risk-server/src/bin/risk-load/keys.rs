//! Keys: those of a file, and made-up ones in their way.

use risk_server::list::check_key;
use std::path::Path;

/// The real list of the examples.
pub(crate) const LIST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../data/disposable-email-domains.txt");

/// What a made-up key is for. No key is made for two of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// On the list, from the start to the end.
    Listed,
    /// Never on the list.
    Absent,
    /// Comes and goes.
    Churn,
}

/// Some endings of domains, the frequent ones more often.
const ENDINGS: [&str; 10] = ["com", "com", "com", "com", "net", "org", "xyz", "info", "top", "email"];

/// A made-up domain: the same for a number whenever it is asked for, and another one for every other number or kind.
pub(crate) fn made(kind: Kind, number: u64) -> String {
    let number = number * 3 + kind as u64;
    let mut rng = fastrand::Rng::with_seed(number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut key = String::with_capacity(24);
    for _ in 0..rng.usize(2..5) {
        key.push(char::from(b"bcdfghklmnprstvz"[rng.usize(..16)]));
        key.push(char::from(b"aeiou"[rng.usize(..5)]));
    }
    // What stands between the last '-' and the '.' tells the number, so no two keys are the same.
    key.push('-');
    push_number(&mut key, number);
    key.push('.');
    key.push_str(ENDINGS[rng.usize(..ENDINGS.len())]);
    key
}

fn push_number(text: &mut String, number: u64) {
    if number >= 36 {
        push_number(text, number / 36);
    }
    text.push(char::from_digit((number % 36) as u32, 36).unwrap_or('0'));
}

/// The keys of a file, one a line; blank lines are skipped.
pub(crate) fn read(path: &Path) -> Result<Vec<String>, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
    let mut keys = Vec::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        check_key(line).map_err(|error| format!("{}, line {}: {error}", path.display(), index + 1))?;
        keys.push(line.to_owned());
    }
    if keys.is_empty() { Err(format!("{} has no keys; one a line is needed", path.display())) } else { Ok(keys) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn no_key_is_made_twice_and_each_is_the_same_when_it_is_made_again() {
        let all = || {
            [Kind::Listed, Kind::Absent, Kind::Churn]
                .into_iter()
                .flat_map(|kind| (0..20_000).map(move |n| made(kind, n)))
        };
        let keys: HashSet<String> = all().collect();
        assert_eq!(keys.len(), 60_000);
        assert!(all().all(|key| keys.contains(&key) && check_key(&key).is_ok()));
    }

    #[test]
    fn a_file_of_keys_is_read_and_what_is_wrong_with_it_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        std::fs::write(&path, "a.com\r\n\n  \nb.com").unwrap();
        assert_eq!(read(&path), Ok(vec!["a.com".to_owned(), "b.com".to_owned()]));
        std::fs::write(&path, "a.com\nb\tc\n").unwrap();
        assert!(read(&path).unwrap_err().contains("line 2: the key has the control character U+0009"));
        std::fs::write(&path, "\n").unwrap();
        assert!(read(&path).unwrap_err().contains("has no keys"));
        assert!(read(&folder.path().join("absent")).unwrap_err().contains("cannot be read"));
    }
}
