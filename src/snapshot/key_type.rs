//! The types of keys of saved filters.

use core::any::TypeId;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;

/// The types of keys with names in files.
macro_rules! key_types {
    ($($name:literal: $($type:ty),+;)+) => {
        /// The names in files: none may change.
        const KNOWN: &[&str] = &[$($name),+];

        fn name_of(id: TypeId) -> Option<&'static str> {
            $(
                if [$(TypeId::of::<$type>()),+].contains(&id) {
                    return Some($name);
                }
            )+
            None
        }
    };
}

key_types! {
    "str": str, String, &'static str, Box<str>, Arc<str>, Rc<str>, Cow<'static, str>;
    "[u8]": [u8], Vec<u8>, &'static [u8], Box<[u8]>, Arc<[u8]>, Rc<[u8]>, Cow<'static, [u8]>;
    "u8": u8;
    "u16": u16;
    "u32": u32;
    "u64": u64;
    "u128": u128;
    "i8": i8;
    "i16": i16;
    "i32": i32;
    "i64": i64;
    "i128": i128;
    "bool": bool;
    "char": char;
    "usize": usize;
    "isize": isize;
    "Ipv4Addr": Ipv4Addr;
    "Ipv6Addr": Ipv6Addr;
    "IpAddr": IpAddr;
}

/// The name of a type of keys, or none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KeyType(Cow<'static, str>);

impl KeyType {
    pub(super) fn of<K: ?Sized + 'static>() -> Self {
        KeyType(Cow::Borrowed(name_of(TypeId::of::<K>()).unwrap_or_default()))
    }

    pub(super) fn named(name: &str) -> Self {
        KeyType(Cow::Owned(name.into()))
    }

    /// Returns the name, empty if there is none.
    pub(super) fn name(&self) -> &str {
        &self.0
    }

    /// Returns the name for an error.
    pub(super) fn in_words(self) -> Cow<'static, str> {
        if self.0.is_empty() { Cow::Borrowed("another type") } else { self.0 }
    }

    /// Returns the number of groups of the probe that these keys depend on: known types do not depend on the last group, of values
    /// fed to a hasher in the byte order of the platform. Addresses do: std hashes them as a number with their bytes.
    pub(super) fn probes(&self) -> usize {
        if KNOWN.contains(&self.name()) && !self.name().starts_with("Ip") { 3 } else { 4 }
    }

    /// Returns whether a filter of these keys may be loaded as a filter of the other type. Types without a name match every type.
    pub(super) fn may_be(&self, other: &KeyType) -> bool {
        self == other || self.0.is_empty() || other.0.is_empty()
    }
}

#[cfg(all(test, not(cuckoo_model)))]
mod tests {
    use super::*;

    fn name<K: ?Sized + 'static>() -> String {
        KeyType::of::<K>().name().into()
    }

    /// Files have these names: none may change.
    #[test]
    fn each_type_keeps_its_name() {
        assert_eq!([name::<str>(), name::<String>(), name::<Arc<str>>(), name::<&str>()], ["str"; 4]);
        assert_eq!([name::<[u8]>(), name::<Vec<u8>>(), name::<Box<[u8]>>()], ["[u8]"; 3]);
        assert_eq!([name::<u8>(), name::<u16>(), name::<u32>(), name::<u64>()], ["u8", "u16", "u32", "u64"]);
        assert_eq!([name::<i8>(), name::<i16>(), name::<i32>(), name::<i64>()], ["i8", "i16", "i32", "i64"]);
        assert_eq!([name::<u128>(), name::<i128>(), name::<bool>(), name::<char>()], ["u128", "i128", "bool", "char"]);
        assert_eq!([name::<usize>(), name::<isize>()], ["usize", "isize"]);
        assert_eq!([name::<Ipv4Addr>(), name::<Ipv6Addr>(), name::<IpAddr>()], ["Ipv4Addr", "Ipv6Addr", "IpAddr"]);
        let probes =
            [KeyType::of::<str>(), KeyType::of::<u64>(), KeyType::of::<IpAddr>(), KeyType::of::<Option<u64>>()];
        assert_eq!(probes.map(|of| of.probes()), [3, 3, 4, 4], "which hash alike in every byte order");
        assert_eq!([name::<(u32,)>(), name::<[u8; 4]>(), name::<&u8>(), name::<Option<u64>>()], [""; 4]);
    }
}
