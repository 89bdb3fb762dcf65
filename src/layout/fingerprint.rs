//! What a slot holds of a key.

/// A stored value: 1 to 2^f - 1. The 0 of an empty slot is never a fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fingerprint(pub(super) u32);

impl Fingerprint {
    /// The lower bits of a whole fingerprint that a table stores; the core, which is not 0, is among them.
    #[inline(always)]
    pub(crate) fn lower(self, mask: u32) -> Self {
        Fingerprint(self.0 & mask)
    }

    /// A whole fingerprint, of which a table stores the lower bits.
    pub(crate) fn with(self, above: u32) -> Self {
        Fingerprint(self.0 | above)
    }

    /// `None` for the 0 of an empty slot.
    #[inline]
    pub(crate) fn from_slot(slot: u32) -> Option<Self> {
        (slot != 0).then_some(Fingerprint(slot))
    }

    #[inline]
    pub(crate) fn get(self) -> u32 {
        self.0
    }
}
