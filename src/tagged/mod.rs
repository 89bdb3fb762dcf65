//! Filters that keep a number beside each key. What they have in common; each has a face of its own.

mod batch;
mod clock;
mod counting;
mod expiring;
mod merge;
mod tagging;

pub use counting::{CountingBuilder, CountingFilter};
pub use expiring::{ExpiringBuilder, ExpiringFilter};
pub use tagging::{TaggedBuilder, TaggedFilter};

pub(crate) use clock::{Clock, Life, nanos};

use crate::clone::cloned;
use crate::error::{BuildError, InsertError};
use crate::growth::reserve;
use crate::hashing::hash_of;
use crate::layout::{Mixed, Plan};
use crate::raw::{RawFilter, Tagging};
use crate::stats::Stats;
use core::hash::{BuildHasher, Hash};

/// A filter with tags and its hash function.
pub(crate) struct Core<S> {
    pub(crate) raw: RawFilter<Tagging>,
    pub(crate) hasher: S,
    /// As asked for; the plan may have room for more.
    pub(crate) capacity: usize,
    /// The same of a filter that does not grow.
    pub(crate) max_capacity: usize,
    /// The rate that was asked for.
    pub(crate) rate: Option<f64>,
    /// The time, of a filter whose keys die.
    pub(crate) clock: Option<Clock>,
    /// The value of an insertion for the whole time to live; 1 if there is none.
    whole: u32,
}

impl<S> Core<S> {
    /// Time is counted from here.
    pub(crate) fn new(
        raw: RawFilter<Tagging>,
        hasher: S,
        [capacity, max_capacity]: [usize; 2],
        rate: Option<f64>,
        life: Option<Life>,
    ) -> Self {
        let whole = life.map_or(1, |life| raw.tags().value_for(life.all_ticks()));
        let clock = life.map(|life| Clock::new(life, raw.epoch(), 0));
        Core { raw, hasher, capacity, max_capacity, rate, clock, whole }
    }

    pub(crate) fn plan(&self) -> &Plan {
        self.raw.plan()
    }

    fn len(&self) -> usize {
        self.raw.len()
    }

    fn stats(&self) -> Stats {
        Stats::of(&self.raw)
    }

    /// Another filter with what this one holds, of `bytes` in all. Its time goes on from the same moment.
    fn try_clone(&self, bytes: usize) -> Result<Self, BuildError>
    where
        S: Clone,
    {
        let Core { ref raw, ref hasher, capacity, max_capacity, rate, ref clock, whole } = *self;
        let (raw, clock) = (cloned(raw, bytes)?, clock.clone());
        Ok(Core { raw, hasher: hasher.clone(), capacity, max_capacity, rate, clock, whole })
    }

    /// As [`CuckooFilter::reserve`](crate::CuckooFilter::reserve).
    fn reserve(&self, additional: usize) -> Result<(), InsertError> {
        reserve(&self.raw, self.max_capacity, additional)
    }

    #[inline(always)]
    fn mixed<K: ?Sized + Hash>(&self, key: &K) -> Mixed
    where
        S: BuildHasher,
    {
        Mixed::of(hash_of(&self.hasher, key))
    }
}

