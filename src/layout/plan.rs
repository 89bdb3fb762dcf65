//! Sizes: from a number of keys and a rate to shards, buckets, bits and stripes.

use super::lanes::SLOTS;
use super::tags::Tags;
use core::ops::RangeInclusive;

pub(crate) const FINGERPRINT_BITS: RangeInclusive<u32> = 4..=32;

/// The maximum number of buckets of a shard: 2^18 slots, which at 16 bits fit an L2 cache. Large filters have shards of more than
/// half of that; shards of 2^12 buckets begin to refuse keys at 95 % load.
pub(super) const SHARD_BUCKETS: u64 = 1 << 16;

/// The load that a large table reaches without refusing a key. The first refusal occurs at 0.97 and above (docs/design/sizes.md,
/// "Sizes").
pub(super) const LOAD: f64 = 0.965;

/// The load up to which one of ten shards refuses a key, and the difference in load that makes a refusal e times as rare: from the
/// first refusals of 63,524 shards of 261,400 and of 129,912 slots, at 6 and at 13 bits, by single and by bulk insertions. The
/// tenth was at 0.97284 to 0.97377, and below it the mean distance was 0.00045 to 0.00068 (0.00059 of 13,611 shards at 6 bits).
const TENTH_REFUSES: f64 = 0.9728;
const E_TIMES_RARER: f64 = 0.0006;

/// The fraction of builds that may refuse a key below the capacity: half of the promised one.
const REFUSED_BUILDS: f64 = 0.5e-4;

/// With fewer bits there are so few classes that one can overflow before the table is full: every requested rate gets at least this
/// many bits.
const BITS_THAT_KEEP_THE_CAPACITY: u32 = 6;

/// Stripes begin at multiples of at least 16 buckets: whole words at every width.
const STRIPE_SHIFT: u32 = 4;

/// The memory of a stripe: a cache line for writers and one for lookups (`raw/stripe`), or one longer line.
pub(crate) const STRIPE_BYTES: u64 = {
    let line = size_of::<crossbeam_utils::CachePadded<u64>>() as u64;
    if line > 128 { line } else { 128 }
};

/// From [`LARGE`] keys up, all stripes take at most this fraction of the table.
const STRIPE_SHARE: u64 = 100;
const LARGE: usize = 100_000;

/// The number of stripes that a filter below [`LARGE`] keys may always have.
const STRIPES_OF_SMALL_FILTERS: u64 = 8;

/// Enough that two of some dozens of writers rarely collide, and few enough that all versions stay in a core's cache.
const MAX_STRIPES: u64 = 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) shards: usize,
    /// Buckets of a shard: even, so that the two candidates of a key never coincide. In a growing filter, the buckets of a table
    /// that is no longer refilled.
    pub(crate) buckets: u32,
    pub(crate) fingerprint_bits: u32,
    /// Bits of a slot: a tag, in some filters (`tags`), a fingerprint above it, and in the widest tables of a growing filter bits that
    /// are always 0.
    pub(crate) slot_bits: u32,
    pub(crate) tag_bits: u32,
    /// Bits of a count below the time of a tag; 0 where a tag is one number.
    pub(crate) count_bits: u32,
    /// Bits of a fingerprint that select a table, one per doubling; 0 in a filter of fixed size.
    pub(crate) reserve_bits: u32,
    /// The number of these doublings that are refills, which extend the numbers of buckets by a bit each (`growth`).
    pub(crate) extension_bits: u32,
    /// A stripe is `1 << stripe_shift` buckets.
    pub(crate) stripe_shift: u32,
    pub(crate) words: u32,
    pub(crate) stripes: u32,
}

impl Plan {
    /// Plans a filter of `capacity` keys, with about `stripes` stripes in all, if given. Returns `None` if it is too large.
    pub(crate) fn new(capacity: usize, width: u32, stripes: Option<usize>) -> Option<Self> {
        let (shards, buckets) = buckets_for(capacity);
        Plan::with_buckets(shards, buckets, width, stripes, capacity)
    }

    pub(super) fn with_buckets(
        shards: u64,
        buckets: u64,
        width: u32,
        stripes: Option<usize>,
        capacity: usize,
    ) -> Option<Self> {
        debug_assert!(FINGERPRINT_BITS.contains(&width));
        let words = words_for(buckets, width);
        let bytes = bytes_of(shards, words)?;
        let stripe_shift = match stripes {
            Some(asked) => shift_for_at_least((asked as u64).div_ceil(shards), buckets),
            None => shift_for_at_most(default_stripes(capacity, bytes) / shards, buckets),
        };
        let shards = usize::try_from(shards).ok()?;
        Some(Plan::of(shards, buckets as u32, width, width, stripe_shift))
    }

