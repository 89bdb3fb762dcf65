//! Filters that can be built again.

use concurrent_cuckoo_filter::{Builder, CuckooFilter, DefaultHashBuilder};
use fastrand::Rng;

/// The filter that most checks use.
pub type Filter = CuckooFilter<u64, DefaultHashBuilder>;

/// Widths of fingerprints, with each way in which slots lie in words.
pub const WIDTHS: [u32; 18] = [4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 20, 24, 31, 32];

/// Keys from here on are never inserted, or must differ from others.
pub const ABSENT: u64 = 1 << 40;

/// Everything that determines a filter.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// The requested number of keys.
    pub capacity: usize,
    /// The bits of a fingerprint, or the requested rate.
    pub width: Width,
    /// The requested number of stripes, if any.
    pub stripes: Option<usize>,
    /// The seeds of the hash function are drawn from it.
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
    /// A shape with seeds drawn from `rng`.
    pub fn new(capacity: usize, bits: u32, rng: &mut Rng) -> Self {
        Shape { capacity, width: Width::Bits(bits), stripes: None, seed: rng.u64(..) }
    }

    /// The largest capacity with at most this many slots: exactly as many for a power of two from 2^4 on.
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

    /// Returns a builder with everything but the hash function.
    pub fn builder<K: ?Sized>(&self) -> Builder<K> {
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

    /// Builds an empty filter.
    pub fn build(&self) -> Filter {
        let hasher = random_seeds(&mut Rng::with_seed(self.seed));
        self.builder().hasher(hasher).build().expect("a modest filter")
    }

    /// Returns the number of slots of its table.
    pub fn slots(&self) -> usize {
        self.build().stats().slots
    }
}

/// Returns a builder of filters that can be compared: those of one capacity have equal seeds.
pub fn builder(capacity: usize, bits: u32) -> Builder<u64> {
    let hasher = DefaultHashBuilder::with_seeds(1, 2, 3, capacity as u64);
    CuckooFilter::builder().capacity(capacity).fingerprint_bits(bits).hasher(hasher)
}

/// Draws seeds from `rng`, so that a failure can be repeated.
pub fn random_seeds(rng: &mut Rng) -> DefaultHashBuilder {
    DefaultHashBuilder::with_seeds(rng.u64(..), rng.u64(..), rng.u64(..), rng.u64(..))
}

/// Returns the number of slots of the filter.
pub fn slots<K: ?Sized, S>(filter: &CuckooFilter<K, S>) -> f64 {
    filter.stats().slots as f64
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
