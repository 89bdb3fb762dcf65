//! The list and the keys of the lookups, prepared before the measurement.

use fastrand::Rng;
use std::collections::HashSet;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

/// The number of prepared lookups, which the workers repeat from different offsets.
const PREPARED: usize = 1 << 20;

/// Listed addresses per network.
const PER_NETWORK: u32 = 64;

/// The exact state of a key.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// Listed throughout: `false` is an error.
    Stays,
    /// Removed and inserted repeatedly: both results are correct.
    Changes,
    /// Never listed: `true` is a false positive.
    Absent,
}

pub(crate) struct List {
    pub(crate) keys: Vec<String>,
    /// Generates keys, listed or not.
    draw: Box<dyn Fn(&mut Rng) -> String>,
}

impl List {
    /// Reads the distinct lines of a file.
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        let text = fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        let mut seen = HashSet::new();
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && seen.insert(*line));
        let keys: Vec<String> = lines.map(str::to_owned).collect();
        if keys.is_empty() {
            return Err(format!("{} has no keys", path.display()));
        }
        Ok(List { keys, draw: Box::new(domain) })
    }

    /// Generates addresses, alternately 64 of an IPv4 network and 64 of an IPv6 network.
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

    /// Returns the keys that the writer removes and inserts again; none for a list of fewer than 10 keys.
    pub(crate) fn changing(&self) -> &[String] {
        &self.keys[..self.keys.len() / 10]
    }

    /// Returns the keys of the lookups, a quarter of them listed.
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

/// Returns a key inserted into a growing filter during the run. The ending is reserved.
pub(crate) fn added(number: u32) -> String {
    format!("{number:016x}.example")
}

fn domain(random: &mut Rng) -> String {
    let letters: String = (0..random.usize(8..=12)).map(|_| random.lowercase()).collect();
    letters + random.choice([".com", ".net", ".org", ".de", ".co.uk", ".com.br"]).expect("endings")
}

/// Returns an address of the network with this number.
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
