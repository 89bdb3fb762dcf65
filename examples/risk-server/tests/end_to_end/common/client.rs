//! A client of the server.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::io::Read;
use ureq::http::{HeaderMap, Request};
use ureq::{Agent, AsSendBody, SendBody};

use super::wait::PATIENCE;

/// Keeps its connections; threads may share it.
pub(crate) struct Client {
    agent: Agent,
    base: String,
    token: Option<String>,
}

/// What the server said.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Client {
    /// `base` is such as `http://127.0.0.1:8080`.
    pub(crate) fn new(base: &str) -> Self {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .proxy(None)
            .timeout_global(Some(PATIENCE))
            .build();
        Client { agent: config.into(), base: base.into(), token: None }
    }

    /// The same with a bearer token.
    pub(crate) fn with_token(mut self, token: &str) -> Self {
        self.token = Some(token.into());
        self
    }

    /// Sends any request.
    pub(crate) fn try_send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl AsSendBody,
    ) -> Result<Answer, ureq::Error> {
        let mut request = Request::builder().method(method).uri(format!("{}{path}", self.base));
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = self.agent.run(request.body(body).unwrap())?;
        let (parts, body) = response.into_parts();
        let body = body.into_with_config().limit(u64::MAX).read_to_string()?;
        Ok(Answer { status: parts.status.as_u16(), headers: parts.headers, body })
    }

    /// Sends any request that must be answered.
    pub(crate) fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: impl AsSendBody) -> Answer {
        self.try_send(method, path, headers, body).unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], ())
    }

    pub(crate) fn delete(&self, path: &str) -> Answer {
        self.send("DELETE", path, &[], ())
    }

    pub(crate) fn put(&self, path: &str) -> Answer {
        self.send("PUT", path, &[], "")
    }

    /// A batch: any text as its body.
    pub(crate) fn post_batch(&self, body: &str) -> Answer {
        self.send("POST", "/v1/check", &[("content-type", "application/json")], body)
    }

    /// Keys, one a line; `query` is such as `?replace=true`.
    pub(crate) fn post_keys(&self, query: &str, body: impl AsSendBody) -> Answer {
        self.send("POST", &format!("/v1/keys{query}"), &[("content-type", "text/plain")], body)
    }

    /// Keys of a length that is not said beforehand.
    pub(crate) fn post_chunked(&self, query: &str, mut body: impl Read) -> Answer {
        self.post_keys(query, SendBody::from_reader(&mut body))
    }

    /// Whether the key is on the list.
    pub(crate) fn listed(&self, key: &str) -> bool {
        let answer = self.get(&check_path(key)).json(200);
        assert_eq!(answer["key"], key);
        answer["listed"].as_bool().expect("\"listed\" is true or false")
    }

    /// Which of the keys are on the list, by batches.
    pub(crate) fn which_listed<K: AsRef<str>>(&self, keys: &[K]) -> Vec<bool> {
        let mut all = Vec::with_capacity(keys.len());
        for keys in keys.chunks(10_000) {
            let keys: Vec<&str> = keys.iter().map(AsRef::as_ref).collect();
            let answer = self.post_batch(&json!(keys).to_string()).json(200);
            all.extend(answer["listed"].as_array().unwrap().iter().map(|listed| listed.as_bool().unwrap()));
        }
        assert_eq!(all.len(), keys.len(), "as many answers as keys");
        all
    }

    /// How many of the keys are on the list.
    pub(crate) fn count_listed<K: AsRef<str>>(&self, keys: &[K]) -> usize {
        self.which_listed(keys).into_iter().filter(|&listed| listed).count()
    }

    /// Puts a key on the list; says whether it was not there.
    pub(crate) fn add(&self, key: &str) -> bool {
        let answer = self.put(&key_path(key));
        let added = answer.status == 201;
        let answer = answer.json(if added { 201 } else { 200 });
        assert_eq!(answer, json!({ "key": key, "added": added }));
        added
    }

    /// Takes a key from the list; says whether it was there.
    pub(crate) fn remove(&self, key: &str) -> bool {
        let answer = self.delete(&key_path(key)).json(200);
        assert_eq!(answer["key"], key);
        answer["removed"].as_bool().expect("\"removed\" is true or false")
    }

    /// Puts many keys on the list; says how many were not there.
    pub(crate) fn add_all<K: AsRef<str>>(&self, keys: &[K]) -> u64 {
        let answer = self.post_keys("", &super::keys::lines(keys)).json(200);
        assert_eq!(answer["lines"], keys.len());
        let (added, already) = (answer["added"].as_u64().unwrap(), answer["already"].as_u64().unwrap());
        assert_eq!(added + already, keys.len() as u64);
        added
    }

    pub(crate) fn stats(&self) -> Value {
        self.get("/v1/stats").json(200)
    }

    /// The samples of `/metrics` by name and labels.
    pub(crate) fn metrics(&self) -> BTreeMap<String, f64> {
        let answer = self.get("/metrics");
        assert_eq!(answer.status, 200);
        let samples = answer.body.lines().filter(|line| !line.starts_with('#'));
        let split = |line: &str| {
            let (name, value) = line.rsplit_once(' ').unwrap();
            (name.to_owned(), value.parse().unwrap())
        };
        samples.map(split).collect()
    }
}

impl Answer {
    /// The body, of an answer that must have this status.
    pub(crate) fn json(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.body);
        assert_eq!(self.header("content-type"), "application/json");
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {:?}", self.body))
    }

    /// The reason that is given, of an answer that must have this status.
    pub(crate) fn error(&self, status: u16) -> String {
        let body = self.json(status);
        let error = body["error"].as_str().unwrap_or_else(|| panic!("an error gives its reason: {body}"));
        assert!(!error.is_empty() && !error.ends_with('.'), "{error:?}");
        error.into()
    }

    /// "" if it is not there.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

pub(crate) fn check_path(key: &str) -> String {
    format!("/v1/check/{}", encoded(key))
}

pub(crate) fn key_path(key: &str) -> String {
    format!("/v1/keys/{}", encoded(key))
}

/// As one segment of a path. Dots are encoded, too, so that a key of dots is not a step.
pub(crate) fn encoded(key: &str) -> String {
    key.bytes().fold(String::new(), |mut path, byte| {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' => path.push(char::from(byte)),
            _ => write!(path, "%{byte:02X}").unwrap(),
        }
        path
    })
}
