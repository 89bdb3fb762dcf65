//! What the user asks for: options of the command line, or variables of the environment.

use crate::list;
use axum::http::uri::Authority;
use clap::{Parser, ValueEnum};
use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The variable that holds the token. Not an option: every user of a machine can read the options of a process.
const TOKEN: &str = "RISK_SERVER_TOKEN";

/// Longer times are mistakes.
const MAX_DURATION: Duration = Duration::from_secs(7 * 24 * 3600);

/// An exact list of keys behind HTTP, with a concurrent cuckoo filter in front of its store.
///
/// Says on stdout where it listens, and logs to stderr. On SIGTERM or Ctrl-C it ends the requests in progress, saves a
/// snapshot and exits; a second one, a second later or more, ends it at once.
#[derive(Clone, Debug, Parser)]
#[command(name = "risk-server", version, after_help = AFTER_HELP, hide_possible_values = true)]
pub struct Config {
    /// The address to listen on; port 0 takes a free one, and :8080 is 0.0.0.0:8080. An address that other machines can reach needs a token
    #[arg(long, env = "RISK_SERVER_LISTEN", value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8080")]
    #[arg(value_parser = address)]
    pub listen: SocketAddr,

    /// A second address for health and metrics only, with connections of its own
    #[arg(long, env = "RISK_SERVER_ADMIN", value_name = "ADDRESS:PORT", value_parser = address)]
    pub admin: Option<SocketAddr>,

    /// A name that requests may be sent to, as a proxy passes it on; may be repeated, or a list with commas. Without one,
    /// an address of this machine answers to names of this machine, and any other address to every name
    #[arg(long, env = "RISK_SERVER_ALLOWED_HOST", value_name = "NAME", value_parser = host_name, value_delimiter = ',')]
    pub allowed_host: Vec<String>,

    /// The folder of the list's store and its snapshot; created if absent
    #[arg(long, env = "RISK_SERVER_DATA", value_name = "FOLDER", default_value = "risk-server-data")]
    pub data: PathBuf,

    /// Keys that the filter has room for before it grows
    #[arg(long, env = "RISK_SERVER_CAPACITY", value_name = "KEYS", default_value_t = 1_000_000)]
    #[arg(value_parser = at_least_one)]
    pub capacity: usize,

    /// Keys that the filter grows to; beyond, puts are refused. Memory is taken for the keys that there are, but each tenfold
    /// takes three bits more for each of them, for as long as there are few
    #[arg(long, env = "RISK_SERVER_MAX_CAPACITY", value_name = "KEYS", default_value_t = 100_000_000)]
    #[arg(value_parser = at_least_one)]
    pub max_capacity: usize,

    /// The share of unlisted keys that may cost a read of the store: above 0, below 1
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

    /// The longest JSON body, in bytes; a body of lines may have any length, unless it is in gzip
    #[arg(long, env = "RISK_SERVER_MAX_BODY_BYTES", value_name = "BYTES", default_value_t = 4 << 20)]
    #[arg(value_parser = at_least_one)]
    pub max_body_bytes: usize,

    /// The longest body of lines in gzip, in bytes when decoded
    #[arg(long, env = "RISK_SERVER_MAX_DECODED_BYTES", value_name = "BYTES", default_value_t = 1 << 30)]
    pub max_decoded_bytes: u64,

    /// The most keys in a batch
    #[arg(long, env = "RISK_SERVER_MAX_BATCH", value_name = "KEYS", default_value_t = 10_000)]
    #[arg(value_parser = at_least_one)]
    pub max_batch: usize,

    /// The most requests in progress; one more is told to try again
    #[arg(long, env = "RISK_SERVER_MAX_REQUESTS", value_name = "COUNT", default_value_t = 1024)]
    #[arg(value_parser = at_least_one)]
    pub max_requests: usize,

    /// The most open connections; one more waits
    #[arg(long, env = "RISK_SERVER_MAX_CONNECTIONS", value_name = "COUNT", default_value_t = 1000)]
    #[arg(value_parser = at_least_one)]
    pub max_connections: usize,

