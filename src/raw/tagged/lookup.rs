//! Lookups, without locks: as those without tags, between two looks at the epoch.

use super::super::lookup::Look;
use super::super::probe::{Layout, LayoutKind, Positions, Runs, with_layout};
use super::super::stripe::Watch;
use super::filter::Tagged;
use crate::layout::{Mixed, SLOTS};
use crate::sys::steps::{Step, reached};
use arrayvec::ArrayVec;

impl Look for Tagged {
    fn slot_bits(&self) -> u32 {
        self.shards.plan().slot_bits
    }

    /// Whether the class is present and alive.
    ///
    /// A hit needs no check: the slot was alive at the epoch that was read first, or was stored after it. A miss may be
    /// due to an old epoch: a slot stored for many ticks after a tick has the tag that was dead before it, and one that
    /// has died may have made room already. Whoever stored has read the later epoch, so the second look sees it.
    #[inline(always)]
    fn look<L: Layout, const ONE: bool>(&self, mixed: Mixed) -> (bool, impl FnOnce() -> bool) {
        let shards = &self.shards;
        let place = shards.geometry.locate_flat::<ONE>(mixed);
        let (tags, run_bits) = (&self.tags, shards.run_bits());
        let pattern = tags.pattern(place.class.fingerprint);
        let [first, second] = shards.strides.begins::<L>(place);
        let version = shards.version(shards.strides.stripe_offset(place));
        let words = &shards.words;
        let epoch = self.epoch.now();
        let begun = version.begin();
        let first = L::align(L::read(words, L::address(first), run_bits), first, run_bits);
        reached(Step::BucketRead);
        let second = L::align(L::read(words, L::address(second), run_bits), second, run_bits);
        reached(Step::BucketRead);
        let moment = tags.moment(epoch);
        let hits = |run| tags.hits(run, pattern, moment);
        let found = (first.any_of(hits) | second.any_of(hits)) & tags.high() != 0;
        (found, move || version.is_still(begun) && self.epoch.is_still(epoch))
    }
}

impl Tagged {
    /// Whether a live copy of the class is present.
    #[inline]
    pub(crate) fn contains(&self, mixed: Mixed) -> bool {
        self.contains.call(self, mixed)
    }

    /// The value of each live copy of the class. A copy that is there throughout is among them.
    pub(crate) fn values(&self, mixed: Mixed) -> ArrayVec<u32, { 2 * SLOTS }> {
        loop {
            if let Some(values) =
                with_layout!(LayoutKind::of(self.shards.plan().slot_bits), L => self.look_at_values::<L>(mixed))
            {
                return values;
            }
            reached(Step::Repeated);
        }
    }

    /// The same, or `None`. All copies count, so that what was found needs the check too.
    #[inline(always)]
    fn look_at_values<L: Layout>(&self, mixed: Mixed) -> Option<ArrayVec<u32, { 2 * SLOTS }>> {
        let (shards, tags) = (&self.shards, self.tags);
        let place = shards.geometry.locate_flat::<false>(mixed);
        let version = shards.version(shards.strides.stripe_offset(place));
        let (pattern, format) = (tags.pattern(place.class.fingerprint), &shards.format);
        let begins = shards.strides.begins::<L>(place);
        let epoch = self.epoch.now();
        let moment = tags.moment(epoch);
        let begun = version.begin();
        let mut values = ArrayVec::new();
        for begin in if place.class.coincides() { &begins[..1] } else { &begins } {
            let read =
                || L::align(L::read(&shards.words, L::address(*begin), shards.run_bits()), *begin, shards.run_bits());
            let runs = read();
            reached(Step::BucketRead);
            if runs.any_of(|run| tags.live(run, pattern, moment)) != 0 {
                let slots = format.slots(runs.both());
                // Of a slot in two words, the tag may be that of a key that has left it, and the fingerprint that of one
                // that came by a relocation which has not ended (model values_in_two_words_are_of_one_key).
                if 64 % format.slot_bits() != 0 && format.slots(read().both()) != slots {
                    return None;
                }
                values.extend(
                    slots
                        .into_iter()
                        .filter(|&slot| tags.fingerprint(slot, moment) == Some(place.class.fingerprint))
                        .map(|slot| tags.value(slot, moment)),
                );
            }
        }
        (version.is_still(begun) && self.epoch.is_still(epoch)).then_some(values)
    }
}
