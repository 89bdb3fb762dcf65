//! Kills simulated by copies: an operation runs to its end, and after each of its steps the memory is copied, as a kill would
//! leave it. Each copy is queried, taken over, and compared: the filter has its contents from before the operation or from after
//! it. During the take-over, copies are made and taken over, too.

use crate::layout::{Class, Mixed, Plan};
use crate::raw::{IfPresent, Observed, Put, RawFilter, Shards, SlotKind, Stripe, Tagging};
use crate::sys::mapping::FileMapping;
use crate::sys::memory::Buffer;
use crate::sys::steps::{Step, with_hook};
use crate::sys::sync::AtomicU64;
use crossbeam_utils::CachePadded;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::rc::Rc;
use std::sync::Arc;

/// The offset of the words; stripes begin at 0.
const WORDS: usize = 4096;
const LEN: usize = 3 * 4096;

/// The number of copies by fingerprint, lower bucket, upper bucket and value.
type Contents = BTreeMap<(u32, u32, u32, u32), usize>;

struct Memory {
    plan: Plan,
    file: File,
    mapping: Arc<FileMapping>,
}

impl Memory {
    fn new(plan: Plan) -> Self {
        use core::hash::BuildHasher;
        let name = std::hash::RandomState::new().hash_one(());
        let path = std::env::temp_dir().join(format!("concurrent-cuckoo-filter.steps-{name:016x}"));
        let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        file.set_len(LEN as u64).unwrap();
        let mapping = FileMapping::new(&file, LEN, true).unwrap();
        Memory { plan, file, mapping }
    }

    fn image(&self) -> Vec<u8> {
        let mut bytes = vec![0; LEN];
        self.file.read_exact_at(&mut bytes, 0).unwrap();
        bytes
    }

    fn load(&self, image: &[u8]) {
        self.file.write_all_at(image, 0).unwrap();
    }

    fn take_over<K: SlotKind>(&self) -> RawFilter<K> {
        let words: Buffer<AtomicU64> = self.mapping.run(WORDS, Shards::words_of(&self.plan).unwrap()).unwrap();
        let stripes: Buffer<CachePadded<Stripe>> = self.mapping.run(0, self.plan.stripes as usize).unwrap();
        RawFilter::take_over(Shards::shared(&self.plan, words, stripes)).unwrap().0
    }

    fn observed<K: SlotKind>(&self) -> Observed<K> {
        let words = self.mapping.read_only(WORDS, Shards::words_of(&self.plan).unwrap()).unwrap();
        Observed::new(&self.plan, words, self.mapping.read_only(0, WORDS / 8).unwrap())
    }
}

fn contents<K: SlotKind>(raw: &RawFilter<K>) -> Contents {
    let mut contents = BTreeMap::new();
    let bits = raw.plan().tag_bits;
    raw.with_tables(|shards| {
        for shard in shards {
            // The whole content of each slot in use.
            for (_, slot) in shard.contents() {
                *contents.entry((slot >> bits, 0, 0, slot & ((1 << bits) - 1))).or_insert(0) += 1;
            }
        }
    });
    raw.each_class(|_, class| *contents.entry(name(class)).or_insert(0) += 1);
    contents
}

/// The key of a class in `Contents`.
fn name(class: Class) -> (u32, u32, u32, u32) {
    let Class { fingerprint, first, second } = class.lower_first();
    (fingerprint.get(), first.get(), second.get(), u32::MAX)
}

fn classes<K: SlotKind>(raw: &RawFilter<K>) -> Vec<Class> {
    let mut classes = Vec::new();
    raw.each_class(|_, class| classes.push(class));
    classes
}

/// Runs `work`, and copies the memory before it, after each step and at the end.
fn images(memory: &Rc<Memory>, work: impl FnOnce()) -> Vec<Vec<u8>> {
    let images = Rc::new(RefCell::new(vec![memory.image()]));
    let (taken, of) = (Rc::clone(&images), Rc::clone(memory));
    let take = move |step| {
        // Other steps leave the memory as it was.
        if !matches!(step, Step::Locked | Step::Searched | Step::BucketRead | Step::Repeated | Step::Ticked) {
            let image = of.image();
            if taken.borrow().last() != Some(&image) {
                taken.borrow_mut().push(image);
            }
        }
    };
    with_hook(take, work);
    images.borrow_mut().push(memory.image());
    images.take()
}

#[derive(Default, Debug)]
struct Tally {
    taken_over: usize,
    /// The number of copies in which a change was noted.
    noted: usize,
    looked_up: usize,
    before: usize,
    after: usize,
}

/// The keys that stay, each in both orders of reading.
fn staying(plan: &Plan, before: &[Class], after: &Contents) -> Vec<Mixed> {
    let geometry = crate::layout::Geometry::new(plan);
    let turned =
        before.iter().filter(|&&class| after.contains_key(&name(class))).flat_map(|class| [*class, class.turned()]);
    turned.filter_map(|class| geometry.leading_to(class)).collect()
}

