//! Lookups of many keys in a growing filter, in blocks, as `raw/block` does for filters of fixed size.
//!
//! The cell is read when a key is placed, a block ahead, and again when its buckets have been read. In between it takes
//! no value twice, so that one which is still the same was so all the time.

use super::Growing;
use super::leaf::{Leaf, layout_of};
use crate::layout::{Aim, Class, Mixed, Plan};
use crate::raw::block::{BLOCK, ContainsEach, Next};
use crate::raw::filter::RawFilter;
use crate::raw::probe::{Layout, Runs, with_layout};
use crate::sys::directory::Member;
use crate::sys::isa::{Compiled, Function};
use crate::sys::prefetch::CacheLevel;
use crate::sys::steps::{Step, reached};
use core::array;
use core::marker::PhantomData;

/// Tables below this size are in a core's own caches, for the most part.
const NEAR: usize = 1 << 19;

/// The keys of a block, and where they are looked for.
struct Probes<'a> {
    mixed: [Mixed; BLOCK],
    count: usize,
    cells: [usize; BLOCK],
    leaves: [Member<'a, Leaf>; BLOCK],
    classes: [Class; BLOCK],
    begins: [[u64; BLOCK]; 2],
}

struct ContainsEachAs<L>(PhantomData<L>);

/// The lookups of growing filters of this plan, for this processor.
pub(in crate::raw) fn contains_each_in(plan: &Plan) -> Compiled<ContainsEach> {
    with_layout!(layout_of(plan), L => Compiled::for_vectors::<ContainsEachAs<L>>())
}

impl<L: Layout> Function<ContainsEach> for ContainsEachAs<L> {
    #[inline(always)]
    fn run(filter: &RawFilter, (next, found): (Next<'_>, &mut [bool])) {
        let growing = filter.growing.as_deref().expect("the lookups of a growing filter");
        let far = growing.table_bytes() >= NEAR;
        let mut blocks: [Probes<'_>; 2] = array::from_fn(|_| Probes::new(growing));
        let mut now = 0;
        let mut left = found.len();
        growing.place::<L>(&mut blocks[now], &mut left, next, far);
        for found in found.chunks_mut(BLOCK) {
            growing.place::<L>(&mut blocks[1 - now], &mut left, next, far);
            growing.lookup::<L>(&blocks[now], found);
            now = 1 - now;
        }
    }
}

impl<'a> Probes<'a> {
    #[inline(always)]
    fn new(growing: &'a Growing) -> Self {
        let aim = growing.aim(Mixed::default());
        Probes {
            mixed: [Mixed::default(); BLOCK],
            count: 0,
            cells: [0; BLOCK],
            leaves: [growing.directory.at(aim.cell); BLOCK],
            classes: [aim.class; BLOCK],
            begins: [[0; BLOCK]; 2],
        }
    }
}

impl Growing {
    /// Places the next keys and begins to fetch their lines.
    #[inline(always)]
    fn place<'a, L: Layout>(&'a self, probes: &mut Probes<'a>, left: &mut usize, next: Next<'_>, far: bool) {
        probes.count = (*left).min(BLOCK);
        *left -= probes.count;
        if probes.count == 0 {
            return;
        }
        next(&mut probes.mixed);
        let mut note = |at: usize, aim: Aim| {
            probes.cells[at] = aim.cell;
            probes.classes[at] = aim.class;
        };
        if self.geometry.is_narrow() {
            (0..BLOCK).for_each(|at| note(at, self.geometry.aim_narrow(probes.mixed[at])));
        } else {
            (0..BLOCK).for_each(|at| note(at, self.geometry.aim(probes.mixed[at])));
        }
        for at in 0..probes.count {
            let aim = Aim { cell: probes.cells[at], class: probes.classes[at] };
            let (leaf, class) = self.home(aim);
            (probes.leaves[at], probes.classes[at]) = (leaf, class);
            for (number, bucket) in [class.first, class.second].into_iter().enumerate() {
                let begin = u64::from(bucket.get()) * u64::from(leaf.look.bucket_bits);
                probes.begins[number][at] = begin;
                if far {
                    L::fetch(leaf.words(), begin, CacheLevel::L1);
                }
            }
        }
    }

    /// As a lookup of each key. Where a version or a cell changed, the block is looked at again key by key.
    #[inline(always)]
    fn lookup<L: Layout>(&self, probes: &Probes<'_>, found: &mut [bool]) {
        let mut changed = 0;
        for (at, found) in found.iter_mut().enumerate() {
            let (leaf, class) = (probes.leaves[at], probes.classes[at]);
            let look = leaf.look;
            let (version, words) = (leaf.version(class), leaf.words());
            let begun = version.begin();
            let [first, second] = [probes.begins[0][at], probes.begins[1][at]].map(|begin| {
                let runs = L::align(L::read(words, L::address(begin), look.run_bits), begin, look.run_bits);
                reached(Step::BucketRead);
                runs
            });
            let pattern = u64::from(class.fingerprint.get()).wrapping_mul(look.low);
            *found = (first.hits(look.low, pattern) | second.hits(look.low, pattern)) & look.high != 0;
            changed |= version.change_since(begun) | u64::from(!self.directory.is_at(probes.cells[at], leaf));
        }
        if changed != 0 {
            self.lookup_each(&probes.mixed, found);
        }
    }

    #[cold]
    #[inline(never)]
    fn lookup_each(&self, mixed: &[Mixed; BLOCK], found: &mut [bool]) {
        for (found, &mixed) in found.iter_mut().zip(mixed) {
            *found = self.look_again(mixed);
        }
    }
}
