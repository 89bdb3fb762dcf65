//! The filters that are tested.

use super::Filter;
use crate::model::Places;
use crate::{Input, Shape, Width};
use concurrent_cuckoo_filter::StableHashBuilder;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// The capacities of tables of 4 to 66 buckets.
const CAPACITIES: [usize; 11] = [0, 1, 3, 6, 10, 17, 33, 50, 64, 80, 200];
const TWO_SHARDS: usize = 260_000;

const KEYS: [usize; 4] = [6, 24, 64, 128];

/// A shape, with a hash function whose output is the same on every machine.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setup {
    shape: Shape,
    /// The number of keys: 0, 1 and so on.
    pub(super) keys: usize,
}

/// Reads the number of bits of a fingerprint. Few bits are more frequent, because with them keys share classes.
pub(super) fn width(input: &mut Input) -> u32 {
    let byte = input.byte();
    u32::from(if byte & 0x80 > 0 { byte % 5 } else { byte % 29 }) + 4
}

impl Setup {
    /// Reads a setup. A large filter is chosen only if there is time for it.
    pub(super) fn read(input: &mut Input, may_be_large: bool) -> Self {
        let capacity = input.pick(&CAPACITIES);
        let bits = width(input);
        let rest = input.byte();
        let keys = KEYS[usize::from(rest >> 6)];
        let large = may_be_large && rest & 0x10 > 0;
        let (capacity, bits, keys) = if large { (TWO_SHARDS, 4, KEYS[1]) } else { (capacity, bits, keys) };
        let (stripes, seed) = (Some(usize::from(rest % 8) + 1), u64::from(rest >> 3 & 1));
        Setup { shape: Shape { capacity, width: Width::Bits(bits), stripes, seed }, keys }
    }

    pub(super) fn build(&self) -> Filter {
        self.shape.builder().hasher(self.hasher()).build().expect("every shape is possible")
    }

    pub(super) fn hasher(&self) -> StableHashBuilder {
        StableHashBuilder::with_seeds(self.shape.seed, 0)
    }

    /// Computed once for each setup. Stripes do not change the places of keys.
    pub(super) fn places(&self) -> Rc<Places> {
        type Known = HashMap<(usize, u32, u64, usize), Rc<Places>>;
        thread_local! {
            static KNOWN: RefCell<Known> = RefCell::default();
        }
        let filter = self.build();
        let known = (self.shape.capacity, filter.config().fingerprint_bits, self.shape.seed, self.keys);
        let find = || Rc::new(Places::of(&filter, 0..self.keys as u64));
        KNOWN.with_borrow_mut(|all| all.entry(known).or_insert_with(find).clone())
    }
}
