//! What operations answered, and when.

use super::answer::Answer;
use super::check::Says;

/// An answer, given between two moments.
#[derive(Clone, Copy, Debug)]
pub(super) struct Event<A = Answer> {
    pub(super) answer: A,
    pub(super) begin: u64,
    pub(super) end: u64,
}

/// All answers about one class.
#[derive(Clone, Debug)]
pub(super) struct History<A: Says = Answer> {
    /// Copies before the first answer.
    pub(super) copies: A::State,
    pub(super) events: Vec<Event<A>>,
}