    /// Seconds for a JSON body to arrive, for the store to answer, and for a change to be made
    #[arg(long, env = "RISK_SERVER_REQUEST_SECONDS", value_name = "SECONDS", default_value = "10")]
    #[arg(value_parser = some_seconds, allow_negative_numbers = true)]
    pub request_seconds: Duration,

    /// Seconds that a new connection may be silent; unused connections keep others waiting
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

/// The length of the longest token, in bytes.
const MAX_TOKEN_BYTES: usize = 256;

/// A secret, compared in a time that does not depend on where it differs.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(pub(crate) Box<[u8]>);

impl Token {
    /// Checks that the text can be sent in a header.
    ///
    /// # Errors
    /// Why it cannot, and what could.
    pub fn new(text: &str) -> Result<Self, String> {
        let needed = format!("give 1 to {MAX_TOKEN_BYTES} visible ASCII characters");
        match text.len() {
            0 => Err(format!("the token is empty; {needed}")),
            bytes if bytes > MAX_TOKEN_BYTES => Err(format!("the token has {bytes} bytes; {needed}")),
            _ if !text.bytes().all(|byte| byte.is_ascii_graphic()) => {
                Err(format!("the token has characters other than visible ASCII; {needed}"))
            }
            _ => Ok(Token(text.as_bytes().into())),
        }
    }
}

impl fmt::Debug for Token {
    /// Keeps the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

impl Config {
    /// The token that writing requests must show, from the environment or from the file.
    ///
    /// # Errors
    /// If there is none and other machines can reach the server, if there are two, and if the token is invalid.
    pub fn token(&self) -> Result<Option<Token>, String> {
        match std::env::var(TOKEN) {
            Ok(token) => self.token_with(Some(token)),
            Err(std::env::VarError::NotPresent) => self.token_with(None),
            Err(std::env::VarError::NotUnicode(_)) => Err(format!("{TOKEN} is not Unicode text")),
        }
    }

    fn token_with(&self, token: Option<String>) -> Result<Option<Token>, String> {
        match (token, &self.token_file) {
            (Some(_), Some(_)) => Err(format!("there is a token in {TOKEN} and one in --token-file; give one of them")),
            (Some(token), None) => Token::new(&token).map(Some),
            (None, Some(path)) => {
                let cannot = |error| format!("the token file {} cannot be read: {error}", path.display());
                Token::new(std::fs::read_to_string(path).map_err(cannot)?.trim()).map(Some)
            }
            (None, None) if is_loopback(self.listen) => Ok(None),
            (None, None) => Err(format!(
                "{} can be reached from other machines, so a token is needed: set --token-file or {TOKEN}",
                self.listen
            )),
        }
    }

    /// The names that an address answers to.
    pub(crate) fn hosts(&self, address: SocketAddr) -> Hosts {
        if self.allowed_host.is_empty() && !is_loopback(address) {
            Hosts::Any
        } else {
            Hosts::Only(self.allowed_host.as_slice().into())
        }
    }

