//! Of `src/hashing/stable.rs`: the function is SipHash-1-3 by its published vectors, on every platform.

use super::*;
use core::hash::Hash;
use proptest::prelude::*;

/// The seeds 00 01 .. 0f of the published vectors.
fn builder() -> StableHashBuilder {
    StableHashBuilder::with_seeds(0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908)
}

fn of_bytes(bytes: &[u8]) -> u64 {
    let mut hasher = builder().build_hasher();
    hasher.write(bytes);
    hasher.finish()
}

#[test]
fn each_instance_has_its_own_seeds() {
    assert_ne!(StableHashBuilder::default().seeds(), StableHashBuilder::default().seeds());
}

/// The messages are 00 01 02 .., of these lengths. From the tests of SipHash-1-3 in the standard library.
#[test]
fn the_function_is_siphash_1_3() {
    let vectors = [
        (0, 0xabac_0158_050f_c4dc),
        (1, 0xc9f4_9bf3_7d57_ca93),
        (2, 0x82cb_9b02_4dc7_d44d),
        (3, 0x8bf8_0ab8_e7dd_f7fb),
        (4, 0xcf75_5760_88d3_8328),
        (7, 0xd392_7d98_9bb1_1140),
        (8, 0x3690_9511_8d29_9a8e),
        (9, 0x25a4_8eb3_6c06_3de4),
        (15, 0xd320_d86d_2a51_9956),
        (16, 0xcc4f_dd1a_7d90_8b66),
        (17, 0x9cf2_6890_63db_d80c),
        (31, 0x2370_dd1f_8c21_d1bc),
        (32, 0x8115_7b6c_16a7_b60d),
        (63, 0x9d19_9062_b7bb_b3a8),
    ];
    for (length, hash) in vectors {
        assert_eq!(of_bytes(&(0..length).collect::<Vec<u8>>()), hash, "{length} bytes");
    }
}

#[test]
fn keys_reach_the_function_as_the_same_bytes_everywhere() {
    #[track_caller]
    fn check(key: &(impl Hash + ?Sized), bytes: &[u8]) {
        assert_eq!(builder().hash_one(key), of_bytes(bytes));
    }
    check(&0x01_u8, &[1]);
    check(&0x0102_u16, &[2, 1]);
    check(&0x0102_0304_u32, &[4, 3, 2, 1]);
    check(&0x0102_0304_0506_0708_u64, &[8, 7, 6, 5, 4, 3, 2, 1]);
    check(&0x0f_u128, &[15, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    check(&0x0102_usize, &[2, 1, 0, 0, 0, 0, 0, 0]);
    check(&-2_i8, &[0xfe]);
    check(&-2_i16, &[0xfe, 0xff]);
    check(&-2_i32, &[0xfe, 0xff, 0xff, 0xff]);
    check(&-2_i64, &[0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
    check(&-1_i128, &[0xff; 16]);
    check(&-2_isize, &[0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
    check(&true, &[1]);
    check(&'\u{1f980}', &[0x80, 0xf9, 1, 0]);
    check("key", b"key\xff");
    check(&String::from("key"), b"key\xff");
    check(&b"key"[..], b"\x03\0\0\0\0\0\0\0key");
    check(&Vec::from("key"), b"\x03\0\0\0\0\0\0\0key");
    check(b"key", b"\x03\0\0\0\0\0\0\0key");
    check(&(1_u8, "a", 0x0203_u16), b"\x01a\xff\x03\x02");
}

proptest! {
    /// After arbitrary bytes, so that numbers also straddle the words of the function.
    #[test]
    fn it_does_not_matter_how_bytes_are_fed(
        before in prop::collection::vec(any::<u8>(), 0..20),
        number: u128,
        cut in 0..=16_usize,
    ) {
        let bytes = number.to_le_bytes();
        let hash = |feed: &dyn Fn(&mut StableHasher)| {
            let mut hasher = builder().build_hasher();
            hasher.write(&before);
            feed(&mut hasher);
            hasher.finish()
        };
        let whole = hash(&|hasher| hasher.write(&bytes));
        prop_assert_eq!(whole, of_bytes(&[&before[..], &bytes].concat()));
        prop_assert_eq!(whole, hash(&|hasher| hasher.write_u128(number)));
        prop_assert_eq!(whole, hash(&|hasher| {
            hasher.write(&bytes[..cut]);
            hasher.write(&bytes[cut..]);
        }));
        prop_assert_eq!(whole, hash(&|hasher| {
            hasher.write_u64(number as u64);
            hasher.write_i64((number >> 64) as i64);
        }));
        prop_assert_eq!(whole, hash(&|hasher| {
            (0..4).for_each(|part| hasher.write_u32((number >> (32 * part)) as u32));
        }));
        prop_assert_eq!(whole, hash(&|hasher| {
            (0..8).for_each(|part| hasher.write_u16((number >> (16 * part)) as u16));
        }));
        prop_assert_eq!(whole, hash(&|hasher| bytes.iter().for_each(|&byte| hasher.write_u8(byte))));
    }
}
