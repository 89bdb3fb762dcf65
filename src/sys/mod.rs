//! Interfaces to the processor and the operating system, each with the argument for its soundness. No file here knows buckets or
//! keys.

/// Whether this is a build for models or schedules, with other atomics than the processor's.
pub(crate) const IS_MODEL: bool = cfg!(all(test, cuckoo_model));

#[cfg(feature = "snapshot")]
pub(crate) mod bytes;
pub(crate) mod directory;
pub(crate) mod isa;
#[cfg(all(feature = "shared", target_os = "linux"))]
pub(crate) mod mapping;
pub(crate) mod memory;
pub(crate) mod prefetch;
pub(crate) mod prefix;
pub(crate) mod read_only;
pub(crate) mod steps;
#[allow(clippy::disallowed_types)]
pub(crate) mod sync;
pub(crate) mod unaligned;
pub(crate) mod vector;
