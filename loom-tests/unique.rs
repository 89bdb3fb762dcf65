//! H4: of several threads that insert one key uniquely, at most one is told that it was new.

use super::harness::*;
use crate::raw::Put;

#[test]
fn unique_twice_admits_one() {
    let class = key(7, 0, 1);
    race("exactly one is admitted", || World::new(16, 2, 0), &[class], 0)
        .threads(insert_unique(class), insert_unique(class.turned()))
        .never(|told, _| told.iter().all(|told| *told == [1]))
        .explore([12]);
}

#[test]
fn unique_against_insert_counts_right() {
    let class = key(7, 0, 1);
    race("it is there or admitted", || World::new(16, 2, 0), &[class], 0)
        .threads(insert_unique(class), insert(class.turned()))
        .explore([12, 12]);
}

/// Both threads have found the pair full and a path. One frees a slot and stores the key; the other must look for the key again,
/// not only for room.
#[test]
fn unique_by_path_twice_admits_one() {
    let (class, here, there) = (key(7, 0, 1), key(8, 0, 2), key(9, 1, 3));
    let world = move || World::new(16, 4, 0).with(here).with(there).full(0, 3, 20).full(1, 3, 30);
    race("exactly one is admitted", world, &[class, here, there], 6)
        .threads(path([here], class, Put::UNIQUE), path([there], class, Put::UNIQUE))
        .never(|told, _| told.iter().all(|told| *told == [1]))
        .explore([12]);
}
