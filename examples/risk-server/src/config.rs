//! What the user asks for: options of the command line, or variables of the environment.

use crate::http::{Access, Hosts, Limits, Token, TokenError};
use crate::list;
use axum::http::uri::Authority;
use clap::{Parser, ValueEnum};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::time::Duration;
use thiserror::Error;

/// The variable that holds the token. No option: the options of a process are shown to every user of its machine.
const TOKEN: &str = "RISK_SERVER_TOKEN";

/// Keys that may wait beside a full filter before changes wait too.
const OVERFLOW_LIMIT: usize = 100_000;

/// Longer times are mistakes.
const LONGEST: Duration = Duration::from_secs(7 * 24 * 3600);

/// An exact list of keys behind HTTP, with a concurrent cuckoo filter in front of its store.
///
/// Says on stdout where it listens, and logs to stderr. On SIGTERM or Ctrl-C it ends the requests in progress, saves a
/// snapshot and exits; a second one, a second later or more, ends it at once.
#[derive(Clone, Debug, Parser)]
#[command(name = "risk-server", version, after_help = AFTER_HELP, hide_possible_values = true)]
pub struct Config {
    /// The address to listen on; port 0 takes a free one, and :8080 is 0.0.0.0:8080. Others than those of this machine need a token
    #[arg(long, env = "RISK_SERVER_LISTEN", value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8080")]
    #[arg(value_parser = address)]
    pub listen: SocketAddr,

    /// A second address, which answers health and metrics only, and does not wait for connections to the first one
    #[arg(long, env = "RISK_SERVER_ADMIN", value_name = "ADDRESS:PORT", value_parser = address)]
    pub admin: Option<SocketAddr>,

    /// A name that requests may be sent to, as a proxy passes it on; may be given several times, or with commas. Without
    /// one, an address of this machine answers to names of this machine, and any other address to every name
    #[arg(long, env = "RISK_SERVER_ALLOWED_HOST", value_name = "NAME", value_parser = host_name, value_delimiter = ',')]
    pub allowed_host: Vec<String>,

    /// The folder of the list's store and its snapshot; made if absent
    #[arg(long, env = "RISK_SERVER_DATA", value_name = "FOLDER", default_value = "risk-server-data")]
    pub data: PathBuf,

    /// Keys that the filter is to hold without being built anew
    #[arg(long, env = "RISK_SERVER_CAPACITY", value_name = "KEYS", default_value_t = 1_000_000)]
    #[arg(value_parser = at_least_one)]
    pub capacity: usize,

    /// The part of unlisted keys that may cost a read of the store: above 0, below 1
    #[arg(long, env = "RISK_SERVER_FALSE_POSITIVE_RATE", value_name = "RATE", default_value_t = 0.001)]
    #[arg(value_parser = rate, allow_negative_numbers = true)]
    pub false_positive_rate: f64,

    /// Minutes from one snapshot to the next; 0 saves one only on the way out
    #[arg(long, env = "RISK_SERVER_SNAPSHOT_MINUTES", value_name = "MINUTES", default_value = "5")]
    #[arg(value_parser = minutes, allow_negative_numbers = true)]
    pub snapshot_minutes: Duration,

    /// The file of the token that writing requests must show
    #[arg(long, env = "RISK_SERVER_TOKEN_FILE", value_name = "FILE")]
    pub token_file: Option<PathBuf>,

    /// Bytes of a JSON body at the most; a body of lines may have any length, unless it is in gzip
    #[arg(long, env = "RISK_SERVER_MAX_BODY_BYTES", value_name = "BYTES", default_value_t = 4 << 20)]
    #[arg(value_parser = at_least_one)]
    pub max_body_bytes: usize,

    /// Bytes of a body of lines in gzip at the most, when it is decoded
    #[arg(long, env = "RISK_SERVER_MAX_DECODED_BYTES", value_name = "BYTES", default_value_t = 1 << 30)]
    pub max_decoded_bytes: u64,

    /// Keys of one batch at the most
    #[arg(long, env = "RISK_SERVER_MAX_BATCH", value_name = "KEYS", default_value_t = 10_000)]
    #[arg(value_parser = at_least_one)]
    pub max_batch: usize,

