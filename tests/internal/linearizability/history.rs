//! What operations answered, and when.

use super::answer::Answer;

/// An answer, given between two moments.
#[derive(Clone, Copy, Debug)]
pub(super) struct Event {
    pub(super) answer: Answer,
    pub(super) begin: u64,
    pub(super) end: u64,
}

/// All answers about one class.
#[derive(Clone, Debug)]
pub(super) struct History {
    /// Copies before the first answer.
    pub(super) copies: u8,
    pub(super) events: Vec<Event>,
}
