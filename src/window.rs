//! A window over a sequence: each item is worked on some items after it was drawn, while what it needs is on its way
//! from memory. For writers; look-ups are so short that they need a window of their own (`batch/look_ups`).

use arrayvec::ArrayVec;
use core::mem;

/// Items on their way at a time.
const AHEAD: usize = 16;

/// Calls `work` for each item, in order, `AHEAD` items after the iterator yielded it; and `half_way` between the two,
/// when what was asked for has arrived and may tell what else is needed.
#[inline(always)]
pub(crate) fn rolling<T>(items: impl Iterator<Item = T>, half_way: impl Fn(&T), mut work: impl FnMut(T)) {
    let mut items = items.fuse();
    let mut window: ArrayVec<T, AHEAD> = items.by_ref().take(AHEAD).collect();
    window.iter().take(AHEAD / 2).for_each(&half_way);
    let mut oldest = 0;
    for item in items {
        half_way(&window[(oldest + AHEAD / 2) % AHEAD]);
        work(mem::replace(&mut window[oldest], item));
        oldest = (oldest + 1) % AHEAD;
    }
    window.rotate_left(oldest);
    window.iter().skip(AHEAD / 2).for_each(half_way);
    window.into_iter().for_each(work);
}

#[cfg(all(test, not(cuckoo_loom)))]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn items_are_drawn_prepared_and_worked_on_in_order() {
        for count in [0, 1, 2, AHEAD / 2, AHEAD - 1, AHEAD, AHEAD + 1, 2 * AHEAD, 3 * AHEAD + 1, 100] {
            let (drawn, prepared, worked) = (Cell::new(0), Cell::new(0), Cell::new(0));
            rolling(
                (0..count).inspect(|_| drawn.set(drawn.get() + 1)),
                |&item| {
                    assert_eq!(prepared.replace(item + 1), item, "of {count}");
                    assert!(drawn.get() >= count.min(item + AHEAD / 2), "item {item} of {count}");
                },
                |item| {
                    assert_eq!(worked.replace(item + 1), item, "of {count}");
                    assert_eq!(drawn.get(), count.min(item + 1 + AHEAD), "item {item} of {count}");
                    assert!(prepared.get() >= count.min(item + 1 + AHEAD / 2), "item {item} of {count}");
                },
            );
            assert_eq!((drawn.get(), prepared.get(), worked.get()), (count, count, count));
        }
    }
}
