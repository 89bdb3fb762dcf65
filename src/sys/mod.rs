//! Leaves: what the machine and the system give, each with the argument why its use is sound. Nothing here knows of
//! buckets or keys.

pub(crate) mod isa;
pub(crate) mod memory;
pub(crate) mod prefetch;
pub(crate) mod steps;
pub(crate) mod sync;
pub(crate) mod unaligned;
