//! The token that writing requests show.

use super::answer::Failure;
use super::app::App;
use axum::extract::FromRequestParts;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use std::fmt;
use subtle::ConstantTimeEq;
use thiserror::Error;

/// The bytes of the longest token.
pub const MAX_TOKEN_BYTES: usize = 256;

/// A secret word. Compared in a time that tells neither its bytes nor its length.
#[derive(Clone)]
pub struct Token {
    padded: [u8; MAX_TOKEN_BYTES],
    length: u64,
}

/// Why a text is no token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TokenError {
    /// Nothing.
    #[error("the token is empty; give 1 to {MAX_TOKEN_BYTES} visible ASCII characters")]
    Empty,
    /// More than [`MAX_TOKEN_BYTES`].
    #[error("the token has {0} bytes; give 1 to {MAX_TOKEN_BYTES} visible ASCII characters")]
    TooLong(usize),
    /// A character that a header cannot carry, or a space.
    #[error("the token has other characters than visible ASCII ones; give 1 to {MAX_TOKEN_BYTES} of those")]
    NotVisible,
}

impl Token {
    /// Takes the text as it is.
    ///
    /// # Errors
    /// See [`TokenError`].
    pub fn new(text: &str) -> Result<Self, TokenError> {
        if text.is_empty() {
            return Err(TokenError::Empty);
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(TokenError::NotVisible);
        }
        Self::pad(text.as_bytes()).ok_or(TokenError::TooLong(text.len()))
    }

    fn pad(bytes: &[u8]) -> Option<Self> {
        let mut padded = [0; MAX_TOKEN_BYTES];
        padded.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(Token { padded, length: bytes.len() as u64 })
    }

    fn is(&self, shown: &[u8]) -> bool {
        let Some(shown) = Self::pad(shown) else { return false };
        bool::from(self.padded.ct_eq(&shown.padded) & self.length.ct_eq(&shown.length))
    }
}

impl fmt::Debug for Token {
    /// Keeps the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

/// Stands in the arguments of each handler that writes: there is one only for a request that may.
pub(crate) struct MayWrite(());

impl FromRequestParts<App> for MayWrite {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Failure> {
        let Some(token) = &app.access().token else { return Ok(MayWrite(())) };
        let shown = parts.headers.get(AUTHORIZATION).map(|value| value.as_bytes());
        let shown = shown.and_then(|value| value.split_at_checked("bearer ".len()));
        match shown {
            Some((scheme, shown)) if scheme.eq_ignore_ascii_case(b"bearer ") => {
                if token.is(shown) {
                    Ok(MayWrite(()))
                } else {
                    Err(Failure::unauthorized("the token is not the right one", "Bearer error=\"invalid_token\""))
                }
            }
            _ => Err(Failure::unauthorized("a token is needed: send 'Authorization: Bearer TOKEN'", "Bearer")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_bytes_are_the_token() {
        let token = Token::new("secret").unwrap();
        assert!(token.is(b"secret"));
        for other in
            ["", "s", "secre", "secret\0", "secret ", "Secret", "secretsecret", &"x".repeat(MAX_TOKEN_BYTES + 1)]
        {
            assert!(!token.is(other.as_bytes()), "{other:?}");
        }
        let longest = "x".repeat(MAX_TOKEN_BYTES);
        assert!(Token::new(&longest).unwrap().is(longest.as_bytes()));
    }

    #[test]
    fn what_a_header_cannot_carry_is_no_token() {
        assert_eq!(Token::new("").unwrap_err(), TokenError::Empty);
        assert_eq!(Token::new(&"x".repeat(257)).unwrap_err(), TokenError::TooLong(257));
        for text in ["two words", "schlüssel", "a\n", "\t"] {
            assert_eq!(Token::new(text).unwrap_err(), TokenError::NotVisible, "{text:?}");
        }
    }

    #[test]
    fn a_token_is_not_printed() {
        assert!(!format!("{:?}", Token::new("secret").unwrap()).contains("secret"));
    }
}
