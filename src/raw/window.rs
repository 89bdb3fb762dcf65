//! A window over a sequence, for writers: an item is processed some items after it was drawn, when its memory has
//! arrived.

use core::{array, mem};

/// Calls `work` for each item in order, `AHEAD` items after the iterator yielded it, and `half_way` in between, when
/// prefetched memory may name more to prefetch. The first items are not prepared.
///
/// `work` is called at one place, so that it is inlined.
#[inline(always)]
pub(crate) fn rolling<const AHEAD: usize, T>(
    items: impl Iterator<Item = T>,
    half_way: impl Fn(&T),
    mut work: impl FnMut(T),
) {
    let mut items = items.fuse();
    let mut window: [Option<T>; AHEAD] = array::from_fn(|_| items.next());
    let mut oldest = 0;
    while let Some(item) = mem::replace(&mut window[oldest], items.next()) {
        if let Some(item) = &window[(oldest + AHEAD / 2) % AHEAD] {
            half_way(item);
        }
        oldest = (oldest + 1) % AHEAD;
        work(item);
    }
}

#[cfg(all(test, not(cuckoo_model)))]
mod tests {
    use super::*;
    use std::cell::Cell;

    fn items_are_drawn_prepared_and_worked_on_in_order<const AHEAD: usize>() {
        let half = (AHEAD / 2).max(1);
        for count in [0, 1, 2, 6, 7, 8, 15, 16, 17, 32, 49, 100] {
            let (drawn, prepared, worked) = (Cell::new(0), Cell::new(half), Cell::new(0));
            rolling::<AHEAD, _>(
                (0..count).inspect(|_| drawn.set(drawn.get() + 1)),
                |&item| assert_eq!(prepared.replace(item + 1), item, "of {count}"),
                |item| {
                    assert_eq!(worked.replace(item + 1), item, "of {count}");
                    assert_eq!(drawn.get(), count.min(item + 1 + AHEAD), "item {item} of {count}");
                    assert_eq!(prepared.get(), count.min(item + 1 + half).max(half), "item {item} of {count}");
                },
            );
            assert_eq!((drawn.get(), worked.get()), (count, count));
        }
    }

    #[test]
    fn items_are_worked_on_in_order_at_every_distance() {
        items_are_drawn_prepared_and_worked_on_in_order::<1>();
        items_are_drawn_prepared_and_worked_on_in_order::<2>();
        items_are_drawn_prepared_and_worked_on_in_order::<7>();
        items_are_drawn_prepared_and_worked_on_in_order::<16>();
    }
}
