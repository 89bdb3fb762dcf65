//! Paths of up to four hops, which make room in nearly every case at 96 % load.

use super::Hop;
use crate::layout::{Bucket, Fingerprint, SLOTS};
use crate::sys::IS_MODEL;
use arrayvec::ArrayVec;
use core::ops::Range;

/// The number of buckets out of which a search reads hops for paths of one or two hops: the two roots, and the buckets to which these
/// lead.
pub(crate) const TWO_HOPS: usize = 2 + 2 * SLOTS;

/// As [`TWO_HOPS`], for up to four hops. In models, no path has more than two.
pub(crate) const FOUR_HOPS: usize = if IS_MODEL { TWO_HOPS } else { 2 + SLOTS * EXPANDED };

/// The number of buckets whose hops a search keeps, because a longer path may lead through them.
const EXPANDED: usize = if IS_MODEL { 2 } else { TWO_HOPS + 2 * SLOTS * SLOTS };

/// The hops out of the buckets of a search, which are numbered level by level, the roots first.
pub(crate) type Steps<B> = ArrayVec<Step<B>, EXPANDED>;

/// A path of up to four hops out of two full buckets, beginning at the free end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ShortPath {
    pub(crate) hops: ArrayVec<Hop, 4>,
    /// The number of reads of buckets by the search.
    pub(crate) buckets: usize,
}

/// Returns a path of [`Search::find`](super::Search::find) if a hop out of one of the buckets with these numbers leads to room. `steps`
/// has the hops out of all buckets before them, and takes more. If it has fewer, another thread emptied a slot, and there is room
/// nearer: the result is `None`.
///
/// No bucket is marked as visited: a shortest path visits none twice. The four buckets to which one bucket leads are read before any is
/// checked for room: they are fetched together, and the compiler vectorises the checks.
#[inline(always)]
pub(crate) fn find_short<B: Copy>(
    steps: &mut Steps<B>,
    numbers: Range<usize>,
    roots: [Bucket; 2],
    read: impl Fn(Bucket) -> B + Copy,
    slots_of: impl Fn(B) -> [u32; SLOTS] + Copy,
    has_room: impl Fn(B) -> bool + Copy,
    alternate: impl Fn(Fingerprint, Bucket) -> Bucket + Copy,
) -> Option<ShortPath> {
    if steps.len() < numbers.start {
        return None;
    }
    for number in numbers {
        let (from, bucket) = match roots.get(number) {
            Some(&root) => (root, read(root)),
            None => {
                let (parent, at) = (&steps[(number - 2) / SLOTS], (number - 2) % SLOTS);
                (parent.to[at], parent.reached[at])
            }
        };
        let step = Step::out_of(from, slots_of(bucket), read, has_room, alternate)?;
        if let Some(hop) = step.hop_with_room() {
            let mut path = ShortPath { hops: ArrayVec::from_iter([hop]), buckets: 2 + SLOTS * (number + 1) };
            let mut at = number;
            while let Some(below) = at.checked_sub(2) {
                at = below / SLOTS;
                path.hops.push(steps[at].hop(below % SLOTS));
            }
            return Some(path);
        }
        if !steps.is_full() {
            steps.push(step);
        }
    }
    None
}

/// The hops out of a bucket.
pub(crate) struct Step<B> {
    from: Bucket,
    pub(super) fingerprints: [Fingerprint; SLOTS],
    pub(super) to: [Bucket; SLOTS],
    /// The contents of the buckets `to`, and a bit for each of them that has room.
    pub(super) reached: [B; SLOTS],
    pub(super) rooms: u32,
}

impl<B: Copy> Step<B> {
    /// Returns `None` if a slot is empty: another thread emptied it, and there is room nearer.
    #[inline(always)]
    pub(super) fn out_of(
        from: Bucket,
        slots: [u32; SLOTS],
        read: impl Fn(Bucket) -> B,
        has_room: impl Fn(B) -> bool,
        alternate: impl Fn(Fingerprint, Bucket) -> Bucket,
    ) -> Option<Self> {
        let fingerprint = |at: usize| Fingerprint::from_slot(slots[at]);
        let fingerprints = [fingerprint(0)?, fingerprint(1)?, fingerprint(2)?, fingerprint(3)?];
        // LLVM does not inline `map` here, and would keep its arrays in memory.
        let to = |at: usize| alternate(fingerprints[at], from);
        let to = [to(0), to(1), to(2), to(3)];
        let reached = [read(to[0]), read(to[1]), read(to[2]), read(to[3])];
        let room = |at: usize| u32::from(has_room(reached[at])) << at;
        let rooms = room(0) | room(1) | room(2) | room(3);
        Some(Step { from, fingerprints, to, reached, rooms })
    }

    #[inline(always)]
    fn hop(&self, at: usize) -> Hop {
        Hop { fingerprint: self.fingerprints[at], from: self.from, to: self.to[at] }
    }

    /// Returns the first of `to` with room; any of them if none has.
    #[inline(always)]
    pub(super) fn first_with_room(&self) -> usize {
        self.rooms.trailing_zeros() as usize % SLOTS
    }

    #[inline(always)]
    fn hop_with_room(&self) -> Option<Hop> {
        (self.rooms != 0).then(|| self.hop(self.first_with_room()))
    }
}
