//! Many keys at once, one per line, which are added to the list or replace it.

use crate::common::{DOMAINS, Raw, Server, lines, made, program_on, snapshot, start, store, wait_until};
use concurrent_cuckoo_filter::{CuckooFilter, StableHashBuilder};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;
use std::io::Write;
use std::thread;

#[test]
fn lines_may_come_in_pieces_end_in_either_way_and_be_blank() {
    let (_folder, server, client) = start(&[]);
    let mut raw = Raw::upload(&server, "");
    "\u{feff}zwölf\r\n\n \t\r\n two words \nläßt".bytes().for_each(|byte| raw.chunk([byte]));
    raw.chunk("");
    let answer = raw.rest();
    assert!(answer.ends_with(r#"{"added":3,"already":0,"lines":3}"#), "{answer}");
    assert_eq!(client.which_listed(&["zwölf", " two words ", "two words", "läßt"]), [true, true, false, true]);
    assert_eq!(client.post("", " \r\n\n").json(200), json!({ "lines": 0, "added": 0, "already": 0 }));
}

#[test]
fn of_a_bad_line_the_number_is_told_and_lines_before_it_are_kept() {
    let (_folder, server, client) = start(&[]);
    let keys = made("key", 9999);
    let long = "x".repeat(1025);
    for (bad, reason) in [
        (long.as_bytes(), "1025 bytes"),
        (&[b'x'; 100_000], "longer than a key"),
        (b"a\0b", "U+0000"),
        (b"not \xff fine", "not UTF-8"),
    ] {
        let answer = client.post("", &[lines(&keys).as_bytes(), bad, b"\nafter\n"].concat()[..]);
        let error = answer.error(400);
        assert!(error.starts_with("line 10000: ") && error.contains(reason), "{error}");
        assert_eq!(answer.json(400)["lines"], 9999);
    }
    assert_eq!((client.count_listed(&keys), client.len()), (9999, 9999));

    // Half a line is not a key, and a client that disconnects is not an error of the server.
    let mut raw = Raw::upload(&server, "");
    raw.chunk(format!("{}broken", lines(&made("whole", 20_000))));
    wait_until("keys of an upload that has not ended", || client.len() > 9999);
    drop(raw);
    wait_until("the upload to be over", || client.get("/metrics").body.contains("status=\"4xx\"} 5"));
    assert!(!client.listed("broken"));

    // A client that reads no response before it has sent everything, with each kind of body.
    for (path, status) in
        [("/v1/keys", "400"), ("/v1/keys?replace=true", "400"), ("/v1/check", "413"), ("/none", "404")]
    {
        let mut raw = Raw::open(&server);
        raw.head(&format!("POST {path}"), &["transfer-encoding: chunked"]);
        raw.chunk("b\0d\n");
        (0..100).for_each(|_| raw.chunk("a\n".repeat(1 << 15)));
        raw.chunk("");
        assert_eq!(raw.status(), status, "{path}");
    }
}

pub(crate) fn gzip(text: impl AsRef<[u8]>) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text.as_ref()).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn all_members_of_a_gzip_are_decoded_and_nothing_else_is() {
    let (_folder, _server, client) = start(&[]);
    let post = |encoding, body: &[u8]| client.send("POST", "/v1/keys", &[("content-encoding", encoding)], body);
    let keys = made("key", 9000);
    let (first, second) = (gzip(lines(&keys[..4000])), gzip(lines(&keys[4000..])));
    // Several members, as by `gzip >>` and `cat a.gz b.gz`. A member need not end with a line.
    let both = [&first[..], &second].concat();
    assert_eq!(post("gzip", &both).json(200), json!({ "lines": 9000, "added": 9000, "already": 0 }));
    assert_eq!(client.count_listed(&keys), 9000);
    let many: Vec<u8> = "in\npieces\n".repeat(500).bytes().flat_map(|byte| gzip([byte])).collect();
    assert_eq!(post("gzip", &many).json(200), json!({ "lines": 1000, "added": 2, "already": 998 }));

    for broken in [&both[..both.len() - 1], &both[..first.len() + 5], &[&both[..], b"\0"].concat(), b"a\nb\n", b""] {
        let error = post("gzip", broken).error(400);
        assert!(error.contains("not in gzip to its end"), "{error}");
    }
    let rotten = [&both[..first.len() / 2], &[!both[first.len() / 2]], &both[first.len() / 2 + 1..]].concat();
    post("gzip", &rotten).error(400);
    assert_eq!(post("Identity", b"in\n").json(200)["already"], 1);
    for other in ["zstd", "br", "deflate", "gzip, gzip"] {
        assert!(post(other, b"a\n").error(415).contains("with gzip"), "{other}");
    }
    // A ratio that no list has. A ratio of 60 is still accepted.
    let dense = lines(&vec!["x".repeat(300); 50_000]);
    assert!(dense.len() / gzip(&dense).len() > 100);
    assert!(post("gzip", &gzip(&dense)).error(413).contains("more than 100 times its length"));
    let fair = made(&"x".repeat(200), 50_000);
    let ratio = lines(&fair).len() / gzip(lines(&fair)).len();
    assert!((50..95).contains(&ratio), "{ratio}");
    assert_eq!(post("gzip", &gzip(lines(&fair))).json(200)["added"], 50_000);
}

#[test]
fn the_filter_grows_while_it_is_queried_and_the_list_refuses_keys_beyond_its_limit() {
    let (_folder, _server, client) =
        start(&["--capacity", "1", "--max-capacity", "40000", "--snapshot-seconds", "0.1"]);
    // So long that a part of the upload has few of them.
    let (stable, keys) = (made("stable", 100), made(&"x".repeat(60), 60_000));
    client.add_all(&stable);
    let answer = thread::scope(|scope| {
        let upload = scope.spawn(|| client.post("", &lines(&keys)));
        while !upload.is_finished() {
            assert_eq!(client.count_listed(&stable), 100);
        }
        upload.join().unwrap()
    });
    assert!(answer.error(507).contains("the list was not changed") && answer.header("retry-after").is_empty());
    let listed = answer.json(507)["lines"].as_u64().unwrap();
    assert!((35_000..=39_900).contains(&listed), "{listed} lines");
    assert_eq!(client.len(), 100 + listed);
    assert_eq!(
        (client.count_listed(&keys[..listed as usize]), client.count_listed(&keys)),
        (listed as usize, listed as usize)
    );
    assert!(client.stats()["filter"]["splits"].as_u64() > Some(0));
}

#[test]
fn of_keys_that_the_filter_refuses_none_stays_in_it() {
    let args = ["--capacity=9", "--max-capacity=9", "--false-positive-rate=0.9"];
    let (folder, server, _client) = start(&args);
    // With the seeds of the hash function.
    server.stop();
    let filter = CuckooFilter::<String, StableHashBuilder>::load(snapshot(&folder)).unwrap();
    let server = Server::start(program_on(folder.path()).args(args));
    let (client, mut alike) = (server.client(), made("key", 10_000));
    alike.retain(|key| filter.class_of(key) == filter.class_of("key-0"));
    assert!(client.post("", &lines(&alike[..9])).error(503).contains("all 8 slots"));
    assert_eq!((client.len(), client.add_all(&alike[..8]), client.len()), (0, 8, 8));
}

#[test]
fn a_new_list_is_the_lines_that_were_sent_and_a_key_on_both_is_listed_at_every_moment() {
    let (folder, _server, client) = start(&["--capacity", "1000"]);
    let (old, both, domains) = (made("old", 500), made("both", 500), DOMAINS.lines().collect::<Vec<_>>());
    client.add_all(&[&old[..], &both].concat());
    let new = format!("{DOMAINS}{}", lines(&both));
    thread::scope(|scope| {
        let replacing = scope.spawn(|| {
            for _ in 0..3 {
                assert_eq!(client.post("?replace=true", &new).json(200)["keys"], 122_070);
            }
        });
        while !replacing.is_finished() {
            assert_eq!(client.count_listed(&both), 500);
        }
    });
    assert_eq!((client.count_listed(&domains), client.count_listed(&old)), (121_570, 0));
    assert_eq!((client.len(), &client.stats()["replacements"]), (122_070, &json!(3)));
    // Nothing remains of earlier lists: 20 bytes per key.
    let bytes = store(&folder).metadata().unwrap().len();
    assert!(bytes < 3_000_000, "{bytes} bytes");
    assert!(!client.add(domains[0]) && client.remove(domains[1]) && !client.listed(domains[1]));
    assert_eq!(
        client.post("?replace=true", "a\r\nb\n\na\nb").json(200)["keys"],
        2,
        "a key that comes again counts once"
    );
    assert!(client.post("?replace=true", "\n \r\n").error(400).contains("the body has no key"));
    assert_eq!(client.which_listed(&["a", "b"]), [true, true], "an export that failed unlists nothing");
}

#[test]
fn a_new_list_that_breaks_off_changes_nothing() {
    let (folder, server, client) = start(&[]);
    let files = || folder.path().join("unfinished").read_dir().unwrap().count();
    let (old, new) = (made("old", 2000), made("new", 50_000));
    client.add_all(&old);
    let mut raw = Raw::upload(&server, "?replace=true");
    raw.chunk(lines(&new));
    wait_until("the file of the new list", || files() > 0);
    // Meanwhile the list may be changed, or be replaced by another one.
    assert!(client.add("meanwhile"));
    drop(raw);
    wait_until("the new list to be given up", || files() == 0);
    let bad = client.post("?replace=true", &format!("{}a\0b\n", lines(&new[..5000])));
    assert!(bad.error(400).starts_with("line 5001: "));
    assert_eq!((client.len(), client.count_listed(&old), client.count_listed(&new)), (2001, 2000, 0));
    assert_eq!(files(), 0);
}
