//! A server that is killed amid writes has what it acknowledged.

use crate::common::client::{Client, key_path};
use crate::common::folder::Folder;
use crate::common::keys::{lines, made};
use crate::common::server::Server;
use crate::common::wait::wait_until;
use serde_json::Value;
use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

const ROUNDS: usize = 8;
const WRITERS: usize = 4;

/// What one writer knows of its keys, which no other writer touches.
#[derive(Default)]
struct Known {
    /// Whether the key is listed, of keys whose last change was acknowledged.
    listed: HashMap<String, bool>,
    /// Those whose last change was cut off: it was made, or not.
    open: Vec<String>,
    next: usize,
}

impl Known {
    fn settle(&mut self, key: &str, listed: bool) {
        self.listed.insert(key.into(), listed);
    }

    fn leave_open(&mut self, keys: Vec<String>) {
        for key in &keys {
            self.listed.remove(key);
        }
        self.open.extend(keys);
    }

    /// Writes until the server is gone.
    fn write(&mut self, writer: usize, client: &Client, rng: &mut fastrand::Rng, acknowledged: &AtomicUsize) {
        loop {
            let keys: Vec<String> = match rng.u8(..10) {
                // Some that are there, to be removed or put again.
                0..4 if !self.listed.is_empty() => rng.choice(self.listed.keys()).cloned().into_iter().collect(),
                4 => (0..rng.usize(2..100)).map(|i| format!("key-{writer}-{}", self.next + i)).collect(),
                _ => vec![format!("key-{writer}-{}", self.next)],
            };
            self.next += keys.len();
            let put = keys.len() > 1 || rng.u8(..3) > 0;
            let answer = match &keys[..] {
                [key] if put => client.try_send("PUT", &key_path(key), &[], ""),
                [key] => client.try_send("DELETE", &key_path(key), &[], ()),
                keys => client.try_send("POST", "/v1/keys", &[], &lines(keys)),
            };
            let Ok(answer) = answer else { return self.leave_open(keys) };
            assert!(matches!(answer.status, 200 | 201), "{}: {}", answer.status, answer.body);
            if let [key] = &keys[..] {
                let was = self.listed.get(key).copied().unwrap_or(false);
                let body: Value = serde_json::from_str(&answer.body).unwrap();
                let changed = body[if put { "added" } else { "removed" }].as_bool();
                assert_eq!(changed, Some(was != put), "{key}, put: {put}");
            }
            for key in &keys {
                self.settle(key, put);
            }
            acknowledged.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Asks the server for all, and learns what became of the open ones. Says how many are listed.
    fn check(&mut self, client: &Client) -> usize {
        let keys: Vec<String> = self.listed.keys().cloned().collect();
        for (key, listed) in keys.iter().zip(client.which_listed(&keys)) {
            assert_eq!(listed, self.listed[key], "{key} is not as it was acknowledged");
        }
        let open = std::mem::take(&mut self.open);
        for (key, listed) in open.iter().zip(client.which_listed(&open)) {
            self.settle(key, listed);
        }
        self.listed.values().filter(|&&listed| listed).count()
    }
}

#[test]
fn what_was_acknowledged_is_there_after_a_kill_at_any_moment() {
    let folder = Folder::new();
    let mut rng = fastrand::Rng::with_seed(6);
    let mut writers: Vec<Known> = (0..WRITERS).map(|_| Known::default()).collect();
    let mut from_snapshot = 0;
    for round in 0..=ROUNDS {
        // Snapshots all the time, so that kills come before, in and after them; and a filter that has to grow.
        let server = Server::with(&folder, &["--capacity", "500", "--snapshot-minutes", "0.001"]);
        let client = server.client();
        let listed: usize = writers.iter_mut().map(|known| known.check(&client)).sum();
        let stats = client.stats();
        assert_eq!(stats["keys"], listed, "round {round}: no other keys are there");
        let held = stats["filter"]["len"].as_u64().unwrap() + stats["overflow_keys"].as_u64().unwrap();
        assert_eq!(held, listed as u64, "round {round}: each key is held once in front of the store");
        from_snapshot += usize::from(server.log().contains("from=Snapshot"));
        if round == ROUNDS {
            break;
        }

        let acknowledged = AtomicUsize::new(0);
        let enough = rng.usize(50..400);
        thread::scope(|scope| {
            for (writer, known) in writers.iter_mut().enumerate() {
                let (client, acknowledged, mut rng) = (server.client(), &acknowledged, rng.fork());
                scope.spawn(move || known.write(writer, &client, &mut rng, acknowledged));
            }
            wait_until("writes", || acknowledged.load(Ordering::Relaxed) >= enough);
            server.kill();
        });
    }
    assert!(from_snapshot >= ROUNDS / 2, "only {from_snapshot} of {ROUNDS} starts were from a snapshot");

    // Each key is in front of the store once: when all are gone, nothing is left.
    let server = Server::start(&folder);
    let client = server.client();
    let listed: Vec<&String> =
        writers.iter().flat_map(|known| &known.listed).filter(|&(_, &listed)| listed).map(|(key, _)| key).collect();
    thread::scope(|scope| {
        // Changes that come at the same time share one commit.
        for keys in listed.chunks(listed.len().div_ceil(32)) {
            let client = &client;
            scope.spawn(move || keys.iter().for_each(|key| assert!(client.remove(key), "{key}")));
        }
    });
    let stats = client.stats();
    assert_eq!((&stats["keys"], &stats["filter"]["len"], &stats["overflow_keys"]), (&0.into(), &0.into(), &0.into()));
}

/// redb panics where it reads a page that is none.
#[test]
fn a_writer_that_panics_ends_the_server_with_a_message() {
    let folder = Folder::new();
    let server = Server::with(&folder, &["--cache-mib", "1", "--snapshot-minutes", "0"]);
    let client = server.client();
    client.add_all(&made("key", 200_000));
    let store = File::options().write(true).open(folder.store()).unwrap();
    let length = store.metadata().unwrap().len() as usize;
    store.write_all_at(&vec![0xff; length - (1 << 16)], 1 << 16).unwrap();

    let mut number = 0;
    wait_until("the writer to panic", || {
        number += 1;
        let put = client.try_send("PUT", &key_path(&format!("new-{number}")), &[], "");
        server.log().contains("list-writer") || put.is_err()
    });
    let ended = server.wait();
    assert_eq!(ended.status.code(), Some(1), "{}", ended.log);
    assert!(ended.log.contains("list-writer"), "{}", ended.log);
    let last = ended.log.lines().last().unwrap();
    assert!(last.starts_with("risk-server: ") && last.contains("the thread that changes the list panicked"), "{last}");
}