    pub(super) fn of(shards: usize, buckets: u32, fingerprint_bits: u32, slot_bits: u32, stripe_shift: u32) -> Self {
        Plan {
            shards,
            buckets,
            fingerprint_bits,
            slot_bits,
            tag_bits: slot_bits - fingerprint_bits,
            count_bits: 0,
            reserve_bits: 0,
            extension_bits: 0,
            stripe_shift,
            words: words_for(buckets.into(), slot_bits) as u32,
            stripes: buckets.div_ceil(1 << stripe_shift),
        }
    }

    /// Returns the width of the narrowest slot for a fingerprint of at least this many bits and a tag of this many, if any.
    pub(crate) fn slot_bits_for(fingerprint_bits: u32, tag_bits: u32) -> Option<u32> {
        (fingerprint_bits + tag_bits..=*FINGERPRINT_BITS.end()).find(|&width| tag_bits <= Tags::most_bits(width))
    }

    /// Returns the plan with a tag in each slot, at the expense of the fingerprint.
    pub(crate) fn with_tags(self, tag_bits: u32) -> Self {
        Plan { fingerprint_bits: self.slot_bits - tag_bits, tag_bits, ..self }
    }

    /// Returns the plan of a saved filter. The error is the name and the value of a number that no plan has.
    pub(crate) fn from_parts(
        shards: u64,
        buckets: u32,
        fingerprint_bits: u32,
        slot_bits: u32,
        stripe_shift: u32,
    ) -> Result<Self, (&'static str, u64)> {
        let full = u64::from(buckets) > SHARD_BUCKETS / 2 || shards == 1;
        let multiple = if shards == 1 { 2 } else { 1 << STRIPE_SHIFT };
        if buckets < 2 || !buckets.is_multiple_of(multiple) || u64::from(buckets) > SHARD_BUCKETS || !full {
            return Err(("number of buckets", buckets.into()));
        }
        if !(STRIPE_SHIFT..=SHARD_BUCKETS.ilog2()).contains(&stripe_shift) {
            return Err(("size of a stripe", stripe_shift.into()));
        }
        let words = words_for(buckets.into(), slot_bits);
        if shards == 0 || bytes_of(shards, words).is_none() {
            return Err(("number of shards", shards));
        }
        Ok(Plan::of(shards as usize, buckets, fingerprint_bits, slot_bits, stripe_shift))
    }

    #[cfg(test)]
    pub(crate) fn one_shard(bits: u32, buckets: u32, stripe_shift: u32) -> Self {
        Plan::of(1, buckets, bits, bits, stripe_shift)
    }

    /// Returns whether a hash has the same place in filters of both plans, and a slot the same meaning.
    pub(crate) fn places_alike(&self, other: &Plan) -> bool {
        let Plan { stripe_shift, stripes, .. } = *other;
        Plan { stripe_shift, stripes, ..*self } == *other
    }

    /// Returns the plan with at most this many stripes per shard.
    pub(super) fn with_stripes(self, most: u32) -> Self {
        let stripe_shift = shift_for_at_most(most.into(), self.buckets.into());
        Plan { stripe_shift, stripes: self.buckets.div_ceil(1 << stripe_shift), ..self }
    }

    pub(crate) fn slots(&self) -> usize {
        self.shards * self.buckets as usize * SLOTS
    }

    pub(crate) fn first_slots(&self) -> usize {
        self.slots() >> self.extension_bits
    }
}

fn load_at(capacity: usize) -> f64 {
    let (shards, buckets) = buckets_for(capacity);
    capacity as f64 / (shards as f64 * buckets as f64 * SLOTS as f64)
}

/// Returns the number of shards, and of buckets per shard.
///
/// A table of s slots holds 0.965 s keys less a few times sqrt(s), the spread of the fullest pair, which grows up to the size of a
/// shard. The constant is for the smallest filters, above all of a few buckets less than a power of two, whose candidates have few
/// sums. All were found by building filters of each size (docs/design/sizes.md, "Sizes"). From 7 shards on, slots are added until
/// [`refusal_chance`] is small enough, since the fullest shard decides.
pub(super) fn buckets_for(capacity: usize) -> (u64, u64) {
    let mut slots = capacity as f64 / LOAD + spread(capacity) + 14.0;
    let (mut shards, mut buckets) = split(slots);
    while shards > 1 && refusal_chance(capacity, shards, buckets) > REFUSED_BUILDS {
        slots *= 1.0001;
        (shards, buckets) = split(slots);
    }
    (shards, buckets)
}

