//! The list, and the keys that are looked up, prepared before any clock starts.

use fastrand::Rng;
use std::collections::HashSet;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

/// Lookups that are prepared; the workers repeat them, each from another place.
const PREPARED: usize = 1 << 20;

/// Listed addresses per network.
const PER_NETWORK: u32 = 64;

/// What is known of a key, whatever the filter says.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// Listed throughout: "no" is an error.
    Stays,
    /// Removed and inserted again: both answers are right.
    Changes,
    /// Never listed: "yes" is a false positive.
    Absent,
}

pub(crate) struct List {
    pub(crate) keys: Vec<String>,
    /// Makes keys that may be listed or not.
    draw: Box<dyn Fn(&mut Rng) -> String>,
}

impl List {
    /// The distinct lines of a file.
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        let text = fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        let mut seen = HashSet::new();
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && seen.insert(*line));
        let keys: Vec<String> = lines.map(str::to_owned).collect();
        if keys.is_empty() {
            return Err(format!("{} holds no keys", path.display()));
        }
        Ok(List { keys, draw: Box::new(domain) })
    }

    /// Addresses, 64 of each IPv4 network and of each IPv6 network in turn.
    pub(crate) fn addresses(count: u32) -> Self {
        let (mut random, mut seen) = (Rng::with_seed(2), HashSet::new());
        let draw = |number: u32| loop {
            let key = address(number / (2 * PER_NETWORK), number % (2 * PER_NETWORK) < PER_NETWORK, &mut random);
            if seen.insert(key) {
                return key.to_string();
            }
        };
        let networks = count.div_ceil(2 * PER_NETWORK);
        let absent = move |random: &mut Rng| address(random.u32(..networks), random.bool(), random).to_string();
        List { keys: (0..count).map(draw).collect(), draw: Box::new(absent) }
    }

    /// The keys that the writer removes and inserts again; the only key of a list of one stays.
    pub(crate) fn changing(&self) -> &[String] {
        &self.keys[..self.keys.len() / 10]
    }

    /// Keys to look up, a quarter of them listed.
    pub(crate) fn lookups(&self) -> Vec<(Box<str>, Kind)> {
        let mut random = Rng::with_seed(1);
        let listed: HashSet<&str> = self.keys.iter().map(String::as_str).collect();
        let changing = self.changing().len();
        let lookup = |_| {
            if random.usize(..4) == 0 {
                let number = random.usize(..self.keys.len());
                let kind = if number < changing { Kind::Changes } else { Kind::Stays };
                return (self.keys[number].as_str().into(), kind);
            }
            loop {
                let key = (self.draw)(&mut random);
                if !listed.contains(key.as_str()) {
                    return (key.into(), Kind::Absent);
                }
            }
        };
        (0..PREPARED).map(lookup).collect()
    }
}

/// A key that a growing filter gets during the run. No real domain ends so.
pub(crate) fn added(number: u32) -> String {
    format!("{number:016x}.example")
}

fn domain(random: &mut Rng) -> String {
    let letters: String = (0..random.usize(8..=12)).map(|_| random.lowercase()).collect();
    letters + random.choice([".com", ".net", ".org", ".de", ".co.uk", ".com.br"]).expect("endings")
}

/// An address of the network with this number.
fn address(network: u32, is_v4: bool, random: &mut Rng) -> IpAddr {
    if is_v4 {
        // From 16.0.0.0 on; an odd factor leaves networks distinct.
        let scattered = network.wrapping_mul(0x9e_37b1) & 0x3f_ffff;
        Ipv4Addr::from(((scattered + (16 << 16)) << 8) + random.u32(1..255)).into()
    } else {
        let prefix = 0x2001_0db8 << 96 | u128::from(network) << 64;
        Ipv6Addr::from(prefix | u128::from(random.u32(..1 << 12))).into()
    }
}
