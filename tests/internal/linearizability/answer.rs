//! The oracle of classes: the answer of an operation on one class, and the numbers of copies that explain it.
//!
//! It uses nothing of the library, because the testkit includes this file, too.

/// The number of copies of a class that its two buckets hold.
pub const MAX_COPIES: u8 = 8;

/// The answer of an operation on one class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// An insertion stored a copy.
    Stored,
    /// An insertion found no room, because its two buckets also hold other classes.
    Full,
    /// An insertion found 8 copies.
    TooManyCopies,
    /// A unique insertion stored the class.
    Admitted,
    /// A unique insertion found the class.
    Present,
    /// A unique insertion found no room.
    NotAdmitted,
    /// The result of a lookup.
    Found(bool),
    /// The result of a count.
    Counted(u8),
    /// The result of a removal.
    Removed(bool),
    /// The result of a removal of all copies.
    RemovedAll(u8),
    /// The filter was cleared.
    Cleared,
}

impl Answer {
    /// The answer of a count, which is wrong above 8.
    pub fn counted(copies: usize) -> Self {
        Answer::Counted(copies.try_into().unwrap_or(u8::MAX))
    }

    /// The answer of a removal of all copies, which is wrong above 8.
    pub fn removed_all(copies: usize) -> Self {
        Answer::RemovedAll(copies.try_into().unwrap_or(u8::MAX))
    }

    /// Returns the number of copies after the operation, given the number before; `None` if the answer is wrong for that number.
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

    /// Returns whether an insertion was refused.
    pub fn is_refusal(self) -> bool {
        matches!(self, Answer::Full | Answer::TooManyCopies | Answer::NotAdmitted)
    }
}