/// Returns the number of shards, and of buckets per shard, for at least this many slots.
fn split(slots: f64) -> (u64, u64) {
    let buckets = (slots / SLOTS as f64).ceil() as u64;
    let shards = buckets.div_ceil(SHARD_BUCKETS);
    // Like a stripe, a shard begins at a word; a single shard may end anywhere.
    let multiple = if shards == 1 { 2 } else { 1 << STRIPE_SHIFT };
    (shards, buckets.div_ceil(shards).next_multiple_of(multiple))
}

/// Returns an upper bound of the probability that one of several shards refuses a key within the capacity.
///
/// The load of a shard of s slots is nearly normal, with the mean m = keys / all slots and the variance v = m / s. At a load of x
/// it has refused a key with probability 0.1 * exp((x - t) / d), where t is [`TENTH_REFUSES`] and d is [`E_TIMES_RARER`]. The mean
/// of that over all loads is 0.1 * exp((m - t) / d + v / (2 d^2)).
fn refusal_chance(capacity: usize, shards: u64, buckets: u64) -> f64 {
    let slots = (buckets * SLOTS as u64) as f64;
    let load = capacity as f64 / (shards as f64 * slots);
    let tilt = load / slots / (2.0 * E_TIMES_RARER * E_TIMES_RARER);
    shards as f64 * 0.1 * ((load - TENTH_REFUSES) / E_TIMES_RARER + tilt).exp()
}

/// Returns the number of slots that stay free in the table of this many keys, since pairs fill unevenly.
pub(super) fn spread(capacity: usize) -> f64 {
    (2.5 * (capacity as f64).sqrt()).min(2000.0)
}

fn words_for(buckets: u64, width: u32) -> u64 {
    (buckets * SLOTS as u64 * u64::from(width)).div_ceil(64)
}

/// Returns the bytes of all words; `None` if they exceed the address space.
fn bytes_of(shards: u64, words: u64) -> Option<u64> {
    let bytes = u128::from(shards) * u128::from(words) * 8;
    (bytes <= isize::MAX as u128).then_some(bytes as u64)
}

fn default_stripes(capacity: usize, table_bytes: u64) -> u64 {
    let affordable = table_bytes / STRIPE_SHARE / STRIPE_BYTES;
    let least = if capacity < LARGE { STRIPES_OF_SMALL_FILTERS } else { 1 };
    affordable.clamp(least, MAX_STRIPES)
}

/// Returns the smallest stripes with at most `most` of them in a shard, but at least one.
fn shift_for_at_most(most: u64, buckets: u64) -> u32 {
    let mut shift = STRIPE_SHIFT;
    while buckets.div_ceil(1 << shift) > most.max(1) {
        shift += 1;
    }
    shift
}

/// Returns the largest stripes with at least `least` of them in a shard, as far as 16 buckets per stripe allow.
fn shift_for_at_least(least: u64, buckets: u64) -> u32 {
    let mut shift = STRIPE_SHIFT;
    while buckets.div_ceil(1 << (shift + 1)) >= least && buckets > 1 << shift {
        shift += 1;
    }
    shift
}

/// Returns the probability that the lookup of an absent key finds an equal fingerprint in one of 8 slots, each full with
/// probability `load` and then equal with probability 1 / (2^f - 1): 1 - exp(-8 load / (2^f - 1)). Fan, Andersen, Kaminsky and
/// Mitzenmacher (CoNEXT 2014), section 5.1, give its first term as 2b / 2^f.
pub(crate) fn expected_false_positive_rate(load: f64, width: u32) -> f64 {
    let fingerprints = f64::from(u32::MAX >> (32 - width));
    -(-2.0 * SLOTS as f64 * load / fingerprints).exp_m1()
}

/// Returns the width of the narrowest fingerprint that keeps the rate at full capacity; `None` above 32 bits.
pub(crate) fn fingerprint_bits_for(capacity: usize, rate: f64) -> Option<u32> {
    let load = load_at(capacity);
    (BITS_THAT_KEEP_THE_CAPACITY..=*FINGERPRINT_BITS.end())
        .find(|&width| expected_false_positive_rate(load, width) <= rate)
}

