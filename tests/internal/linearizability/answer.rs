//! The oracle of classes: what an operation answered about one class, and which counts of copies explain it.
//!
//! Names nothing of the library, because the testkit includes this file, too.

/// Copies of a class that its two buckets hold.
pub const MAX_COPIES: u8 = 8;

/// What an operation answered about one class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// An insertion stored a copy.
    Stored,
    /// An insertion found no room, though the pair of buckets also holds other classes.
    Full,
    /// An insertion found 8 copies.
    TooManyCopies,
    /// A unique insertion stored the class.
    Admitted,
    /// A unique insertion found the class there.
    Present,
    /// A unique insertion found no room.
    NotAdmitted,
    /// What a lookup returned.
    Found(bool),
    /// What a count returned.
    Counted(u8),
    /// What a removal returned.
    Removed(bool),
    /// What a removal of all copies returned.
    RemovedAll(u8),
    /// The filter was cleared.
    Cleared,
}

impl Answer {
    /// Of a count, which is wrong above 8.
    pub fn counted(copies: usize) -> Self {
        Answer::Counted(copies.try_into().unwrap_or(u8::MAX))
    }

    /// Of a removal of all copies, which is wrong above 8.
    pub fn removed_all(copies: usize) -> Self {
        Answer::RemovedAll(copies.try_into().unwrap_or(u8::MAX))
    }

    /// The copies after the operation if there were this many before; `None` if the answer was wrong then.
    pub fn after(self, copies: u8) -> Option<u8> {
        let (can_be, after) = match self {
            Answer::Stored => (copies < MAX_COPIES, copies + 1),
            Answer::Full => (copies < MAX_COPIES, copies),
            Answer::TooManyCopies => (copies == MAX_COPIES, copies),
            Answer::Admitted => (copies == 0, 1),
            Answer::NotAdmitted => (copies == 0, copies),
            Answer::Present => (copies > 0, copies),
            Answer::Found(found) => (found == (copies > 0), copies),
            Answer::Counted(counted) => (counted == copies, copies),
            Answer::Removed(removed) => (removed == (copies > 0), copies.saturating_sub(1)),
            Answer::RemovedAll(removed) => (removed == copies, 0),
            Answer::Cleared => (true, 0),
        };
        can_be.then_some(after)
    }

    /// Whether an insertion was refused.
    pub fn is_refusal(self) -> bool {
        matches!(self, Answer::Full | Answer::TooManyCopies | Answer::NotAdmitted)
    }
}
