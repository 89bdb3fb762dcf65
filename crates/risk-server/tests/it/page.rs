//! The page, as a browser shows it. Without Chromium on the PATH, the tests of what it shows say so and are skipped.

use crate::common::{Folder, Server, encoded, made, program_on, start, wait_until};
use std::env;
use std::path::PathBuf;
use std::process::{Command, Stdio};

const PAGE: &str = include_str!("../../src/http/page.html");

fn chromium() -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
    let found =
        env::split_paths(&path).flat_map(|folder| names.map(|name| folder.join(name))).find(|file| file.is_file());
    if found.is_none() {
        eprintln!("skipped: there is no Chromium on the PATH");
    }
    found
}

/// What the page has become after some seconds.
struct Shown(String);

impl Shown {
    /// Nothing if there is no browser. `seconds` are of a clock that does not wait where nothing happens.
    fn at(url: &str, seconds: u32) -> Option<Self> {
        let profile = tempfile::tempdir().unwrap();
        let mut browser = Command::new(chromium()?);
        // The sandbox needs rights that a container does not have; the page is our own.
        browser.args(["--headless=new", "--no-sandbox", "--disable-gpu", "--dump-dom", "--enable-logging=stderr"]);
        browser.arg(format!("--user-data-dir={}", profile.path().display()));
        browser.arg(format!("--virtual-time-budget={}", seconds * 1000)).arg(url);
        let output = browser.stdin(Stdio::null()).output().unwrap();
        let log = String::from_utf8_lossy(&output.stderr);
        for trouble in ["Uncaught", "Content Security Policy", "Refused to"] {
            assert!(!log.contains(trouble), "the browser says: {log}");
        }
        Some(Shown(String::from_utf8(output.stdout).unwrap()))
    }

    /// The text behind the tag that has this in it.
    fn text(&self, tag: &str) -> &str {
        let after = self.0.split_once(tag).unwrap_or_else(|| panic!("{tag} is not in\n{}", self.0)).1;
        let (_, text) = after.split_once('>').unwrap();
        text.split('<').next().unwrap().trim()
    }

    fn stat(&self, name: &str) -> &str {
        self.text(&format!("data-stat=\"{name}\""))
    }
}

#[test]
fn the_page_is_served_with_rules_that_let_it_load_nothing() {
    let (_folder, _server, client) = start(&[]);
    let page = client.get("/?key=anything");
    assert_eq!((page.status, page.header("content-type")), (200, "text/html; charset=utf-8"));
    assert_eq!(page.body, PAGE);
    assert_eq!(page.header("x-content-type-options"), "nosniff");
    let rules = page.header("content-security-policy");
    for rule in ["default-src 'none'", "connect-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"] {
        assert!(rules.contains(rule), "{rules}");
    }
    assert!(!rules.contains("http") && !rules.contains('*'), "{rules}");
    // Nothing is loaded from anywhere, and no text becomes markup.
    for way in
        ["src=", "@import", "url(http", "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("]
    {
        assert!(!PAGE.contains(way), "{way}");
    }
    for address in PAGE.match_indices("http").map(|(at, _)| &PAGE[at..]) {
        assert!(address.starts_with("http://www.w3.org/2000/svg"), "{}", &address[..40]);
    }
}

#[test]
fn the_page_shows_the_state_and_tests_a_key() {
    let (_folder, server, client) = start(&["--max-capacity", "20000", "--snapshot-minutes", "0.001"]);
    client.add_all(&made("key", 12_345));
    client.remove("key-0");
    client.which_listed(&made("key", 1000));
    wait_until("a snapshot", || client.stats()["snapshot"].is_object());

    let Some(shown) = Shown::at(&format!("{}/?key=key-1", server.url()), 4) else { return };
    assert_eq!(shown.text("class=\"verdict listed\""), "Listed");
    assert_eq!((shown.text("class=\"key\""), shown.text("id=\"state\"")), ("key-1", "Live"));
    for (name, text) in [
        ("keys", "12,344"),
        ("changes", "12,345 added, 1 removed"),
        ("lookups", "1,001"),
        ("confirmed_hits", "1,000"),
        ("splits", "0 splits"),
        ("version", env!("CARGO_PKG_VERSION")),
    ] {
        assert_eq!(shown.stat(name), text, "{name}");
    }
    let load = client.stats()["filter"]["load_factor"].as_f64().unwrap() * 100.0;
    assert_eq!(shown.stat("load_factor"), format!("{load:.1} %"));
    assert!(shown.stat("filled").starts_with("12,344 keys in "), "{}", shown.stat("filled"));
    assert!(shown.stat("snapshot_age").ends_with(" ago"), "{}", shown.stat("snapshot_age"));
    assert!(shown.stat("expected_rate").starts_with("0.0"), "{}", shown.stat("expected_rate"));
    assert_ne!(shown.stat("throughput"), "–", "it asked more than once");
    assert_eq!(shown.0.matches("class=\"line\"").count(), 3, "each chart has its line");

    // A key is text, whatever is in it, and a bad one is told the reason.
    let markup = "<img src=x onerror=alert(1)>&amp; a/b?c#d%41 ü😀";
    let shown = Shown::at(&format!("{}/?key={}", server.url(), encoded(markup)), 1).unwrap();
    assert_eq!(shown.text("class=\"verdict clear\""), "Not listed");
    assert_eq!(shown.text("class=\"key\""), markup.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;"));
    let shown = Shown::at(&format!("{}/?key={}", server.url(), "x".repeat(1025)), 1).unwrap();
    let answer = shown.0.split_once("class=\"verdict error\"").unwrap().1;
    assert!(answer.contains("the key has 1025 bytes"), "{answer}");
}

#[test]
fn the_page_says_that_the_list_is_being_loaded() {
    let folder = Folder::new();
    folder.block_loading();
    let server = Server::loading(&mut program_on(&folder));
    let Some(shown) = Shown::at(&format!("{}/?key=a", server.url()), 3) else { return };
    assert_eq!(shown.text("id=\"state\""), "Not ready");
    assert_eq!(shown.text("id=\"trouble-what\""), "The server is not ready: the list is being loaded.");
}
