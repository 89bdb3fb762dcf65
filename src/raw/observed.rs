//! Shards that another process writes and this one only reads. Lookups are those of a filter, with fences in place of
//! Acquire loads and a bounded number of attempts, because the writer may be any program.

use super::block::{Next, contains_each_in};
use super::lookup::{Contains, Lookup, contains_in};
use super::probe::{Probed, Shape};
use super::shards::ShardStrides;
#[cfg(all(test, cuckoo_loom))]
use super::shards::Shards;
use super::slots::{Bare, SlotKind};
use super::stripe::{FencedRef, VERSION_AT, Watch};
use crate::layout::{Format, Geometry, Mixed, Plan};
use crate::sys::read_only::ReadOnly;
use core::borrow::Borrow;

/// The bound of attempts, each of which fails only if a relocation in the key's stripe ends during it.
const REPEATS: u32 = 1024;

/// The versions of all stripes.
pub(crate) trait Versions {
    /// The version of the stripe at this byte.
    fn version(&self, stripe_offset: u64) -> FencedRef<'_>;
}

impl Versions for ReadOnly {
    #[inline(always)]
    fn version(&self, stripe_offset: u64) -> FencedRef<'_> {
        FencedRef(self.at((stripe_offset as usize + VERSION_AT) / size_of::<u64>()))
    }
}

/// A reader's view of a filter: its own geometry, and the words and versions of another process.
pub(crate) struct Observed<K: SlotKind = Bare, W = ReadOnly, V = ReadOnly> {
    words: W,
    versions: V,
    geometry: Geometry,
    positions: ShardStrides,
    format: Format,
    kind: K,
    contains: Contains<Self>,
    word_bytes: usize,
}

impl<K: SlotKind, W: Borrow<ReadOnly>, V: Versions> Observed<K, W, V> {
    /// The plan must have been checked, and the memory must hold all of its words and stripes.
    pub(crate) fn new(plan: &Plan, words: W, versions: V) -> Self {
        let format = Format::new(plan.slot_bits);
        Observed {
            words,
            versions,
            geometry: Geometry::new(plan),
            positions: ShardStrides::new(plan, &format),
            format,
            kind: K::new(plan),
            contains: contains_in(plan),
            word_bytes: plan.shards * plan.words as usize * size_of::<u64>(),
        }
    }

    /// Whether the class of the key is present, or `true` if every attempt failed.
    #[inline]
    pub(crate) fn contains(&self, mixed: Mixed) -> bool {
        self.contains.call(self, mixed)
    }

    /// Like [`contains`](Self::contains), but returns `None` if every attempt failed.
    pub(crate) fn try_contains(&self, mixed: Mixed) -> Option<bool> {
        self.try_retry(mixed)
    }

    /// Stores for each key whether its class is present.
    pub(crate) fn contains_each(&self, next: Next<'_>, found: &mut [bool]) {
        contains_each_in(self, self.word_bytes, next, found);
    }
}

impl<K: SlotKind, W: Borrow<ReadOnly>, V: Versions> Probed for Observed<K, W, V> {
    type Positions = ShardStrides;
    type Source = ReadOnly;
    type Kind = K;

    const REPEATS: Option<u32> = Some(REPEATS);

    #[inline(always)]
    fn shape(&self) -> Shape<'_, Self> {
        let Observed { geometry, positions, format, kind, .. } = self;
        Shape { source: self.words.borrow(), geometry, positions: *positions, format, slots: kind.slots() }
    }

    #[inline(always)]
    fn version(&self, stripe_offset: u64) -> impl Watch {
        self.versions.version(stripe_offset)
    }
}

/// Versions of a filter of this process, for models.
#[cfg(all(test, cuckoo_loom))]
impl Versions for &Shards {
    fn version(&self, stripe_offset: u64) -> FencedRef<'_> {
        self.stripes.at_byte(stripe_offset as usize).fenced_version()
    }
}

#[cfg(all(test, cuckoo_loom))]
impl<'a> Observed<Bare, &'a ReadOnly, &'a Shards> {
    /// Reads the shards of this process as another process reads them.
    pub(crate) fn of(shards: &'a Shards) -> Self {
        Observed::new(&shards.plan, ReadOnly::over(&shards.words), shards)
    }
}
