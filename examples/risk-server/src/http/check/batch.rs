//! The keys of a batch: from JSON to answers.

use crate::http::front::Front;
use crate::list::{List, StoreError, check_key};
use serde::de::{DeserializeSeed, Deserializer, Error, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;

/// A batch that the front has answered.
#[derive(Debug)]
pub(super) struct Batch {
    /// For each key whether it is listed; until they are confirmed, whether it may be.
    pub(super) answers: Vec<bool>,
    /// The keys that may be listed, one behind the other. One text, so that no key is a piece of memory of its own.
    hits: String,
    /// Where each of them ends.
    ends: Vec<usize>,
}

impl Batch {
    /// Asks the front for the keys of a JSON array. The error says what is wrong with the array.
    pub(super) fn ask(front: &dyn Front, json: &[u8], limit: usize) -> Result<Self, String> {
        let keys = parse(json, limit)?;
        let keys: Vec<&str> = keys.iter().map(Cow::as_ref).collect();
        let mut answers = vec![false; keys.len()];
        front.may_be_listed_batch(&keys, &mut answers);
        let (mut hits, mut ends) = (String::new(), Vec::new());
        for (key, _) in keys.iter().zip(&answers).filter(|&(_, &maybe)| maybe) {
            hits.push_str(key);
            ends.push(hits.len());
        }
        Ok(Batch { answers, hits, ends })
    }

    /// Keys that may be listed.
    pub(super) fn hits(&self) -> usize {
        self.ends.len()
    }

    /// Makes the answers exact. Reads the store: blocks.
    pub(super) fn confirm(mut self, list: &List) -> Result<Self, StoreError> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let hits: Vec<&str> = starts.zip(&self.ends).map(|(start, &end)| &self.hits[start..end]).collect();
        let confirmed = list.confirm(&hits)?;
        for (answer, listed) in self.answers.iter_mut().filter(|maybe| **maybe).zip(confirmed) {
            *answer = listed;
        }
        Ok(self)
    }
}

/// The keys of a JSON array, borrowed from it where they are written without escapes.
fn parse(json: &[u8], limit: usize) -> Result<Vec<Cow<'_, str>>, String> {
    let mut reader = serde_json::Deserializer::from_slice(json);
    let keys = Keys { limit }.deserialize(&mut reader).and_then(|keys| reader.end().map(|()| keys));
    keys.map_err(|error| {
        if error.is_data() { error.to_string() } else { format!("the body is not a JSON array of keys: {error}") }
    })
}

/// Reads at most `limit` keys.
struct Keys {
    limit: usize,
}

impl<'de> DeserializeSeed<'de> for Keys {
    type Value = Vec<Cow<'de, str>>;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Self::Value, D::Error> {
        reader.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Keys {
    type Value = Vec<Cow<'de, str>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of keys")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<Self::Value, A::Error> {
        let mut keys = Vec::new();
        while let Some(key) = array.next_element_seed(Key { index: keys.len() })? {
            if keys.len() == self.limit {
                return Err(A::Error::custom(format_args!("more than {} keys in one batch", self.limit)));
            }
            keys.push(key);
        }
        Ok(keys)
    }
}

/// Reads the key at an index.
struct Key {
    index: usize,
}

impl<'de> DeserializeSeed<'de> for Key {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Self::Value, D::Error> {
        reader.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Key {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a string at index {}", self.index)
    }

    fn visit_borrowed_str<E: Error>(self, key: &'de str) -> Result<Self::Value, E> {
        self.check(key)?;
        Ok(Cow::Borrowed(key))
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<Self::Value, E> {
        self.check(key)?;
        Ok(Cow::Owned(key.to_owned()))
    }
}

impl Key {
    fn check<E: Error>(&self, key: &str) -> Result<(), E> {
        check_key(key).map_err(|error| E::custom(format_args!("index {}: {error}", self.index)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_in_their_order() {
        let keys = |json: &'static str| parse(json.as_bytes(), 3).unwrap();
        assert!(keys("[]").is_empty());
        assert_eq!(keys(r#" [ "b", "a", "b" ] "#), ["b", "a", "b"]);
        assert_eq!(keys(r#"["\u00fc\"","ü"]"#), ["ü\"", "ü"]);
        assert!(matches!(keys(r#"["plain"]"#)[0], Cow::Borrowed("plain")));
    }

    #[test]
    fn what_is_no_array_of_keys_is_told_what_is_wrong() {
        let long = format!("[\"{}\"]", "x".repeat(1025));
        for (json, expected) in [
            ("", "the body is not a JSON array of keys: EOF while parsing a value at line 1 column 0"),
            ("[\"a\"", "the body is not a JSON array of keys: EOF while parsing a list at line 1 column 4"),
            ("[\"a\"] 1", "the body is not a JSON array of keys: trailing characters at line 1 column 7"),
            ("[\"\\x\"]", "the body is not a JSON array of keys: invalid escape at line 1 column 4"),
            ("[\"\\ud800\"]", "the body is not a JSON array of keys: unexpected end of hex escape at line 1 column 9"),
            ("{\"a\": 1}", "invalid type: map, expected an array of keys at line 1 column 0"),
            ("\"a\"", "invalid type: string \"a\", expected an array of keys at line 1 column 3"),
            ("[\"a\", 5]", "invalid type: integer `5`, expected a string at index 1 at line 1 column 7"),
            ("[null]", "invalid type: null, expected a string at index 0 at line 1 column 5"),
            ("[[\"a\"]]", "invalid type: sequence, expected a string at index 0 at line 1 column 1"),
            ("[\"a\", \"\"]", "index 1: the key is empty; a key has 1 to 1024 bytes at line 1 column 8"),
            ("[\"a\\nb\"]", "index 0: the key has the control character U+000A at byte 1; a key is text of one line"),
            (&long, "index 0: the key has 1025 bytes; a key has 1 to 1024 bytes"),
            ("[\"a\",\"b\",\"c\",\"d\"]", "more than 3 keys in one batch at line 1 column 17"),
        ] {
            let error = parse(json.as_bytes(), 3).unwrap_err();
            assert!(error.starts_with(expected), "{json}: {error}");
        }
        assert!(
            parse(b"[\"\xff\"]", 3).unwrap_err().starts_with("the body is not a JSON array of keys: invalid unicode")
        );
    }
}
