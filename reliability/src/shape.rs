//! Filters that can be built again.

use crate::seeds::random_seeds;
use crate::slots::slots;
use concurrent_cuckoo_filter::{CuckooFilter, DefaultHashBuilder};
use fastrand::Rng;
use std::fmt;

pub(crate) type Filter = CuckooFilter<u64, DefaultHashBuilder>;

/// All that makes a filter.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) capacity: usize,
    pub(crate) width: Width,
    pub(crate) stripes: Option<usize>,
    /// The hasher's seeds are drawn from it.
    pub(crate) seed: u64,
}

#[derive(Clone, Copy)]
pub(crate) enum Width {
    Bits(u32),
    Rate(f64),
}

impl Shape {
    pub(crate) fn new(capacity: usize, bits: u32, rng: &mut Rng) -> Self {
        Shape { capacity, width: Width::Bits(bits), stripes: None, seed: rng.u64(..) }
    }

    /// The largest capacity that takes this many slots at most: exactly as many, if that is a power of two from 2^4 up.
    pub(crate) fn of_slots(wanted: usize, bits: u32, rng: &mut Rng) -> Self {
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

    /// The same filter, but for its seeds.
    pub(crate) fn with_other_seeds(self, rng: &mut Rng) -> Self {
        Shape { seed: rng.u64(..), ..self }
    }

    pub(crate) fn build(&self) -> Filter {
        let builder = CuckooFilter::<u64>::builder().capacity(self.capacity);
        let builder = match self.width {
            Width::Bits(bits) => builder.fingerprint_bits(bits),
            Width::Rate(rate) => builder.false_positive_rate(rate),
        };
        let builder = match self.stripes {
            Some(stripes) => builder.stripes(stripes),
            None => builder,
        };
        builder.hasher(random_seeds(&mut Rng::with_seed(self.seed))).build().expect("a modest filter")
    }

    pub(crate) fn slots(&self) -> usize {
        let filter = self.build();
        filter.insert(&0).expect("an empty filter");
        slots(&filter) as usize
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "capacity {}, ", self.capacity)?;
        match self.width {
            Width::Bits(bits) => write!(f, "{bits} bits, ")?,
            Width::Rate(rate) => write!(f, "a rate of {rate}, ")?,
        }
        if let Some(stripes) = self.stripes {
            write!(f, "{stripes} stripes, ")?;
        }
        write!(f, "hasher drawn from seed {}", self.seed)
    }
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
