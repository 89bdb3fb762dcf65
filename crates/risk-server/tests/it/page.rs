//! The page, as a browser shows it. Without Chromium on the PATH, the tests of what it shows say so and are skipped.

use crate::common::{Folder, Server, encoded, made, program_on, start, wait_until};
use std::env;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;

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
    let (_folder, server, client) = start(&["--capacity", "20000", "--snapshot-minutes", "0.001"]);
    client.add_all(&made("key", 12_345));
    client.remove("key-0");
    client.which_listed(&made("key", 1000));
    wait_until("a snapshot", || client.stats()["snapshot"].is_object());

    let Some(shown) = Shown::at(&format!("{}/?key=key-1", server.url()), 4) else { return };
    assert_eq!(shown.text("class=\"verdict listed\""), "Listed");
    assert_eq!(shown.text("class=\"key\""), "key-1");
    assert_eq!(shown.text("id=\"state\""), "Live");
    let stats = client.stats();
    assert_eq!(shown.stat("keys"), "12,344");
    assert_eq!(shown.stat("changes"), "12,345 added, 1 removed");
    assert_eq!(shown.stat("filled"), "12,344 of 20,000 keys");
    assert_eq!(shown.stat("lookups"), "1,001");
    assert_eq!(shown.stat("confirmed_hits"), "1,000");
    assert_eq!(shown.stat("overflow_keys"), "0 keys");
    assert_eq!(shown.stat("version"), stats["version"]);
    let load = stats["filter"]["load_factor"].as_f64().unwrap() * 100.0;
    assert_eq!(shown.stat("load_factor"), format!("{load:.1} %"));
    assert!(shown.stat("memory").ends_with(" KiB"), "{}", shown.stat("memory"));
    assert!(shown.stat("snapshot_age").ends_with(" ago"), "{}", shown.stat("snapshot_age"));
    assert!(shown.stat("expected_rate").starts_with("0.0"), "{}", shown.stat("expected_rate"));
    assert_ne!(shown.stat("throughput"), "–", "it asked more than once");
    assert_eq!(shown.0.matches("class=\"line\"").count(), 3, "each chart has its line");

    let shown = Shown::at(&format!("{}/?key=key-0", server.url()), 1).unwrap();
    assert_eq!(shown.text("class=\"verdict clear\""), "Not listed");
}

#[test]
fn the_page_shows_a_key_as_text_and_a_bad_one_with_the_reason() {
    let (_folder, server, client) = start(&[]);
    let markup = "<img src=x onerror=alert(1)>&amp;";
    for key in [markup, "..", "a/b?c#d%41 ü😀"] {
        client.add(key);
        let Some(shown) = Shown::at(&format!("{}/?key={}", server.url(), encoded(key)), 1) else { return };
        assert_eq!(shown.text("class=\"verdict listed\""), "Listed", "{key}");
        let text = key.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        assert_eq!(shown.text("class=\"key\""), text);
    }
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
    assert!(shown.text("id=\"trouble-more\"").contains("tries again"));
    let answer = shown.0.split_once("class=\"verdict error\"").unwrap().1;
    assert!(answer.contains("the list is being loaded"), "{answer}");
}

#[test]
fn after_a_replacement_the_page_does_not_say_that_nothing_was_removed() {
    let (_folder, server, client) = start(&[]);
    let Some(shown) = Shown::at(&server.url(), 2) else { return };
    assert_eq!(shown.stat("changes"), "0 added, 0 removed");
    client.add("old");
    client.post_keys("?replace=true", "new\n").json(200);
    assert_eq!(Shown::at(&server.url(), 2).unwrap().stat("changes"), "1 added, replaced 1 time");
}

/// Shows the page on a narrow screen (a window cannot be as narrow), and tells which labels of its charts are not inside
/// their cards.
const NARROW: &str = "<!doctype html><body><iframe src=page width=360 height=800></iframe><script>setInterval(() => {
  const is_outside = label => {
    const [inner, outer] = [label, label.closest('.card')].map(element => element.getBoundingClientRect());
    return inner.left < outer.left || inner.right > outer.right;
  };
  const labels = [...frames[0].document.querySelectorAll('.plot text')];
  document.body.dataset.width = frames[0].innerWidth;
  document.body.dataset.labels = labels.length;
  document.body.dataset.outside = labels.filter(is_outside).map(label => label.textContent);
}, 100);</script>";

#[test]
fn on_a_narrow_screen_the_labels_stay_inside_their_cards() {
    let (_folder, _server, client) = start(&[]);
    for rate in [0.02, 2.5e-5, 2.5e-6, 2.5e-8, 1e-300] {
        let mut stats = client.stats();
        stats["filter"]["expected_false_positive_rate"] = rate.into();
        let Some(shown) = Shown::at(&format!("{}/narrow", broken_server(|_| true, stats.to_string())), 4) else {
            return;
        };
        let told = |name: &str| shown.0.split_once(&format!("data-{name}=\"")).unwrap().1.split('"').next().unwrap();
        assert_eq!((told("width"), told("labels"), told("outside")), ("360", "18", ""), "{rate}");
    }
}

/// Serves the page, and breaks off all other requests but those from `first` on.
fn broken_server(good: impl Fn(usize) -> bool + Send + 'static, stats: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    // It lives as long as the tests.
    thread::spawn(move || {
        let mut asked = 0;
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = String::new();
            let _ = BufReader::new(&stream).read_line(&mut request);
            let (kind, body) = match request.split(' ').nth(1) {
                Some("/" | "/page") => ("text/html", PAGE),
                Some("/narrow") => ("text/html", NARROW),
                Some("/v1/stats") => {
                    asked += 1;
                    if !good(asked) {
                        continue;
                    }
                    ("application/json", stats.as_str())
                }
                _ => continue,
            };
            let length = body.len();
            let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n");
            let _ = stream.write_all(format!("{head}connection: close\r\n\r\n{body}").as_bytes());
        }
    });
    url
}

#[test]
fn the_page_says_that_the_server_does_not_answer_and_goes_on_asking() {
    let (_folder, _server, client) = start(&[]);
    client.add_all(&made("key", 77));
    let stats = client.get("/v1/stats").body;

    let Some(shown) = Shown::at(&broken_server(|_| false, stats.clone()), 4) else { return };
    assert_eq!(shown.text("id=\"state\""), "No answer");
    assert_eq!(shown.text("id=\"trouble-what\""), "The server does not answer.");
    assert_eq!(shown.stat("keys"), "–");

    let shown = Shown::at(&broken_server(|asked| asked > 6, stats.clone()), 20).unwrap();
    assert_eq!((shown.text("id=\"state\""), shown.stat("keys")), ("Live", "77"));
    assert!(shown.0.contains("id=\"trouble\" hidden"), "the trouble is over");

    let shown = Shown::at(&broken_server(|asked| asked < 3, stats), 20).unwrap();
    assert_eq!((shown.text("id=\"state\""), shown.stat("keys")), ("No answer", "77"));
    assert!(shown.text("id=\"trouble-more\"").contains("The figures below are "), "old figures are called old");
}
