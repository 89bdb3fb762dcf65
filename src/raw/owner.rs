//! Whether a class still lies in the shard in which a writer found it. In a filter of fixed size this is constant and
//! compiles to nothing; in a growing one, the shard may have been split in the meantime.

use crate::error::InsertError;
use crate::layout::Doubled;
use core::convert::Infallible;

pub(crate) trait Owner: Copy {
    /// The reason for which a writer begins anew.
    type Again;

    /// Whether the class lies in the shard. Called under a lock of one of its buckets: the result stays valid
    /// while it is held, and for good if the shard is final.
    fn check(self) -> Result<(), Self::Again>;

    /// Whether the shard is never split again, and no split is in progress. Called without locks of the shard.
    fn is_final(self) -> bool;

    /// Notes the number of buckets that a search visited.
    fn searched(self, buckets: usize);

    /// Called under all locks of the shard when no path makes room: an error prevents the refusal. `fits` returns
    /// whether a doubled table would have room for the class.
    fn refuses(self, fits: impl FnOnce(&Doubled) -> bool) -> Result<(), Self::Again>;
}

/// The result of an insertion, unless the writer must begin anew.
pub(crate) type Inserted<H> = Result<Result<u32, InsertError>, <H as Owner>::Again>;

/// The owner of all classes of a filter of fixed size.
#[derive(Clone, Copy)]
pub(crate) struct Fixed;

impl Owner for Fixed {
    type Again = Infallible;

    #[inline(always)]
    fn check(self) -> Result<(), Infallible> {
        Ok(())
    }

    #[inline(always)]
    fn is_final(self) -> bool {
        true
    }

    #[inline(always)]
    fn searched(self, _: usize) {}

    #[inline(always)]
    fn refuses(self, _: impl FnOnce(&Doubled) -> bool) -> Result<(), Infallible> {
        Ok(())
    }
}
