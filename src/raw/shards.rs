//! The shards of a filter, side by side: one run of words, one run of stripes, and the numbers that find a place in both. No
//! record of a shard is read on the way.

use super::probe::Shape;
use super::stripe::{STRIPE_BYTES, Stripe, VersionRef};
use crate::layout::{Format, Geometry, Plan};
use crate::sys::memory::{Buffer, Source};
use crate::sys::sync::{AtomicU64, Flag};
use crate::sys::unaligned;
use core::panic::{RefUnwindSafe, UnwindSafe};
use crossbeam_utils::CachePadded;

/// Words behind the last bucket, as many as a lookup may read there.
const SPARE: usize = if unaligned::AVAILABLE { 1 } else { 2 };

/// Of a table of a growing filter, lookups read the first fields alone.
#[repr(C)]
pub(crate) struct Shards {
    /// Those of all shards, one after the other, and [`SPARE`] that stay zero: lookups read the word behind a bucket, too.
    pub(super) words: Buffer<AtomicU64>,
    pub(super) stripes: Buffer<CachePadded<Stripe>>,
    pub(super) shape: Shape<ShardStrides>,
    /// For each shard, whether a panic interrupted a change of it.
    pub(super) interrupted: Buffer<Flag>,
    plan: Plan,
    /// Whether words and stripes outlive this process.
    noted: bool,
}

/// How far apart buckets and stripes are.
#[derive(Clone, Copy)]
pub(crate) struct ShardStrides {
    pub(super) bucket_bits: u64,
    /// Bytes of the stripes of a shard.
    pub(super) stripes: u64,
    /// A stripe is `1 << stripe_shift` buckets.
    pub(super) stripe_shift: u32,
}

impl ShardStrides {
    pub(super) fn new(plan: &Plan, format: &Format) -> Self {
        ShardStrides {
            bucket_bits: format.bucket_bits(),
            stripes: (plan.stripes * STRIPE_BYTES) as u64,
            stripe_shift: plan.stripe_shift,
        }
    }
}

// No user code runs while a stripe is locked, so only a fault of this crate could leave a change half made. Even that
// loses no other key, and what it leaves is noted (`poison`).
impl UnwindSafe for Shards {}
impl RefUnwindSafe for Shards {}

impl Shards {
    /// Empty ones. `None` when there is no memory.
    pub(crate) fn new(plan: &Plan, source: Source<'_>) -> Option<Self> {
        let words = Buffer::new(Self::words_of(plan)?, source)?;
        let stripes = Buffer::new(Self::stripes_of(plan)?, source)?;
        Shards::of_memory(plan, words, stripes, source)
    }

    /// In this memory, with what it holds.
    fn of_memory(
        plan: &Plan,
        words: Buffer<AtomicU64>,
        stripes: Buffer<CachePadded<Stripe>>,
        source: Source<'_>,
    ) -> Option<Self> {
        Some(Shards {
            shape: Shape::new(plan, |format| ShardStrides::new(plan, format)),
            words,
            stripes,
            interrupted: Buffer::new(plan.shards, source)?,
            plan: *plan,
            noted: false,
        })
    }

    /// In the memory of a file, which other processes read and the next one takes over. `None` when there is no memory for what
    /// is this process's own.
    #[cfg(all(feature = "shared", target_os = "linux"))]
    pub(crate) fn shared(plan: &Plan, words: Buffer<AtomicU64>, stripes: Buffer<CachePadded<Stripe>>) -> Option<Self> {
        let shards = Shards::of_memory(plan, words, stripes, crate::sys::memory::HugePages::Unadvised.into())?;
        Some(Shards { noted: true, ..shards })
    }

    /// Whether what takes several stores is noted first (`intent`).
    #[inline(always)]
    pub(super) fn is_noted(&self) -> bool {
        cfg!(all(feature = "shared", target_os = "linux")) && self.noted
    }

    /// How many words there are.
    pub(crate) fn words_of(plan: &Plan) -> Option<usize> {
        plan.shards.checked_mul(plan.words)?.checked_add(SPARE)
    }

    /// How many stripes there are.
    pub(crate) fn stripes_of(plan: &Plan) -> Option<usize> {
        plan.shards.checked_mul(plan.stripes)
    }

    /// The memory behind this value, in bytes; `None` if no address space holds it.
    pub(crate) fn bytes_of(plan: &Plan) -> Option<usize> {
        let words = Buffer::<AtomicU64>::bytes_of(Self::words_of(plan)?)?;
        let stripes = Buffer::<CachePadded<Stripe>>::bytes_of(Self::stripes_of(plan)?)?;
        let bytes = words.checked_add(stripes)?.checked_add(plan.shards * size_of::<Flag>())?;
        isize::try_from(bytes).is_ok().then_some(bytes)
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        Self::bytes_of(&self.plan).unwrap_or(usize::MAX)
    }

    /// Memory of all words, in bytes.
    #[inline]
    pub(crate) fn table_bytes(&self) -> usize {
        self.plan.shards * self.plan.words * size_of::<u64>()
    }

    /// Whether most of the words are in a core's own caches: the lines of larger tables come from memory, most of them.
    pub(crate) fn is_near(&self) -> bool {
        const NEAR_TABLE: usize = 8 << 20;
        self.table_bytes() <= NEAR_TABLE
    }

    #[inline(always)]
    pub(crate) fn plan(&self) -> &Plan {
        &self.plan
    }

    pub(crate) fn geometry(&self) -> &Geometry {
        &self.shape.geometry
    }

    #[inline(always)]
    pub(super) fn version(&self, stripe_offset: u64) -> VersionRef<'_> {
        self.stripes.at_byte(stripe_offset as usize).version()
    }
}
