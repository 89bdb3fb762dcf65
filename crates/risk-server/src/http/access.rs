//! Who is answered: the token that writing requests show, and the names that the server answers to.

use super::App;
use super::answer::Failure;
use crate::config::{Hosts, Token};
use axum::extract::FromRequestParts;
use axum::http::header::{AUTHORIZATION, HOST};
use axum::http::request::Parts;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, StatusCode, Uri, Version};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use subtle::ConstantTimeEq;

/// An argument of each handler that writes: it exists only for a request that may.
pub(crate) struct MayWrite(());

impl FromRequestParts<Arc<App>> for MayWrite {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Failure> {
        let Some(Token(token)) = &app.token else { return Ok(MayWrite(())) };
        let shown = parts.headers.get(AUTHORIZATION).map(|value| value.as_bytes());
        match shown.and_then(|value| value.split_at_checked("bearer ".len())) {
            Some((scheme, shown)) if scheme.eq_ignore_ascii_case(b"bearer ") => {
                if bool::from(token.ct_eq(shown)) {
                    Ok(MayWrite(()))
                } else {
                    Err(Failure::unauthorized("the token is wrong", "Bearer error=\"invalid_token\""))
                }
            }
            _ => Err(Failure::unauthorized("a token is needed: send 'Authorization: Bearer TOKEN'", "Bearer")),
        }
    }
}

impl Hosts {
    /// Refuses a request for another name.
    pub(crate) fn check(&self, version: Version, uri: &Uri, headers: &HeaderMap) -> Result<(), Failure> {
        let Hosts::Only(names) = self else { return Ok(()) };
        let mut hosts = headers.get_all(HOST).iter();
        let host = match (uri.authority(), hosts.next(), hosts.next()) {
            (_, _, Some(_)) => return Err(Failure::bad_request("there is more than one Host header")),
            (Some(authority), _, _) => authority.as_str().as_bytes(),
            (None, Some(host), None) => host.as_bytes(),
            // Older clients send none; browsers always do.
            (None, None, None) if version < Version::HTTP_11 => return Ok(()),
            (None, None, None) => return Err(Failure::bad_request("there is no Host header")),
        };
        // Without user and with a port that is one, if there is any.
        let authority = Authority::try_from(host).ok();
        let name = authority.as_ref().map(Authority::host).filter(|name| {
            host.strip_prefix(name.as_bytes())
                .is_some_and(|rest| rest.is_empty() || rest[0] == b':' && rest[1..].iter().all(u8::is_ascii_digit))
        });
        if name.is_some_and(|name| is_loopback(name) || names.iter().any(|other| other.eq_ignore_ascii_case(name))) {
            return Ok(());
        }
        Err(Failure::new(
            StatusCode::MISDIRECTED_REQUEST,
            "the Host header names another machine; this server answers to localhost and to each --allowed-host",
        ))
    }
}

/// Whether a name or an address is one of this machine.
fn is_loopback(name: &str) -> bool {
    if let Some(address) = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return address.parse::<Ipv6Addr>().is_ok_and(|address| address.to_canonical().is_loopback());
    }
    name.eq_ignore_ascii_case("localhost") || name.parse::<Ipv4Addr>().is_ok_and(|address| address.is_loopback())
}
