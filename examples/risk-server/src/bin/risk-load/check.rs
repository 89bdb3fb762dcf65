//! Plain load on a server that runs already.

use crate::args::{at_least_one, connections, seconds};
use crate::load::{self, Load};
use crate::questions::Questions;
use crate::{keys, text};
use clap::Args;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::time::Duration;

/// Asks a running server for the keys of a file, and tells how fast it answers.
///
/// Closed loop: each connection asks again as soon as it has its answer, so a slower server is asked less, and a pause
/// counts once for each connection. The list is not changed.
#[derive(Args)]
pub(crate) struct Options {
    /// The server, such as http://127.0.0.1:8080; it must run on this machine
    url: String,

    /// The file of the keys to ask for, one a line [default: the list of the examples, about 121,570 domains]
    #[arg(long, value_name = "FILE", default_value = keys::LIST, hide_default_value = true)]
    keys: PathBuf,

    /// Keys in a request: 1 asks with GET for one, more ask with POST for a batch
    #[arg(long, value_name = "KEYS", default_value_t = 1, value_parser = at_least_one)]
    batch: usize,

    /// Connections that ask at the same time
    #[arg(long, value_name = "COUNT", default_value_t = 32, value_parser = connections)]
    connections: usize,

    /// Seconds to ask for
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds)]
    seconds: Duration,

    /// One second only, to see that everything works
    #[arg(long, conflicts_with = "seconds")]
    quick: bool,
}

pub(crate) fn run(options: &Options) -> Result<(), String> {
    let address = address(&options.url)?;
    let keys = keys::read(&options.keys)?;
    if keys.len() < options.batch {
        return Err(format!(
            "{} has {} keys, too few for a batch of {}",
            options.keys.display(),
            keys.len(),
            options.batch
        ));
    }
    let asked: Vec<(&str, Option<bool>)> = keys.iter().map(|key| (key.as_str(), None)).collect();
    let questions =
        if options.batch == 1 { Questions::single(&asked) } else { Questions::batches(&asked, options.batch) };
    let time = if options.quick { Duration::from_secs(1) } else { options.seconds };
    let load = Load {
        address,
        questions: &questions,
        judged: false,
        connections: options.connections,
        changes: None,
        warm_up: time / 10,
        time,
    };
    let outcome = load::run(load, || None)?;

    let (requests, times) = (outcome.checks.count(), &outcome.checks);
    let all = requests * questions.keys_each() as u64;
    let kind = if options.batch == 1 { "single checks".to_owned() } else { format!("batches of {}", options.batch) };
    println!("{kind}, closed loop, {} connections, {}", options.connections, text::time(outcome.took));
    println!(
        "{} requests/s, {} keys/s",
        text::count(outcome.checks_per_second() as u64),
        text::count((outcome.checks_per_second() * questions.keys_each() as f64) as u64)
    );
    println!(
        "p50 {}, p99 {}, p99.9 {}, worst {}",
        text::some_time(times.quantile(0.5)),
        text::some_time(times.quantile(0.99)),
        text::some_time(times.quantile(0.999)),
        text::some_time(times.worst())
    );
    println!(
        "{} requests for {} keys, of which {} are listed",
        text::count(requests),
        text::count(all),
        text::count(outcome.listed)
    );
    Ok(())
}

/// Only servers of this machine: load is nothing to send to others.
fn address(url: &str) -> Result<SocketAddr, String> {
    let wrong = || format!("{url:?} is not the address of a server, such as http://127.0.0.1:8080");
    let host = url.strip_prefix("http://").ok_or_else(wrong)?;
    let host = host.strip_suffix('/').unwrap_or(host);
    let mut addresses = host.to_socket_addrs().map_err(|error| format!("{}: {error}", wrong()))?;
    let address = addresses.next().ok_or_else(wrong)?;
    if address.ip().to_canonical().is_loopback() {
        Ok(address)
    } else {
        Err(format!("{host} is another machine; load is sent to servers of this one only"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_servers_of_this_machine_are_asked() {
        assert_eq!(address("http://127.0.0.1:80"), Ok(([127, 0, 0, 1], 80).into()));
        assert!(address("http://localhost:8080/").unwrap().ip().is_loopback());
        assert!(address("http://192.0.2.1:80").unwrap_err().contains("another machine"));
        for url in ["", "127.0.0.1:80", "https://127.0.0.1:80", "http://127.0.0.1", "http://127.0.0.1:80/v1"] {
            assert!(address(url).unwrap_err().contains("not the address of a server"), "{url}");
        }
    }
}