pub(crate) fn lowest_rate(capacity: usize, widest: u32) -> f64 {
    expected_false_positive_rate(load_at(capacity), widest)
}

#[cfg(all(test, not(cuckoo_model)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_plan_holds_its_keys_in_whole_words_and_bounded_stripes(
            capacity in prop_oneof![0usize..2000, 0usize..100_000_000],
            width in FINGERPRINT_BITS,
            stripes in prop::option::of(1usize..5000),
        ) {
            let plan = Plan::new(capacity, width, stripes).unwrap();
            prop_assert!(plan.slots() >= capacity);
            prop_assert!(plan.buckets.is_multiple_of(2));
            prop_assert!(u64::from(plan.buckets) <= SHARD_BUCKETS);
            prop_assert!(plan.shards == 1 || u64::from(plan.buckets) > SHARD_BUCKETS / 2);
            prop_assert!(plan.words * 64 >= plan.buckets * SLOTS as u32 * width);
            prop_assert!((plan.words - 1) * 64 < plan.buckets * SLOTS as u32 * width);
            // Stripes cover the shard, none is empty, and each begins at a word.
            prop_assert!(plan.stripes << plan.stripe_shift >= plan.buckets);
            prop_assert!((plan.stripes - 1) << plan.stripe_shift < plan.buckets);
            prop_assert!((SLOTS * width as usize) << plan.stripe_shift & 63 == 0);
            let table = plan.shards * plan.words as usize * 8;
            let total = plan.shards * plan.stripes as usize;
            let affordable = total * STRIPE_BYTES as usize * STRIPE_SHARE as usize <= table;
            match stripes {
                None if capacity >= LARGE => prop_assert!(plan.stripes == 1 || affordable),
                None => prop_assert!(total <= STRIPES_OF_SMALL_FILTERS as usize || affordable),
                Some(asked) => {
                    let possible = plan.shards * (plan.buckets as usize).div_ceil(1 << STRIPE_SHIFT);
                    prop_assert!(total >= asked.min(possible));
                }
            }
        }

        #[test]
        fn the_bits_for_a_rate_keep_it_at_full_capacity(capacity in 0usize..10_000_000, exponent in 1f64..8.0) {
            let rate = 10f64.powf(-exponent);
            let width = fingerprint_bits_for(capacity, rate).unwrap();
            let load = capacity as f64 / Plan::new(capacity, width, None).unwrap().slots() as f64;
            prop_assert!(expected_false_positive_rate(load, width) <= rate);
            // One bit less would not, unless the minimum decides.
            prop_assert!(width == 6 || expected_false_positive_rate(load, width - 1) > rate);
        }
    }

    #[test]
    fn the_chance_of_a_refusal_is_that_of_shards_of_any_load() {
        // By summing the normal distribution of loads in steps, with the same tail of refusals.
        for (capacity, shards, buckets) in
            [(16_000_000, 64, 65_040), (1_000_000_000, 3_972, 65_536), (600_000, 3, 52_096)]
        {
            let slots = (buckets * 4) as f64;
            let mean = capacity as f64 / (shards as f64 * slots);
            let deviation = (mean / slots).sqrt();
            let step = deviation / 1000.0;
            let at = |i: i32| {
                let z = f64::from(i) / 1000.0;
                let density = (-z * z / 2.0).exp() / (2.0 * core::f64::consts::PI).sqrt() / deviation;
                density * step * 0.1 * ((mean + z * deviation - 0.9728) / 0.0006).exp()
            };
            let summed = (-12_000..12_000).map(at).sum::<f64>() * shards as f64;
            let chance = refusal_chance(capacity, shards, buckets);
            assert!((chance / summed - 1.0).abs() < 1e-3, "{chance} {summed}");
        }
        // Keys, and slots per key beyond 1 / 0.965, in 1,000.
        let sizes =
            [(1_000_000_u64, 1.0..3.0), (16_000_000, 2.0..3.5), (1_000_000_000, 4.0..6.5), (10_000_000_000, 4.0..7.5)];
        for (capacity, more) in sizes {
            // The largest does not fit 32 bits.
            let Ok(capacity) = usize::try_from(capacity) else { continue };
            let (shards, buckets) = buckets_for(capacity);
            assert!(refusal_chance(capacity, shards, buckets) <= 0.5e-4, "{capacity}");
            let slots = (shards * buckets * 4) as f64;
            let found = (slots / (capacity as f64 / LOAD) - 1.0) * 1000.0;
            assert!(more.contains(&found), "{capacity}: {found}");
        }
    }

    /// Computed independently from the formulas of docs/design/sizes.md, "Sizes".
    #[test]
    fn plans_of_known_sizes() {
        // Keys, bits and requested stripes; shards, buckets, words, stripes and their shift.
        for ((keys, bits, asked), expected) in [
            ((0, 16, None), (1, 4, 4, 1, 4)),
            ((1, 4, None), (1, 6, 2, 1, 4)),
            ((5, 13, None), (1, 8, 7, 1, 4)),
            ((100, 13, None), (1, 36, 30, 3, 4)),
            ((1000, 13, None), (1, 284, 231, 5, 6)),
            ((10_000, 32, None), (1, 2658, 5316, 6, 9)),
            ((10_000, 32, Some(64)), (1, 2658, 5316, 84, 5)),
            ((99_999, 4, None), (1, 26_108, 6527, 7, 12)),
            ((100_000, 4, None), (1, 26_108, 6527, 4, 13)),
            ((100_000, 16, None), (1, 26_108, 26_108, 13, 11)),
            ((249_000, 16, Some(2)), (1, 64_824, 64_824, 2, 15)),
            ((250_000, 16, None), (1, 65_084, 65_084, 32, 11)),
            ((1_000_000, 13, None), (4, 64_896, 52_728, 32, 11)),
            ((1_000_000, 16, Some(2000)), (4, 64_896, 64_896, 507, 7)),
            ((1_000_000, 16, Some(usize::MAX)), (4, 64_896, 64_896, 4056, 4)),
            ((10_000_000, 32, None), (40, 64_912, 129_824, 16, 12)),
            ((100_000_000, 8, None), (397, 65488, 32744, 2, 15)),
            ((100_000_000, 8, Some(1)), (397, 65488, 32744, 1, 16)),
        ] {
            let plan = Plan::new(keys, bits, asked).unwrap();
            let mut found = (plan.shards, plan.buckets, plan.words, plan.stripes, plan.stripe_shift);
            // For the 128 bytes of x86-64; the properties above hold everywhere.
            if asked.is_none() && STRIPE_BYTES != 128 {
                (found.3, found.4) = (expected.3, expected.4);
            }
            assert_eq!(found, expected, "{keys} keys at {bits} bits, {asked:?} stripes");
            assert_eq!(plan.slots(), plan.shards * plan.buckets as usize * 4);
            // A loaded filter has the plan that it was saved with.
            assert_eq!(Plan::from_parts(plan.shards as u64, plan.buckets, bits, bits, plan.stripe_shift), Ok(plan));
        }
        // Stripes are as large as a shard at the most.
        assert_eq!((shift_for_at_least(1, 16), shift_for_at_least(1, 17), shift_for_at_least(1, 1 << 16)), (4, 5, 16));
        assert_eq!((shift_for_at_least(2, 32), shift_for_at_least(3, 32), shift_for_at_least(3, 48)), (4, 4, 4));
        assert_eq!((shift_for_at_most(0, 16), shift_for_at_most(2, 32), shift_for_at_most(2, 33)), (4, 4, 5));
    }

    #[test]
    fn saved_plans_are_those_of_a_builder() {
        let check = |shards, buckets| Plan::from_parts(shards, buckets, 8, 8, 4).err();
        assert_eq!([check(2, (1 << 15) + 16), check(2, (1 << 15) + 18)], [None, Some(("number of buckets", 32_786))]);
        // 256 KiB each at 8 bits: as many as fit the address space, and one more.
        let most = isize::MAX as u64 / (4 << 16);
        assert_eq!([check(most, 1 << 16), check(most + 1, 1 << 16)], [None, Some(("number of shards", most + 1))]);
    }

    #[test]
    fn known_rates() {
        let rates = [(0.95, 4, 0.397_497), (0.25, 6, 0.031_247_4), (1.0, 13, 0.000_976_205), (0.5, 32, 9.313_23e-10)];
        for (load, bits, expected) in rates {
            let rate = expected_false_positive_rate(load, bits);
            assert!((rate / expected - 1.0).abs() < 1e-5, "{rate} at {bits} bits and a load of {load}");
        }
        // 1,000,000 keys in 1,038,336 slots.
        assert!((lowest_rate(1_000_000, 32) / 1.79388e-9 - 1.0).abs() < 1e-5, "{}", lowest_rate(1_000_000, 32));
        assert_eq!(lowest_rate(0, 32), 0.0);
    }
}