    /// Requests in progress at the most; one more is told to come again
    #[arg(long, env = "RISK_SERVER_MAX_REQUESTS", value_name = "COUNT", default_value_t = 1024)]
    #[arg(value_parser = at_least_one)]
    pub max_requests: usize,

    /// Open connections at the most; one more waits
    #[arg(long, env = "RISK_SERVER_MAX_CONNECTIONS", value_name = "COUNT", default_value_t = 1000)]
    #[arg(value_parser = at_least_one)]
    pub max_connections: usize,

    /// Seconds for a JSON body to arrive, for the store to answer, and for a change to be made
    #[arg(long, env = "RISK_SERVER_REQUEST_SECONDS", value_name = "SECONDS", default_value = "10")]
    #[arg(value_parser = some_seconds, allow_negative_numbers = true)]
    pub request_seconds: Duration,

    /// Seconds that a new connection may be silent; connections that nobody uses keep others waiting
    #[arg(long, env = "RISK_SERVER_FIRST_BYTE_SECONDS", value_name = "SECONDS", default_value = "5")]
    #[arg(value_parser = some_seconds, allow_negative_numbers = true)]
    pub first_byte_seconds: Duration,

    /// Seconds that a connection may be silent, before a request, in its head, or in a body of lines
    #[arg(long, env = "RISK_SERVER_IDLE_SECONDS", value_name = "SECONDS", default_value = "30")]
    #[arg(value_parser = some_seconds, allow_negative_numbers = true)]
    pub idle_seconds: Duration,

    /// Seconds from SIGTERM, when /readyz begins to say 503, to the end of listening; Ctrl-C does not wait
    #[arg(long, env = "RISK_SERVER_DRAIN_SECONDS", value_name = "SECONDS", default_value = "3")]
    #[arg(value_parser = seconds, allow_negative_numbers = true)]
    pub drain_seconds: Duration,

    /// Seconds that requests in progress have at a shutdown
    #[arg(long, env = "RISK_SERVER_SHUTDOWN_SECONDS", value_name = "SECONDS", default_value = "10")]
    #[arg(value_parser = seconds, allow_negative_numbers = true)]
    pub shutdown_seconds: Duration,

    /// MiB of memory for the store's pages
    #[arg(long, env = "RISK_SERVER_CACHE_MIB", value_name = "MIB", default_value_t = 64)]
    #[arg(value_parser = mebibytes)]
    pub cache_mib: usize,

    /// How logs are written: text or json
    #[arg(long, env = "RISK_SERVER_LOG_FORMAT", value_name = "FORMAT", default_value = "text")]
    pub log_format: LogFormat,

    /// What is logged, such as warn, or info,risk_server=debug [default: RUST_LOG, else info]
    #[arg(long, env = "RISK_SERVER_LOG", value_name = "FILTER")]
    pub log: Option<String>,
}

const AFTER_HELP: &str = "\
RISK_SERVER_TOKEN may hold the token itself. With a token, PUT, DELETE and POST /v1/keys need the header
'Authorization: Bearer TOKEN'.";

/// How logs are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Lines for people.
    Text,
    /// Lines of JSON.
    Json,
}

/// Why the options do not go together.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// Anybody in the network could change the list.
    #[error("{0} can be reached from other machines, so a token is needed: set --token-file or {TOKEN}")]
    TokenNeeded(SocketAddr),
    /// Both could be meant.
    #[error("there is a token in {TOKEN} and one in --token-file; give one of them")]
    TwoTokens,
    /// The file of the token cannot be read.
    #[error("the token file {} cannot be read: {source}", .path.display())]
    TokenFile {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// What was given is no token.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The variable of the token is not Unicode.
    #[error("{TOKEN} is not Unicode text")]
    TokenNotUnicode,
}

impl Config {
    /// Who may ask what.
    ///
    /// # Errors
    /// See [`ConfigError`].
    pub fn access(&self) -> Result<Access, ConfigError> {
        match std::env::var(TOKEN) {
            Ok(token) => self.access_with(Some(token)),
            Err(std::env::VarError::NotPresent) => self.access_with(None),
            Err(std::env::VarError::NotUnicode(_)) => Err(ConfigError::TokenNotUnicode),
        }
    }

