//! Requests as bytes, and what is read from answers.

use std::fmt::Write;
use std::ops::Range;

/// More headers than any answer of the server has.
const MOST_HEADERS: usize = 32;

/// The bytes of a request, without its body.
///
/// The Host is a name that a server on any port of this machine answers to, so that the same bytes serve for all.
pub(crate) fn head(method: &str, path: &str, body: Option<usize>) -> String {
    let mut head = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\n");
    if let Some(length) = body {
        // Writing to a string does not fail.
        let _ = write!(head, "content-length: {length}\r\n");
    }
    head + "\r\n"
}

/// The bytes of a request with a body.
pub(crate) fn with_body(method: &str, path: &str, body: &[u8]) -> Vec<u8> {
    let mut request = head(method, path, Some(body.len())).into_bytes();
    request.extend_from_slice(body);
    request
}

/// `GET /v1/check/{key}`.
pub(crate) fn check(key: &str) -> Vec<u8> {
    head("GET", &with_key("/v1/check/", key), None).into_bytes()
}

/// `POST /v1/check`.
pub(crate) fn check_batch(keys: &[&str]) -> Vec<u8> {
    with_body("POST", "/v1/check", serde_json::json!(keys).to_string().as_bytes())
}

/// `PUT /v1/keys/{key}`, or DELETE.
pub(crate) fn change(put: bool, key: &str) -> Vec<u8> {
    let path = with_key("/v1/keys/", key);
    // A PUT without a body says so.
    if put { head("PUT", &path, Some(0)) } else { head("DELETE", &path, None) }.into_bytes()
}

/// A path that ends in a key.
fn with_key(prefix: &str, key: &str) -> String {
    let mut path = prefix.to_owned();
    for byte in key.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => path.push(char::from(byte)),
            _ => {
                let _ = write!(path, "%{byte:02X}");
            }
        }
    }
    // A path of dots alone is a step up.
    if key.bytes().all(|byte| byte == b'.') { prefix.to_owned() + &"%2E".repeat(key.len()) } else { path }
}

/// An answer that has come to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Received {
    pub(crate) status: u16,
    /// Where its body is.
    pub(crate) body: Range<usize>,
    /// Whether the server goes on with this connection.
    pub(crate) keeps: bool,
}

/// Reads the answer at the beginning of these bytes; `None` if more are to come.
pub(crate) fn receive(bytes: &[u8]) -> Result<Option<Received>, String> {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut head = httparse::Response::new(&mut headers);
    let start = match head.parse(bytes).map_err(|error| format!("the answer is no HTTP: {error}"))? {
        httparse::Status::Complete(start) => start,
        httparse::Status::Partial => return Ok(None),
    };
    let header = |name: &str| {
        let mut named = head.headers.iter().filter(|header| header.name.eq_ignore_ascii_case(name));
        named.next().map(|header| String::from_utf8_lossy(header.value))
    };
    let length = header("content-length").and_then(|length| length.parse::<usize>().ok());
    let length = length.ok_or("the answer does not tell its length")?;
    let keeps = !header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
    let status = head.code.ok_or("the answer has no status")?;
    Ok((bytes.len() - start >= length).then(|| Received { status, body: start..start + length, keeps }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_when_its_last_byte_is_there() {
        let answer = b"HTTP/1.1 201 Created\r\nContent-Length: 5\r\nconnection: close\r\n\r\nhello";
        for end in 0..answer.len() {
            assert_eq!(receive(&answer[..end]), Ok(None), "{end}");
        }
        let received = receive(answer).unwrap().unwrap();
        assert_eq!((received.status, &answer[received.body], received.keeps), (201, &b"hello"[..], false));
        let empty = receive(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap().unwrap();
        assert_eq!((empty.body.len(), empty.keeps), (0, true));
    }

    #[test]
    fn what_is_no_answer_is_told() {
        assert!(receive(b"SSH-2.0-OpenSSH\r\n").unwrap_err().contains("no HTTP"));
        assert!(receive(b"HTTP/1.1 200 OK\r\n\r\n").unwrap_err().contains("length"));
    }

    #[test]
    fn a_key_is_written_so_that_no_byte_of_it_is_taken_for_another_thing() {
        assert_eq!(with_key("/", "a-b.com"), "/a-b.com");
        assert_eq!(with_key("/", "ü/ ?%"), "/%C3%BC%2F%20%3F%25");
        assert_eq!(with_key("/x/", ".."), "/x/%2E%2E");
    }

    #[test]
    fn requests_are_as_http_wants_them() {
        assert_eq!(check("a.com"), b"GET /v1/check/a.com HTTP/1.1\r\nhost: localhost\r\n\r\n");
        let batch = check_batch(&["a", "\"b\""]);
        assert_eq!(
            batch,
            b"POST /v1/check HTTP/1.1\r\nhost: localhost\r\ncontent-length: 13\r\n\r\n[\"a\",\"\\\"b\\\"\"]"
        );
        assert_eq!(change(true, "a"), b"PUT /v1/keys/a HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n\r\n");
        assert_eq!(change(false, "a"), b"DELETE /v1/keys/a HTTP/1.1\r\nhost: localhost\r\n\r\n");
    }
}
