//! Random sequences of operations, with each answer compared with an exact multiset (`testkit::sequence`): at every width, beyond
//! the capacity and when full, by keys and by hashes, single and many, with snapshots, merges and clears in between.

use concurrent_cuckoo_filter::CuckooFilter;
use proptest::prelude::*;
use testkit::{Places, random_seeds, sequence};

/// The bytes of a shape: its capacity, its width, then keys, stripes and seed.
fn shape() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 3)
}

/// The bytes of an operation on one key (`testkit::sequence`), with this weight of insertions.
fn single(insertions: u32) -> impl Strategy<Value = Vec<u8>> {
    let kind = prop_oneof![
        2 * insertions => 0..40u8,
        80 => 40..52u8,
        80 => 52..74u8,
        1 => Just(112),
    ];
    (kind, any::<bool>(), any::<u8>()).prop_map(|(kind, by_hash, key)| match kind {
        112 => vec![kind],
        kind => vec![kind | u8::from(by_hash) << 7, key],
    })
}

fn config() -> ProptestConfig {
    ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    /// Insertions and removals in balance: tables of every load.
    #[test]
    fn any_sequence_answers_as_a_multiset(shape in shape(), steps in prop::collection::vec(single(80), 0..1200)) {
        sequence::run(&[shape, steps.concat()].concat());
    }

    /// Far more insertions than fit.
    #[test]
    fn a_full_table_answers_as_a_multiset(shape in shape(), steps in prop::collection::vec(single(500), 600..1500)) {
        sequence::run(&[shape, steps.concat()].concat());
    }

    /// With batches, bulk operations, snapshots and merges.
    #[test]
    fn any_operation_answers_as_a_multiset(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        sequence::run(&bytes);
    }

    /// Expiring, counting and tagged filters.
    #[test]
    fn any_sequence_keeps_what_keys_were_promised(bytes in prop::collection::vec(any::<u8>(), 0..3000)) {
        sequence::tagged::run(&bytes);
    }

    /// With 32 bits, keys almost never share a class, so what the model takes for a class is not simply a wrong answer.
    #[test]
    fn hardly_any_two_keys_share_a_class_of_32_bits(capacity in 0usize..=300, seed: u64) {
        let builder = CuckooFilter::<u64>::builder().capacity(capacity).fingerprint_bits(32);
        let filter = builder.hasher(random_seeds(&mut fastrand::Rng::with_seed(seed))).build().unwrap();
        let places = Places::of(&filter, 0..100);
        prop_assert!(places.classes.iter().max() >= Some(&98));
    }
}

/// Sequences like those above reach both kinds of refusals, at every width.
#[test]
fn both_refusals_are_reached() {
    for bits in 4..=32 {
        let mut rng = fastrand::Rng::with_seed(u64::from(bits));
        // Capacity 10, this width, 128 keys.
        let mut bytes = vec![4, bits - 4, 0xc0];
        // First copies of one key, then one copy of each.
        for key in [0; 10].into_iter().chain(0..100) {
            bytes.extend([u8::from(rng.bool()) << 7, key]);
        }
        let refused = sequence::run(&bytes);
        assert!(refused.iter().all(|&times| times > 0), "{bits} bits: {refused:?}");
    }
}

/// Deadlines, counts and tags of every number of bits, in slots of every width.
#[test]
fn every_width_keeps_what_keys_were_promised() {
    const EXPIRING: u8 = 0;
    const COUNTING: u8 = 1;
    const TAGGED: u8 = 2;
    let expiring = (0..7).map(|steps| vec![EXPIRING, steps]);
    let counting = (0..6).flat_map(|counter| (0..3).map(move |policy| vec![COUNTING, counter, policy]));
    let tagged = (0..5).map(|tags| vec![TAGGED, tags]);
    let mut run = 0;
    for kind in expiring.chain(counting).chain(tagged) {
        for bits in 0..29 {
            for grows in 0..2 {
                let mut rng = fastrand::Rng::with_seed(bits.into());
                let operations = std::iter::repeat_with(|| rng.u8(..)).take(2000).collect::<Vec<u8>>();
                // The capacity varies with the width.
                run += usize::from(sequence::tagged::run(
                    &[kind.clone(), vec![(bits + grows) % 6, bits, grows], operations].concat(),
                ));
            }
        }
    }
    assert_eq!(run, 1326, "of 1,740; the others would need slots of more than 32 bits");
}
