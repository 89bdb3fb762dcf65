//! The look-ups of a batch: a window over the keys.

use crate::geometry::{Candidates, Geometry, Mixed};
use crate::prefetch::Into;
use crate::shard::{Aim, Shard};
use crate::table::{Format, Layout, Packing, Part, Run, TwoRuns, Word};

/// Keys that are looked up side by side: a loop of so many is unrolled.
const GROUP: usize = 4;

/// Groups on their way at a time: 16 keys, 32 buckets. Half as many leave memory idle, twice as many are slower in
/// cache.
const GROUPS_AHEAD: usize = 4;

/// Where the keys of a batch may lie.
pub(super) trait Place<'a>: Copy {
    fn locate(self, mixed: Mixed) -> (&'a Shard, Candidates);
}

/// In any of these shards.
#[derive(Clone, Copy)]
pub(super) struct Among<'a> {
    pub(super) geometry: &'a Geometry,
    pub(super) shards: &'a [Shard],
}

/// All in this one.
#[derive(Clone, Copy)]
pub(super) struct In<'a> {
    pub(super) geometry: &'a Geometry,
    pub(super) shard: &'a Shard,
}

impl<'a> Place<'a> for Among<'a> {
    #[inline(always)]
    fn locate(self, mixed: Mixed) -> (&'a Shard, Candidates) {
        let (shard, key) = self.geometry.locate_mixed(mixed);
        (&self.shards[shard], key)
    }
}

impl<'a> Place<'a> for In<'a> {
    #[inline(always)]
    fn locate(self, mixed: Mixed) -> (&'a Shard, Candidates) {
        (self.shard, self.geometry.locate_mixed(mixed).1)
    }
}

/// Says of each key whether it is present.
#[inline(always)]
pub(super) fn look_up<'a, T>(
    place: impl Place<'a>,
    format: &Format,
    into: Into,
    keys: &[T],
    mix: impl Fn(&T) -> Mixed,
    found: &mut [bool],
) {
    match (format.packing(), into) {
        (Packing::Word, Into::L1) => window::<Word, true, T>(place, format, keys, mix, found),
        (Packing::Word, Into::L2) => window::<Word, false, T>(place, format, keys, mix, found),
        (Packing::Part, Into::L1) => window::<Part, true, T>(place, format, keys, mix, found),
        (Packing::Part, Into::L2) => window::<Part, false, T>(place, format, keys, mix, found),
        (Packing::Run, Into::L1) => window::<Run, true, T>(place, format, keys, mix, found),
        (Packing::Run, Into::L2) => window::<Run, false, T>(place, format, keys, mix, found),
        (Packing::TwoRuns, Into::L1) => window::<TwoRuns, true, T>(place, format, keys, mix, found),
        (Packing::TwoRuns, Into::L2) => window::<TwoRuns, false, T>(place, format, keys, mix, found),
    }
}

/// In each round one group is looked up, and the one `GROUPS_AHEAD` groups later takes its place. The loops over a
/// group are kept apart and short: what stays in registers decides the speed.
#[inline(never)]
fn window<'a, L: Layout, const NEAR: bool, T>(
    place: impl Place<'a>,
    format: &Format,
    keys: &[T],
    mix: impl Fn(&T) -> Mixed,
    found: &mut [bool],
) {
    let whole = keys.len() / GROUP * GROUP;
    let (keys, last_keys) = keys.split_at(whole);
    let (found, last_found) = found.split_at_mut(whole);
    if whole > 0 {
        let mut mixed = [Mixed::default(); GROUP];
        let mut window = [[aim::<L, NEAR>(place, format, Mixed::default()); GROUP]; GROUPS_AHEAD];
        let mut coming = keys.chunks_exact(GROUP).map(group);
        for (aims, keys) in window.iter_mut().zip(&mut coming) {
            for at in 0..GROUP {
                mixed[at] = mix(&keys[at]);
            }
            for at in 0..GROUP {
                aims[at] = aim::<L, NEAR>(place, format, mixed[at]);
            }
        }
        let rounds = keys.chunks(GROUP * GROUPS_AHEAD).zip(found.chunks_mut(GROUP * GROUPS_AHEAD));
        for (keys, found) in rounds {
            let groups = keys.chunks_exact(GROUP).map(group).zip(found.chunks_exact_mut(GROUP).map(group_mut));
            for ((keys, found), aims) in groups.zip(&mut window) {
                let look =
                    |aim: Aim<'_, L>, key: &T| aim.look(format).unwrap_or_else(|| look_again(place, format, mix(key)));
                let Some(next) = coming.next() else {
                    for at in 0..GROUP {
                        found[at] = look(aims[at], &keys[at]);
                    }
                    continue;
                };
                for at in 0..GROUP {
                    found[at] = look(aims[at], &keys[at]);
                    mixed[at] = mix(&next[at]);
                }
                for at in 0..GROUP {
                    aims[at] = aim::<L, NEAR>(place, format, mixed[at]);
                }
            }
        }
    }
    for (key, found) in last_keys.iter().zip(last_found) {
        let mixed = mix(key);
        let (shard, key) = place.locate(mixed);
        *found = shard.look_once::<L>(format, key).unwrap_or_else(|| look_again(place, format, mixed));
    }
}

