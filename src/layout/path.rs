//! Chooses which fingerprints to displace: the shortest chain of relocations that makes room in one of two buckets.
//!
//! Breadth first: a full pair of buckets has short paths, about 1.4 moves at 95 % load where a random walk takes 20.
//! What it reads may be stale by the time the path is carried out, so every hop is checked again then; a wrong path
//! costs another try, never a fingerprint.

use super::fingerprint::Fingerprint;
use super::geometry::Bucket;
use super::lanes::SLOTS;
use crate::sys::IS_MODEL;
use arrayvec::ArrayVec;

/// Buckets that one search looks at. 682 reach about 96.3 % load before the first refusal, 2000 about 97.2 %.
const MAX_NODES: usize = 2000;

/// What a search looks at when many in a row were in vain: enough to find a hole two moves away.
const MIN_NODES: usize = 32;

/// The visited buckets. Shards of up to this many buckets are searched exactly; in larger ones two buckets may
/// share a mark, and the search passes by a few that it could have visited.
const MARKS: usize = 1 << 13;

/// How many buckets the next search looks at: all that it may, until one was in vain. Then half as many after each that
/// was, and twice as many after each that was not, so that a load beyond what the table holds does not spend a whole
/// search on each key that it refuses.
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

/// One relocation: a copy of `fingerprint` moves from one of its candidate buckets to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hop {
    pub(crate) fingerprint: Fingerprint,
    pub(crate) from: Bucket,
    pub(crate) to: Bucket,
}

/// Buckets from which [`find_short`] goes on: the roots, the buckets next to them, and those next to these. In models, the roots.
const EXPANDED: usize = if IS_MODEL { 2 } else { 2 + 2 * SLOTS + 2 * SLOTS * SLOTS };

/// A path of up to four hops out of two full buckets, beginning at the free end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ShortPath {
    pub(crate) hops: ArrayVec<Hop, 4>,
    /// The number of buckets that were read to find it; of a bucket that was read twice, 2.
    pub(crate) buckets: usize,
}

