//! The two buckets of a class in a shard or a table: how one follows from the other.

use super::{Bucket, Fingerprint};
use crate::layout::plan::Plan;

/// The numbers from which the alternate of a bucket is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Alternates {
    /// Even, at most 2^16.
    pub(super) buckets: u32,
    /// 2^f - 1, of the fingerprint or of its core.
    pub(super) fingerprints: u32,
    /// 2^k - 1 for the largest 2^k up to the number of bases, above the extension.
    sums: u32,
    /// The lowest bits of a bucket's number, which refills add (`growth`); 0 where all buckets are bases.
    pub(super) extension_bits: u32,
    /// A mask of these bits, and one with the next bit.
    pub(super) extensions: u32,
    ones: u32,
    /// [`GOLDEN`], shifted by `extension_bits`.
    golden: u32,
}

/// 2^32 divided by the golden ratio.
const GOLDEN: u32 = 0x9e37_79b9;

impl Alternates {
    pub(crate) fn new(plan: &Plan) -> Self {
        let bases = plan.buckets >> plan.extension_bits;
        debug_assert!(bases >= 2 && bases.is_multiple_of(2) && bases << plan.extension_bits == plan.buckets);
        Alternates {
            buckets: plan.buckets,
            fingerprints: u32::MAX >> (32 - plan.core_bits()),
            sums: u32::MAX >> (bases.leading_zeros() + 1) << plan.extension_bits,
            extension_bits: plan.extension_bits,
            extensions: !(u32::MAX << plan.extension_bits),
            ones: !(u32::MAX << 1 << plan.extension_bits),
            golden: GOLDEN << plan.extension_bits,
        }
    }

    /// Returns the other candidate bucket of a fingerprint in `bucket`. Its own inverse.
    ///
    /// The two candidates add up to `sum(fingerprint)` modulo the number of buckets. That number is even and the sum is odd, so the
    /// candidates never coincide: coinciding candidates cause most refusals in small filters. In a growing filter the sum is that
    /// of the core, which every table stores.
    #[inline(always)]
    pub(crate) fn alternate(&self, fingerprint: Fingerprint, bucket: Bucket) -> Bucket {
        let core = fingerprint.0 & self.fingerprints;
        if self.extension_bits == 0 {
            self.opposite::<false>(core, bucket)
        } else {
            self.opposite::<true>(core, bucket)
        }
    }

    /// Returns the alternate of a bucket, which may be extended if `EXTENDED`. The sum is that of the bases, above bits
    /// that are all 1: the extension is subtracted from them without a carry into the base.
    #[inline(always)]
    pub(super) fn opposite<const EXTENDED: bool>(&self, core: u32, bucket: Bucket) -> Bucket {
        let drawn = self.drawn_from::<EXTENDED>(core);
        // A difference below zero is the larger number.
        let difference = self.sum_of::<EXTENDED>(drawn).wrapping_sub(bucket.0);
        self.extended::<EXTENDED>(difference.min(difference.wrapping_add(self.buckets)), drawn)
    }

    /// As `opposite`, with fewer instructions where there are no vectors. The caller passes the number of buckets, which
    /// it has read already: if it is read only here, the compiler uses a branch that cannot be predicted (1.4 times a
    /// lookup).
    #[inline(always)]
    pub(super) fn other<const EXTENDED: bool>(&self, core: u32, bucket: Bucket, buckets: u32) -> Bucket {
        // As `drawn_from`, with an equal lower half: the rotation has an instruction that copies.
        let product = core.wrapping_mul(if EXTENDED { self.golden } else { GOLDEN });
        let drawn = product ^ product.rotate_right(16);
        let (difference, is_below_zero) = self.sum_of::<EXTENDED>(drawn).overflowing_sub(bucket.0);
        self.extended::<EXTENDED>(if is_below_zero { difference.wrapping_add(buckets) } else { difference }, drawn)
    }

    /// Draws the sum of a class, above the bits of an extension, from a nonlinear mix of the core: a bare multiply-shift
    /// costs 3.5 points of load at 4 bits and half a point at 8, in shards of 2^16 buckets. The bits of the extension
    /// are another draw: without it, the extensions of both buckets would be equal, and tables would refuse keys at a
    /// load of 0.71.
    #[inline(always)]
    fn drawn_from<const EXTENDED: bool>(&self, core: u32) -> u32 {
        let product = core.wrapping_mul(if EXTENDED { self.golden } else { GOLDEN });
        product ^ (product >> 16)
    }

    /// Returns an odd number below the number of buckets. Sums below a power of two save a multiplication, and cost load
    /// only in filters of a few buckets (`plan`).
    #[inline(always)]
    fn sum_of<const EXTENDED: bool>(&self, drawn: u32) -> u32 {
        drawn & self.sums | if EXTENDED { self.ones } else { 1 }
    }

    #[inline(always)]
    fn extended<const EXTENDED: bool>(&self, bucket: u32, drawn: u32) -> Bucket {
        Bucket(if EXTENDED { bucket ^ drawn & self.extensions } else { bucket })
    }

    /// Returns the first `level` bits of the extension of a class with this core and this bucket, in a table of that level.
    ///
    /// Each class has one bucket of an even base, whose number contains the extension. In the number of the other bucket, all bits
    /// of the extension are inverted, except those of a draw from the core.
    #[inline(always)]
    pub(super) fn extension_at(&self, fingerprint: u32, level: u32, bucket: Bucket) -> u32 {
        let is_odd = 0_u32.wrapping_sub(bucket.0 >> level & 1);
        let apart = (!self.drawn_from::<true>(fingerprint & self.fingerprints) & self.extensions)
            >> (self.extension_bits - level);
        bucket.0 & (self.extensions >> (self.extension_bits - level)) ^ is_odd & apart
    }

    /// Returns whether the next bit of the extension of this bucket differs from that of the reserve, for the core of this
    /// fingerprint.
    pub(crate) fn is_apart(&self, fingerprint: u32, bucket: Bucket, level: u32) -> bool {
        self.extension_at(fingerprint, level + 1, Bucket(bucket.0 << 1)) & 1 == 1
    }

    /// As [`Alternates::is_apart`], for the last bit of the extension, of a bucket before its last refill.
    pub(crate) fn is_apart_in_last(&self, fingerprint: u32, bucket: Bucket) -> bool {
        self.is_apart(fingerprint, bucket, self.extension_bits - 1)
    }
}
