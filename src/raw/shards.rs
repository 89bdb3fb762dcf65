//! The shards of a filter, side by side: all words in one buffer, all stripes in another. Lookups read no record of a
//! shard.

use super::stripe::{Stripe, VersionRef};
use crate::layout::{Alternates, Format, Plan};
use crate::sys::memory::{Buffer, Source};
use crate::sys::sync::AtomicU64;
use crate::sys::unaligned;
use core::panic::{RefUnwindSafe, UnwindSafe};
use crossbeam_utils::CachePadded;

/// The number of words behind the last bucket that a lookup may read. One with tags may be read with all of 16 bytes.
fn spare(plan: &Plan) -> usize {
    if unaligned::AVAILABLE && plan.tag_bits == 0 { 1 } else { 2 }
}

/// Lookups in a table of a growing filter read the first fields alone, beside the numbers of its record.
#[repr(C)]
pub(crate) struct Shards {
    /// The words of all shards, and [`spare`] words that stay zero.
    pub(super) words: Buffer<AtomicU64>,
    pub(super) stripes: Buffer<CachePadded<Stripe>>,
    pub(super) format: Format,
    pub(crate) plan: Plan,
    pub(super) alternates: Alternates,
    /// Whether words and stripes outlive this process.
    noted: bool,
}

/// The distances of buckets and stripes.
#[derive(Clone, Copy)]
pub(crate) struct ShardStrides {
    pub(super) bucket_bits: u64,
    /// The stripes of a shard.
    pub(super) stripes: u64,
    /// A stripe covers `1 << stripe_shift` buckets.
    pub(super) stripe_shift: u32,
}

impl ShardStrides {
    #[inline(always)]
    pub(super) fn new(plan: &Plan, format: &Format) -> Self {
        ShardStrides {
            bucket_bits: format.bucket_bits,
            stripes: u64::from(plan.stripes),
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
        Some(Shards::of_memory(plan, words, stripes, false))
    }

    fn of_memory(plan: &Plan, words: Buffer<AtomicU64>, stripes: Buffer<CachePadded<Stripe>>, noted: bool) -> Self {
        let (alternates, format) = (Alternates::new(plan), Format::new(plan.slot_bits));
        Shards { words, stripes, format, plan: *plan, alternates, noted }
    }

    /// Shards in the memory of a file that other processes read and the next one takes over.
    #[cfg(all(feature = "shared", target_os = "linux"))]
    pub(crate) fn shared(plan: &Plan, words: Buffer<AtomicU64>, stripes: Buffer<CachePadded<Stripe>>) -> Self {
        Shards::of_memory(plan, words, stripes, true)
    }

    #[inline(always)]
    pub(super) fn positions(&self) -> ShardStrides {
        ShardStrides::new(&self.plan, &self.format)
    }

    /// Whether changes of several stores are noted first (`intent`).
    #[inline(always)]
    pub(super) fn is_noted(&self) -> bool {
        cfg!(all(feature = "shared", target_os = "linux")) && self.noted
    }

    /// The number of words.
    pub(crate) fn words_of(plan: &Plan) -> Option<usize> {
        plan.shards.checked_mul(plan.words as usize)?.checked_add(spare(plan))
    }

    /// The number of stripes.
    pub(crate) fn stripes_of(plan: &Plan) -> Option<usize> {
        plan.shards.checked_mul(plan.stripes as usize)
    }

    /// The memory of shards in bytes, or `None` if it exceeds the address space.
    pub(crate) fn bytes_of(plan: &Plan) -> Option<usize> {
        let words = Buffer::<AtomicU64>::bytes_of(Self::words_of(plan)?)?;
        let stripes = Buffer::<CachePadded<Stripe>>::bytes_of(Self::stripes_of(plan)?)?;
        words.checked_add(stripes).filter(|&bytes| isize::try_from(bytes).is_ok())
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        Self::bytes_of(&self.plan).unwrap_or(usize::MAX)
    }

    /// The memory of all words in bytes.
    #[inline]
    pub(crate) fn word_bytes(&self) -> usize {
        self.plan.shards * self.plan.words as usize * size_of::<u64>()
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