/// Finds a path of [`Search::find`] if up to four hops make room, which they nearly always do at 96 % load.
///
/// No bucket is marked as visited: a shortest path visits none twice. The four buckets to which one bucket leads are read
/// before any is checked for room: they are fetched together, and compilers make vectors of them.
#[inline(always)]
pub(crate) fn find_short<B: Copy>(
    roots: [Bucket; 2],
    read: impl Fn(Bucket) -> B + Copy,
    slots_of: impl Fn(B) -> [u32; SLOTS] + Copy,
    has_room: impl Fn(B) -> bool + Copy,
    alternate: impl Fn(Fingerprint, Bucket) -> Bucket + Copy,
) -> Option<ShortPath> {
    let mut steps = ArrayVec::<Step<B>, EXPANDED>::new();
    for number in 0..2 + SLOTS * EXPANDED {
        // The steps are numbered level by level.
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
struct Step<B> {
    from: Bucket,
    fingerprints: [Fingerprint; SLOTS],
    to: [Bucket; SLOTS],
    /// What the buckets `to` hold, and a bit for each of them that has room.
    reached: [B; SLOTS],
    rooms: u32,
}

impl<B: Copy> Step<B> {
    /// `None` if a slot is empty: another thread made it so, and there is room nearer.
    #[inline(always)]
    fn out_of(
        from: Bucket,
        slots: [u32; SLOTS],
        read: impl Fn(Bucket) -> B,
        has_room: impl Fn(B) -> bool,
        alternate: impl Fn(Fingerprint, Bucket) -> Bucket,
    ) -> Option<Self> {
        let fingerprint = |at: usize| Fingerprint::from_slot(slots[at]);
        let fingerprints = [fingerprint(0)?, fingerprint(1)?, fingerprint(2)?, fingerprint(3)?];
        // Not by `map`, which LLVM leaves out of line here, with its arrays in memory.
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

    /// The first of the buckets with room, if there is one.
    #[inline(always)]
    fn first_with_room(&self) -> usize {
        self.rooms.trailing_zeros() as usize % SLOTS
    }

    /// The hop to it.
    #[inline(always)]
    fn hop_with_room(&self) -> Option<Hop> {
        (self.rooms != 0).then(|| self.hop(self.first_with_room()))
    }
}

/// A bucket that the search reached.
#[derive(Clone, Copy)]
struct Node {
    bucket: Bucket,
    /// Its runs.
    runs: [u64; 2],
    /// The fingerprint to move here, and the node from whose bucket. 0 at the roots.
    moved: u32,
    parent: u16,
}

/// The memory of a search, some tens of kilobytes that are not written before they are used. Kept by the caller so that
/// it is never moved.
pub(crate) struct Search {
    nodes: ArrayVec<Node, MAX_NODES>,
    /// The first nodes, from which the search went on.
    expanded: usize,
    visited: Visited,
}

impl Search {
    #[inline]
    pub(crate) fn new() -> Self {
        Search { nodes: ArrayVec::new(), expanded: 0, visited: Visited([0; MARKS / 64]) }
    }

    /// The number of buckets that the last search read.
    pub(crate) fn buckets(&self) -> usize {
        self.nodes.len()
    }

    /// The buckets that the last search read, the roots first, and the runs of those from which it went on.
    pub(crate) fn looked_at(&self) -> impl Iterator<Item = (Bucket, Option<[u64; 2]>)> {
        let runs = |(at, node): (usize, &Node)| (node.bucket, (at < self.expanded).then_some(node.runs));
        self.nodes.iter().enumerate().map(runs)
    }

    /// Searches from the two `roots`. The path is empty if a root has room, and `None` if no bucket within reach has
    /// any. `read` returns the runs of a bucket.
    ///
    /// The four buckets to which a bucket leads are read together, before any is checked for room: their lines are fetched
    /// at the same time.
    #[inline(always)]
    pub(crate) fn find(
        &mut self,
        budget: SearchBudget,
        roots: [Bucket; 2],
        read: impl Fn(Bucket) -> [u64; 2],
        slots_of: impl Fn([u64; 2]) -> [u32; SLOTS],
        has_room: impl Fn([u64; 2]) -> bool,
        alternate: impl Fn(Fingerprint, Bucket) -> Bucket,
    ) -> Option<Path<'_>> {
        self.nodes.clear();
        self.expanded = 0;
        self.visited.0.fill(0);
        for root in &roots[..if roots[0] == roots[1] { 1 } else { 2 }] {
            // Both are read, even where they share a mark.
            self.visited.set_first(*root);
            let runs = read(*root);
            self.nodes.push(Node { bucket: *root, runs, moved: 0, parent: 0 });
            if has_room(runs) {
                return Some(self.path());
            }
        }
        let max_nodes = usize::from(budget.0);
        while let Some(&Node { bucket: from, runs, .. }) = self.nodes.get(self.expanded) {
            let parent = self.expanded as u16;
            self.expanded += 1;
            let step = Step::out_of(from, slots_of(runs), &read, &has_room, &alternate)?;
            let node = |at: usize| {
                let moved = step.fingerprints[at].get();
                Node { bucket: step.to[at], runs: step.reached[at], moved, parent }
            };
            if self.nodes.len() + SLOTS > max_nodes {
                return None;
            }
            // A bucket that was visited has none.
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
        let Node { bucket: to, moved, parent, .. } = self.nodes[self.at];
        let fingerprint = Fingerprint::from_slot(moved)?;
        self.at = usize::from(parent);
        Some(Hop { fingerprint, from: self.nodes[self.at].bucket, to })
    }
}

struct Visited([u64; MARKS / 64]);

impl Visited {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{Geometry, Mixed, Plan};
    use proptest::prelude::*;
    use std::collections::{BTreeSet, HashSet, VecDeque};

    fn geometry(buckets: u32, width: u32) -> Geometry {
        Geometry::new(&Plan::one_shard(width, buckets, 4))
    }

    /// The buckets 0 .. `count`, drawn from a geometry: nothing else makes buckets.
    fn buckets(count: usize) -> Vec<Bucket> {
        let even = count.next_multiple_of(2);
        let (geometry, mut drawn) = (geometry(even as u32, 16), BTreeSet::new());
        for hash in 0.. {
            drawn.insert(geometry.locate(Mixed::of(hash)).1.first);
            if drawn.len() == even {
                break;
            }
        }
        drawn.into_iter().take(count).collect()
    }

    fn packed([a, b, c, d]: [u32; SLOTS]) -> [u64; 2] {
        [[a, b], [c, d]].map(|[low, high]| u64::from(high) << 32 | u64::from(low))
    }

    fn unpacked([low, high]: [u64; 2]) -> [u32; SLOTS] {
        [low as u32, (low >> 32) as u32, high as u32, (high >> 32) as u32]
    }

    /// A table in plain sight. The two buckets of a fingerprint add up to its sum, modulo any number of buckets: they
    /// may coincide, as they may in a shard.
    #[derive(Clone, Debug)]
    struct Model {
        slots: Vec<[u32; SLOTS]>,
        /// By fingerprint.
        sums: Vec<usize>,
        buckets: Vec<Bucket>,
    }

    impl Model {
        fn alternate(&self, fingerprint: u32, bucket: usize) -> usize {
            let count = self.slots.len();
            (self.sums[fingerprint as usize] % count + count - bucket) % count
        }

        fn has_room(&self, bucket: usize) -> bool {
            self.slots[bucket].contains(&0)
        }

        fn search<'a>(&self, search: &'a mut Search, roots: [usize; 2]) -> Option<Path<'a>> {
            search.find(
                SearchBudget::full(),
                roots.map(|root| self.buckets[root]),
                |bucket| packed(self.slots[bucket.index()]),
                unpacked,
                |runs| unpacked(runs).contains(&0),
                |fingerprint, bucket| self.buckets[self.alternate(fingerprint.get(), bucket.index())],
            )
        }

        fn search_short(&self, roots: [usize; 2]) -> Option<ShortPath> {
            find_short(
                roots.map(|root| self.buckets[root]),
                |bucket| self.slots[bucket.index()],
                |slots| slots,
                |slots| slots.contains(&0),
                |fingerprint, bucket| self.buckets[self.alternate(fingerprint.get(), bucket.index())],
            )
        }

        /// Hops to the nearest bucket with room, by an unbounded search with nothing clever in it; `None` if none can
        /// be reached.
        fn distance(&self, roots: [usize; 2]) -> Option<usize> {
            let mut seen = HashSet::from(roots);
            let mut queue = VecDeque::from(roots.map(|root| (root, 0)));
            while let Some((bucket, hops)) = queue.pop_front() {
                if self.has_room(bucket) {
                    return Some(hops);
                }
                for fingerprint in self.slots[bucket] {
                    let next = self.alternate(fingerprint, bucket);
                    if seen.insert(next) {
                        queue.push_back((next, hops + 1));
                    }
                }
            }
            None
        }

        /// Every stored copy, by its class.
        fn classes(&self) -> Vec<(u32, usize, usize)> {
            let mut classes = Vec::new();
            for (bucket, slots) in self.slots.iter().enumerate() {
                for &fingerprint in slots.iter().filter(|&&slot| slot != 0) {
                    let other = self.alternate(fingerprint, bucket);
                    classes.push((fingerprint, bucket.min(other), bucket.max(other)));
                }
            }
            classes.sort_unstable();
            classes
        }

        /// Checks each hop as the path is read, from the free end to a root, and the table as it is carried out.
        fn apply(&self, roots: [usize; 2], path: &[Hop]) -> Result<(), TestCaseError> {
            let mut table = self.clone();
            let mut visited = BTreeSet::new();
            let mut hole = path.first().map(|hop| hop.to);
            visited.extend(hole);
            for hop in path {
                let (fingerprint, from, to) = (hop.fingerprint.get(), hop.from.index(), hop.to.index());
                prop_assert_eq!(Some(hop.to), hole, "a hop goes to where the one before it came from");
                prop_assert_eq!(self.alternate(fingerprint, from), to);
                prop_assert!(self.slots[from].contains(&fingerprint), "{:?} is not there", hop);
                prop_assert!(visited.insert(hop.from), "bucket {} twice", from);

                let room = table.slots[to].iter().position(|&slot| slot == 0);
                prop_assert!(room.is_some(), "{:?} has no room to go to", hop);
                table.slots[to][room.unwrap()] = fingerprint;
                let held = table.slots[from].iter().position(|&slot| slot == fingerprint).unwrap();
                table.slots[from][held] = 0;
                prop_assert_eq!(table.classes(), self.classes());
                hole = Some(hop.from);
            }
            if let Some(hole) = hole {
                prop_assert!(roots.contains(&hole.index()));
            }
            prop_assert!(roots.iter().any(|&root| table.has_room(root)));
            Ok(())
        }
    }

    /// Tables of up to 64 buckets with few fingerprints, so that parts of them cannot be reached from others, and few
    /// holes.
    fn models() -> impl Strategy<Value = Model> {
        let sizes = prop_oneof![1usize..=4, 1usize..=64];
        (sizes, 1u32..=24).prop_flat_map(|(count, fingerprints)| {
            (
                prop::collection::vec(prop::array::uniform4(1..=fingerprints), count),
                prop::collection::vec(0..count, fingerprints as usize + 1),
                prop::collection::vec((0..count, 0..SLOTS), 0..=count / 8 + 1),
            )
                .prop_map(|(mut slots, sums, holes)| {
                    for (bucket, slot) in holes {
                        slots[bucket][slot] = 0;
                    }
                    let buckets = buckets(slots.len());
                    Model { slots, sums, buckets }
                })
        })
    }

    /// From every pair of roots, equal ones included: a path is found exactly if there is one, it is a shortest one, and it
    /// can be carried out.
    fn agrees_with_a_naive_search(model: &Model) -> Result<(), TestCaseError> {
        let count = model.slots.len();
        let mut search = Search::new();
        for roots in (0..count * count).map(|pair| [pair / count, pair % count]) {
            let path: Option<Vec<Hop>> = model.search(&mut search, roots).map(Iterator::collect);
            prop_assert_eq!(path.as_ref().map(Vec::len), model.distance(roots), "roots {:?}", roots);
            if let Some(path) = path {
                model.apply(roots, &path)?;
            }
            if roots.iter().any(|&root| model.has_room(root)) {
                continue;
            }
            let short: Option<Vec<Hop>> = model.search_short(roots).map(|path| path.hops.to_vec());
            prop_assert_eq!(short.as_ref().map(Vec::len), model.distance(roots).filter(|hops| (1..=4).contains(hops)));
            if let Some(short) = short {
                model.apply(roots, &short)?;
            }
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn searches_agree_with_naive_ones(model in models()) {
            agrees_with_a_naive_search(&model)?;
        }
    }

    /// What is rare in tables drawn at random: many hops, one way only.
    #[test]
    fn a_chain_is_followed_to_its_end() {
        // Each bucket holds the fingerprint that leads to the next one, and three that lead nowhere new.
        let count = 64;
        let slots: Vec<_> =
            (0..count as u32).map(|bucket| [bucket + 1, bucket + 1, bucket.max(1), bucket + 1]).collect();
        let sums = (0..=count).map(|fingerprint| 2 * fingerprint + count - 1).collect();
        let mut model = Model { slots, sums, buckets: buckets(count) };
        let mut search = Search::new();
        assert!(model.search(&mut search, [0, 0]).is_none());
        model.slots[count - 1][2] = 0;
        let path: Vec<Hop> = model.search(&mut search, [0, 0]).unwrap().collect();
        assert_eq!(path.len(), count - 1);
        model.apply([0, 0], &path).unwrap();
    }

    #[test]
    fn a_search_in_vain_halves_the_next_one_and_one_that_finds_doubles_it() {
        let mut budget = SearchBudget::full();
        let mut learn = |found, times| {
            let learned = (0..times).map(|_| {
                budget.learn(found);
                budget.0
            });
            learned.collect::<Vec<_>>()
        };
        assert_eq!(learn(true, 1), [2000]);
        assert_eq!(learn(false, 7), [1000, 500, 250, 125, 62, 32, 32]);
        assert_eq!(learn(true, 7), [64, 128, 256, 512, 1024, 2000, 2000]);
    }

    const LARGE: u32 = 65_536;

    /// A table of the largest shards, full of random fingerprints, under the alternates that ship.
    struct Large {
        geometry: Geometry,
        buckets: Vec<Bucket>,
        slots: Vec<[u32; SLOTS]>,
    }

    impl Large {
        fn new() -> Self {
            let mut random = fastrand::Rng::with_seed(1);
            let slots = (0..LARGE).map(|_| std::array::from_fn(|_| random.u32(1..LARGE))).collect();
            Large { geometry: geometry(LARGE, 16), buckets: buckets(LARGE as usize), slots }
        }

        /// The path from these roots, and the buckets that the search took up, in turn.
        fn search(&self, roots: [u32; 2], has_room: impl Fn(Bucket) -> bool) -> (Option<Vec<Hop>>, Vec<Bucket>) {
            let mut search = Search::new();
            let path = search.find(
                SearchBudget::full(),
                roots.map(|root| self.buckets[root as usize]),
                |bucket| packed(if has_room(bucket) { [0; SLOTS] } else { self.slots[bucket.index()] }),
                unpacked,
                |runs| unpacked(runs).contains(&0),
                |fingerprint, bucket| self.geometry.alternate(fingerprint, bucket),
            );
            let path = path.map(Iterator::collect);
            let visited: Vec<_> = search.looked_at().map(|(bucket, _)| bucket).collect();
            assert!(visited.len() <= MAX_NODES, "{} buckets were visited", visited.len());
            assert_eq!(visited.iter().copied().collect::<BTreeSet<_>>().len(), visited.len(), "no bucket twice");
            (path, visited)
        }
    }

    #[test]
    fn a_search_of_a_large_full_table_gives_up() {
        let large = Large::new();
        for roots in [[0, 1], [LARGE - 1, LARGE / 2], [77, 77]] {
            let (path, visited) = large.search(roots, |_| false);
            assert_eq!(path, None);
            assert!(visited.len() > MAX_NODES - SLOTS);
        }
    }

    /// In a table with more buckets than marks.
    #[test]
    fn both_roots_are_read_where_they_share_a_mark() {
        let large = Large::new();
        let second = large.buckets[77 + MARKS];
        let (path, _) = large.search([77, 77 + MARKS as u32], |bucket| bucket == second);
        assert_eq!(path, Some(vec![]));
    }

    #[test]
    fn any_bucket_of_a_search_may_be_the_one_with_room() {
        let large = Large::new();
        let (_, all) = large.search([3, 4], |_| false);
        for nodes in [1, 2, 3, 9, 10, 11, 12, 682, all.len() - 1, all.len()] {
            let last = all[nodes - 1];
            let (path, visited) = large.search([3, 4], |bucket| bucket == last);
            assert_eq!(visited.last(), Some(&last));
            let mut hole = last;
            for hop in path.expect("a path to the bucket with room") {
                assert_eq!(hop.to, hole);
                assert!(large.slots[hop.from.index()].contains(&hop.fingerprint.get()));
                assert_eq!(large.geometry.alternate(hop.fingerprint, hop.from), hop.to);
                hole = hop.from;
            }
            assert!(large.buckets[3..=4].contains(&hole));
        }
    }
}
