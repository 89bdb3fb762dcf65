//! What must hold when all threads have stopped.

use super::Exact;
use crate::Promise;
use crate::operations::REMOVES;
use std::ops::Range;

/// Compares every count with its flag, and the sum of them. Returns the number of keys.
pub(super) fn check_at_rest(field: &Exact) -> u64 {
    let (filter, keys) = (&field.filter, &field.keys);
    let check = |range: &Range<u64>, copies: &dyn Fn(u64) -> usize| {
        for key in range.clone() {
            let (count, copies) = (filter.count(&key), copies(key));
            if count != copies || filter.contains(&key) != (copies > 0) {
                field.broken(Promise::Count, key, format_args!("count is {count} of {copies} copies at the end"));
            }
        }
    };
    check(&keys.stable, &|_| 1);
    check(&keys.bulk, &|_| 0);
    check(&keys.contested, &|_| 0);
    check(&keys.absent, &|_| 0);
    check(&keys.flagged, &|key| flag(field, key));
    let sum = (keys.stable.end - keys.stable.start) as usize
        + keys.flagged.clone().map(|key| flag(field, key)).sum::<usize>();
    if filter.len() != sum {
        field.broken(Promise::Count, None, format_args!("len is {}, the flags add up to {sum}", filter.len()));
    }
    let stats = filter.stats();
    let counted = field.refused();
    if [stats.refused_full, stats.refused_too_many_copies] != counted {
        field.broken(Promise::Stats, None, format_args!("{stats:?}, but {counted:?} were refused"));
    }
    keys.absent.end
}

fn flag(field: &Exact, key: u64) -> usize {
    usize::from(*field.try_flag(key as usize).expect("no thread holds a flag at the end"))
}

/// Takes away what is left, in every way, to the last copy.
pub(super) fn remove_everything(field: &Exact) {
    let (filter, keys) = (&field.filter, &field.keys);
    let mut left: Vec<u64> = keys.stable.clone().collect();
    left.extend(keys.flagged.clone().flat_map(|key| std::iter::repeat_n(key, flag(field, key))));
    let parts = REMOVES.len() + 1;
    for (part, keys) in left.chunks(left.len().div_ceil(parts)).enumerate() {
        let (name, removed) = match REMOVES.get(part) {
            Some((name, remove)) => (*name, remove(filter, keys).removed),
            None => ("remove", keys.iter().filter(|key| filter.remove(key)).count()),
        };
        if removed != keys.len() {
            field.broken(Promise::Removal, None, format_args!("{name} removed {removed} of {} at the end", keys.len()));
        }
    }
    if !filter.is_empty() {
        field.broken(Promise::Count, None, format_args!("len is {} when all is removed", filter.len()));
    }
    if let Some(key) = (0..keys.absent.end).find(|key| filter.contains(key)) {
        field.broken(Promise::Absent, key, "found in an empty filter");
    }
}
