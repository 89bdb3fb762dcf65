//! Lookups and changes of single keys, and batches.

use crate::common::{made, start};
use serde_json::json;

#[test]
fn a_key_is_listed_from_its_put_to_its_delete_and_repeats_do_no_harm() {
    let (_folder, _server, client) = start(&[]);

    assert!(!client.remove("never.there"));
    assert_eq!(client.put("/v1/keys/a%2Fb").json(201), json!({ "key": "a/b", "added": true }));
    assert_eq!(client.get("/v1/check/a/b").json(200), json!({ "key": "a/b", "listed": true }));
    assert_eq!(client.send("HEAD", "/v1/check/a/b", &[], ()).body, "");
    assert!(!client.listed("a/"));
    assert_eq!(client.delete("/v1/keys/a/b").json(200), json!({ "key": "a/b", "removed": true }));
    assert!(!client.listed("a/b"));
    assert!(client.add("twice.there"));
    assert_eq!(client.put("/v1/keys/twice.there").json(200), json!({ "key": "twice.there", "added": false }));
    assert_eq!(client.stats()["keys"], 1);
    assert_eq!(client.stats()["filter"]["len"], 1);

    assert!(client.remove("twice.there"));
    // One put too many would leave it in the filter; one delete too many would take another key's fingerprint.
    let stay = made("stay", 1000);
    client.add_all(&stay);
    for key in &stay {
        assert!(!client.remove("twice.there"));
        assert!(!client.remove(&format!("not {key}")));
    }
    assert_eq!(client.count_listed(&stay), stay.len());
    let stats = client.stats();
    assert_eq!((&stats["keys"], &stats["filter"]["len"]), (&json!(1000), &json!(1000)));
    assert_eq!((&stats["inserts"], &stats["removals"]), (&json!(1002), &json!(2)));
}

#[test]
fn any_text_of_one_line_is_a_key() {
    let (_folder, _server, client) = start(&[]);
    let longest = "ü".repeat(512);
    #[rustfmt::skip]
    let keys = [
        "a", ".", "..", "../..", "/", "a/b//c/", "a b", " ", "100%", "%41", "a+b", "who?me=1&x", "#here", "\"quoted\\\"",
        "<b>", "schlüssel.de", "鍵", "😀", "e\u{301}", "é", "MAILINATOR.com", "mailinator.com", &longest,
    ];
    for (number, key) in keys.iter().enumerate() {
        assert!(!client.listed(key), "{key:?} is a key of its own");
        assert!(client.add(key), "{key:?} is a key of its own");
        assert!(client.listed(key), "{key:?}");
        assert_eq!(client.stats()["keys"], number + 1);
    }
    assert_eq!(client.count_listed(&keys), keys.len());
    for key in keys {
        assert!(client.remove(key), "{key:?}");
        assert!(!client.listed(key), "{key:?}");
    }
    assert_eq!(client.stats()["keys"], 0);
}

#[test]
fn a_batch_is_answered_in_its_order() {
    let (_folder, _server, client) = start(&[]);
    let keys = made("key", 10_000);
    let (even, _): (Vec<_>, Vec<_>) = keys.iter().enumerate().partition(|(i, _)| i % 2 == 0);
    let even: Vec<&String> = even.into_iter().map(|(_, key)| key).collect();
    client.add_all(&even);

    let answers = client.which_listed(&keys);
    for (i, (key, listed)) in keys.iter().zip(answers).enumerate() {
        assert_eq!(listed, i % 2 == 0, "{key}");
    }
    assert_eq!(client.post_batch("[]").json(200), json!({ "listed": [] }));
    // Repeated keys, and escapes as JSON has them.
    let answer = client.post_batch(r#"["key-0", "key-1", "key-0", "\u006bey-2"]"#);
    assert_eq!(answer.json(200), json!({ "listed": [true, false, true, true] }));
}

#[test]
fn few_absent_keys_cost_a_read_of_the_store() {
    let (_folder, _server, client) = start(&["--capacity", "20000", "--max-capacity", "20000"]);
    let (listed, absent) = (made("listed", 20_000), made("absent", 40_000));
    client.add_all(&listed);
    assert_eq!(client.count_listed(&absent), 0, "what the filter takes for listed is not confirmed");
    assert_eq!(client.count_listed(&listed[..10_000]), 10_000);
    assert!(client.listed(&listed[0]));

    let stats = client.stats();
    let number = |name: &str| stats[name].as_u64().unwrap();
    assert_eq!((number("lookups"), number("confirmed_hits")), (50_001, 10_001));
    assert_eq!(number("store_reads_avoided"), number("lookups") - number("filter_hits"));
    // 0.001 was asked for, of a full filter: 40 of 40,000. Five times as many have a chance far below one in a billion.
    let wrong = number("filter_hits") - number("confirmed_hits");
    assert!((0..200).contains(&wrong), "{wrong} absent keys were read in the store");
    let observed = stats["observed_false_positive_rate"].as_f64().unwrap();
    assert!((observed - wrong as f64 / 40_000.0).abs() < 1e-12, "{observed}");
    let expected = stats["filter"]["expected_false_positive_rate"].as_f64().unwrap();
    assert!(0.0 < expected && expected <= 0.001, "{expected}");
}
