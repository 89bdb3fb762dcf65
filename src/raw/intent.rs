//! Intents: changes noted in a stripe before their first store, in memory that outlives its process. If the process is
//! killed, the next one completes them (`recovery`; docs/design/shared.md). In-process filters note nothing.

use super::locks::Locked;
use crate::layout::{Bucket, Format, SLOTS, Slot};

/// A change of several stores. Slots are numbered within the shard, or within their bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Intent {
    /// `holds` is stored in this slot, which lies in two words.
    Write { slot: u32, holds: u32 },
    /// `holds` moves from a slot to slot `to` of its other bucket.
    Relocate { from: u32, to: u32, holds: u32 },
    /// All copies of a fingerprint are removed, the next one from this slot.
    RemoveAll { slot: u32, fingerprint: u32 },
    /// All slots of the shard are cleared.
    Clear,
}

const SLOT: u32 = 32;
/// A shard has at most 2^18 slots.
const SLOT_BITS: u32 = 18;
const TO: u32 = SLOT + SLOT_BITS;
const KIND: u32 = 61;

impl Intent {
    /// The intent as a number. 0 stands for none.
    pub(super) fn to_bits(self) -> u64 {
        let (kind, to, slot, holds) = match self {
            Intent::Write { slot, holds } => (1, 0, slot, holds),
            Intent::Relocate { from, to, holds } => (2, to, from, holds),
            Intent::RemoveAll { slot, fingerprint } => (3, 0, slot, fingerprint),
            Intent::Clear => (4, 0, 0, 0),
        };
        debug_assert!(slot < 1 << SLOT_BITS && to < SLOTS as u32);
        kind << KIND | u64::from(to) << TO | u64::from(slot) << SLOT | u64::from(holds)
    }

    /// The intent with these bits, or `None` if no intent has them.
    pub(super) fn from_bits(bits: u64) -> Option<Self> {
        let (holds, slot) = (bits as u32, (bits >> SLOT) as u32 & ((1 << SLOT_BITS) - 1));
        let to = (bits >> TO) as u32 & (SLOTS as u32 - 1);
        let intent = match bits >> KIND {
            1 => Intent::Write { slot, holds },
            2 => Intent::Relocate { from: slot, to, holds },
            3 => Intent::RemoveAll { slot, fingerprint: holds },
            4 => Intent::Clear,
            _ => return None,
        };
        (intent.to_bits() == bits).then_some(intent)
    }
}

/// The number of a slot in its shard.
pub(super) fn number(format: &Format, slot: Slot) -> u32 {
    (slot.begin / u64::from(format.slot_bits)) as u32
}

impl<G> Locked<'_, G> {
    /// Whether changes of several stores must be noted.
    #[inline(always)]
    pub(super) fn is_noted(&self) -> bool {
        self.stripes.shards.is_noted()
    }

    /// Notes a change in the stripe of this bucket.
    #[cold]
    #[inline(never)]
    pub(super) fn intend(&self, bucket: Bucket, intent: Intent) {
        self.assert_holds(bucket);
        self.stripes.of(bucket).set_intent(intent.to_bits());
    }

    /// Takes back the note in the stripe of this bucket.
    #[inline(always)]
    pub(super) fn fulfil(&self, bucket: Bucket) {
        self.stripes.of(bucket).set_intent(0);
    }

    /// Whether the stripe of this bucket holds the note of a change of which the present one is a part.
    pub(super) fn has_intent(&self, bucket: Bucket) -> bool {
        self.stripes.of(bucket).intent() != 0
    }
}

#[cfg(all(test, not(cuckoo_model)))]
mod tests {
    use super::*;

    #[test]
    fn every_intent_is_read_as_it_was_noted_and_nothing_else_is_one() {
        let intents = [0, 1, 77, (1 << SLOT_BITS) - 1].into_iter().flat_map(|slot| {
            [0, 1, u32::MAX].into_iter().flat_map(move |holds| {
                let write =
                    [Intent::Write { slot, holds }, Intent::RemoveAll { slot, fingerprint: holds }, Intent::Clear];
                write.into_iter().chain((0..4).map(move |to| Intent::Relocate { from: slot, to, holds }))
            })
        });
        for intent in intents {
            assert_ne!(intent.to_bits(), 0);
            assert_eq!(Intent::from_bits(intent.to_bits()), Some(intent));
        }
        let (clear, write) = (Intent::Clear.to_bits(), Intent::Write { slot: 3, holds: 9 }.to_bits());
        for other in [1, clear | 1, clear | 1 << SLOT, write | 1 << TO, write | 1 << 55, 5 << KIND, u64::MAX] {
            assert_eq!(Intent::from_bits(other), None, "{other:x}");
        }
    }
}
