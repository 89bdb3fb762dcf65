//! The records of a snapshot as constant shards at equal distances.

use crate::layout::{Format, Geometry, Place};
use crate::raw::probe::BucketLayout;
use crate::raw::{Bare, Contains, Positions, Probed, Shape, Watch, contains_in};
use crate::snapshot::Stored;
use crate::sys::bytes::Bytes;

/// Bytes after a bucket that lookups may read. The trailer follows the last record.
pub(super) const SPARE: usize = 3 * size_of::<u64>();

pub(super) struct Records<'a> {
    pub(super) bytes: Bytes<'a>,
    pub(super) contains: Contains<Records<'a>>,
    geometry: Geometry,
    positions: RecordStrides,
    format: Format,
}

/// The offset of the words of the first shard, and the distances between shards and between buckets, in bits.
#[derive(Clone, Copy)]
pub(super) struct RecordStrides {
    first: u64,
    shard: u64,
    bucket: u64,
}

impl<'a> Records<'a> {
    /// Creates the shards of a snapshot whose records have equal length.
    pub(super) fn new(bytes: Bytes<'a>, stored: &Stored) -> Self {
        let (plan, first, stride) = (stored.plan(), stored.first, stored.stride());
        let end = first + (plan.shards - 1) * stride + plan.words as usize * size_of::<u64>();
        assert!(end + SPARE <= bytes.len(), "a trailer follows the last record");
        let (first, shard) = (8 * first as u64, 8 * stride as u64);
        let format = Format::new(plan.slot_bits);
        let positions = RecordStrides { first, shard, bucket: format.bucket_bits };
        Records { bytes, contains: contains_in(plan), geometry: Geometry::new(plan), positions, format }
    }
}

impl<'a> Probed for Records<'a> {
    type Positions = RecordStrides;
    type Source = Bytes<'a>;
    type Kind = Bare;

    #[inline(always)]
    fn shape(&self) -> Shape<'_, Self> {
        let Records { bytes, geometry, positions, format, .. } = self;
        Shape { source: bytes, geometry, positions: *positions, format, slots: Bare }
    }

    #[inline(always)]
    fn version(&self, _: u64) -> impl Watch {}
}

impl Positions for RecordStrides {
    #[inline(always)]
    fn narrow(self) -> Self {
        let narrow = |number: u64| number & u64::from(u32::MAX);
        RecordStrides { shard: narrow(self.shard), bucket: narrow(self.bucket), ..self }
    }

    #[inline(always)]
    fn begins<L: BucketLayout>(self, Place { shard, class, .. }: Place) -> [u64; 2] {
        let begin = self.first + shard * self.shard;
        let [first, second] = [class.first, class.second].map(|bucket| u64::from(bucket.get()));
        if L::UNIT {
            [first, second].map(|bucket| begin / 64 + bucket)
        } else {
            [first, second].map(|bucket| begin + bucket * self.bucket)
        }
    }

    #[inline(always)]
    fn stripe_offset(self, _: Place) -> u64 {
        0
    }
}
