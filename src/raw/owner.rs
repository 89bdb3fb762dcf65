//! Whether a class still lies in the shard in which a writer looks for it. In a filter of fixed size it does, and the
//! question compiles to nothing. In one that grows a shard may have been split meanwhile.

use crate::error::InsertError;
use crate::layout::Doubled;
use core::convert::Infallible;

pub(crate) trait Owner: Copy {
    /// What has a writer begin anew.
    type Again;

    /// Asked under locks that cover a bucket of the class: while they are held, the answer stays.
    fn check(self) -> Result<(), Self::Again>;

    /// Whether the shard is never split any more: asked with none of it locked.
    fn is_final(self) -> bool;

    /// A search for room looked at this many buckets.
    fn searched(self, buckets: usize);

    /// Called with all of the shard locked, when no relocation makes room: returns whether the insertion is to be refused. `fits`
    /// tells whether a doubled table would have room for the class.
    fn refuses(self, fits: impl FnOnce(&Doubled) -> bool) -> Result<(), Self::Again>;
}

/// What comes of an insertion, unless it has to begin anew.
pub(crate) type Inserted<H> = Result<Result<u32, InsertError>, <H as Owner>::Again>;

/// The owner of the classes of a filter of fixed size.
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
