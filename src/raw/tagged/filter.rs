//! A filter with tags, and a view of one of its shards.

use super::super::locks::Locked;
use super::super::lookup::{Contains, contains_in};
use super::super::shard::Shard;
use super::super::shards::Shards;
use super::epoch::Epoch;
use crate::layout::{Class, Mixed, Moment, Plan, Tags};
use crate::sys::isa::Compiled;
use crate::sys::memory::HugePages;
use crate::sys::prefetch::CacheLevel;

/// A filter whose slots have tags.
pub(crate) struct Tagged {
    pub(crate) shards: Shards,
    pub(super) tags: Tags,
    pub(super) contains: Compiled<Contains<Tagged>>,
    pub(super) epoch: Epoch,
}

/// A shard of it.
#[derive(Clone, Copy)]
pub(crate) struct TaggedShard<'a> {
    pub(super) filter: &'a Tagged,
    pub(super) shard: Shard<'a>,
}

/// Locked stripes, and the moment that was read after the last of them was locked: by an older one, a writer could take a
/// live slot for a dead one (models overwriting_*).
pub(super) struct Held<'a, G> {
    pub(super) locked: Locked<'a, G>,
    pub(super) moment: Moment,
}

impl AsRef<Tagged> for Tagged {
    #[inline(always)]
    fn as_ref(&self) -> &Tagged {
        self
    }
}

impl Tagged {
    /// An empty filter, at epoch 0. `None` when there is no memory.
    pub(crate) fn new(plan: &Plan, huge_pages: HugePages) -> Option<Self> {
        Some(Tagged::at_epoch(Shards::new(plan, huge_pages.into())?, 0))
    }

    /// A filter that is at this epoch.
    pub(super) fn at_epoch(shards: Shards, epoch: u64) -> Self {
        let plan = shards.plan();
        Tagged {
            tags: Tags::new(plan.slot_bits, plan.slot_bits - plan.fingerprint_bits),
            contains: contains_in::<_, Tagged>(plan),
            epoch: Epoch::new(epoch),
            shards,
        }
    }

    /// The largest value of a slot.
    pub(crate) fn most(&self) -> u32 {
        self.tags.most()
    }

    /// The number of ticks that were made.
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch.now()
    }

    /// The present moment: without locks a hint, on which a search may go astray and nothing else.
    #[inline(always)]
    pub(super) fn moment(&self) -> Moment {
        self.tags.moment(self.epoch.now())
    }

    #[inline(always)]
    pub(crate) fn locate(&self, mixed: Mixed) -> (TaggedShard<'_>, Class) {
        let (shard, class) = self.shards.locate(mixed);
        (TaggedShard { filter: self, shard }, class)
    }

    pub(crate) fn at(&self, number: usize) -> TaggedShard<'_> {
        TaggedShard { filter: self, shard: self.shards.at(number) }
    }

    pub(crate) fn each(&self) -> impl ExactSizeIterator<Item = TaggedShard<'_>> {
        self.shards.each().map(|shard| TaggedShard { filter: self, shard })
    }
}

impl<'a> TaggedShard<'a> {
    /// Begins to fetch the buckets of a key.
    #[inline(always)]
    pub(crate) fn fetch(self, class: Class, level: CacheLevel) {
        self.shard.fetch(class, level);
    }

    #[inline(always)]
    pub(super) fn tags(self) -> Tags {
        self.filter.tags
    }

    /// Reads the moment for stripes that are locked.
    #[inline(always)]
    pub(super) fn hold<G>(self, locked: Locked<'a, G>) -> Held<'a, G> {
        Held { moment: self.filter.moment(), locked }
    }
}
