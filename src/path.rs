//! Chooses which fingerprints to displace: the shortest chain of relocations that makes room in one of two buckets.
//!
//! Breadth first: a full pair of buckets has short paths, about 1.4 moves at 95 % load where a random walk takes 20.
//! What it reads may be stale by the time the path is carried out, so every hop is checked again then; a wrong path
//! costs another try, never a fingerprint.

use crate::geometry::{Bucket, Fingerprint};
use crate::lanes::SLOTS;
use arrayvec::ArrayVec;

/// Buckets that one search looks at. 682 reach about 96.3 % load before the first refusal, 2000 about 97.2 %.
const MOST_NODES: usize = 2000;

/// Marks of visited buckets. Shards of up to this many buckets are searched exactly; in larger ones two buckets may
/// share a mark, and the search passes by a few that it could have visited.
const MARKS: usize = 1 << 13;

/// Nodes that are looked through one by one: two roots and their eight alternates.
const FEW_NODES: usize = 10;

/// One relocation: a copy of `fingerprint` moves from one of its candidate buckets to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hop {
    pub(crate) fingerprint: Fingerprint,
    pub(crate) from: Bucket,
    pub(crate) to: Bucket,
}

/// A bucket that the search reached.
#[derive(Clone, Copy)]
struct Node {
    bucket: Bucket,
    /// How: by moving this fingerprint out of the bucket of the node `parent`. `None` at the two roots.
    moved: Option<(Fingerprint, u16)>,
}

/// The memory of a search, some tens of kilobytes that are not written before they are used. Kept by the caller so that
/// it is never moved.
pub(crate) struct Search {
    nodes: ArrayVec<Node, MOST_NODES>,
    /// Made when there are many nodes. Most paths are found among the first few.
    marks: Option<Marks>,
}

impl Search {
    #[inline]
    pub(crate) fn new() -> Self {
        Search { nodes: ArrayVec::new(), marks: None }
    }

    /// Searches from the two `roots`. The path is empty if a root has room, and `None` if no bucket within reach has
    /// any.
    #[inline]
    pub(crate) fn find(
        &mut self,
        roots: [Bucket; 2],
        slots_of: impl Fn(Bucket) -> [u32; SLOTS],
        has_room: impl Fn(Bucket) -> bool,
        alternate: impl Fn(Fingerprint, Bucket) -> Bucket,
    ) -> Option<Path<'_>> {
        self.nodes.clear();
        self.marks = None;
        for bucket in roots {
            if self.visit(Node { bucket, moved: None })? && has_room(bucket) {
                return Some(self.path());
            }
        }
        let mut parent = 0;
        while let Some(&Node { bucket: from, .. }) = self.nodes.get(parent) {
            // An empty slot appears here only when another thread made it; the next try will find it.
            for fingerprint in slots_of(from).into_iter().filter_map(Fingerprint::from_slot) {
                let bucket = alternate(fingerprint, from);
                if self.visit(Node { bucket, moved: Some((fingerprint, parent as u16)) })? && has_room(bucket) {
                    return Some(self.path());
                }
            }
            parent += 1;
        }
        None
    }

    /// Takes the node up unless its bucket was visited before, and says whether it did. `None` when there is no memory
    /// for another node.
    #[inline]
    fn visit(&mut self, node: Node) -> Option<bool> {
        let first_visit = match &mut self.marks {
            Some(marks) => marks.set_first(node.bucket),
            None if self.nodes.len() < FEW_NODES => self.nodes.iter().all(|visited| visited.bucket != node.bucket),
            None => self.marks.insert(Marks::of(&self.nodes)).set_first(node.bucket),
        };
        if !first_visit {
            return Some(false);
        }
        self.nodes.try_push(node).ok()?;
        Some(true)
    }

    /// The path to the newest node.
    #[inline]
    fn path(&self) -> Path<'_> {
        Path { nodes: &self.nodes, at: self.nodes.len() - 1 }
    }
}

/// The relocations that make room, beginning at the free end: carried out in this order, each has room to go to, and
/// every fingerprint is in the table all the time.
pub(crate) struct Path<'a> {
    nodes: &'a [Node],
    at: usize,
}

impl Iterator for Path<'_> {
    type Item = Hop;

    #[inline]
    fn next(&mut self) -> Option<Hop> {
        let node = &self.nodes[self.at];
        let (fingerprint, parent) = node.moved?;
        self.at = usize::from(parent);
        Some(Hop { fingerprint, from: self.nodes[self.at].bucket, to: node.bucket })
    }
}

struct Marks([u64; MARKS / 64]);

impl Marks {
    #[cold]
    fn of(nodes: &[Node]) -> Self {
        let mut marks = Marks([0; MARKS / 64]);
        for node in nodes {
            marks.set_first(node.bucket);
        }
        marks
    }

    /// Sets the mark of the bucket and says whether it was unset before.
    #[inline]
    fn set_first(&mut self, bucket: Bucket) -> bool {
        let mark = bucket.index() % MARKS;
        let (word, bit) = (&mut self.0[mark / 64], 1u64 << (mark % 64));
        let first = *word & bit == 0;
        *word |= bit;
        first
    }
}
