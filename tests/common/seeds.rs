//! Seeds that differ and come again.

use concurrent_cuckoo_filter::DefaultHashBuilder;

/// From `rng`, so that a failure can be repeated.
pub(super) fn random_seeds(rng: &mut fastrand::Rng) -> DefaultHashBuilder {
    DefaultHashBuilder::with_seeds(rng.u64(..), rng.u64(..), rng.u64(..), rng.u64(..))
}
