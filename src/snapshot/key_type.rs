//! Which keys a saved filter holds, where that can be said.

use core::any::TypeId;

/// The types of keys that hash alike everywhere, and can be told apart in a file.
macro_rules! key_types {
    ($($tag:literal $name:literal: $($type:ty),+;)+) => {
        /// A type of keys, or any other.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) struct KeyType(u32);

        impl KeyType {
            /// A type that has no number of its own.
            const OTHER: KeyType = KeyType(0);

            pub(super) fn of<K: ?Sized + 'static>() -> Self {
                let id = TypeId::of::<K>();
                $(
                    if [$(TypeId::of::<$type>()),+].contains(&id) {
                        return KeyType($tag);
                    }
                )+
                KeyType::OTHER
            }

            /// `None` if no version of the crate has written such a number.
            pub(super) fn of_tag(tag: u32) -> Option<Self> {
                [0 $(, $tag)+].contains(&tag).then_some(KeyType(tag))
            }

            pub(super) fn name(self) -> &'static str {
                match self.0 {
                    $($tag => $name,)+
                    _ => "another type",
                }
            }
        }
    };
}

key_types! {
    1 "str": str, String;
    2 "[u8]": [u8], Vec<u8>;
    3 "u8": u8;
    4 "u16": u16;
    5 "u32": u32;
    6 "u64": u64;
    7 "u128": u128;
    8 "i8": i8;
    9 "i16": i16;
    10 "i32": i32;
    11 "i64": i64;
    12 "i128": i128;
    13 "bool": bool;
    14 "char": char;
    15 "usize": usize;
    16 "isize": isize;
}

impl KeyType {
    pub(super) fn tag(self) -> u32 {
        self.0
    }

    /// How many groups of the hasher's probe these keys depend on: those of a known type not on what is fed to a
    /// hasher as it lies in memory.
    pub(super) fn probes(self) -> usize {
        if self == KeyType::OTHER { 4 } else { 3 }
    }

    /// Whether a filter of these keys may be loaded as one of those. Of other types nothing is known.
    pub(super) fn may_be(self, other: KeyType) -> bool {
        self == other || self == KeyType::OTHER || other == KeyType::OTHER
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Files have these numbers: none may change.
    #[test]
    fn each_type_keeps_its_number() {
        fn tag<K: ?Sized + 'static>() -> u32 {
            KeyType::of::<K>().tag()
        }
        assert_eq!([tag::<str>(), tag::<String>(), tag::<[u8]>(), tag::<Vec<u8>>()], [1, 1, 2, 2]);
        assert_eq!([tag::<u8>(), tag::<u16>(), tag::<u32>(), tag::<u64>(), tag::<u128>()], [3, 4, 5, 6, 7]);
        assert_eq!([tag::<i8>(), tag::<i16>(), tag::<i32>(), tag::<i64>(), tag::<i128>()], [8, 9, 10, 11, 12]);
        assert_eq!([tag::<bool>(), tag::<char>(), tag::<usize>(), tag::<isize>()], [13, 14, 15, 16]);
        assert_eq!([tag::<(u32,)>(), tag::<[u8; 4]>(), tag::<&str>(), tag::<Option<u64>>()], [0; 4]);
    }

    #[test]
    fn a_number_is_read_as_the_type_that_has_it() {
        for tag in 0..=16 {
            assert_eq!(KeyType::of_tag(tag).map(KeyType::tag), Some(tag));
        }
        assert_eq!(KeyType::of_tag(6).map(KeyType::name), Some("u64"));
        assert_eq!(KeyType::of_tag(0).map(KeyType::name), Some("another type"));
        assert_eq!([17, 1 << 16, u32::MAX].map(KeyType::of_tag), [None; 3]);
    }

    #[test]
    fn only_types_with_numbers_exclude_each_other() {
        let [text, bytes, other] = [KeyType::of::<str>(), KeyType::of::<[u8]>(), KeyType::of::<(u8, u8)>()];
        assert!(text.may_be(KeyType::of::<String>()));
        assert!(!text.may_be(bytes) && !bytes.may_be(text));
        assert!(!KeyType::of::<u32>().may_be(KeyType::of::<i32>()));
        assert!(text.may_be(other) && other.may_be(text) && other.may_be(other));
    }
}
