//! Restarts after a regular end, after kills under load, and with damaged files; failing stores.

use crate::common::{
    Client, Raw, Server, encoded, lines, made, program_on, refused, snapshot, start, store, wait_until,
};
use fastrand::Rng;
use rustix::process::{Resource, Rlimit, prlimit};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Changes keys of its own until the server ends. `listed` has the acknowledged state; that of the last key is unknown.
fn change(client: &Client, writer: usize, seed: u64, listed: &mut BTreeMap<String, bool>, done: &AtomicUsize) {
    let mut rng = Rng::with_seed(seed);
    loop {
        let (key, put) = (format!("writer-{writer}-{}", rng.u8(..)), rng.u8(..) < 160);
        let path = format!("/v1/keys/{}", encoded(&key));
        let before = listed.get(&key).copied();
        let answer = client.try_send(if put { "PUT" } else { "DELETE" }, &path, &[], "");
        let Some(answer) = answer.ok().filter(|answer| answer.status / 100 == 2) else {
            listed.remove(&key);
            return;
        };
        if let Some(before) = before {
            assert_eq!(answer.body.contains(":true"), before != put, "{key}: {}", answer.body);
        }
        listed.insert(key, put);
        done.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn what_was_acknowledged_under_load_is_there_after_each_kill() {
    const WRITERS: usize = 4;
    let folder = tempfile::tempdir().unwrap();
    let (stable, new) = (made("stable", 20_000), made("new", 20_000));
    let mut listed: Vec<BTreeMap<String, bool>> = vec![BTreeMap::new(); WRITERS];
    for round in 0..6 {
        let server = Server::start(program_on(folder.path()).args(["--capacity", "100", "--snapshot-seconds", "0.05"]));
        let client = server.client();
        if round == 0 {
            client.add_all(&stable);
        }
        assert_eq!(client.count_listed(&stable), stable.len(), "round {round}");
        for (keys, expected) in listed.iter().map(|keys| keys.iter().unzip::<_, _, Vec<_>, Vec<_>>()) {
            assert_eq!(client.which_listed(&keys), expected.into_iter().copied().collect::<Vec<_>>(), "round {round}");
        }
        let done = AtomicUsize::new(0);
        thread::scope(|scope| {
            for (writer, listed) in listed.iter_mut().enumerate() {
                let (client, done) = (server.client(), &done);
                scope.spawn(move || change(&client, writer, (round * WRITERS + writer) as u64, listed, done));
            }
            // The upload may have been made or not, and lookups must be right.
            let uploading = server.client();
            let upload = lines(&new);
            scope.spawn(move || {
                drop(uploading.try_send("POST", "/v1/keys", &[("content-type", "text/plain")], &upload))
            });
            wait_until("changes", || {
                assert_eq!(client.count_listed(&stable[..100]), 100);
                done.load(Ordering::Relaxed) > 300
            });
            drop(server);
        });
    }
}

#[test]
fn a_start_uses_a_snapshot_of_the_same_state_only() {
    let (folder, server, client) = start(&[]);
    let keys = made("key", 3000);
    client.add_all(&keys);
    server.stop();
    let (first, older) = (store(&folder), folder.path().join("older"));
    fs::copy(&first, &older).unwrap();
    let open = |source: &str, listed: usize| {
        let server = Server::on(&folder);
        assert!(server.log().contains(&format!("source=\"{source}\"")), "{}", server.log());
        assert_eq!(server.client().count_listed(&keys), listed);
        server
    };
    drop(open("snapshot", 3000));
    let server = open("snapshot", 3000);
    assert!(server.client().remove("key-0") && server.client().add("as many as before"));
    drop(server);
    let server = open("store", 2999);
    server.client().remove("key-1");
    server.stop();
    fs::write(snapshot(&folder), &fs::read(snapshot(&folder)).unwrap()[..1000]).unwrap();
    open("store", 2998).stop();
    open("snapshot", 2998).stop();
    // A store from a backup, with as many changes as the snapshot.
    fs::copy(&older, &first).unwrap();
    let server = open("store", 3000);
    server.client().remove("key-2");
    drop(server);
    open("store", 2999).stop();
    // The start does not wait for a pipe without a writer, and removes the files of a killed process.
    fs::remove_file(snapshot(&folder)).unwrap();
    assert!(Command::new("mkfifo").arg(snapshot(&folder)).status().unwrap().success());
    let leftover = folder.path().join("unfinished/file");
    fs::write(&leftover, "").unwrap();
    drop(open("store", 2999));
    fs::remove_file(snapshot(&folder)).unwrap();
    assert!(!leftover.exists());
    Server::on(&folder).stop();
    let server = Server::start(program_on(folder.path()).args(["--false-positive-rate", "0.01"]));
    assert!(server.log().contains("another rate") && server.client().count_listed(&keys) == 2999, "{}", server.log());
}

#[test]
fn a_list_takes_keys_up_to_its_limit_and_is_loaded_with_a_lower_one() {
    let keys = made("key", 20_000);
    let refused = |answer: crate::common::Answer, limit| {
        let error = answer.error(507);
        assert!(error.contains(&format!("more than {limit} keys; give a larger --max-capacity")), "{error}");
    };
    let (folder, server, client) = start(&["--capacity", "1", "--max-capacity", "20000"]);
    keys.chunks(5000).for_each(|keys| assert_eq!(client.add_all(keys), 5000));
    refused(client.send("PUT", "/v1/keys/new", &[], ""), 20_000);
    assert!(!client.add("key-0") && client.remove("key-0") && client.add("key-0"));
    drop(server);
    let server = Server::start(program_on(folder.path()).args(["--capacity", "1", "--max-capacity", "5000"]));
    let client = server.client();
    assert!(!client.add("key-0") && client.remove("key-0"));
    refused(client.send("PUT", "/v1/keys/key-0", &[], ""), 5000);
    refused(client.post("?replace=true", &lines(&keys[..5001])), 5000);
    assert_eq!((client.count_listed(&keys), client.len()), (19_999, 19_999));
    assert_eq!(client.post("?replace=true", &lines(&keys[..5000])).json(200)["keys"], 5000);
    refused(client.send("PUT", "/v1/keys/new", &[], ""), 5000);
    assert!(client.remove("key-0") && client.add("new"));
}

#[test]
fn a_first_start_may_be_killed_at_any_moment() {
    for round in 0..20 {
        let folder = tempfile::tempdir().unwrap();
        let mut first = program_on(folder.path()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let (begun, delay) = (Instant::now(), Duration::from_millis(5 * round));
        wait_until("the first list", || {
            assert_eq!(first.try_wait().unwrap(), None, "round {round}");
            if round % 2 == 0 { store(&folder).exists() } else { begun.elapsed() > delay }
        });
        first.kill().unwrap();
        first.wait().unwrap();
        assert!(Server::on(&folder).client().add("a"), "round {round}");
    }
}

#[test]
fn a_snapshot_is_saved_at_the_end_even_while_another_is_being_saved() {
    let folder = tempfile::tempdir().unwrap();
    for round in 0..40 {
        let args = ["--capacity", "1000", "--snapshot-seconds", "0.001"];
        let server = Server::start(program_on(folder.path()).args(args));
        assert!(round == 0 || server.log().contains("source=\"snapshot\""), "round {round}: {}", server.log());
        let (client, mut number) = (server.client(), 0);
        wait_until("a snapshot", || {
            number += 1;
            client.add(&format!("key-{round}-{number}"));
            folder.path().join("unfinished").read_dir().unwrap().next().is_some()
        });
        server.stop();
    }
}

/// Returns a shell that runs this script, in which $0 is the program for this folder.
pub(crate) fn shell(folder: &Path, script: &str) -> Command {
    let (program, mut shell) = (program_on(folder), Command::new("sh"));
    shell.args(["-c", script]).arg(program.get_program());
    shell.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell
}

#[test]
fn a_full_disk_refuses_changes_and_lookups_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&mut shell(folder.path(), "trap '' XFSZ; ulimit -S -f 8192; exec \"$0\""));
    let client = server.client();
    let (mut kept, mut failures) = (Vec::new(), 0);
    for group in 0..200 {
        let keys = made(&format!("group-{group}-{}", "x".repeat(40)), 2000);
        let answer = client.post("", &lines(&keys));
        match answer.status {
            200 => kept.extend(keys),
            _ => failures += usize::from(!answer.error(503).is_empty()),
        }
        if failures == 3 {
            break;
        }
    }
    assert!(failures == 3 && kept.len() > 10_000, "{} kept", kept.len());
    assert!(client.stats()["store_failures"].as_u64() > Some(0));
    wait_until("lookups of all keys", || client.batch("[\"a\"]").status == 200);
    assert_eq!((client.count_listed(&kept), client.count_listed(&made("absent", 10_000))), (kept.len(), 0));
    prlimit(Some(server.pid()), Resource::Fsize, Rlimit { current: None, maximum: None }).unwrap();
    wait_until("changes to be made again", || client.send("PUT", "/v1/keys/again", &[], "").status / 100 == 2);
    kept.push("again".into());
    drop(server);
    assert_eq!(Server::on(&folder).client().count_listed(&kept), kept.len());
}

#[test]
fn a_new_list_that_a_power_cut_may_undo_takes_no_changes() {
    // Root may read every folder, except without these capabilities.
    let script = "[ $(id -u) != 0 ] || exec setpriv --bounding-set=-dac_override,-dac_read_search \"$0\"; exec \"$0\"";
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&mut shell(folder.path(), script));
    let client = server.client();
    let set_mode = |mode| fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).unwrap();
    set_mode(0o300);
    assert!(client.post("?replace=true", "new\n").error(503).contains("a power cut may undo"));
    assert!(client.listed("new"));
    wait_until("a retry of the sync", || {
        client.send("PUT", "/v1/keys/a", &[], "").error(503).contains("cannot be synced")
    });
    set_mode(0o700);
    wait_until("changes to be made again", || client.send("PUT", "/v1/keys/a", &[], "").status == 201);
}

