//! The shards of a filter, side by side: all words in one buffer, all stripes in another. Lookups read no record of a
//! shard.

use super::probe::Shape;
use super::stripe::{STRIPE_BYTES, Stripe, VersionRef};
use crate::layout::{Format, Plan};
use crate::sys::memory::{Buffer, Source};
use crate::sys::sync::{AtomicU64, Flag};
use crate::sys::unaligned;
use core::panic::{RefUnwindSafe, UnwindSafe};
use crossbeam_utils::CachePadded;

/// The number of words behind the last bucket that a lookup may read.
const SPARE: usize = if unaligned::AVAILABLE { 1 } else { 2 };

/// Lookups in a table of a growing filter read the first fields alone.
#[repr(C)]
pub(crate) struct Shards {
    /// The words of all shards, and [`SPARE`] words that stay zero.
    pub(super) words: Buffer<AtomicU64>,
    pub(super) stripes: Buffer<CachePadded<Stripe>>,
    pub(super) shape: Shape<ShardStrides>,
    /// Per shard, whether a panic interrupted a change.
    pub(super) interrupted: Buffer<Flag>,
    pub(crate) plan: Plan,
    /// Whether words and stripes outlive this process.
    noted: bool,
}

/// The distances of buckets and stripes.
#[derive(Clone, Copy)]
pub(crate) struct ShardStrides {
    pub(super) bucket_bits: u64,
    /// The bytes of all stripes of a shard.
    pub(super) stripes: u64,
    /// A stripe covers `1 << stripe_shift` buckets.
    pub(super) stripe_shift: u32,
}

impl ShardStrides {
    pub(super) fn new(plan: &Plan, format: &Format) -> Self {
        ShardStrides {
            bucket_bits: format.bucket_bits,
            stripes: (plan.stripes * STRIPE_BYTES) as u64,
            stripe_shift: plan.stripe_shift,
        }
    }
}

// No user code runs under the lock of a stripe, so only a bug of this crate could leave a change half made. Even that
// loses no other key, and it is noted (`poison`).
impl UnwindSafe for Shards {}
impl RefUnwindSafe for Shards {}

impl Shards {
    /// Returns empty shards, or `None` if allocation fails.
    pub(crate) fn new(plan: &Plan, source: Source<'_>) -> Option<Self> {
        let words = Buffer::new(Self::words_of(plan)?, source)?;
        let stripes = Buffer::new(Self::stripes_of(plan)?, source)?;
        Shards::of_memory(plan, words, stripes, source, false)
    }

    fn of_memory(
        plan: &Plan,
        words: Buffer<AtomicU64>,
        stripes: Buffer<CachePadded<Stripe>>,
        source: Source<'_>,
        noted: bool,
    ) -> Option<Self> {
        Some(Shards {
            shape: Shape::new(plan, |format| ShardStrides::new(plan, format)),
            words,
            stripes,
            interrupted: Buffer::new(plan.shards, source)?,
            plan: *plan,
            noted,
        })
    }

    /// Shards in the memory of a file that other processes read and the next one takes over. Returns `None` if the
    /// allocation of private memory fails.
    #[cfg(all(feature = "shared", target_os = "linux"))]
    pub(crate) fn shared(plan: &Plan, words: Buffer<AtomicU64>, stripes: Buffer<CachePadded<Stripe>>) -> Option<Self> {
        Shards::of_memory(plan, words, stripes, crate::sys::memory::HugePages::Unadvised.into(), true)
    }

    /// Whether changes of several stores are noted first (`intent`).
    #[inline(always)]
    pub(super) fn is_noted(&self) -> bool {
        cfg!(all(feature = "shared", target_os = "linux")) && self.noted
    }

    /// The number of words.
    pub(crate) fn words_of(plan: &Plan) -> Option<usize> {
        plan.shards.checked_mul(plan.words)?.checked_add(SPARE)
    }

    /// The number of stripes.
    pub(crate) fn stripes_of(plan: &Plan) -> Option<usize> {
        plan.shards.checked_mul(plan.stripes)
    }

    /// The memory of shards in bytes, or `None` if it exceeds the address space.
    pub(crate) fn bytes_of(plan: &Plan) -> Option<usize> {
        let words = Buffer::<AtomicU64>::bytes_of(Self::words_of(plan)?)?;
        let stripes = Buffer::<CachePadded<Stripe>>::bytes_of(Self::stripes_of(plan)?)?;
        let bytes = words.checked_add(stripes)?.checked_add(plan.shards * size_of::<Flag>())?;
        isize::try_from(bytes).is_ok().then_some(bytes)
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        Self::bytes_of(&self.plan).unwrap_or(usize::MAX)
    }

    /// The memory of all words in bytes.
    #[inline]
    pub(crate) fn word_bytes(&self) -> usize {
        self.plan.shards * self.plan.words * size_of::<u64>()
    }

    /// Whether most words are in the caches of a core.
    pub(crate) fn is_near(&self) -> bool {
        const NEAR_TABLE: usize = 8 << 20;
        self.word_bytes() <= NEAR_TABLE
    }

    #[inline(always)]
    pub(super) fn version(&self, stripe_offset: u64) -> VersionRef<'_> {
        self.stripes.at_byte(stripe_offset as usize).version()
    }
}
