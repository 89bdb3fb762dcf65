//! A filter that is full is built anew, larger, while look-ups and changes go on.

use crate::common::folder::Folder;
use crate::common::keys::{domains, lines, made};
use crate::common::server::Server;
use crate::common::wait::wait_until;
use serde_json::Value;
use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

fn held(stats: &Value) -> u64 {
    stats["filter"]["len"].as_u64().unwrap() + stats["overflow_keys"].as_u64().unwrap()
}

#[test]
fn a_list_may_outgrow_its_capacity_many_times() {
    let folder = Folder::new();
    let server = Server::with(&folder, &["--capacity", "10"]);
    let client = server.client();
    // The keys that were acknowledged so far.
    let (there, done) = (RwLock::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        for thread in 0..2 {
            let (client, there, done) = (&client, &there, &done);
            scope.spawn(move || {
                let mut rng = fastrand::Rng::with_seed(thread);
                while !done.load(Ordering::Relaxed) {
                    let there = *there.read().unwrap();
                    let from = rng.usize(..=there);
                    let keys = &domains()[from..there.min(from + 1000)];
                    assert_eq!(client.count_listed(keys), keys.len(), "of the keys {from}.. of {there}");
                }
            });
        }
        let mut from = 0;
        for size in [5, 6, 100, 1000, 10_000, 40_000, 70_459] {
            let keys = &domains()[from..from + size];
            assert_eq!(client.post_keys("", &lines(keys)).json(200)["added"], size);
            from += size;
            *there.write().unwrap() = from;
        }
        done.store(true, Ordering::Relaxed);
        assert_eq!(from, domains().len());
    });
    wait_until("a filter that holds all", || client.stats()["overflow_keys"] == 0);
    let stats = client.stats();
    assert_eq!(stats["keys"], domains().len());
    assert_eq!(held(&stats), domains().len() as u64);
    assert!(stats["rebuilds"].as_u64().unwrap() >= 2, "{stats}");
    assert!(stats["filter"]["capacity"].as_u64().unwrap() >= domains().len() as u64, "{stats}");
    assert_eq!(client.count_listed(domains()), domains().len());
    let absent: Vec<String> = domains().iter().map(|domain| format!("not.{domain}")).collect();
    assert_eq!(client.count_listed(&absent), 0);
    let stats = client.stats();
    let observed = stats["observed_false_positive_rate"].as_f64().unwrap();
    assert!(observed < 0.002, "the larger filter has the rate that was asked for: {observed}");

    server.stop();
    let server = Server::with(&folder, &["--capacity", "10"]);
    let client = server.client();
    assert!(server.log().contains("from=Snapshot"), "{}", server.log());
    assert_eq!(client.count_listed(domains()), domains().len());
    assert_eq!(client.stats()["filter"]["len"], domains().len());
}

#[test]
fn keys_come_and_go_while_the_filter_grows() {
    let folder = Folder::new();
    let server = Server::with(&folder, &["--capacity", "10"]);
    let client = server.client();
    let rounds = 12;
    thread::scope(|scope| {
        for thread in 0..3 {
            let client = &client;
            scope.spawn(move || {
                for round in 0..rounds {
                    let keys = made(&format!("{thread}-{round}"), 2000);
                    assert_eq!(client.add_all(&keys), 2000);
                    for key in keys.iter().step_by(50) {
                        assert!(client.remove(key), "{key}");
                    }
                    let listed = client.which_listed(&keys);
                    for (i, (key, listed)) in keys.iter().zip(listed).enumerate() {
                        assert_eq!(listed, i % 50 != 0, "{key}");
                    }
                }
            });
        }
    });
    let expected = 3 * rounds * (2000 - 40);
    wait_until("a filter that holds all", || client.stats()["overflow_keys"] == 0);
    let stats = client.stats();
    assert_eq!((stats["keys"].as_u64(), held(&stats)), (Some(expected), expected), "{stats}");
    for thread in 0..3 {
        for round in 0..rounds {
            assert_eq!(client.count_listed(&made(&format!("{thread}-{round}"), 2000)), 1960);
        }
    }
}