    fn access_with(&self, token: Option<String>) -> Result<Access, ConfigError> {
        let token = match (token, &self.token_file) {
            (Some(_), Some(_)) => return Err(ConfigError::TwoTokens),
            (Some(token), None) => Some(Token::new(&token)?),
            (None, Some(path)) => {
                let text = std::fs::read_to_string(path)
                    .map_err(|source| ConfigError::TokenFile { path: path.clone(), source })?;
                Some(Token::new(text.trim())?)
            }
            (None, None) => None,
        };
        if token.is_none() && !is_loopback(self.listen) {
            return Err(ConfigError::TokenNeeded(self.listen));
        }
        Ok(Access { token, hosts: self.hosts(self.listen) })
    }

    /// Which names are answered to at an address.
    #[must_use]
    pub fn hosts(&self, address: SocketAddr) -> Hosts {
        if self.allowed_host.is_empty() && !is_loopback(address) {
            Hosts::Any
        } else {
            Hosts::Only(self.allowed_host.as_slice().into())
        }
    }

    /// What a request may take.
    #[must_use]
    pub fn limits(&self) -> Limits {
        Limits {
            body_bytes: self.max_body_bytes,
            batch_keys: self.max_batch,
            requests: self.max_requests,
            request: self.request_seconds,
            idle: self.idle_seconds,
            decoded_bytes: self.max_decoded_bytes,
        }
    }

    /// How the list is opened.
    #[must_use]
    pub fn list(&self) -> list::Options {
        list::Options {
            folder: self.data.clone(),
            capacity: self.capacity,
            false_positive_rate: self.false_positive_rate,
            overflow_limit: OVERFLOW_LIMIT,
            cache_bytes: self.cache_mib << 20,
        }
    }
}

fn is_loopback(address: SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let full = if text.starts_with(':') { format!("0.0.0.0{text}") } else { text.to_owned() };
    // Of the addresses of a name such as localhost, the one that every client tries.
    let found = full.to_socket_addrs().map(|addresses| addresses.min_by_key(SocketAddr::is_ipv6));
    let error = match found {
        Ok(Some(address)) => return Ok(address),
        Ok(None) => "this name has no address".to_owned(),
        Err(error) => error.to_string(),
    };
    Err(format!("{error}; an address and a port are needed, such as 127.0.0.1:8080, localhost:8080 or :8080"))
}

fn host_name(text: &str) -> Result<String, String> {
    let authority = text.parse::<Authority>().ok().filter(|authority| authority.host() == text);
    let name = authority.map(|authority| authority.host().to_owned());
    name.ok_or_else(|| "a name is needed as it stands in URLs, without scheme and port: list.example.com".to_owned())
}

fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|&number| number > 0).ok_or_else(|| "a whole number from 1 on is needed".to_owned())
}

fn mebibytes(text: &str) -> Result<usize, String> {
    let most = usize::MAX >> 20;
    let number = text.parse().ok().filter(|number| (1..=most).contains(number));
    number.ok_or_else(|| format!("a whole number from 1 to {most} is needed"))
}

fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().filter(|&rate| 0.0 < rate && rate < 1.0);
    rate.ok_or_else(|| "a number above 0 and below 1 is needed".to_owned())
}

fn minutes(text: &str) -> Result<Duration, String> {
    duration(text, 60.0)
}

fn seconds(text: &str) -> Result<Duration, String> {
    duration(text, 1.0)
}

fn some_seconds(text: &str) -> Result<Duration, String> {
    let duration = seconds(text)?;
    if duration.is_zero() { Err("a number above 0 is needed".to_owned()) } else { Ok(duration) }
}

fn duration(text: &str, unit: f64) -> Result<Duration, String> {
    let number: Option<f64> = text.parse().ok();
    let duration = number.and_then(|number| Duration::try_from_secs_f64(number * unit).ok());
    let most = LONGEST.as_secs_f64() / unit;
    duration.filter(|&duration| duration <= LONGEST).ok_or_else(|| format!("a number from 0 to {most} is needed"))
}

#[cfg(test)]
mod tests;