fn check<K: SlotKind>(
    memory: &Rc<Memory>,
    image: &[u8],
    [before, after]: [&Contents; 2],
    stays: &[Mixed],
    deep: bool,
    tally: &mut Tally,
) {
    memory.load(image);
    let observed = Rc::new(memory.observed::<K>());
    let noted = image[..WORDS].chunks(128).take(memory.plan.stripes as usize).any(|stripe| stripe[48..56] != [0; 8]);
    for &key in stays {
        assert_eq!(observed.try_contains(key), Some(true), "a reader misses a key while its writer is dead");
        tally.looked_up += 1;
        if noted && deep {
            // The successor starts when the first bucket has been read.
            let (taking, mut read) = (Rc::clone(memory), false);
            let hook = move |step| {
                if step == Step::BucketRead && !read {
                    read = true;
                    drop(taking.take_over::<K>());
                }
            };
            let looks = Rc::clone(&observed);
            assert!(
                with_hook(hook, move || looks.contains(key)),
                "a reader misses a key while the successor takes over"
            );
            memory.load(image);
        }
    }
    let work = {
        let memory = Rc::clone(memory);
        move || drop(memory.take_over::<K>())
    };
    let images = if noted && deep {
        images(memory, work)
    } else {
        work();
        Vec::new()
    };
    let raw = memory.take_over::<K>();
    let held = contents(&raw);
    assert!(held == *before || held == *after, "neither before nor after");
    tally.before += usize::from(held == *before);
    tally.after += usize::from(held == *after);
    let slots: usize = held.iter().filter(|((_, _, _, value), _)| *value != u32::MAX).map(|(_, times)| times).sum();
    assert_eq!(raw.len(), slots, "all that is stored is counted");
    assert!(memory.image()[..WORDS].chunks(128).all(|stripe| stripe[48..56] == [0; 8]), "nothing is left to be done");
    tally.taken_over += 1;
    tally.noted += usize::from(noted);
    drop(raw);
    for image in images {
        check::<K>(memory, &image, [before, after], stays, false, tally);
    }
}

fn explore<K: SlotKind>(
    plan: Plan,
    seed: u64,
    operations: usize,
    work: impl Fn(&RawFilter<K>, &mut fastrand::Rng, Class),
) -> Tally {
    let (memory, scratch) = (Rc::new(Memory::new(plan)), Rc::new(Memory::new(plan)));
    let mut random = fastrand::Rng::with_seed(seed);
    let mut tally = Tally::default();
    for _ in 0..operations {
        let raw = memory.take_over::<K>();
        // A few hashes, so that there are copies, and a full table.
        while raw.len() < plan.slots() * 9 / 10 {
            let value = random.u32(1..=if K::TIMED { 3 } else { 1 });
            let _ = raw.put(Mixed::of(random.u64(..200)), Put { value, if_present: IfPresent::Another });
        }
        let (before, keys) = (contents(&raw), classes(&raw));
        let class = keys[random.usize(..keys.len())];
        let images = images(&memory, || work(&raw, &mut random, class));
        let after = contents(&raw);
        let stays = staying(&plan, &keys, &after);
        let few: Vec<Mixed> = stays.iter().copied().filter(|_| random.u32(..8) == 0).collect();
        for image in &images {
            check::<K>(&scratch, image, [&before, &after], &few, true, &mut tally);
        }
    }
    tally
}

fn random_operation<K: SlotKind>(raw: &RawFilter<K>, random: &mut fastrand::Rng, class: Class) {
    let value = random.u32(1..=if K::TIMED { 3 } else { 1 });
    let there = raw.geometry().leading_to(class);
    let another = Mixed::of(random.u64(..400));
    match (random.u32(..100), there) {
        (0..55, _) => _ = raw.put(another, Put { value, if_present: IfPresent::Another }),
        (55..65, _) => _ = raw.put(another, Put { value, if_present: IfPresent::Keep }),
        (65..80, Some(there)) => _ = raw.remove(there),
        (80..97, Some(there)) if raw.len() > raw.slots() * 9 / 10 => _ = raw.remove_all(there),
        (97, _) if random.u32(..4) == 0 => raw.clear(),
        _ => _ = raw.put(another, Put { value, if_present: IfPresent::Another }),
    }
}

/// Words with and without slots in two of them; two stripes and more.
#[test]
fn a_filter_is_as_before_or_after_whatever_was_being_done() {
    for (width, shift) in [(8, 4), (13, 4), (13, 5), (16, 4), (31, 4)] {
        let plan = Plan::one_shard(width, 32, shift);
        let operation = |raw: &RawFilter, random: &mut fastrand::Rng, class| random_operation(raw, random, class);
        let tally = explore::<crate::raw::Bare>(plan, u64::from(width), 250, operation);
        println!("{width} bits, stripes of {} buckets: {tally:?}", 1 << shift);
        assert!(tally.noted > 500 && tally.before > 500 && tally.after > 500, "{tally:?}");
    }
}

/// The same with a tag in each slot.
#[test]
fn a_filter_with_tags_is_as_before_or_after_whatever_was_being_done() {
    for width in [16, 20] {
        let plan = Plan::one_shard(width, 32, 4).with_tags(2);
        let tally = explore::<Tagging>(plan, 7, 150, random_operation);
        println!("{width} bits with tags: {tally:?}");
        assert!(tally.noted > 200, "{tally:?}");
    }
}
