//! Which names this server answers to.

use super::answer::Failure;
use axum::http::header::HOST;
use axum::http::{HeaderMap, StatusCode, Uri, Version};
use std::net::{Ipv4Addr, Ipv6Addr};

/// Refuses a request that was sent to another name than one of this machine.
pub(crate) fn check(version: Version, uri: &Uri, headers: &HeaderMap) -> Result<(), Failure> {
    let mut hosts = headers.get_all(HOST).iter();
    let host = match (uri.authority(), hosts.next(), hosts.next()) {
        (_, _, Some(_)) => return Err(Failure::bad_request("there is more than one Host header")),
        (Some(authority), _, _) => authority.as_str().as_bytes(),
        (None, Some(host), None) => host.as_bytes(),
        // Older clients send none; browsers always do.
        (None, None, None) if version < Version::HTTP_11 => return Ok(()),
        (None, None, None) => return Err(Failure::bad_request("there is no Host header")),
    };
    if std::str::from_utf8(host).is_ok_and(is_loopback) {
        return Ok(());
    }
    Err(Failure::new(
        StatusCode::MISDIRECTED_REQUEST,
        "the Host header names another machine; this server listens on a loopback address and answers to localhost",
    ))
}

/// Whether `host` or `host:port` is a name or an address of this machine.
fn is_loopback(host: &str) -> bool {
    if let Some(rest) = host.strip_prefix('[') {
        let Some((address, port)) = rest.split_once(']') else { return false };
        return (port.is_empty() || port.strip_prefix(':').is_some_and(is_port))
            && address.parse::<Ipv6Addr>().is_ok_and(|address| address.to_canonical().is_loopback());
    }
    let name = match host.split_once(':') {
        Some((_, port)) if !is_port(port) => return false,
        Some((name, _)) => name,
        None => host,
    };
    name.eq_ignore_ascii_case("localhost") || name.parse::<Ipv4Addr>().is_ok_and(|address| address.is_loopback())
}

fn is_port(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_addresses_of_this_machine_are_told_from_others() {
        for host in
            ["localhost", "LocalHost:8080", "127.0.0.1", "127.1.2.3:1", "[::1]", "[::1]:8080", "[::ffff:127.0.0.1]"]
        {
            assert!(is_loopback(host), "{host:?}");
        }
        for host in [
            "",
            ":8080",
            "example.com",
            "localhost.example.com",
            "127.0.0.1.example.com",
            "notlocalhost",
            "10.0.0.1",
            "0.0.0.0",
            "[::2]",
            "[::1",
            "[::1]x",
            "::1",
            "localhost:80:80",
            "localhost:x",
            "user@localhost",
        ] {
            assert!(!is_loopback(host), "{host:?}");
        }
    }
}
