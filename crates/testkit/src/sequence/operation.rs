//! Operations on a filter, read from one to three bytes.

use crate::input::Input;
use crate::operations::Single;

/// Consecutive keys, which wrap around after the last one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Keys {
    first: u8,
    count: u8,
    step: u8,
}

impl Keys {
    pub(super) fn of(self, keys: usize) -> impl Iterator<Item = usize> {
        (0..usize::from(self.count)).map(move |i| (usize::from(self.first) + i * usize::from(self.step)) % keys)
    }

    fn read(input: &mut Input) -> Option<Self> {
        let (first, count) = (input.next_byte()?, input.next_byte()?);
        // In every fourth case, copies of one key, up to one more than a filter takes.
        let (count, step) = if count & 3 == 0 { (count % 10, 0) } else { (count >> 3, 1) };
        Some(Keys { first, count, step })
    }
}

/// An operation on many keys, with the number of the way to do it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Many {
    Insert(usize),
    Contains(usize),
    Remove(usize),
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Whole {
    Clear,
    /// Writes a snapshot, and continues with the filter that is read from it.
    Copy,
    /// The same by parts.
    Join,
    /// Merges the other filter into this one.
    Merge,
    MergeItself,
    /// Turns a copy of the other filter into one of this filter by the difference of their snapshots.
    Delta,
    /// Continues with the other filter.
    Swap,
    CheckAll,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Operation {
    /// With whether the key is given by its hash.
    One(Single, u8, bool),
    Many(Many, Keys),
    Whole(Whole),
}

impl Operation {
    pub(super) fn read(input: &mut Input) -> Option<Self> {
        let kind = input.next_byte()?;
        let by_hash = kind & 0x80 > 0;
        let mut one = |what| Some(Operation::One(what, input.next_byte()?, by_hash));
        match kind & 0x7f {
            0..24 => one(Single::Insert),
            24..40 => one(Single::InsertUnique),
            40..46 => one(Single::Contains),
            46..52 => one(Single::Count),
            52..70 => one(Single::Remove),
            70..74 => one(Single::RemoveAll),
            kind @ 74..112 => {
                let way = usize::from(kind - 74);
                let what = match way {
                    0..18 => Many::Insert(way),
                    18..26 => Many::Contains(way - 18),
                    _ => Many::Remove(way - 26),
                };
                Some(Operation::Many(what, Keys::read(input)?))
            }
            kind => Some(Operation::Whole(match kind {
                112 => Whole::Clear,
                113..116 => Whole::Copy,
                116 => Whole::Join,
                117..119 => Whole::Merge,
                119 => Whole::Delta,
                120 => Whole::MergeItself,
                121..126 => Whole::Swap,
                _ => Whole::CheckAll,
            })),
        }
    }
}