/// Finds the words of a look-up and begins to fetch them.
#[inline(always)]
fn aim<'a, L: Layout, const NEAR: bool>(place: impl Place<'a>, format: &Format, mixed: Mixed) -> Aim<'a, L> {
    let (shard, key) = place.locate(mixed);
    let aim = shard.aim(format, key);
    aim.fetch(if NEAR { Into::L1 } else { Into::L2 });
    aim
}

/// The rest of a look-up that met a relocation.
#[cold]
#[inline(never)]
fn look_again<'a>(place: impl Place<'a>, format: &Format, mixed: Mixed) -> bool {
    let (shard, key) = place.locate(mixed);
    shard.look_again(format, key)
}

/// A group of a slice that was cut into groups.
#[inline(always)]
fn group<T>(slice: &[T]) -> &[T; GROUP] {
    slice.try_into().expect("a group")
}

#[inline(always)]
fn group_mut<T>(slice: &mut [T]) -> &mut [T; GROUP] {
    slice.try_into().expect("a group")
}

#[cfg(all(test, not(any(cuckoo_loom, cuckoo_shuttle))))]
mod tests {
    use super::*;
    use crate::CuckooFilter;
    use crate::fail_point::{Step, with_hook};

    /// With keys in each bucket of their pair and in both.
    fn filter(width: u32) -> (CuckooFilter<u64>, Vec<u64>) {
        let filter = CuckooFilter::builder().capacity(200).fingerprint_bits(width).build().unwrap();
        for hash in (0..100).chain([0; 5]) {
            let _ = filter.insert_hash(hash);
        }
        (filter, (0..150).collect())
    }

    #[test]
    fn without_writers_a_batch_reads_each_key_once() {
        for width in 4..=32 {
            let (filter, hashes) = filter(width);
            let mut found = vec![false; hashes.len()];
            let only_reads = |step| assert_eq!(step, Step::BucketRead);
            for into in [Into::L1, Into::L2] {
                let place = Among { geometry: &filter.geometry, shards: &filter.shards };
                let look_all_up = || look_up(place, &filter.format, into, &hashes, |&hash| Mixed::of(hash), &mut found);
                with_hook(only_reads, look_all_up);
                let one_by_one: Vec<bool> = hashes.iter().map(|&hash| filter.count_hash(hash) > 0).collect();
                assert_eq!(found, one_by_one, "{width} bits");
                for length in 0..40 {
                    let mut some = vec![!one_by_one[0]; length];
                    look_up(place, &filter.format, into, &hashes[..length], |&hash| Mixed::of(hash), &mut some);
                    assert_eq!(some, one_by_one[..length], "{width} bits");
                }
            }
        }
    }

    #[test]
    fn a_look_up_that_begins_again_gives_the_same_answer() {
        for width in 4..=32 {
            let (filter, hashes) = filter(width);
            let geometry = &filter.geometry;
            for hash in hashes {
                let (present, mixed) = (filter.count_hash(hash) > 0, Mixed::of(hash));
                let among = Among { geometry, shards: &filter.shards };
                assert_eq!(look_again(among, &filter.format, mixed), present, "{hash} at {width} bits");
                assert_eq!(look_again(In { geometry, shard: &filter.shards[0] }, &filter.format, mixed), present);
                assert_eq!(filter.look_up_again(mixed), present);
            }
        }
    }
}