/// What all faces say of themselves and of a key. `$build` builds a filter in an example, `$store` stores a key in it;
/// `$shown` are methods whose answers `Debug` shows beside size and load.
macro_rules! common_methods {
    ($filter:ident, $build:literal, $store:literal, $len:literal, $contains:literal, shown: $($shown:ident),+) => {
        impl<K: ?Sized, S> $filter<K, S> {
            pub(crate) fn from_core(core: Core<S>) -> Self {
                $filter { core, key: PhantomData }
            }

            #[doc = $len]
            /// As exact as [`CuckooFilter::len`](crate::CuckooFilter::len).
            ///
            /// ```
            #[doc = concat!("use concurrent_cuckoo_filter::", stringify!($filter), ";")]
            ///
            #[doc = concat!("let filter = ", $build, ";")]
            #[doc = concat!("filter.", $store, "?;")]
            /// assert_eq!(filter.len(), 1);
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            #[must_use]
            pub fn len(&self) -> usize {
                self.core.len()
            }

            /// Says whether `len` is 0.
            #[must_use]
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }

            /// The number of keys that was asked for.
            #[must_use]
            pub fn capacity(&self) -> usize {
                self.core.capacity
            }

            /// The number of keys that the filter grows to: [`capacity`](Self::capacity) if it does not grow.
            #[must_use]
            pub fn max_capacity(&self) -> usize {
                self.core.max_capacity
            }

            /// Makes room for this many keys more than there are. As [`CuckooFilter::reserve`](crate::CuckooFilter::reserve).
            ///
            /// # Errors
            /// As [`CuckooFilter::reserve`](crate::CuckooFilter::reserve).
            pub fn reserve(&self, additional: usize) -> Result<(), crate::InsertError> {
                self.core.reserve(additional)
            }

            /// Tells how full the filter is and what has happened in it, of all slots in use. As
            /// [`CuckooFilter::stats`](crate::CuckooFilter::stats).
            ///
            /// ```
            #[doc = concat!("use concurrent_cuckoo_filter::", stringify!($filter), ";")]
            ///
            #[doc = concat!("let filter = ", $build, ";")]
            #[doc = concat!("filter.", $store, "?;")]
            /// let stats = filter.stats();
            /// assert!(stats.load_factor > 0.0 && stats.expected_false_positive_rate < 0.001);
            /// assert_eq!((stats.len, stats.refused_full), (1, 0));
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            #[must_use]
            pub fn stats(&self) -> crate::Stats {
                self.core.stats()
            }

            /// Bits of a fingerprint: those of a slot, less the ones beside it. Of a filter that grows, those that it would have
            /// if it had its largest size from the beginning.
            #[must_use]
            pub fn fingerprint_bits(&self) -> u32 {
                self.core.plan().told_bits()
            }

            /// Bytes of memory, everything included. As
            /// [`CuckooFilter::memory_usage`](crate::CuckooFilter::memory_usage).
            #[must_use]
            pub fn memory_usage(&self) -> usize {
                size_of::<Self>() + self.core.raw.heap_bytes()
            }

            /// The hash function.
            #[must_use]
            pub fn hasher(&self) -> &S {
                &self.core.hasher
            }

            /// Removes everything, a shard at a time. As [`CuckooFilter::clear`](crate::CuckooFilter::clear).
            ///
            /// ```
            #[doc = concat!("use concurrent_cuckoo_filter::", stringify!($filter), ";")]
            ///
            #[doc = concat!("let filter = ", $build, ";")]
            #[doc = concat!("filter.", $store, "?;")]
            /// filter.clear();
            /// assert!(filter.is_empty() && !filter.contains(&1));
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            pub fn clear(&self) {
                self.core.raw.clear();
            }
        }

        impl<K: ?Sized + Hash, S: BuildHasher> $filter<K, S> {
            #[doc = $contains]
            /// Takes no lock and waits for no writer.
            ///
            /// # Complexity
            /// As [`CuckooFilter::contains`](crate::CuckooFilter::contains).
            ///
            /// ```
            #[doc = concat!("use concurrent_cuckoo_filter::", stringify!($filter), ";")]
            ///
            #[doc = concat!("let filter = ", $build, ";")]
            #[doc = concat!("filter.", $store, "?;")]
            /// assert!(filter.contains(&1) && !filter.contains(&2));
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            #[inline]
            #[must_use]
            pub fn contains(&self, key: &K) -> bool {
                self.core.raw.contains(self.core.mixed(key))
            }

            #[doc = concat!("Looks up the keys: `found[i]` is what [`contains`](", stringify!($filter), "::contains) answers for")]
            /// `keys[i]`. Faster than a loop where the table is larger than a core's caches: lines are fetched ahead.
            ///
            /// # Panics
            /// If `keys` and `found` differ in length.
            ///
            /// ```
            #[doc = concat!("use concurrent_cuckoo_filter::", stringify!($filter), ";")]
            ///
            #[doc = concat!("let filter = ", $build, ";")]
            #[doc = concat!("filter.", $store, "?;")]
            /// let mut found = [false; 2];
            /// filter.contains_batch(&[2, 1], &mut found);
            /// assert_eq!(found, [false, true]);
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            #[track_caller]
            pub fn contains_batch<T: Borrow<K>>(&self, keys: &[T], found: &mut [bool]) {
                self.core.contains_batch::<K, T>(keys, found);
            }

            #[doc = concat!("As [`contains_batch`](", stringify!($filter), "::contains_batch), on all threads of the rayon pool")]
            /// that the caller is in, or of the global one.
            ///
            /// # Panics
            /// If `keys` and `found` differ in length; as
            /// [`CuckooFilter::par_contains`](crate::CuckooFilter::par_contains), if the system refuses rayon its threads.
            #[cfg(feature = "rayon")]
            #[cfg_attr(docsrs, doc(cfg(feature = "rayon")))]
            #[track_caller]
            pub fn par_contains<T: Borrow<K> + Sync>(&self, keys: &[T], found: &mut [bool])
            where
                S: Sync,
            {
                self.core.par_contains::<K, T>(keys, found);
            }
        }

        impl<K: ?Sized, S: Clone> $filter<K, S> {
            /// Copies the filter, while it serves, a table at a time under its locks. As
            /// [`CuckooFilter::try_clone`](crate::CuckooFilter::try_clone).
            ///
            /// # Errors
            /// If the system refuses the memory.
            ///
            /// ```
            #[doc = concat!("use concurrent_cuckoo_filter::", stringify!($filter), ";")]
            ///
            #[doc = concat!("let filter = ", $build, ";")]
            #[doc = concat!("filter.", $store, "?;")]
            /// let copy = filter.try_clone()?;
            /// filter.clear();
            /// assert!(copy.contains(&1) && !filter.contains(&1));
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            pub fn try_clone(&self) -> Result<Self, BuildError> {
                self.core.try_clone(self.memory_usage()).map(Self::from_core)
            }
        }

        impl<K: ?Sized, S: Clone> Clone for $filter<K, S> {
            /// As [`try_clone`](Self::try_clone).
            ///
            /// # Panics
            /// As `Vec` does, if the system refuses the memory.
            fn clone(&self) -> Self {
                self.try_clone().unwrap_or_else(|error| panic!("{error}"))
            }
        }

        impl<K: ?Sized, S> fmt::Debug for $filter<K, S> {
            /// Shows size and load, not contents.
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let stats = self.stats();
                f.debug_struct(stringify!($filter))
                    .field("len", &stats.len)
                    .field("capacity", &self.capacity())
                    .field("load_factor", &stats.load_factor)
                    $(.field(stringify!($shown), &self.$shown()))+
                    .finish_non_exhaustive()
            }
        }
    };
}

