//! Who may ask what: tokens, hosts and origins.

use crate::common::{Answer, Client, Folder, Raw, Server, program, program_on, refused, start};
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
    let (shorter, prefix) = (format!("Bearer {}", &TOKEN[1..]), format!("Bearer {}", &TOKEN[..TOKEN.len() - 1]));
    let other_scheme = format!("Basic {TOKEN}");
    let bare = ["", "Bearer", "Bearer ", TOKEN, &other_scheme];
    let wrong = ["Bearer wrong", "Bearer THE-RIGHT-TOKEN", &longer, &shorter, &prefix];
    for (shown, says) in [(&bare[..], "Authorization: Bearer TOKEN"), (&wrong[..], "the token is wrong")] {
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

/// A browser sends requests of any page to any server, this one included.
#[test]
fn pages_of_other_origins_change_nothing() {
    let (_folder, server, client) = start(&[]);
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

#[test]
fn a_server_for_other_machines_needs_a_token_from_the_environment_or_a_file() {
    let folder = Folder::new();
    let (empty, no_file) = (folder.file("empty", "\n"), folder.path().join("none"));
    let outside = || {
        let mut command = program();
        command.args(["--listen", "0.0.0.0:0", "--data"]).arg(folder.path().join("list"));
        command
    };
    for (variable, file, says) in [
        (None, None, "0.0.0.0:0 can be reached from other machines, so a token is needed"),
        (Some(""), None, "the token is empty"),
        (Some("two words"), None, "visible ASCII"),
        (None, Some(&empty), "the token is empty"),
        (None, Some(&no_file), "cannot be read"),
        (Some(TOKEN), Some(&empty), "give one of them"),
    ] {
        let mut command = outside();
        command.envs(variable.map(|token| ("RISK_SERVER_TOKEN", token)));
        if let Some(path) = file {
            command.arg("--token-file").arg(path);
        }
        let (_, error) = refused(&mut command);
        assert!(error.lines().count() == 1 && error.contains(says), "{error}");
        assert!(!error.contains("two words"), "a secret is not shown: {error}");
    }
    assert!(!folder.path().join("list").exists(), "a server that is refused leaves nothing behind");

    let file = folder.file("token", format!("{TOKEN}\n"));
    for command in [outside().env("RISK_SERVER_TOKEN", TOKEN), outside().arg("--token-file").arg(file)] {
        let server = Server::loading(command);
        server.wait_until_ready();
        assert_eq!(server.client().put("/v1/keys/a").status, 401);
        assert_eq!(server.client().with_token(TOKEN).put("/v1/keys/a").status / 100, 2);
        // Others know it by a name.
        let named = server.client().send("GET", "/v1/check/a", &[("host", "list.example.com")], ());
        assert_eq!(named.json(200)["listed"], true);
        server.stop();
    }
}

/// A page that points a name of its own at this machine must not read the answers. A proxy may pass on its own name.
#[test]
fn only_names_of_this_machine_and_allowed_ones_are_answered_to() {
    let (_folder, server, client) = start(&["--allowed-host", "a.example", "--allowed-host", "b.example"]);
    for host in ["evil.example.com", "127.0.0.1.example.com", "10.0.0.1"] {
        for path in ["/", "/v1/check/a", "/v1/stats", "/metrics", "/healthz"] {
            let error = client.send("GET", path, &[("host", host)], ()).error(421);
            assert!(error.contains("localhost and to each --allowed-host"), "{error}");
        }
        client.send("PUT", "/v1/keys/a", &[("host", host)], "").error(421);
    }
    #[rustfmt::skip]
    let names = ["localhost", "LocalHost:8080", "127.0.0.1", "127.1.2.3:1", "[::1]", "[::1]:80", "[::ffff:127.0.0.1]",
        "a.example", "B.example:443"];
    #[rustfmt::skip]
    let others = ["", ":8080", "example.com", "localhost.example.com", "notlocalhost", "0.0.0.0", "[::2]", "[::1", "[::1]x",
        "::1", "localhost:80:80", "localhost:x", "u@localhost"];
    let hosts = |hosts: &[&str]| hosts.iter().map(|host| format!("host: {host}\r\n")).collect::<String>();
    let ask = |request: &str, hosts: String| {
        let mut raw = Raw::open(&server);
        raw.send(format!("GET {request}\r\n{hosts}connection: close\r\n\r\n"));
        raw.rest().split(' ').nth(1).unwrap().to_owned()
    };
    for name in names {
        assert_eq!(ask("/v1/stats HTTP/1.1", hosts(&[name])), "200", "{name:?}");
    }
    for name in others {
        assert_eq!(ask("/v1/stats HTTP/1.1", hosts(&[name])), "421", "{name:?}");
    }
    // It is sent once, unless the client is older.
    for (request, names, status) in [
        ("/healthz HTTP/1.1", &[][..], "400"),
        ("/healthz HTTP/1.0", &[], "200"),
        ("/healthz HTTP/1.0", &["example.com"], "421"),
        ("/healthz HTTP/1.1", &["localhost", "example.com"], "400"),
        ("http://example.com/healthz HTTP/1.1", &["localhost"], "421"),
        ("http://localhost/healthz HTTP/1.1", &["localhost"], "200"),
    ] {
        assert_eq!(ask(request, hosts(names)), status, "{request} {names:?}");
    }
}
