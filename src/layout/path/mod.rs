//! The fingerprints to displace: the shortest chain of relocations that makes room in one of two buckets.
//!
//! The search is breadth first: about 1.4 moves at 95 % load, where a random walk takes 20. Its reads may be stale when the path is
//! executed, so every hop is checked again then; a wrong path costs another search, never a fingerprint.

mod short;

pub(crate) use short::{FOUR_HOPS, ShortPath, Steps, TWO_HOPS, find_short};

use super::geometry::{Bucket, Fingerprint};
use super::lanes::SLOTS;
use super::plan::SHARD_BUCKETS;
use arrayvec::ArrayVec;
use short::Step;

/// The maximum number of buckets of a search. 682 reach about 96.3 % load before the first refusal, 2000 about 97.2 %.
const MAX_NODES: usize = 2000;

/// The number of buckets after many failed searches: enough to find room two moves away.
const MIN_NODES: usize = 32;

/// The number of visit marks: one per bucket of the largest shard. A bucket that shared the mark of another would be read without
/// being among those that the search [looked at](Search::looked_at).
const MARKS: usize = SHARD_BUCKETS as usize;

/// The number of buckets of the next search: half as many after each failed search, and twice as many after each successful one, so
/// that an overfull table does not spend a whole search on each key that it refuses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SearchBudget(u16);

impl SearchBudget {
    #[inline]
    pub(crate) fn full() -> Self {
        SearchBudget(MAX_NODES as u16)
    }

    pub(crate) fn learn(&mut self, found: bool) {
        let next = if found { usize::from(self.0) * 2 } else { usize::from(self.0) / 2 };
        self.0 = next.clamp(MIN_NODES, MAX_NODES) as u16;
    }
}

/// A relocation: a copy of `fingerprint` moves from one of its candidate buckets to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hop {
    pub(crate) fingerprint: Fingerprint,
    pub(crate) from: Bucket,
    pub(crate) to: Bucket,
}

#[cfg(test)]
impl Hop {
    /// The relocation of a class from its first candidate to its second.
    pub(crate) fn of(class: super::geometry::Class) -> Self {
        Hop { fingerprint: class.fingerprint, from: class.first, to: class.second }
    }
}

#[derive(Clone, Copy)]
struct Node<B> {
    bucket: Bucket,
    contents: B,
    /// The fingerprint that moves here from the bucket of the node `parent`; 0 at the roots.
    moved: u32,
    parent: u16,
}

/// The memory of a search, some tens of kilobytes that are not written before they are used. It stays with the caller, so that it is
/// never moved. `B` is the content of a bucket as it is read: its runs, or the slots of a table that is not written
/// yet.
pub(crate) struct Search<B = [u64; 2]> {
    nodes: ArrayVec<Node<B>, MAX_NODES>,
    /// The number of expanded nodes, which are the first ones.
    expanded: usize,
    visited: Visited,
}

impl<B: Copy> Search<B> {
    #[inline]
    pub(crate) fn new() -> Self {
        Search { nodes: ArrayVec::new(), expanded: 0, visited: Visited([0; MARKS / 64]) }
    }

    pub(crate) fn buckets(&self) -> usize {
        self.nodes.len()
    }

    /// Returns the buckets that the last search read, the roots first, with the contents of those that were expanded.
    pub(crate) fn looked_at(&self) -> impl Iterator<Item = (Bucket, Option<B>)> {
        let contents = |(at, node): (usize, &Node<B>)| (node.bucket, (at < self.expanded).then_some(node.contents));
        self.nodes.iter().enumerate().map(contents)
    }

    /// Searches from the two `roots`. The path is empty if a root has room, and `None` if no bucket in reach has any. The
    /// four buckets to which a bucket leads are read before any is checked for room, so that their lines are fetched together.
    #[inline(always)]
    pub(crate) fn find(
        &mut self,
        budget: SearchBudget,
        roots: [Bucket; 2],
        read: impl Fn(Bucket) -> B,
        slots_of: impl Fn(B) -> [u32; SLOTS],
        has_room: impl Fn(B) -> bool,
        alternate: impl Fn(Fingerprint, Bucket) -> Bucket,
    ) -> Option<Path<'_, B>> {
        if !self.nodes.is_empty() {
            self.nodes.clear();
            self.visited.0.fill(0);
        }
        self.expanded = 0;
        for root in &roots[..if roots[0] == roots[1] { 1 } else { 2 }] {
            self.visited.set_first(*root);
            let contents = read(*root);
            self.nodes.push(Node { bucket: *root, contents, moved: 0, parent: 0 });
            if has_room(contents) {
                return Some(self.path());
            }
        }
        let max_nodes = usize::from(budget.0);
        while let Some(&Node { bucket: from, contents, .. }) = self.nodes.get(self.expanded) {
            let parent = self.expanded as u16;
            self.expanded += 1;
            let step = Step::out_of(from, slots_of(contents), &read, &has_room, &alternate)?;
            let node = |at: usize| {
                let moved = step.fingerprints[at].get();
                Node { bucket: step.to[at], contents: step.reached[at], moved, parent }
            };
            if self.nodes.len() + SLOTS > max_nodes {
                return None;
            }
            // A visited bucket has no room.
            if step.rooms != 0 {
                self.nodes.push(node(step.first_with_room()));
                return Some(self.path());
            }
            for at in 0..SLOTS {
                if self.visited.set_first(step.to[at]) {
                    self.nodes.push(node(at));
                }
            }
        }
        None
    }

    #[inline]
    fn path(&self) -> Path<'_, B> {
        Path { nodes: &self.nodes, at: self.nodes.len() - 1 }
    }
}

/// The relocations that make room, beginning at the free end: in this order each has room at its destination, and every fingerprint is
/// in the table at all times.
pub(crate) struct Path<'a, B = [u64; 2]> {
    nodes: &'a [Node<B>],
    at: usize,
}

impl<B: Copy> Iterator for Path<'_, B> {
    type Item = Hop;

    #[inline]
    fn next(&mut self) -> Option<Hop> {
        let Node { bucket: to, moved, parent, .. } = self.nodes[self.at];
        let fingerprint = Fingerprint::from_slot(moved)?;
        self.at = usize::from(parent);
        Some(Hop { fingerprint, from: self.nodes[self.at].bucket, to })
    }
}

struct Visited([u64; MARKS / 64]);

impl Visited {
    /// Sets the mark of the bucket, and returns whether it was unset before.
    #[inline]
    fn set_first(&mut self, bucket: Bucket) -> bool {
        let mark = bucket.index() % MARKS;
        let (word, bit) = (&mut self.0[mark / 64], 1u64 << (mark % 64));
        let first = *word & bit == 0;
        *word |= bit;
        first
    }
}

#[cfg(all(test, not(cuckoo_model)))]
mod tests;
