//! Filters that can be built again.

use concurrent_cuckoo_filter::{Builder, CuckooFilter, DefaultHashBuilder};
use fastrand::Rng;

/// The filter that most checks are about.
pub type Filter = CuckooFilter<u64, DefaultHashBuilder>;

/// Widths of fingerprints: each way in which slots lie in words.
pub const WIDTHS: [u32; 18] = [4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 20, 24, 31, 32];

/// Keys that are never inserted, or that must not be mistaken for others, begin here.
pub const ABSENT: u64 = 1 << 40;

/// All that makes a filter.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Keys asked for.
    pub capacity: usize,
    /// Bits of a fingerprint, or the rate asked for.
    pub width: Width,
    /// Stripes asked for, if any.
    pub stripes: Option<usize>,
    /// The seeds of the hasher are drawn from it.
    pub seed: u64,
}

/// How the width of fingerprints is chosen.
#[derive(Clone, Copy, Debug)]
pub enum Width {
    /// By their bits.
    Bits(u32),
    /// By a rate of false positives.
    Rate(f64),
}

impl Shape {
    /// With seeds drawn from `rng`.
    pub fn new(capacity: usize, bits: u32, rng: &mut Rng) -> Self {
        Shape { capacity, width: Width::Bits(bits), stripes: None, seed: rng.u64(..) }
    }

    /// The largest capacity that takes this many slots at most: exactly as many, if that is a power of two from 2^4 up.
    pub fn of_slots(wanted: usize, bits: u32, rng: &mut Rng) -> Self {
        let mut shape = Shape::new(0, bits, rng);
        let mut step = wanted.next_power_of_two();
        while step > 0 {
            let larger = Shape { capacity: shape.capacity + step, ..shape };
            if larger.slots() <= wanted {
                shape = larger;
            }
            step /= 2;
        }
        shape
    }

    /// All but the hasher.
    pub fn builder(&self) -> Builder<u64> {
        let builder = CuckooFilter::builder().capacity(self.capacity);
        let builder = match self.width {
            Width::Bits(bits) => builder.fingerprint_bits(bits),
            Width::Rate(rate) => builder.false_positive_rate(rate),
        };
        match self.stripes {
            Some(stripes) => builder.stripes(stripes),
            None => builder,
        }
    }

    /// An empty filter.
    pub fn build(&self) -> Filter {
        let hasher = random_seeds(&mut Rng::with_seed(self.seed));
        self.builder().hasher(hasher).build().expect("a modest filter")
    }

    /// The slots of its table.
    pub fn slots(&self) -> usize {
        let filter = self.build();
        filter.insert(&0).expect("an empty filter");
        slots(&filter) as usize
    }
}

/// Filters that can be compared: those of one capacity have equal seeds.
pub fn builder(capacity: usize, bits: u32) -> Builder<u64> {
    let hasher = DefaultHashBuilder::with_seeds(1, 2, 3, capacity as u64);
    CuckooFilter::builder().capacity(capacity).fingerprint_bits(bits).hasher(hasher)
}

/// Seeds drawn from `rng`, so that a failure can be repeated.
pub fn random_seeds(rng: &mut Rng) -> DefaultHashBuilder {
    DefaultHashBuilder::with_seeds(rng.u64(..), rng.u64(..), rng.u64(..), rng.u64(..))
}

/// The slots of the table of a filter that holds something, which it does not say itself.
pub fn slots<K: ?Sized, S>(filter: &CuckooFilter<K, S>) -> f64 {
    (filter.len() as f64 / filter.load_factor()).round()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_of_two_are_met() {
        for log2 in [4, 10, 16, 18, 20, 22] {
            let shape = Shape::of_slots(1 << log2, 16, &mut Rng::with_seed(0));
            assert_eq!(shape.slots(), 1 << log2);
            assert!(Shape { capacity: shape.capacity + 1, ..shape }.slots() > 1 << log2);
        }
    }
}
