//! Which names this server answers to.

use super::answer::Failure;
use axum::http::header::HOST;
use axum::http::{HeaderMap, StatusCode, Uri, Version};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

/// Which names a server answers to. A web page that points a name of its own at 127.0.0.1 could otherwise read the
/// answers, in the browser of whoever runs the server.
#[derive(Clone, Debug)]
pub enum Hosts {
    /// Any.
    Any,
    /// Those of this machine, and these.
    Only(Arc<[String]>),
}

impl Hosts {
    /// Refuses a request that was sent to another name.
    pub(crate) fn check(&self, version: Version, uri: &Uri, headers: &HeaderMap) -> Result<(), Failure> {
        match self {
            Hosts::Any => Ok(()),
            Hosts::Only(names) => check(names, version, uri, headers),
        }
    }
}

fn check(names: &[String], version: Version, uri: &Uri, headers: &HeaderMap) -> Result<(), Failure> {
    let mut hosts = headers.get_all(HOST).iter();
    let host = match (uri.authority(), hosts.next(), hosts.next()) {
        (_, _, Some(_)) => return Err(Failure::bad_request("there is more than one Host header")),
        (Some(authority), _, _) => authority.as_str().as_bytes(),
        (None, Some(host), None) => host.as_bytes(),
        // Older clients send none; browsers always do.
        (None, None, None) if version < Version::HTTP_11 => return Ok(()),
        (None, None, None) => return Err(Failure::bad_request("there is no Host header")),
    };
    let name = std::str::from_utf8(host).ok().and_then(without_port);
    if name.is_some_and(|name| is_loopback(name) || names.iter().any(|other| other.eq_ignore_ascii_case(name))) {
        return Ok(());
    }
    Err(Failure::new(
        StatusCode::MISDIRECTED_REQUEST,
        "the Host header names another machine; this server answers to localhost and to each --allowed-host",
    ))
}

/// The name or address in `host` or `host:port`.
fn without_port(host: &str) -> Option<&str> {
    let (name, port) = match host.rfind([':', ']']) {
        Some(at) if host.as_bytes()[at] == b':' => (&host[..at], &host[at + 1..]),
        _ => (host, ""),
    };
    port.bytes().all(|byte| byte.is_ascii_digit()).then_some(name)
}

/// Whether a name or an address is of this machine.
fn is_loopback(name: &str) -> bool {
    if let Some(address) = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return address.parse::<Ipv6Addr>().is_ok_and(|address| address.to_canonical().is_loopback());
    }
    name.eq_ignore_ascii_case("localhost") || name.parse::<Ipv4Addr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_answered(host: &str, names: &[&str]) -> bool {
        let hosts = Hosts::Only(names.iter().map(|&name| name.to_owned()).collect());
        let headers = HeaderMap::from_iter([(HOST, host.parse().unwrap())]);
        hosts.check(Version::HTTP_11, &Uri::from_static("/"), &headers).is_ok()
    }

    #[test]
    fn names_and_addresses_of_this_machine_are_told_from_others() {
        for host in
            ["localhost", "LocalHost:8080", "127.0.0.1", "127.1.2.3:1", "[::1]", "[::1]:8080", "[::ffff:127.0.0.1]"]
        {
            assert!(is_answered(host, &[]), "{host:?}");
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
            assert!(!is_answered(host, &["list.example.com"]), "{host:?}");
        }
        for host in ["list.example.com", "LIST.example.com:8443", "[::1]", "localhost"] {
            assert!(is_answered(host, &["a.example.com", "list.example.com"]), "{host:?}");
        }
    }
}