#[test]
fn failing_lookups_have_the_store_checked_once_until_the_writer_is_ready() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&mut shell(folder.path(), "trap '' XFSZ; exec \"$0\" --request-seconds 0.5"));
    let client = server.client();
    wait_until("a listed key", || client.send("PUT", "/v1/keys/a", &[], "").status == 200);
    // While another process has the store, the writer waits for 5 s to reopen it.
    let copy = folder.path().join("copy");
    fs::copy(store(&folder), &copy).unwrap();
    let _other = redb::Database::open(&copy).unwrap();
    fs::rename(&copy, store(&folder)).unwrap();
    let limit_files =
        |current| prlimit(Some(server.pid()), Resource::Fsize, Rlimit { current, maximum: None }).unwrap();
    limit_files(Some(0));
    // A delete that fails leaves the key in the filter: this one would get "no" as an answer until the filter is loaded again.
    client.send("DELETE", "/v1/keys/a", &[], ()).error(503);
    limit_files(None);
    (0..30).for_each(|_| assert!(client.get("/v1/check/a").error(503).contains("the store failed")));
    let logged = || server.log().matches("keys could not be confirmed").count();
    assert_eq!(logged(), 1);
    wait_until("another check", || client.get("/v1/check/a").status == 503 && logged() > 1);
}

