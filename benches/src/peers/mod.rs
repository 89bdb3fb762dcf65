//! The contestants, one file each.

pub mod atomic_cuckoo;
pub mod blocked_bloom;
pub mod bloom;
pub mod cuckoo_clock;
pub mod dash_set;
pub mod locked_cuckoo;
pub mod ours;
pub mod papaya_set;
pub mod quotient;
pub mod scalable_cuckoo;
pub mod scc_set;

#[cfg(test)]
mod tests;

use crate::field::Key;
use crate::set::Contestant;

/// All contestants, ours first.
pub fn contestants<K: Key>() -> Vec<Contestant<K>> {
    K::contestants()
}

/// The same, compiled wherever it is called with another type.
pub(crate) fn all<K: Key>() -> Vec<Contestant<K>> {
    vec![
        Contestant {
            name: ours::NAME,
            removes: true,
            locks: false,
            exact: false,
            bits: |bits| (4..=32).contains(&bits),
            build: |size| Box::new(ours::build(size)),
        },
        Contestant {
            name: "atomic-cuckoo-filter",
            removes: true,
            locks: true,
            exact: false,
            bits: |bits| [4, 8, 16, 32].contains(&bits),
            build: |size| Box::new(atomic_cuckoo::build(size)),
        },
        Contestant {
            name: "cuckoofilter + RwLock",
            removes: true,
            locks: true,
            exact: false,
            bits: |bits| bits == 8,
            build: |size| Box::new(locked_cuckoo::build(size)),
        },
        Contestant {
            name: "scalable_cuckoo_filter + RwLock",
            removes: true,
            locks: true,
            exact: false,
            bits: |bits| (5..=32).contains(&bits),
            build: |size| Box::new(scalable_cuckoo::build(size)),
        },
        Contestant {
            name: "cuckoo-clock",
            removes: true,
            locks: true,
            exact: false,
            bits: |bits| (4..=32).contains(&bits),
            build: |size| Box::new(cuckoo_clock::build(size)),
        },
        Contestant {
            name: "fastbloom",
            removes: false,
            locks: false,
            exact: false,
            bits: |_| true,
            build: |size| Box::new(bloom::build(size)),
        },
        Contestant {
            name: "sbbf-rs-safe + RwLock",
            removes: false,
            locks: true,
            exact: false,
            bits: |_| true,
            build: |size| Box::new(blocked_bloom::build(size)),
        },
        Contestant {
            name: "qfilter + RwLock",
            removes: true,
            locks: true,
            exact: false,
            bits: |bits| (3..=32).contains(&bits),
            build: |size| Box::new(quotient::build(size)),
        },
        Contestant {
            name: "DashSet",
            removes: true,
            locks: true,
            exact: true,
            bits: |_| true,
            build: |size| Box::new(dash_set::build(size)),
        },
        Contestant {
            name: "papaya",
            removes: true,
            locks: false,
            exact: true,
            bits: |_| true,
            build: |size| Box::new(papaya_set::build(size)),
        },
        Contestant {
            name: "scc",
            removes: true,
            locks: true,
            exact: true,
            bits: |_| true,
            build: |size| Box::new(scc_set::build(size)),
        },
    ]
}
