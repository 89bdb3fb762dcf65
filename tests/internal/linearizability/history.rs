//! What operations said, and when.

/// Copies of a class that its pair of buckets holds.
pub(super) const MAX_COPIES: u8 = 8;

/// What an operation said of one class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fact {
    Stored,
    /// An insertion of copies found no room, though the pair holds other classes too.
    Full,
    TooManyCopies,
    Admitted,
    /// A unique insertion found the class there.
    Present,
    /// A unique insertion found no room.
    NotAdmitted,
    Found(bool),
    /// A lookup said yes while somebody was writing, at a width at which slots lie in two words: it may have seen
    /// half of a slot.
    FoundBesideAWriter,
    Counted(u8),
    Removed(bool),
    RemovedAll(u8),
    Cleared,
}

impl Fact {
    /// The copies afterwards if there were so many before; `None` if that cannot be.
    pub(super) fn after(self, copies: u8) -> Option<u8> {
        let (can_be, after) = match self {
            Fact::Stored => (copies < MAX_COPIES, copies + 1),
            Fact::Full => (copies < MAX_COPIES, copies),
            Fact::TooManyCopies => (copies == MAX_COPIES, copies),
            Fact::Admitted => (copies == 0, 1),
            Fact::NotAdmitted => (copies == 0, copies),
            Fact::Present => (copies > 0, copies),
            Fact::Found(found) => (found == (copies > 0), copies),
            Fact::FoundBesideAWriter => (true, copies),
            Fact::Counted(counted) => (counted == copies, copies),
            Fact::Removed(removed) => (removed == (copies > 0), copies.saturating_sub(1)),
            Fact::RemovedAll(removed) => (removed == copies, 0),
            Fact::Cleared => (true, 0),
        };
        can_be.then_some(after)
    }

    /// Whether the count of the class stays as it is.
    pub(super) fn only_tells(self) -> bool {
        !matches!(self, Fact::Stored | Fact::Admitted | Fact::Removed(true) | Fact::RemovedAll(1..) | Fact::Cleared)
    }

    /// Whether the words may have changed, if only because a fingerprint moved.
    pub(super) fn may_write(self) -> bool {
        !matches!(self, Fact::Found(_) | Fact::FoundBesideAWriter | Fact::Counted(_) | Fact::Present)
    }

    /// Whether this is said by insertions, which may relocate other fingerprints.
    pub(super) fn may_relocate(self) -> bool {
        let refused = matches!(self, Fact::Full | Fact::TooManyCopies | Fact::Present | Fact::NotAdmitted);
        refused || matches!(self, Fact::Stored | Fact::Admitted)
    }

    /// How many copies this adds or takes away, whatever there were; `None` for a clear.
    #[cfg(not(cuckoo_shuttle))]
    pub(super) fn difference(self) -> Option<i32> {
        match self {
            Fact::Stored | Fact::Admitted => Some(1),
            Fact::Removed(true) => Some(-1),
            Fact::RemovedAll(copies) => Some(-i32::from(copies)),
            Fact::Cleared => None,
            _ => Some(0),
        }
    }
}

/// A fact, said between two moments.
#[derive(Clone, Copy, Debug)]
pub(super) struct Event {
    pub(super) fact: Fact,
    pub(super) begin: u64,
    pub(super) end: u64,
}

/// All that was said of one class.
#[derive(Clone, Debug)]
pub(super) struct History {
    /// Copies before anything was said.
    pub(super) copies: u8,
    pub(super) events: Vec<Event>,
}
