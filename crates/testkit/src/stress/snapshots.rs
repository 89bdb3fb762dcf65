//! The contents of a filter: at rest exactly those that the flags state, and in a snapshot those that did not change while it was
//! taken.

use super::{Exact, Tally};
use crate::operations::REMOVES;
use crate::{Filter, MAX_COPIES, written};
use concurrent_cuckoo_filter::{SnapshotError, SnapshotReader};
use fastrand::Rng;
use std::sync::MutexGuard;

/// The number of flagged keys that no thread changes while a snapshot is taken.
const MAX_HELD: usize = 2048;

pub(super) fn take(field: &Exact, mut rng: Rng) -> (Tally, u64) {
    let (mut done, mut snapshots) = (Tally::default(), 0);
    while snapshots == 0 || field.is_worked_on() {
        let most = MAX_HELD.min(field.copies.len() / 2);
        let first = rng.usize(..field.copies.len() - most);
        let held = (first..first + most).map(|number| field.try_flag(number));
        let held: Vec<Option<MutexGuard<'_, u8>>> = held.collect();
        let bytes = written(|to| field.filter.snapshot().metadata(b"stress").write_to(to));
        let still: Vec<Option<u8>> = held.into_iter().map(|copies| copies.map(|copies| *copies)).collect();
        let copy = read(&bytes, field, rng.bool()).expect("it was just written");
        let copies = |key: u64| (key as usize).checked_sub(first).and_then(|number| *still.get(number)?);
        done.lookups += field.check_all(&copy, "in a snapshot", |key| copies(key).map_or(0..=MAX_COPIES, |n| n..=n), 1);
        snapshots += 1;
    }
    (done, snapshots)
}

fn read(bytes: &[u8], field: &Exact, parallel: bool) -> Result<Filter, SnapshotError> {
    let reader = SnapshotReader::new(bytes)?;
    let reader = if parallel { reader.in_parallel() } else { reader };
    reader.into_filter_with_hasher(field.filter.hasher().clone())
}

impl Exact {
    /// Compares every count with the expected one: `flagged` for a flagged key, and at most `contested` for a contested one.
    /// Returns the number of keys.
    fn check_all(
        &self,
        filter: &Filter,
        when: &str,
        flagged: impl Fn(u64) -> std::ops::RangeInclusive<u8>,
        contested: u8,
    ) -> u64 {
        let (keys, mut sum) = (&self.keys, 0);
        for key in 0..keys.absent.end {
            let expected = match () {
                () if keys.flagged.contains(&key) => flagged(key),
                () if keys.stable.contains(&key) => 1..=1,
                () if keys.contested.contains(&key) => 0..=contested,
                () => 0..=0,
            };
            let count = filter.count(&key) as usize;
            assert!(expected.contains(&(count as u8)), "count of {key} is {count} {when}, {expected:?} expected");
            assert_eq!(filter.contains(&key), count > 0, "{key} {when}");
            sum += count;
        }
        assert_eq!(filter.len(), sum, "{when}");
        keys.absent.end
    }

    /// Compares every count with its flag after all threads have ended. Returns the number of keys.
    pub(super) fn check_at_rest(&self) -> u64 {
        let stats = self.filter.stats();
        assert_eq!([stats.refused_full, stats.refused_too_many_copies], self.refused());
        self.check_all(&self.filter, "at rest", |key| self.flag(key)..=self.flag(key), 0)
    }

    fn flag(&self, key: u64) -> u8 {
        *self.try_flag(key as usize).expect("no thread holds a flag at the end")
    }

    pub(super) fn remove_everything(&self) {
        let (filter, keys) = (&self.filter, &self.keys);
        let mut left: Vec<u64> = keys.stable.clone().collect();
        left.extend(keys.flagged.clone().flat_map(|key| std::iter::repeat_n(key, self.flag(key).into())));
        for (part, keys) in left.chunks(left.len().div_ceil(REMOVES.len() + 1)).enumerate() {
            let (name, removed) = match REMOVES.get(part) {
                Some((name, remove)) => (*name, remove(filter, keys).removed),
                None => ("remove", keys.iter().filter(|key| filter.remove(key)).count()),
            };
            assert_eq!(removed, keys.len(), "{name} at the end");
        }
        assert!(filter.is_empty(), "len is {} when all is removed", filter.len());
        assert_eq!((0..keys.absent.end).find(|key| filter.contains(key)), None, "found in an empty filter");
    }
}
