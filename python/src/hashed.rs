//! Keys that are hashed already, of which filters take the hashes as they are.

use concurrent_cuckoo_filter::{SavedHasher, StableHashBuilder, StableHasher};
use std::hash::{BuildHasher, Hash, Hasher};

/// A key that is hashed: its own hash, by `Hashers`.
#[derive(Clone, Copy, Default)]
pub(crate) struct Hashed(pub(crate) u64);

impl From<u64> for Hashed {
    fn from(hash: u64) -> Self {
        Hashed(hash)
    }
}

/// Its address tells that a hash follows. No key lies there.
static A_HASH: [u8; 1] = [0];

impl Hash for Hashed {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write(&A_HASH);
        state.write_u64(self.0);
    }
}

/// The stable hash function, which leaves hashes as they are.
#[derive(Clone)]
pub(crate) struct Hashers(pub(crate) StableHashBuilder);

impl BuildHasher for Hashers {
    type Hasher = OrHash;

    fn build_hasher(&self) -> OrHash {
        OrHash { hasher: self.0.build_hasher(), hash: None }
    }
}

impl SavedHasher for Hashers {
    const NAME: &'static str = StableHashBuilder::NAME;

    fn keys(&self) -> Option<[u64; 4]> {
        self.0.keys()
    }

    fn from_keys(keys: [u64; 4]) -> Option<Self> {
        StableHashBuilder::from_keys(keys).map(Hashers)
    }
}

pub(crate) struct OrHash {
    hasher: StableHasher,
    hash: Option<u64>,
}

/// The methods of the stable hasher, by which each type is hashed there.
macro_rules! passed_on {
    ($($method:ident: $type:ty),*) => {
        $(
            fn $method(&mut self, value: $type) {
                self.hasher.$method(value);
            }
        )*
    };
}

impl Hasher for OrHash {
    #[inline]
    fn finish(&self) -> u64 {
        self.hash.unwrap_or_else(|| self.hasher.finish())
    }

    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        if std::ptr::eq(bytes, &A_HASH[..]) {
            self.hash = Some(0);
        } else {
            self.hasher.write(bytes);
        }
    }

    #[inline]
    fn write_u64(&mut self, value: u64) {
        match &mut self.hash {
            Some(hash) => *hash = value,
            None => self.hasher.write_u64(value),
        }
    }

    passed_on! {
        write_u8: u8, write_u16: u16, write_u32: u32, write_u128: u128, write_usize: usize,
        write_i8: i8, write_i16: i16, write_i32: i32, write_i64: i64, write_i128: i128, write_isize: isize
    }
}
