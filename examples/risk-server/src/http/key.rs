//! A key in a path.

use super::answer::Failure;
use crate::list::check_key;
use axum::http::Uri;
use std::borrow::Cow;

/// The key behind `prefix` in the path; a copy only if it is written with escapes.
pub(crate) fn of_path<'u>(uri: &'u Uri, prefix: &str) -> Result<Cow<'u, str>, Failure> {
    if uri.query().is_some() {
        return Err(Failure::bad_request("the path ends in a query; write %3F for a '?' in a key"));
    }
    let key = decode(uri.path().strip_prefix(prefix).unwrap_or_default())?;
    check_key(&key).map_err(|error| Failure::bad_request(error.to_string()))?;
    Ok(key)
}

/// Takes percent escapes back. Unlike what browsers do, half an escape is an error: it is hardly ever meant.
fn decode(raw: &str) -> Result<Cow<'_, str>, Failure> {
    if !raw.contains('%') {
        return Ok(Cow::Borrowed(raw));
    }
    let mut bytes = Vec::with_capacity(raw.len());
    let mut rest = raw.bytes().enumerate();
    while let Some((at, byte)) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || rest.next().and_then(|(_, digit)| char::from(digit).to_digit(16));
        match (digit(), digit()) {
            (Some(high), Some(low)) => bytes.push((high * 16 + low) as u8),
            _ => {
                return Err(Failure::bad_request(format!(
                    "the key has a '%' without two hexadecimal digits at byte {at}; write %25 for a '%'"
                )));
            }
        }
    }
    String::from_utf8(bytes).map(Cow::Owned).map_err(|_| Failure::bad_request("the key is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(uri: &str) -> Result<String, String> {
        let uri: Uri = uri.parse().unwrap();
        of_path(&uri, "/v1/check/").map(Cow::into_owned).map_err(|failure| failure.error.into_owned())
    }

    #[test]
    fn a_key_is_what_its_escapes_stand_for() {
        for (path, expected) in [
            ("example.com", "example.com"),
            ("a%2Fb", "a/b"),
            ("a/b", "a/b"),
            ("100%25", "100%"),
            ("a+b", "a+b"),
            ("%C3%BC%f0%9f%98%80", "ü😀"),
            ("%20", " "),
            ("%3F%23", "?#"),
        ] {
            assert_eq!(key(&format!("/v1/check/{path}")).as_deref(), Ok(expected), "{path}");
        }
    }

    #[test]
    fn a_key_without_escapes_is_not_copied() {
        let uri: Uri = "/v1/check/example.com".parse().unwrap();
        assert!(matches!(of_path(&uri, "/v1/check/"), Ok(Cow::Borrowed("example.com"))));
    }

    #[test]
    fn a_bad_key_is_told_what_is_wrong() {
        for (path, expected) in [
            ("", "empty"),
            ("a%", "'%' without two hexadecimal digits at byte 1"),
            ("ab%4", "'%' without two hexadecimal digits at byte 2"),
            ("%zz", "'%' without two hexadecimal digits at byte 0"),
            ("%+1", "'%' without two hexadecimal digits at byte 0"),
            ("%FF", "not UTF-8"),
            ("a%0Ab", "control character U+000A at byte 1"),
            ("a?b", "%3F"),
            ("a?", "%3F"),
            (&"x".repeat(1025), "1025 bytes"),
        ] {
            let error = key(&format!("/v1/check/{path}")).unwrap_err();
            assert!(error.contains(expected), "{path}: {error}");
        }
    }
}
