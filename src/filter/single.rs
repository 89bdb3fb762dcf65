//! Operations on one key: the key is hashed, and `raw` gets the hash.

use super::Filter;
use super::kind::{Insert, Kind, Remove};
use crate::error::InsertError;
use crate::hashing::hash_of;
use crate::layout::Mixed;
use crate::raw::IfPresent;
use core::borrow::Borrow;
use core::hash::{BuildHasher, Hash};

impl<K: ?Sized, S: BuildHasher, T: Kind> Filter<K, S, T> {
    /// Hashes the key, for [`hashed`](Filter::hashed). The result is that of [`BuildHasher::hash_one`], unless that method is
    /// overridden: filters call `build_hasher`, `hash` and `finish`.
    ///
    /// The result depends on the key and the hash function, not on the filter: filters agree on it if their hash functions have the same
    /// type and the same seeds. For another form of a key, call `hash_one` of [`hasher`](Filter::hasher): one that hashes as the key
    /// does, such as `(u32, &str)` for `(u32, String)`. The bytes of a string that may be invalid UTF-8 hash as a `str` does if they are
    /// fed to a hasher by `write`, and 0xff by `write_u8`.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    /// use std::hash::BuildHasher;
    ///
    /// let filter = CuckooFilter::<(u32, String)>::with_capacity(100);
    /// filter.insert(&(7, String::from("name")))?;
    /// assert_eq!(filter.hash(&(7, String::from("name"))), filter.hasher().hash_one((7_u32, "name")));
    /// assert!(filter.hashed().contains(&filter.hasher().hash_one((7_u32, "name"))));
    /// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
    /// ```
    #[inline(always)]
    #[must_use]
    pub fn hash<Q: ?Sized + Hash>(&self, key: &Q) -> u64
    where
        K: Borrow<Q>,
    {
        hash_of(&self.hasher, key)
    }

    #[inline(always)]
    pub(crate) fn mixed<Q: ?Sized + Hash>(&self, key: &Q) -> Mixed {
        Mixed::of(hash_of(&self.hasher, key))
    }

