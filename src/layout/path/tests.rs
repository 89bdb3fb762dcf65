use super::*;
use crate::layout::{Geometry, Plan};
use proptest::prelude::*;
use std::cell::RefCell;
use std::collections::{BTreeSet, HashSet, VecDeque};

fn geometry(buckets: u32, width: u32) -> Geometry {
    Geometry::new(&Plan::one_shard(width, buckets, 4))
}

fn buckets(count: usize) -> Vec<Bucket> {
    (0..count as u32).map(Bucket::new).collect()
}

type Slots = [u32; SLOTS];

/// A table without concurrency. The two buckets of a fingerprint add up to its sum, modulo any number of buckets, and may coincide, as
/// in a shard.
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

    fn search<'a>(&self, search: &'a mut Search<Slots>, roots: [usize; 2]) -> Option<Path<'a, Slots>> {
        search.find(
            SearchBudget::full(),
            roots.map(|root| self.buckets[root]),
            |bucket| self.slots[bucket.index()],
            |slots| slots,
            |slots| slots.contains(&0),
            |fingerprint, bucket| self.buckets[self.alternate(fingerprint.get(), bucket.index())],
        )
    }

    fn search_short(&self, roots: [usize; 2]) -> Option<ShortPath> {
        let mut steps = Steps::new();
        let mut find = |numbers| {
            find_short(
                &mut steps,
                numbers,
                roots.map(|root| self.buckets[root]),
                |bucket| self.slots[bucket.index()],
                |slots| slots,
                |slots| slots.contains(&0),
                |fingerprint, bucket| self.buckets[self.alternate(fingerprint.get(), bucket.index())],
            )
        };
        find(0..TWO_HOPS).or_else(|| find(TWO_HOPS..FOUR_HOPS))
    }

    /// Returns the number of hops to the nearest bucket with room, by a naive unbounded search.
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

    /// Executes the path, and checks each hop, from the free end to a root.
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
            hole = Some(hop.from);
        }
        if let Some(hole) = hole {
            prop_assert!(roots.contains(&hole.index()));
        }
        prop_assert!(roots.iter().any(|&root| table.has_room(root)));
        Ok(())
    }
}

/// Tables of up to 64 buckets with few empty slots and few fingerprints, so that parts of them are unreachable from others.
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

proptest! {
    /// For every pair of roots, equal ones included: a path is found exactly if there is one, is a shortest one, and can
    /// be executed.
    #[test]
    fn searches_agree_with_naive_ones(model in models()) {
        let count = model.slots.len();
        let mut search = Search::new();
        for roots in (0..count * count).map(|pair| [pair / count, pair % count]) {
            let (path, distance) = (model.search(&mut search, roots).map(Vec::from_iter), model.distance(roots));
            prop_assert_eq!(path.as_ref().map(Vec::len), distance, "roots {:?}", roots);
            if let Some(path) = path {
                model.apply(roots, &path)?;
            }
            if roots.iter().any(|&root| model.has_room(root)) {
                continue;
            }
            let short = model.search_short(roots).map(|path| path.hops);
            prop_assert_eq!(short.as_ref().map(|hops| hops.len()), distance.filter(|hops| (1..=4).contains(hops)));
            if let Some(short) = short {
                model.apply(roots, &short)?;
            }
        }
    }
}

/// The four fingerprints of each bucket lead to buckets of their own, numbered as the search numbers them, and the last one has room.
#[test]
fn a_search_goes_on_where_it_stopped_unless_a_slot_was_emptied() {
    for emptied in [None, Some(5)] {
        let (mut steps, roots) = (Steps::new(), [0, 1].map(Bucket::new));
        let mut find = |numbers| {
            find_short(
                &mut steps,
                numbers,
                roots,
                |bucket| bucket.get(),
                |bucket| if emptied == Some(bucket) { [1, 0, 3, 4] } else { [1, 2, 3, 4] },
                |bucket| bucket == 45,
                |fingerprint, bucket| Bucket::new(4 * bucket.get() + fingerprint.get() + 1),
            )
        };
        assert_eq!(find(0..TWO_HOPS), None);
        let path = find(TWO_HOPS..FOUR_HOPS);
        let hops = path.map(|path| path.hops.iter().map(|hop| [hop.from, hop.to].map(Bucket::get)).collect());
        assert_eq!(hops, emptied.is_none().then(|| vec![[10, 45], [2, 10], [0, 2]]));
    }
}

/// Random tables rarely have a single path of many hops.
#[test]
fn a_chain_is_followed_to_its_end() {
    // Each bucket has a fingerprint that leads to the next one, and three that lead to no other bucket.
    let count = 64;
    let slots: Vec<_> = (0..count as u32).map(|bucket| [bucket + 1, bucket + 1, bucket.max(1), bucket + 1]).collect();
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
fn a_failed_search_halves_the_budget_and_a_successful_one_doubles_it() {
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

/// A shard of the largest size, full of random fingerprints.
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

    /// Returns the path from these roots, and the visited buckets in turn.
    fn search(&self, roots: [u32; 2], has_room: impl Fn(Bucket) -> bool) -> (Option<Vec<Hop>>, Vec<Bucket>) {
        let (mut search, read) = (Search::new(), RefCell::new(BTreeSet::new()));
        let path = search.find(
            SearchBudget::full(),
            roots.map(|root| self.buckets[root as usize]),
            |bucket| {
                read.borrow_mut().insert(bucket);
                if has_room(bucket) { [0; SLOTS] } else { self.slots[bucket.index()] }
            },
            |slots| slots,
            |slots| slots.contains(&0),
            |fingerprint, bucket| self.geometry.alternates().alternate(fingerprint, bucket),
        );
        let path = path.map(Iterator::collect);
        let visited: Vec<_> = search.looked_at().map(|(bucket, _)| bucket).collect();
        assert!(visited.len() <= MAX_NODES, "{} buckets were visited", visited.len());
        let distinct: BTreeSet<_> = visited.iter().copied().collect();
        assert_eq!(distinct.len(), visited.len(), "no bucket twice");
        // A refusal reads the visited buckets again. The alternates of the last one are read, but a full search ignores them.
        let more = read.into_inner().difference(&distinct).count();
        assert!(more <= SLOTS, "{more} buckets were read, and not visited");
        (path, visited)
    }
}

#[test]
fn any_bucket_of_a_search_may_be_the_one_with_room() {
    let large = Large::new();
    let (none, all) = large.search([3, 4], |_| false);
    assert_eq!(none, None);
    assert!(all.len() > MAX_NODES - SLOTS, "the search gives up");
    for nodes in [1, 2, 3, 9, 10, 11, 12, 682, all.len() - 1, all.len()] {
        let last = all[nodes - 1];
        let (path, visited) = large.search([3, 4], |bucket| bucket == last);
        assert_eq!(visited.last(), Some(&last));
        let mut hole = last;
        for hop in path.expect("a path to the bucket with room") {
            assert_eq!(hop.to, hole);
            assert!(large.slots[hop.from.index()].contains(&hop.fingerprint.get()));
            assert_eq!(large.geometry.alternates().alternate(hop.fingerprint, hop.from), hop.to);
            hole = hop.from;
        }
        assert!(large.buckets[3..=4].contains(&hole));
    }
}
