//! The results of operations on one class, and their meaning for its copies.

use crate::InsertError;
use crate::layout::Tags;
use crate::raw::{IfPresent, Put};

/// The values of the copies of a class, in order, with 0 for a missing copy. The value of a bare slot is 1.
pub(super) type Values = [u32; 8];

/// The value of each copy plus one epoch, in order. A copy with a single epoch died at the last tick; 0 is no copy.
pub(super) type Left = [u32; 8];

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Said {
    Put {
        value: u32,
        if_present: IfPresent,
        had: Result<u32, InsertError>,
    },
    Raised {
        value: u32,
        had: u32,
    },
    Removed(u32),
    RemovedAll(usize),
    /// A subtraction of one from a count with this value.
    Subtracted(u32),
    Found(bool),
    Counted(usize),
    /// The largest value of a class that has at most one copy.
    Largest(u32),
    Copied(Values),
    Ticked,
    Cleared,
}

/// A result between two moments.
#[derive(Clone, Copy, Debug)]
pub(super) struct Event {
    pub(super) said: Said,
    pub(super) begin: u64,
    pub(super) end: u64,
    /// Whether a tick was concurrent. A thread that has read the epoch before the tick may go by it: then each copy has one tick
    /// more left.
    pub(super) beside_a_tick: bool,
    /// Whether a lookup that returned `true` may have read half of a slot.
    pub(super) half_read: bool,
}

impl Event {
    pub(super) fn new(said: Said, begin: u64, end: u64) -> Self {
        Event { said, begin, end, beside_a_tick: false, half_read: false }
    }

    /// Returns whether either of the two may have come first.
    pub(super) fn overlaps(&self, &(begin, end): &(u64, u64)) -> bool {
        begin <= self.end && self.begin <= end
    }

    /// Returns the possible states after the operation, given the state before; none if the result is wrong for it.
    pub(super) fn left_after(self, left: Left, tags: Tags) -> impl Iterator<Item = Left> {
        let late = u32::from(self.beside_a_tick && self.said.goes_by_the_epoch());
        let told = (self.half_read && self.said == Said::Found(true)).then_some(left);
        told.into_iter().chain((0..=late).filter_map(move |late| self.said.after(left, tags, late)))
    }
}

impl Said {
    pub(super) fn put(put: Put, had: Result<u32, InsertError>) -> Self {
        Said::Put { value: put.value, if_present: put.if_present, had }
    }

    pub(super) fn only_tells(self) -> bool {
        matches!(self, Said::Found(_) | Said::Counted(_) | Said::Largest(_) | Said::Copied(_))
    }

    /// Returns whether words may have changed. An insertion that finds its key or no room may have moved others or split a table
    /// before.
    pub(super) fn may_write(self) -> bool {
        let found_none =
            matches!(self, Said::Raised { had: 0, .. } | Said::Removed(0) | Said::RemovedAll(0) | Said::Subtracted(0));
        !found_none && !self.only_tells()
    }

    /// Returns whether an earlier epoch than the present one may explain the result. A lookup that returns `false` has read the
    /// epoch twice.
    fn goes_by_the_epoch(self) -> bool {
        !matches!(self, Said::Found(false) | Said::Largest(_) | Said::Ticked | Said::Cleared)
    }

    /// Returns the number of copies that the operation added or removed, in any state; `None` for a clear.
    pub(super) fn difference(self) -> Option<i32> {
        match self {
            Said::Put { had: Ok(0), .. } => Some(1),
            Said::Removed(value) => Some(-i32::from(value > 0)),
            Said::RemovedAll(copies) => Some(-(copies as i32)),
            Said::Cleared => None,
            _ => Some(0),
        }
    }

    fn after(self, mut left: Left, tags: Tags, late: u32) -> Option<Left> {
        let epoch = tags.value_for(1);
        let value = |copy: u32| if copy + late * epoch < 2 * epoch { 0 } else { copy + late * epoch - epoch };
        let copy_of = |value: u32| if value == 0 { 0 } else { value + epoch - late * epoch };
        let first = (0..8).filter(|&copy| value(left[copy]) > 0).min_by_key(|&copy| left[copy]);
        let had = first.map_or(0, |first| value(left[first]));
        let live = left.iter().filter(|&&copy| value(copy) > 0).count();
        // Gives the copy that dies first this value, or removes it if the value is 0.
        let mut becomes = |value: u32| {
            if let Some(first) = first {
                left[first] = copy_of(value);
            }
        };
        let right = match self {
            Said::Put { value: asked, if_present, had: Ok(told) } => {
                let is_another = if_present == IfPresent::Another;
                if live == 0 || is_another {
                    let room = (0..8).find(|&copy| value(left[copy]) == 0)?;
                    left[room] = copy_of(asked);
                    told == 0
                } else {
                    becomes(match if_present {
                        IfPresent::Raise => had.max(asked),
                        IfPresent::AddUpTo { most, .. } if tags.count(had) > most.into() => had,
                        IfPresent::Add { renews } | IfPresent::AddUpTo { renews, .. } => tags.sum(had, asked, renews),
                        IfPresent::Another | IfPresent::Keep => had,
                    });
                    told == had
                }
            }
            Said::Put { if_present, had: Err(InsertError::Full), .. } => {
                live == 0 || if_present == IfPresent::Another && live < 8
            }
            Said::Put { if_present, had: Err(error), .. } => {
                error == InsertError::TooManyCopies && if_present == IfPresent::Another && live == 8
            }
            Said::Raised { value, had: told } => {
                becomes(had.max(value));
                told == had
            }
            Said::Removed(told) => {
                becomes(0);
                told == had
            }
            Said::Subtracted(told) => {
                becomes(tags.less_one(had));
                told == had
            }
            Said::RemovedAll(told) => {
                left = Left::default();
                told == live
            }
            Said::Found(found) => found == (live > 0),
            Said::Counted(told) => told == live,
            Said::Largest(told) => told == left.iter().map(|&copy| value(copy)).max()?,
            Said::Copied(copied) => copied == sorted(left.iter().map(|&copy| value(copy))),
            Said::Ticked => {
                left = left.map(|copy| if copy < 2 * epoch { 0 } else { copy - epoch });
                true
            }
            Said::Cleared => {
                left = Left::default();
                true
            }
        };
        left.sort_unstable();
        right.then_some(left)
    }
}

/// The values of this number of copies in bare slots.
pub(super) fn ones(copies: u32) -> Values {
    sorted((0..copies).map(|_| 1))
}

/// Up to eight values, in order.
pub(super) fn sorted(values: impl IntoIterator<Item = u32>) -> Values {
    let mut sorted = Values::default();
    values.into_iter().zip(&mut sorted).for_each(|(value, place)| *place = value);
    sorted.sort_unstable();
    sorted
}