    /// Returns whether the key is present: `false` is certain, `true` is wrong at the
    /// [expected rate](crate::Stats::expected_false_positive_rate). In a filter with a time to live, a dead key is absent.
    ///
    /// Takes no lock and waits for no writer, not even for one that was stopped in the middle of its work.
    ///
    /// # Complexity
    /// One version and two buckets: three cache lines, and at most two more where the words of a bucket lie in two lines (never at 16
    /// bits); the version once more for `false`. A filter with a time to live reads the epoch, too.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let filter = CuckooFilter::<String>::with_capacity(100);
    /// filter.insert("key")?;
    /// assert!(filter.contains("key") && filter.contains(&String::from("key")));
    /// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn contains<Q: ?Sized + Hash>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.raw.contains(self.mixed(key))
    }

    /// Hashes the key, starts to fetch from memory everything that a lookup of it reads, and returns the hash for a lookup through
    /// [`hashed`](Filter::hashed): a lookup in two steps, for callers that cannot batch their keys but know a key before they need the
    /// answer. Out of cache, a lookup waits for its cache lines; with several lookups started, the waits overlap.
    ///
    /// Nothing is read yet: the answer is as of the second step. A prefetch that is not followed by a lookup costs a few nanoseconds.
    /// Where the filter fits the caches, [`contains`](Filter::contains) alone is faster; where several keys are known at the same time,
    /// [`contains_batch`](Filter::contains_batch) is. A growing filter reads its directory in the first step.
    ///
    /// A loop that starts each lookup sixteen keys ahead:
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let filter = CuckooFilter::<u64>::with_capacity(1_000);
    /// (0..500).try_for_each(|key| filter.insert(&key))?;
    ///
    /// let keys = Vec::from_iter(400..600_u64);
    /// let mut started = [0; 16];
    /// let mut found = 0;
    /// for (number, key) in keys.iter().enumerate() {
    ///     let hash = &mut started[number % 16];
    ///     if number >= 16 {
    ///         found += usize::from(filter.hashed().contains(hash));
    ///     }
    ///     *hash = filter.prefetch(key);
    /// }
    /// found += started.iter().filter(|hash| filter.hashed().contains(*hash)).count();
    /// assert!(found >= 100);
    /// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
    /// ```
    ///
    /// A handler that starts the lookup when a request arrives, and reads the answer after it has waited for something else:
    /// ```
    /// # use concurrent_cuckoo_filter::CuckooFilter;
    /// # async fn authenticate(_: &str) -> bool { true }
    /// async fn is_blocked(filter: &CuckooFilter<String>, user: &str, domain: &str) -> bool {
    ///     let hash = filter.prefetch(domain);
    ///     authenticate(user).await && filter.hashed().contains(&hash)
    /// }
    /// # let filter = CuckooFilter::<String>::with_capacity(100);
    /// # filter.insert("spam.example")?;
    /// # let mut blocked = std::pin::pin!(is_blocked(&filter, "user", "spam.example"));
    /// # let context = &mut std::task::Context::from_waker(std::task::Waker::noop());
    /// # assert_eq!(blocked.as_mut().poll(context), std::task::Poll::Ready(true));
    /// # use std::future::Future;
    /// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
    /// ```
    #[inline]
    #[must_use = "the second step takes the hash"]
    pub fn prefetch<Q: ?Sized + Hash>(&self, key: &Q) -> u64
    where
        K: Borrow<Q>,
    {
        let hash = self.hash(key);
        self.raw.prefetch(Mixed::of(hash));
        hash
    }

    /// Returns how often the key is in the filter: the number of its copies, 0 to 8, and in a counting filter its count. Exact for its
    /// class: other keys of the class count, too.
    ///
    /// # Complexity
    /// Two buckets, under one or two locks. A counting filter takes no lock.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::{CountingFilter, CuckooFilter};
    ///
    /// let filter = CuckooFilter::<String>::with_capacity(100);
    /// assert_eq!(filter.count("key"), 0);
    /// filter.insert("key")?;
    /// assert_eq!(filter.count("key"), 1);
    ///
    /// let words = CountingFilter::<String>::with_capacity(100);
    /// for word in ["a", "b", "a"] {
    ///     words.add(word)?;
    /// }
    /// assert_eq!([words.count("a"), words.count("b"), words.count("c")], [2, 1, 0]);
    /// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
    /// ```
    #[must_use]
    pub fn count<Q: ?Sized + Hash>(&self, key: &Q) -> u32
    where
        K: Borrow<Q>,
    {
        T::count(&self.raw, self.mixed(key))
    }

    /// Removes every copy of the key, with any deadline, count or tag, and returns the number of removed copies.
    ///
    /// This removes the copies of other keys of the class, too. Prefer the removal of one copy unless no other key of the class can
    /// be stored.
    ///
    /// # Complexity
    /// Two buckets, under one or two locks.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let filter = CuckooFilter::<String>::with_capacity(100);
    /// filter.insert("key")?;
    /// filter.insert("key")?;
    /// assert_eq!(filter.remove_all("key"), 2);
    /// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
    /// ```
    pub fn remove_all<Q: ?Sized + Hash>(&self, key: &Q) -> usize
    where
        K: Borrow<Q>,
    {
        self.raw.remove_all(self.mixed(key))
    }

    /// Returns the number of the shard of the key, present or not; it is below [`shards`](crate::Config::shards).
    #[must_use]
    pub fn shard_of<Q: ?Sized + Hash>(&self, key: &Q) -> usize
    where
        K: Borrow<Q>,
    {
        self.raw.geometry().shard(self.mixed(key))
    }

    /// Returns the class of the key, present or not: a number that two keys share exactly if the filter cannot distinguish them, at any
    /// size. It is for tables that are kept beside a filter by class, such as one of copies beyond the eighth.
    ///
    /// It stays the same for as long as the filter lives, and is the same in its clones, in filters loaded from its snapshots, and in all
    /// others of equal plan, hash function and seeds. It is below 2^64 in filters with room for up to 2^34 keys at the beginning.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::{CuckooFilter, InsertError};
    /// use std::collections::HashMap;
    ///
    /// let filter = CuckooFilter::<String>::with_capacity(100);
    /// let mut more = HashMap::<u128, u32>::new();
    /// for _ in 0..20 {
    ///     if filter.insert("key") == Err(InsertError::TooManyCopies) {
    ///         *more.entry(filter.class_of("key")).or_default() += 1;
    ///     }
    /// }
    /// assert_eq!(filter.count("key") + more[&filter.clone().class_of("key")], 20);
    /// ```
    #[must_use]
    pub fn class_of<Q: ?Sized + Hash>(&self, key: &Q) -> u128
    where
        K: Borrow<Q>,
    {
        self.raw.geometry().class_number(self.mixed(key))
    }
}

