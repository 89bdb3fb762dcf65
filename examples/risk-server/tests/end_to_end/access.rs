//! Who may ask what: tokens, hosts and origins.

use crate::common::client::{Answer, Client};
use crate::common::folder::Folder;
use crate::common::raw::Raw;
use crate::common::server::{Server, program, program_on, refused};
use serde_json::json;

const TOKEN: &str = "the-right-token";

fn with_token(folder: &Folder) -> Server {
    let server = Server::loading(program_on(folder).env("RISK_SERVER_TOKEN", TOKEN));
    server.wait_until_ready();
    server
}

/// Every request that writes.
fn writes(client: &Client, headers: &[(&str, &str)]) -> [Answer; 5] {
    // Refused before its body is read, an upload ends its connection.
    let last = [headers, &[("connection", "close")]].concat();
    [
        client.send("PUT", "/v1/keys/new", headers, ""),
        client.send("DELETE", "/v1/keys/old", headers, ()),
        client.send("POST", "/v1/keys", &last, "new\n"),
        client.send("POST", "/v1/keys?replace=true", &last, "new\n"),
        client.send("DELETE", "/v1/replacement", headers, ()),
    ]
}

#[test]
fn without_the_token_nothing_is_changed() {
    let folder = Folder::new();
    let server = with_token(&folder);
    let owner = server.client().with_token(TOKEN);
    assert!(owner.add("old"));

    let client = server.client();
    let longer = format!("Bearer {TOKEN}x");
    let shorter = format!("Bearer {}", &TOKEN[1..]);
    let other_scheme = format!("Basic {TOKEN}");
    let bare = ["", "Bearer", "Bearer ", TOKEN, &other_scheme];
    let wrong = ["Bearer wrong", "Bearer THE-RIGHT-TOKEN", &longer, &shorter];
    for (shown, says) in [(&bare[..], "Authorization: Bearer TOKEN"), (&wrong[..], "not the right one")] {
        for value in shown {
            for answer in writes(&client, &[("authorization", value)]) {
                let error = answer.error(401);
                // Spaces at the end of a header are not part of it.
                assert!(error.contains(says) || *value == "Bearer ", "{value:?}: {error}");
                assert!(answer.header("www-authenticate").starts_with("Bearer"), "{:?}", answer.headers);
                assert!(!answer.body.contains(TOKEN));
            }
        }
    }
    for answer in writes(&client, &[]) {
        answer.error(401);
    }
    assert_eq!(client.which_listed(&["old", "new"]), [true, false], "who reads needs no token");
    assert_eq!(client.stats()["keys"], 1);

    assert_eq!(owner.post_keys("", "new\n").json(200)["added"], 1);
    assert!(owner.remove("old"));
    assert_eq!(owner.post_keys("?replace=true", "newer\n").json(200)["keys"], 1);
    assert_eq!(client.which_listed(&["old", "new", "newer"]), [false, false, true]);
    let lower_case = format!("bearer {TOKEN}");
    let put = client.send("PUT", "/v1/keys/a", &[("authorization", &lower_case)], "");
    assert_eq!(put.status, 201, "the name of the scheme may be written in any case");
    assert!(!server.log().contains(TOKEN), "a secret is not logged");
}

#[test]
fn the_body_of_a_refused_upload_is_not_waited_for() {
    let folder = Folder::new();
    let server = with_token(&folder);
    let mut raw = Raw::open(&server);
    raw.head("POST /v1/keys", &["transfer-encoding: chunked"]);
    raw.chunk("a\n");
    assert!(raw.answer_head().starts_with("http/1.1 401 "));
    assert!(!server.client().listed("a"));
}

#[test]
fn a_token_comes_from_a_file() {
    let folder = Folder::new();
    let file = folder.file("token", format!("{TOKEN}\n"));
    let server = Server::with(&folder, &["--token-file".as_ref(), file.as_os_str()]);
    assert_eq!(server.client().put("/v1/keys/a").status, 401);
    assert!(server.client().with_token(TOKEN).add("a"));
}

#[test]
fn a_server_for_other_machines_needs_a_token() {
    let folder = Folder::new();
    for address in ["0.0.0.0:0", "[::]:0"] {
        let mut command = program();
        command.args(["--listen", address, "--data"]).arg(folder.path());
        let output = refused(&mut command);
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(matches!(output.status.code(), Some(1 | 2)), "{}", output.status);
        assert_eq!(error.lines().count(), 1, "{error}");
        assert!(error.contains(address) && error.contains("token is needed"), "{error}");
    }
    assert_eq!(folder.path().read_dir().unwrap().count(), 0, "a server that is refused leaves nothing behind");

    let mut command = program();
    command.args(["--listen", "0.0.0.0:0", "--data"]).arg(folder.path()).env("RISK_SERVER_TOKEN", TOKEN);
    let server = Server::loading(&mut command);
    server.wait_until_ready();
    assert_eq!(server.client().put("/v1/keys/a").status, 401);
    assert!(server.client().with_token(TOKEN).add("a"));
    // Others know it by a name.
    let named = server.client().send("GET", "/v1/check/a", &[("host", "list.example.com")], ());
    assert_eq!(named.json(200)["listed"], true);
}