#[test]
fn a_writer_that_panics_ends_the_server_with_a_message() {
    // redb panics when it reads an invalid page.
    let (folder, server, client) = start(&["--cache-mib", "1"]);
    client.add_all(&made("key", 200_000));
    let file = File::options().write(true).open(store(&folder)).unwrap();
    file.write_all_at(&vec![0xff; file.metadata().unwrap().len() as usize - (1 << 16)], 1 << 16).unwrap();
    let mut number = 0;
    wait_until("the writer to panic", || {
        number += 1;
        let put = client.try_send("PUT", &format!("/v1/keys/new-{number}"), &[], "");
        server.log().contains("list-writer") || put.is_err()
    });
    let (status, log) = server.wait();
    assert_eq!(status.code(), Some(1), "{log}");
    assert!(log.lines().last().unwrap().contains("the thread that changes the list panicked"), "{log}");
}

#[test]
fn a_new_list_that_panics_fails_one_request() {
    let (folder, server, client) = start(&[]);
    let mut raw = Raw::upload(&server, "?replace=true");
    (0..120).for_each(|part| raw.chunk(lines(&made(&format!("{part:03}{}", "x".repeat(1000)), 100))));
    let mut files = folder.path().join("unfinished").read_dir().unwrap();
    let file = File::options().write(true).open(files.next().unwrap().unwrap().path()).unwrap();
    let mut bytes = 0;
    // More than the memory for its pages, so that some are read again.
    wait_until("all lines", || {
        thread::sleep(Duration::from_millis(200));
        let before = bytes;
        bytes = file.metadata().unwrap().len();
        bytes > 1 << 24 && bytes == before
    });
    file.write_all_at(&vec![0xff; bytes as usize - (1 << 16)], 1 << 16).unwrap();
    raw.chunk("");
    assert_eq!(raw.status(), "500");
    assert!(raw.rest().contains("made the server panic") && client.add("a"));
}