impl<K: ?Sized, S: BuildHasher, T: Insert> Filter<K, S, T> {
    /// Stores a copy of the key, whether it is present or not. In an expiring filter the copy has a deadline of its own.
    ///
    /// Use this where keys are removed: each inserted key has a copy of its own, so that [`remove`](Filter::remove) never removes
    /// the copy of another key. Every copy occupies a slot until it is removed or dies; [`insert_unique`](Filter::insert_unique) stores
    /// a key once.
    ///
    /// # Errors
    /// [`InsertError::Full`], [`InsertError::TooManyCopies`] and, in a growing filter, [`InsertError::OutOfMemory`]; nothing is
    /// stored then.
    ///
    /// # Complexity
    /// Two buckets, and one lock where one of them has room. Where both are full, about 1.4 relocations at 95 % load, each under two or
    /// three locks of its own. A refusal searches up to 2000 buckets, reads them again, and reads two words per stripe of the shard at
    /// least twice. If other writers interfere, it searches up to five times, the last time with all stripes of the shard locked; where only
    /// all locks can decide (see [`Filter`](crate::Filter)), twice.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let filter = CuckooFilter::<String>::with_capacity(100);
    /// filter.insert("key")?;
    /// filter.insert("key")?;
    /// assert_eq!(filter.count("key"), 2);
    /// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
    /// ```
    #[inline]
    pub fn insert<Q: ?Sized + Hash>(&self, key: &Q) -> Result<(), InsertError>
    where
        K: Borrow<Q>,
    {
        self.raw.put(self.mixed(key), self.put(IfPresent::Another)).map(|_| ())
    }

    /// Stores the key if it is absent, and returns whether it was. In an expiring filter a dead key is absent, so that `true` is
    /// returned once per window, counted from the first insertion.
    ///
    /// Use this to admit keys that are not removed. After `Ok(false)` the key has no copy of its own: removing it removes the copy of an
    /// equal key or, after a false positive, of another key, which lookups then miss. Where keys are removed, use
    /// [`insert`](Filter::insert).
    ///
    /// Of several threads that insert one key at the same time, at most one gets `Ok(true)`; exactly one, if the class was absent, the
    /// key is not removed, and no insertion of it is refused. `Ok(false)` may be a false positive, like the `true` of a lookup.
    ///
    /// # Errors
    /// [`InsertError::Full`] and, in a growing filter, [`InsertError::OutOfMemory`]; nothing is stored then.
    ///
    /// # Complexity
    /// That of [`insert`](Filter::insert), with the stripes of both buckets locked: one lock or two.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let seen = CuckooFilter::<String>::with_capacity(100);
    /// assert!(seen.insert_unique("event 1")?);
    /// assert!(!seen.insert_unique("event 1")?);
    /// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
    /// ```
    #[inline]
    pub fn insert_unique<Q: ?Sized + Hash>(&self, key: &Q) -> Result<bool, InsertError>
    where
        K: Borrow<Q>,
    {
        self.raw.put(self.mixed(key), self.put(IfPresent::Keep)).map(|had| had == 0)
    }
}

impl<K: ?Sized, S: BuildHasher, T: Remove> Filter<K, S, T> {
    /// Removes one copy of the key and returns whether there was one. A present key is always removed, whatever other threads do in the
    /// meantime. In an expiring filter it is the live copy that dies first; in a counting filter a key has one copy, which goes with its
    /// whole count ([`subtract`](Filter::subtract) takes one from the count).
    ///
    /// Remove only keys that were inserted, and that live. With the probability of a false positive, removing an absent key removes
    /// the copy of another key of its class, which lookups then miss.
    ///
    /// # Complexity
    /// Two buckets, under one or two locks.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::CuckooFilter;
    ///
    /// let filter = CuckooFilter::<String>::with_capacity(100);
    /// filter.insert("key")?;
    /// assert!(filter.remove("key"));
    /// assert!(!filter.remove("key"));
    /// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
    /// ```
    pub fn remove<Q: ?Sized + Hash>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.raw.remove(self.mixed(key))
    }
}
