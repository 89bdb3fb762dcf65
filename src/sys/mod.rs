//! Leaves: what the machine and the system give, each with the argument why its use is sound. Nothing here knows of
//! buckets or keys.

/// Whether this is built for models or schedules, whose atomics are not the processor's.
pub(crate) const IS_MODEL: bool = cfg!(all(test, any(cuckoo_loom, cuckoo_shuttle)));

#[cfg(feature = "snapshot")]
pub(crate) mod bytes;
pub(crate) mod directory;
pub(crate) mod isa;
#[cfg(all(feature = "shared", target_os = "linux"))]
pub(crate) mod mapping;
pub(crate) mod memory;
pub(crate) mod prefetch;
pub(crate) mod prefix;
pub(crate) mod steps;
#[allow(clippy::disallowed_types)]
pub(crate) mod sync;
pub(crate) mod unaligned;