    /// How the list is opened.
    pub(crate) fn list(&self) -> list::Options {
        list::Options {
            folder: self.data.clone(),
            capacity: self.capacity,
            max_capacity: self.max_capacity,
            false_positive_rate: self.false_positive_rate,
            cache_bytes: self.cache_mib << 20,
        }
    }
}

/// The names that a server answers to. Otherwise a web page that points a name of its own at 127.0.0.1 could read the
/// answers, in the browser of whoever runs the server.
#[derive(Clone, Debug)]
pub(crate) enum Hosts {
    Any,
    /// The names of this machine, and these.
    Only(Arc<[String]>),
}

fn is_loopback(address: SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let full = if text.starts_with(':') { format!("0.0.0.0{text}") } else { text.to_owned() };
    // Of the addresses of a name such as localhost, one that every client tries.
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
    let most = MAX_DURATION.as_secs_f64() / unit;
    duration.filter(|&duration| duration <= MAX_DURATION).ok_or_else(|| format!("a number from 0 to {most} is needed"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Config, String> {
        let arguments = ["risk-server"].iter().chain(arguments);
        Config::try_parse_from(arguments).map_err(|error| error.to_string())
    }

    #[test]
    fn an_invalid_value_is_refused_in_one_line_that_says_what_would_be_right() {
        for (option, value, expected) in [
            ("--listen", "localhost", "such as 127.0.0.1:8080, localhost:8080 or :8080"),
            ("--admin", "9090", "an address and a port are needed"),
            ("--allowed-host", "https://list.example.com", "without scheme"),
            ("--allowed-host", "list.example.com:443", "without scheme and port"),
            ("--capacity", "0", "a whole number from 1 on"),
            ("--false-positive-rate", "0", "above 0 and below 1"),
            ("--false-positive-rate", "NaN", "above 0 and below 1"),
            ("--snapshot-minutes", "-1", "from 0 to 10080"),
            ("--snapshot-minutes", "inf", "from 0 to 10080"),
            ("--request-seconds", "0", "above 0"),
            ("--request-seconds", "604801", "from 0 to 604800"),
            ("--idle-seconds", "x", "from 0 to 604800"),
            ("--max-requests", "0", "a whole number from 1 on"),
            ("--cache-mib", "0", "a whole number from 1 to"),
            ("--log-format", "xml", "invalid value 'xml'"),
        ] {
            let error = parse(&[option, value]).unwrap_err().lines().next().unwrap().to_owned();
            assert!(error.contains(expected) && error.contains(option), "{option} {value}: {error}");
        }
        let config = parse(&["--snapshot-minutes", "0.05", "--admin", "[::1]:9090"]).unwrap();
        assert_eq!(config.snapshot_minutes, Duration::from_secs(3));
        assert_eq!(
            (config.listen.to_string(), config.admin.unwrap().to_string()),
            ("127.0.0.1:8080".into(), "[::1]:9090".into())
        );
    }

    #[test]
    fn an_address_that_others_can_reach_needs_a_token_and_answers_to_any_name_unless_some_are_allowed() {
        for listen in ["0.0.0.0:80", ":80", "[::]:80", "192.168.1.1:0"] {
            let config = parse(&["--listen", listen]).unwrap();
            let error = config.token_with(None).unwrap_err();
            assert!(error.contains(listen) && error.contains("--token-file or RISK_SERVER_TOKEN"), "{error}");
            assert!(config.token_with(Some("secret".to_owned())).unwrap().is_some());
            assert!(matches!(config.hosts(config.listen), Hosts::Any));
        }
        for listen in ["127.0.0.1:80", "127.9.9.9:80", "[::1]:80", "[::ffff:127.0.0.1]:80", "localhost:80"] {
            let config = parse(&["--listen", listen]).unwrap();
            assert_eq!(config.token_with(None), Ok(None));
            assert!(matches!(config.hosts(config.listen), Hosts::Only(names) if names.is_empty()), "{listen}");
        }
        for listen in ["127.0.0.1:80", "0.0.0.0:80"] {
            let names = ["--listen", listen, "--allowed-host", "a.example,b.example", "--allowed-host", "[::2]"];
            let config = parse(&names).unwrap();
            let Hosts::Only(names) = config.hosts(config.listen) else { panic!("any name is answered to") };
            assert_eq!(*names, ["a.example", "b.example", "[::2]"]);
        }
    }

    #[test]
    fn the_help_names_a_variable_for_every_option() {
        use clap::CommandFactory;
        let mut command = Config::command();
        let options = command.get_arguments().filter(|option| !["help", "version"].contains(&option.get_id().as_str()));
        for option in options {
            let expected = format!("RISK_SERVER_{}", option.get_id().as_str().to_uppercase());
            assert_eq!(option.get_env().and_then(|name| name.to_str()), Some(expected.as_str()));
        }
        assert!(command.render_long_help().to_string().contains("RISK_SERVER_TOKEN may hold the token"));
    }
}