#[test]
fn a_start_that_fails_says_why_and_listens_to_nobody() {
    let (folder, server, _client) = start(&[]);
    let other = tempfile::tempdir().unwrap();
    fs::write(other.path().join("file"), "").unwrap();
    fs::write(store(&other), "something else, and of some length at that".repeat(1000)).unwrap();
    let listen = server.address.to_string();
    // Its store is locked no more.
    fs::remove_file(store(&folder)).unwrap();
    for (data, args, says) in [
        (folder.path(), &[][..], &*format!("{} cannot be used: another server uses it", folder.path().display())),
        (other.path(), &[], "list.redb: "),
        (&other.path().join("file"), &[], "file cannot be used"),
        (other.path(), &["--listen", &listen], "cannot listen on "),
        (other.path(), &["--max-capacity", "10000000001"], "a whole number from 1 to 10000000000"),
        (other.path(), &["--false-positive-rate", "NaN"], "above 0 and below 1"),
        (other.path(), &["--false-positive-rate", "0.000000000000001"], "false-positive rate"),
        (other.path(), &["--max-bodies-mib", "1"], "from 32 to 1048576"),
    ] {
        let error = refused(program_on(data).args(args));
        assert!(error.contains(says), "{args:?}: {error}");
    }
    assert!(refused(program_on(other.path()).env("RUST_LOG", "x=loud")).contains("RUST_LOG"));
    let full = &other.path().join("full");
    let error = refused(&mut shell(full, "trap '' XFSZ; ulimit -f 0; exec \"$0\""));
    assert!(error.contains(&format!("{} cannot be used: a new list cannot", full.display())), "{error}");
}

#[test]
fn files_are_for_their_owner_alone_and_a_log_that_cannot_be_written_stops_nothing() {
    let outer = tempfile::tempdir().unwrap();
    let folder = outer.path().join("made/by/it");
    let mut command = shell(&folder, "exec \"$0\" 2>/dev/full");
    command.env("RUST_LOG", "debug").env("RISK_SERVER_MAX_CAPACITY", "4321000");
    let server = Server::start(&mut command);
    let client = server.client();
    assert_eq!(client.stats()["filter"]["max_capacity"], 4_321_000);
    assert!(client.add("a") && client.listed("a"));
    server.stop();
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&folder), mode(folder.parent().unwrap())), (0o700, 0o700));
    assert_eq!(["list.redb", "filter.snapshot"].map(|name| mode(&folder.join(name))), [0o600; 2]);
}