#[test]
fn a_token_that_is_none_is_refused() {
    let folder = Folder::new();
    let empty_file = folder.file("empty", "\n");
    let no_file = folder.path().join("none");
    let long = "x".repeat(257);
    for (variable, file, says) in [
        (Some(""), None, "the token is empty"),
        (Some("two words"), None, "visible ASCII"),
        (Some(long.as_str()), None, "257 bytes"),
        (None, Some(&empty_file), "the token is empty"),
        (None, Some(&no_file), "cannot be read"),
        (Some(TOKEN), Some(&empty_file), "give one of them"),
    ] {
        let mut command = program_on(&folder);
        command.envs(variable.map(|token| ("RISK_SERVER_TOKEN", token)));
        if let Some(path) = file {
            command.arg("--token-file").arg(path);
        }
        let output = refused(&mut command);
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success());
        assert!(error.lines().count() == 1 && error.contains(says), "{error}");
        assert!(!error.contains(&long) && !error.contains("two words"), "a secret is not shown: {error}");
    }
}

/// A page that points a name of its own at this machine must not read the answers.
#[test]
fn on_a_loopback_address_only_names_of_this_machine_are_answered() {
    let folder = Folder::new();
    let server = Server::start(&folder);
    let client = server.client();
    for host in ["evil.example.com", "127.0.0.1.example.com", "10.0.0.1:80", "localhost.evil.com"] {
        for path in ["/", "/v1/check/a", "/v1/stats", "/metrics", "/healthz"] {
            let error = client.send("GET", path, &[("host", host)], ()).error(421);
            assert!(error.contains("localhost"), "{error}");
        }
        client.send("PUT", "/v1/keys/a", &[("host", host)], "").error(421);
    }
    for host in ["localhost", "localhost:1234", "127.0.0.1", "[::1]:80"] {
        assert_eq!(client.send("GET", "/v1/stats", &[("host", host)], ()).json(200)["keys"], 0);
    }
}

/// A proxy may pass on the name that it was asked for.
#[test]
fn names_that_are_allowed_are_answered_too() {
    let folder = Folder::new();
    let server = Server::with(&folder, &["--allowed-host", "list.example.com", "--allowed-host", "other.example.com"]);
    let client = server.client();
    for host in ["list.example.com", "Other.Example.com:443", "localhost"] {
        assert_eq!(client.send("GET", "/v1/stats", &[("host", host)], ()).json(200)["keys"], 0);
    }
    let error = client.send("GET", "/v1/stats", &[("host", "evil.example.com")], ()).error(421);
    assert!(error.contains("--allowed-host"), "{error}");
}

/// A browser sends requests of any page to any server, this one included.
#[test]
fn pages_of_other_origins_change_nothing() {
    let folder = Folder::new();
    let server = Server::start(&folder);
    let client = server.client();
    assert!(client.add("old"));
    let own = server.url();
    for headers in [
        &[("origin", "https://evil.example.com")][..],
        &[("origin", "null")],
        &[("sec-fetch-site", "cross-site")],
        &[("sec-fetch-site", "same-site"), ("origin", "http://127.0.0.1:1")],
        &[("origin", "https://evil.example.com"), ("content-type", "text/plain")],
    ] {
        for answer in writes(&client, headers) {
            assert!(answer.error(403).contains("another origin"), "{headers:?}");
        }
        let batch = client.send("POST", "/v1/check", headers, "[\"old\"]");
        batch.error(403);
    }
    assert_eq!(client.which_listed(&["old", "new"]), [true, false]);

    for headers in [&[("origin", own.as_str())][..], &[("sec-fetch-site", "same-origin"), ("origin", own.as_str())]] {
        let batch = client.send("POST", "/v1/check", headers, "[\"old\"]");
        assert_eq!(batch.json(200), json!({ "listed": [true] }));
    }
    // No answer allows another origin to read it.
    let get = client.send("GET", "/v1/check/old", &[("origin", "https://evil.example.com")], ());
    assert_eq!(get.header("access-control-allow-origin"), "");
}
