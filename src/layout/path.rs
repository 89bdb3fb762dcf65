//! Chooses which fingerprints to displace: the shortest chain of relocations that makes room in one of two buckets.
//!
//! Breadth first: a full pair of buckets has short paths, about 1.4 moves at 95 % load where a random walk takes 20.
//! What it reads may be stale by the time the path is carried out, so every hop is checked again then; a wrong path
//! costs another try, never a fingerprint.

use super::fingerprint::Fingerprint;
use super::geometry::Bucket;
use super::lanes::SLOTS;
use arrayvec::ArrayVec;

/// Buckets that one search looks at. 682 reach about 96.3 % load before the first refusal, 2000 about 97.2 %.
const MAX_NODES: usize = 2000;

/// What a search looks at when many in a row were in vain: enough to find a hole two moves away.
const MIN_NODES: usize = 32;

/// The visited buckets. Shards of up to this many buckets are searched exactly; in larger ones two buckets may
/// share a mark, and the search passes by a few that it could have visited.
const MARKS: usize = 1 << 13;

/// Nodes that are looked through one by one: two roots and their eight alternates.
const FEW_NODES: usize = 10;

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

/// A path of one or two hops out of two full buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ShortPath {
    /// The hop that makes room for the other one, if that needs it.
    first: Option<Hop>,
    /// The hop out of the pair.
    last: Hop,
}

impl ShortPath {
    /// As of [`Path`].
    #[inline(always)]
    pub(crate) fn hops(self) -> impl Iterator<Item = Hop> {
        self.first.into_iter().chain([self.last])
    }
}

