//! Made IP addresses in place of a list: half of them IPv4, as many in each of some /24 networks, half IPv6, as many in each of
//! some /64 networks. Those that are asked for and not listed are of the same networks.

use crate::list::List;
use fastrand::Rng;
use std::collections::HashSet;
use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Listed addresses of a network.
const LISTED: usize = 64;

/// As many as there are networks for.
pub(crate) const MOST: usize = (2 * LISTED) << 22;

/// The addresses, one a line.
pub(crate) fn list(count: usize) -> String {
    let mut random = Rng::with_seed(2);
    let mut text = String::new();
    let mut listed = HashSet::with_capacity(LISTED);
    for number in 0..count {
        if number % (2 * LISTED) == 0 {
            listed.clear();
        }
        // Of each network in turn, first IPv4, then IPv6.
        let (network, is_v4) = (number / (2 * LISTED), number % (2 * LISTED) < LISTED);
        let address = loop {
            let address = draw(network, is_v4, &mut random);
            if listed.insert(address) {
                break address;
            }
        };
        writeln!(text, "{address}").expect("text takes whatever is written");
    }
    text
}

/// An address that is not on the list, of a network that has some.
pub(crate) fn unlisted(list: &List, random: &mut Rng) -> Box<str> {
    let networks = list.keys.len().div_ceil(2 * LISTED);
    loop {
        let address = draw(random.usize(..networks), random.bool(), random).to_string();
        if !list.exact.contains(address.as_str()) {
            return address.into();
        }
    }
}

/// An address of the network with this number.
fn draw(network: usize, is_v4: bool, random: &mut Rng) -> IpAddr {
    let network = network as u32;
    if is_v4 {
        // From 16.0.0.0 on; an odd factor leaves networks distinct.
        let scattered = network.wrapping_mul(0x9e_37b1) & 0x3f_ffff;
        Ipv4Addr::from(((scattered + (16 << 16)) << 8) + random.u32(1..255)).into()
    } else {
        let prefix = 0x2001_0db8 << 96 | u128::from(network) << 64;
        Ipv6Addr::from(prefix | u128::from(random.u32(..1 << 12))).into()
    }
}
