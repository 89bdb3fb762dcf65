//! A shard: some buckets with their stripes, a small filter of its own. The protocol lives here.
//!
//! | operation        | locks                       | bumps the version            | file   |
//! |------------------|-----------------------------|------------------------------|--------|
//! | look-up          | none                        | no                           | lookup |
//! | insert           | the pair                    | no                           | insert |
//! | ... by a path    | two stripes a hop, three at the last | at each relocation  | relocate |
//! | ... refused      | all of the shard            | no                           | relocate |
//! | count            | the pair                    | no                           | lookup |
//! | remove           | the pair                    | if copies of the class stay  | remove |
//! | many inserts, removes | all of the shard     | as each by itself            | alone  |
//! | clear            | all of the shard            | yes                          | remove |
//! | copy             | all of the shard            | no                           | copy   |
//!
//! Why this is enough is argued case by case in DESIGN.md, "The protocol".

mod alone;
mod copy;
mod insert;
mod lookup;
mod relocate;
mod remove;

pub(crate) use alone::{Alone, KEYS_UNDER_LOCKS};
pub(crate) use insert::Admission;
pub(crate) use lookup::Aim;

use crate::geometry::{Candidates, Plan};
use crate::prefetch::Into;
use crate::stripe::Stripes;
use crate::table::{Format, Table};
use crate::tally::Tallies;

/// The words and the stripes of a run of buckets.
pub(crate) struct Shard {
    table: Table,
    stripes: Stripes,
}

impl Shard {
    /// `None` when there is no memory.
    pub(crate) fn new(words: usize, stripes: usize, stripe_shift: u32) -> Option<Self> {
        Some(Shard { table: Table::new(words)?, stripes: Stripes::new(stripes, stripe_shift)? })
    }

    /// Memory behind a shard of this plan, in bytes; `None` if that overflows.
    pub(crate) fn heap_bytes_of(plan: &Plan) -> Option<usize> {
        Table::bytes_of(plan.words)?.checked_add(Stripes::bytes_of(plan.stripes)?)
    }

    /// Memory behind this value, in bytes.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.table.bytes() + self.stripes.bytes()
    }

    /// Memory of the words, in bytes.
    pub(crate) fn table_bytes(&self) -> usize {
        self.table.bytes()
    }

    /// Begins to fetch the buckets of a key.
    #[inline(always)]
    pub(crate) fn fetch(&self, format: &Format, key: Candidates, into: Into) {
        self.table.prefetch(format, key.first, into);
        self.table.prefetch(format, key.second, into);
    }

    /// Begins to fetch all buckets.
    pub(crate) fn fetch_all(&self) {
        self.table.prefetch_all();
    }

    /// Adds what has happened in each stripe.
    pub(crate) fn add_tallies_to(&self, tallies: &mut Tallies) {
        self.stripes.add_tallies_to(tallies);
    }

    /// Stored fingerprints. Each stripe is read at a moment of its own.
    pub(crate) fn len(&self) -> u64 {
        self.stripes.total()
    }
}
