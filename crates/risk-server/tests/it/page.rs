//! The page in a browser. Without Chromium on the PATH, a message is printed, and the test is skipped.

use crate::common::{encoded, made, start};
use std::process::Command;

const PAGE: &str = include_str!("../../src/page.html");

/// Returns the page after some seconds of virtual time.
fn shown(url: &str, seconds: u32) -> Option<String> {
    let profile = tempfile::tempdir().unwrap();
    let mut browser = Command::new("chromium");
    // Without the sandbox, which containers do not support; the page is our own.
    browser.args(["--headless=new", "--no-sandbox", "--disable-gpu", "--dump-dom", "--enable-logging=stderr"]);
    browser.arg(format!("--user-data-dir={}", profile.path().display()));
    browser.arg(format!("--virtual-time-budget={}", seconds * 1000)).arg(url);
    let Ok(output) = browser.output() else {
        eprintln!("skipped: chromium cannot be run");
        return None;
    };
    let log = String::from_utf8_lossy(&output.stderr);
    for trouble in ["Uncaught", "Content Security Policy", "Refused to"] {
        assert!(!log.contains(trouble), "the browser says: {log}");
    }
    Some(String::from_utf8(output.stdout).unwrap())
}

/// Returns the text behind the tag with this attribute.
fn text<'a>(page: &'a str, tag: &str) -> &'a str {
    let after = page.split_once(tag).unwrap_or_else(|| panic!("{tag} is not in\n{page}")).1;
    after.split_once('>').unwrap().1.split('<').next().unwrap().trim()
}

#[test]
fn the_page_is_served_with_rules_that_let_it_load_nothing() {
    let (_folder, _server, client) = start(&[]);
    let page = client.get("/?key=anything");
    assert_eq!((page.status, page.header("content-type"), &page.body[..]), (200, "text/html; charset=utf-8", PAGE));
    assert_eq!(page.header("x-content-type-options"), "nosniff");
    let rules = page.header("content-security-policy");
    for rule in ["default-src 'none'", "connect-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"] {
        assert!(rules.contains(rule), "{rules}");
    }
    // The page loads nothing from elsewhere, and no text becomes markup.
    for way in ["src=", "@import", "url(", "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("] {
        assert!(!PAGE.contains(way), "{way}");
    }
}

#[test]
fn the_page_shows_three_numbers_and_two_plots_and_tests_a_key() {
    let (_folder, server, client) = start(&["--max-capacity", "20000", "--capacity", "20000"]);
    client.add_all(&made("key", 12_345));
    client.which_listed(&made("key", 1000));
    let Some(page) = shown(&format!("http://{}/?key=key-1", server.address), 4) else { return };
    assert_eq!(
        ["verdict", "tested", "state"].map(|id| text(&page, &format!("id=\"{id}\""))),
        ["Listed", "key-1", "Live"]
    );
    let stat = |name: &str| text(&page, &format!("data-stat=\"{name}\""));
    assert_eq!((stat("keys"), stat("lookups"), stat("observed")), ("12,345", "1,001", "no data"));
    let load = client.stats()["filter"]["load_factor"].as_f64().unwrap() * 100.0;
    let shown_load: f64 = stat("load").trim_end_matches(" %").parse().unwrap();
    assert!((load - shown_load).abs() < 0.06, "{shown_load}, {load}");
    assert!(stat("expected").starts_with("0.0"));
    assert_ne!(stat("throughput"), "–", "it asked more than once");
    assert_eq!((page.matches("class=\"line\"").count(), page.matches("class=\"line second\"").count()), (1, 1));

    // Any key is shown as text, and a bad one with the reason.
    let markup = "<img src=x onerror=alert(1)>&amp; a/b?c#d%41 ü😀";
    let page = shown(&format!("http://{}/?key={}", server.address, encoded(markup)), 2).unwrap();
    assert_eq!(text(&page, "id=\"verdict\""), "Not listed");
    assert_eq!(text(&page, "id=\"tested\""), markup.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;"));
    let page = shown(&format!("http://{}/?key={}", server.address, "x".repeat(1025)), 2).unwrap();
    assert!(text(&page, "id=\"more\"").contains("the key has 1025 bytes"));
}