/// What [`Search::find`] finds first, if one or two hops make room: at 95 % load, almost always. Without its lists, and all
/// buckets that one bucket leads to are read before any is asked for room: they are fetched together, and which of them has
/// room costs no branch, for it cannot be predicted.
#[inline(always)]
pub(crate) fn find_short<B: Copy>(
    roots: [Bucket; 2],
    read: impl Fn(Bucket) -> B,
    slots_of: impl Fn(B) -> [u32; SLOTS],
    has_room: impl Fn(B) -> bool,
    alternate: impl Fn(Fingerprint, Bucket) -> Bucket,
) -> Option<ShortPath> {
    let step = |from, bucket| Step::out_of(from, slots_of(bucket), &read, &has_room, &alternate);
    let steps = [step(roots[0], read(roots[0]))?, step(roots[1], read(roots[1]))?];
    for step in &steps {
        if let Some(last) = step.hop_with_room() {
            return Some(ShortPath { first: None, last });
        }
    }
    for near in &steps {
        for at in 0..SLOTS {
            if let Some(first) = step(near.to[at], near.reached[at])?.hop_with_room() {
                return Some(ShortPath { first: Some(first), last: near.hop(at) });
            }
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
        let rooms = (0..SLOTS).fold(0, |rooms, at| rooms | u32::from(has_room(reached[at])) << at);
        Some(Step { from, fingerprints, to, reached, rooms })
    }

    #[inline(always)]
    fn hop(&self, at: usize) -> Hop {
        Hop { fingerprint: self.fingerprints[at], from: self.from, to: self.to[at] }
    }

    /// The first hop to a bucket with room.
    #[inline(always)]
    fn hop_with_room(&self) -> Option<Hop> {
        (self.rooms != 0).then(|| self.hop(self.rooms.trailing_zeros() as usize % SLOTS))
    }
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
    nodes: ArrayVec<Node, MAX_NODES>,
    /// The slots of the nodes that the search went on from, which are the first ones.
    held: ArrayVec<[u32; SLOTS], MAX_NODES>,
    /// At most as many as there is memory for.
    max_nodes: usize,
    /// Made when there are many nodes. Most paths are found among the first few.
    visited: Option<Visited>,
}

impl Search {
    #[inline]
    pub(crate) fn new() -> Self {
        Search { nodes: ArrayVec::new(), held: ArrayVec::new(), max_nodes: MAX_NODES, visited: None }
    }

    /// How many buckets the last search looked at.
    pub(crate) fn buckets(&self) -> usize {
        self.nodes.len()
    }

    /// The buckets that the last search looked at, the roots first, and what it found in those that it went on from; of the others
    /// it asked for room only.
    pub(crate) fn looked_at(&self) -> impl Iterator<Item = (Bucket, Option<[u32; SLOTS]>)> {
        let held = self.held.iter().copied().map(Some).chain(core::iter::repeat(None));
        self.nodes.iter().map(|node| node.bucket).zip(held)
    }

    /// Searches from the two `roots`. The path is empty if a root has room, and `None` if no bucket within reach has
    /// any.
    #[inline]
    pub(crate) fn find(
        &mut self,
        budget: SearchBudget,
        roots: [Bucket; 2],
        slots_of: impl Fn(Bucket) -> [u32; SLOTS],
        has_room: impl Fn(Bucket) -> bool,
        alternate: impl Fn(Fingerprint, Bucket) -> Bucket,
        look_ahead: impl Fn(Bucket),
    ) -> Option<Path<'_>> {
        self.nodes.clear();
        self.held.clear();
        self.max_nodes = usize::from(budget.0);
        self.visited = None;
        for bucket in roots {
            if self.visit(Node { bucket, moved: None })? && has_room(bucket) {
                return Some(self.path());
            }
        }
        let mut parent = 0;
        while let Some(&Node { bucket: from, .. }) = self.nodes.get(parent) {
            look_ahead(from);
            // An empty slot appears here only when another thread made it; the next try will find it.
            let slots = slots_of(from);
            self.held.push(slots);
            for fingerprint in slots.into_iter().filter_map(Fingerprint::from_slot) {
                let bucket = alternate(fingerprint, from);
                if self.visit(Node { bucket, moved: Some((fingerprint, parent as u16)) })? && has_room(bucket) {
                    return Some(self.path());
                }
            }
            parent += 1;
        }
        None
    }

    /// Takes the node up unless its bucket was visited before, and says whether it did. `None` when there were enough.
    #[inline]
    fn visit(&mut self, node: Node) -> Option<bool> {
        let first_visit = match &mut self.visited {
            Some(visited) => visited.set_first(node.bucket),
            None if self.nodes.len() < FEW_NODES => self.nodes.iter().all(|other| other.bucket != node.bucket),
            None => self.visited.insert(Visited::of(&self.nodes)).set_first(node.bucket),
        };
        if !first_visit {
            return Some(false);
        }
        if self.nodes.len() == self.max_nodes {
            return None;
        }
        self.nodes.push(node);
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

struct Visited([u64; MARKS / 64]);

impl Visited {
    #[cold]
    fn of(nodes: &[Node]) -> Self {
        let mut visited = Visited([0; MARKS / 64]);
        for node in nodes {
            visited.set_first(node.bucket);
        }
        visited
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{Geometry, Mixed, Plan};
    use proptest::prelude::*;
    use std::cell::{Cell, RefCell};
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
                |bucket| self.slots[bucket.index()],
                |bucket| self.has_room(bucket.index()),
                |fingerprint, bucket| self.buckets[self.alternate(fingerprint.get(), bucket.index())],
                |_| {},
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
            let short: Option<Vec<Hop>> = model.search_short(roots).map(|path| path.hops().collect());
            prop_assert_eq!(short.as_ref().map(Vec::len), model.distance(roots).filter(|hops| [1, 2].contains(hops)));
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

        /// The path from these roots, and the buckets that were asked for room, in turn.
        fn search(&self, roots: [u32; 2], has_room: impl Fn(Bucket, usize) -> bool) -> (Option<Vec<Hop>>, Vec<Bucket>) {
            let asked = RefCell::new(Vec::new());
            let looked_through = Cell::new(0);
            let mut search = Search::new();
            let path = search.find(
                SearchBudget::full(),
                roots.map(|root| self.buckets[root as usize]),
                |bucket| {
                    looked_through.set(looked_through.get() + 1);
                    self.slots[bucket.index()]
                },
                |bucket| {
                    asked.borrow_mut().push(bucket);
                    has_room(bucket, asked.borrow().len())
                },
                |fingerprint, bucket| self.geometry.alternate(fingerprint, bucket),
                |_| {},
            );
            let (path, asked) = (path.map(Iterator::collect), asked.into_inner());
            assert!(asked.len() <= MAX_NODES, "{} buckets were visited", asked.len());
            assert!(looked_through.get() <= asked.len());
            assert_eq!(asked.iter().copied().collect::<BTreeSet<_>>().len(), asked.len(), "no bucket twice");
            (path, asked)
        }
    }

    #[test]
    fn a_search_of_a_large_full_table_gives_up() {
        let large = Large::new();
        for roots in [[0, 1], [LARGE - 1, LARGE / 2], [77, 77]] {
            let (path, asked) = large.search(roots, |_, _| false);
            assert_eq!(path, None);
            assert_eq!(asked.len(), MAX_NODES);
        }
    }

    /// In a table with more buckets than marks, of which two that are among the first ones have the same mark.
    #[test]
    fn the_first_buckets_of_a_search_are_told_apart() {
        let mut large = Large::new();
        let same_mark = [77, 77 + MARKS];
        let [first, second] = same_mark.map(|bucket| large.buckets[bucket]);
        let (path, _) = large.search([77, 77 + MARKS as u32], |bucket, _| bucket == second);
        assert_eq!(path, Some(vec![]));
        // The last of the four ways out of the first root leads to a bucket with the mark of the second one.
        let leads_there = |&fingerprint: &u32| {
            let fingerprint = Fingerprint::from_slot(fingerprint).unwrap();
            large.geometry.alternate(fingerprint, first).index() == 78 + MARKS
        };
        let fingerprint = (1..LARGE).find(leads_there).unwrap();
        large.slots[77][3] = fingerprint;
        let (path, _) = large.search([77, 78], |bucket, _| bucket.index() == 78 + MARKS);
        assert_eq!(path.unwrap().len(), 1);
    }

    #[test]
    fn the_last_bucket_of_a_search_may_be_the_one_with_room() {
        let large = Large::new();
        for nodes in [1, 2, 3, 9, 10, 11, 12, 682, MAX_NODES - 1, MAX_NODES] {
            let (path, asked) = large.search([3, 4], |_, asked| asked == nodes);
            assert_eq!(asked.len(), nodes);
            let path = path.expect("a path to the bucket with room");
            let mut hole = asked[nodes - 1];
            for hop in path {
                assert_eq!(hop.to, hole);
                assert!(large.slots[hop.from.index()].contains(&hop.fingerprint.get()));
                assert_eq!(large.geometry.alternate(hop.fingerprint, hop.from), hop.to);
                hole = hop.from;
            }
            assert!(large.buckets[3..=4].contains(&hole));
        }
    }
}