/// What all builders set and tell. `$field` are those beside `inner`; `plan` begins with the plan and its bytes.
macro_rules! common_settings {
    ($builder:ident, $($field:ident),+) => {
        impl<K: ?Sized, S> $builder<K, S> {
            /// Lets the filter grow by itself, up to this many keys. As
            /// [`Builder::max_capacity`](crate::Builder::max_capacity).
            pub fn max_capacity(self, keys: usize) -> Self {
                $builder { inner: self.inner.max_capacity(keys), ..self }
            }

            /// Sets the least number of stripes. As [`Builder::stripes`](crate::Builder::stripes).
            pub fn stripes(self, stripes: usize) -> Self {
                $builder { inner: self.inner.stripes(stripes), ..self }
            }

            /// Says whether huge pages are advised. As [`Builder::huge_pages`](crate::Builder::huge_pages).
            pub fn huge_pages(self, advised: bool) -> Self {
                $builder { inner: self.inner.huge_pages(advised), ..self }
            }

            /// Sets the hash function. As [`Builder::hasher`](crate::Builder::hasher).
            pub fn hasher<T>(self, hasher: T) -> $builder<K, T> {
                $builder { inner: self.inner.hasher(hasher), $($field: self.$field),+ }
            }

            /// Says how many bytes the filter would take. As [`Builder::memory_usage`](crate::Builder::memory_usage).
            ///
            /// # Errors
            #[doc = concat!("As [`build`](", stringify!($builder), "::build), but for the memory that the system refuses.")]
            pub fn memory_usage(&self) -> Result<usize, BuildError> {
                self.plan().map(|plan| plan.1)
            }
        }

        impl<K: ?Sized, S: Clone> Clone for $builder<K, S> {
            fn clone(&self) -> Self {
                $builder { inner: self.inner.clone(), ..*self }
            }
        }

        impl<K: ?Sized, S> fmt::Debug for $builder<K, S> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let mut shown = f.debug_struct(stringify!($builder));
                shown.field("inner", &self.inner)$(.field(stringify!($field), &self.$field))+.finish()
            }
        }
    };
}
use {common_methods, common_settings};
