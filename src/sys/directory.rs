//! Values that are only added, and cells that each point to one of them. A pointer read from a cell is valid as long as the
//! directory lives: no value is moved or freed earlier.

use crate::sys::memory::{Buffer, HugePages};
use crate::sys::sync::{AtomicPtr, AtomicU64, Mutex, lock};
use core::ops::{Deref, Range};
use core::sync::atomic::Ordering;
use core::{ptr, slice};

pub(crate) struct Directory<T> {
    cells: Buffer<AtomicPtr<Entry<T>>>,
    turns: AtomicU64,
    first: *mut Entry<T>,
    last: AtomicPtr<Entry<T>>,
    /// Held while a value is added. No other lock is taken under it.
    adding: Mutex,
}

/// Aligned to a cache line: lookups read the first line of the value.
#[repr(C, align(64))]
struct Entry<T> {
    value: T,
    next: AtomicPtr<Entry<T>>,
    /// Written once, before other threads know the entry.
    previous: AtomicPtr<Entry<T>>,
}

/// A value that no other thread knows yet.
pub(crate) struct New<T>(Box<[Entry<T>; 1]>);

pub(crate) struct Member<'a, T>(&'a Entry<T>);

#[allow(unsafe_code)]
// SAFETY: a directory owns its values, as a `Vec<T>` does, and lends only `&T`.
unsafe impl<T: Send> Send for Directory<T> {}

#[allow(unsafe_code)]
// SAFETY: as above. Values are added through `&self`, so they are sent, too.
unsafe impl<T: Send + Sync> Sync for Directory<T> {}

impl<T> Clone for Member<'_, T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Member<'_, T> {}

impl<'a, T> Member<'a, T> {
    #[inline(always)]
    pub(crate) fn get(self) -> &'a T {
        &self.0.value
    }
}

impl<T> Deref for Member<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        &self.0.value
    }
}

impl<T> Deref for New<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0[0].value
    }
}

impl<T> New<T> {
    /// Returns `None` if allocation fails.
    pub(crate) fn of(value: T) -> Option<Self> {
        let mut memory = Vec::new();
        memory.try_reserve_exact(1).ok()?;
        memory.push(Entry { value, next: AtomicPtr::new(ptr::null_mut()), previous: AtomicPtr::new(ptr::null_mut()) });
        memory.into_boxed_slice().try_into().ok().map(New)
    }

    fn into_raw(self) -> *mut Entry<T> {
        Box::into_raw(self.0).cast()
    }
}

impl<T> Directory<T> {
    /// Creates a directory of these values, in order, each with a number of cells. Returns `None` if allocation fails.
    pub(crate) fn new(values: Vec<New<T>>, cells_of: impl Fn(&T) -> usize) -> Option<Self> {
        let mut directory = Directory {
            cells: Buffer::new(values.iter().map(|value| cells_of(value)).sum(), HugePages::Unadvised)?,
            turns: AtomicU64::new(0),
            first: ptr::null_mut(),
            last: AtomicPtr::new(ptr::null_mut()),
            adding: Mutex::default(),
        };
        let mut named = 0;
        for value in values {
            let (value, ()) = directory.add(value, |_| ());
            let first = ptr::from_ref(value.0).cast_mut();
            let cells = named..named + cells_of(&value);
            named = cells.end;
            directory.publish(cells, value, || {});
            if directory.first.is_null() {
                directory.first = first;
            }
        }
        (!directory.first.is_null()).then_some(directory)
    }

    pub(crate) fn bytes_of(cells: usize) -> Option<usize> {
        cells.checked_mul(size_of::<AtomicPtr<Entry<T>>>())
    }

    pub(crate) const ENTRY_BYTES: usize = size_of::<Entry<T>>();

    #[inline(always)]
    pub(crate) fn at(&self, cell: usize) -> Member<'_, T> {
        // Acquire: pairs with the Release in `publish_next`. A thread that finds a value here sees all that was written to it
        // before (models lookup_during_a_split_*).
        self.member(self.cells.at(cell).load(Ordering::Acquire))
    }

    /// Returns whether the cell still points to this value.
    ///
    /// In a lookup, the Acquire loads of the words come first, so a lookup that saw a slot cleared after a publication sees the
    /// publication, too. In a writer, its locks order this load after every change away from the value.
    #[inline(always)]
    pub(crate) fn is_at(&self, cell: usize, member: Member<'_, T>) -> bool {
        // Relaxed: see above. The pointer is compared, not followed.
        ptr::eq(self.cells.at(cell).load(Ordering::Relaxed), member.0)
    }

    /// As [`Directory::at`], for callers that read many cells.
    #[inline(always)]
    pub(crate) fn reader<'a>(&'a self) -> impl Fn(usize) -> Member<'a, T> {
        let cells = self.cells.view();
        // Acquire: as in `at`.
        move |cell| self.member(cells.at(cell).load(Ordering::Acquire))
    }

    /// Returns the number of publications, for [`Directory::change_since`].
    #[inline(always)]
    pub(crate) fn turn(&self) -> u64 {
        // Acquire: pairs with the Release at the end of a publication. A thread that reads its number reads its cells (H1, models
        // batch_during_*).
        self.turns.load(Ordering::Acquire)
    }

    /// Returns 0 unless cells were published since this turn.
    #[inline(always)]
    pub(crate) fn change_since(&self, turn: u64) -> u64 {
        // Relaxed: as in `is_at`.
        self.turns.load(Ordering::Relaxed) ^ turn
    }

    /// Makes the cells point to this value of the directory, one after another, and then ends the turn, even if `each` panics.
    pub(crate) fn publish(&self, cells: Range<usize>, member: Member<'_, T>, each: impl Fn()) {
        let mut left =
            Unpublished { cells: self.cells.part(cells.start, cells.len()).iter(), member, turns: &self.turns };
        while left.publish_next() {
            each();
        }
    }

    /// Calls `first` with a value, and then adds the value behind all others. If `first` panics, the value is never freed: other
    /// threads may know it.
    pub(crate) fn add<'a, R>(&'a self, value: New<T>, first: impl FnOnce(Member<'a, T>) -> R) -> (Member<'a, T>, R) {
        let value = value.into_raw();
        let done = first(self.member(value));
        let adding = lock(&self.adding);
        // Relaxed: written under the lock.
        let last = self.last.load(Ordering::Relaxed);
        // Relaxed: no other thread knows the value yet.
        self.member(value).0.previous.store(last, Ordering::Relaxed);
        if !last.is_null() {
            // Release: pairs with the Acquire in `each`.
            self.member(last).0.next.store(value, Ordering::Release);
        }
        // Release: pairs with the Acquire in `each_from_newest`.
        self.last.store(value, Ordering::Release);
        drop(adding);
        (self.member(value), done)
    }

    /// Returns all values from the oldest on, including those that are added before the iteration ends.
    pub(crate) fn each(&self) -> impl Iterator<Item = Member<'_, T>> {
        let mut at: Option<Member<'_, T>> = None;
        core::iter::from_fn(move || {
            // Acquire: pairs with the Release in `add`.
            let next = at.map_or(self.first, |member| member.0.next.load(Ordering::Acquire));
            at = (!next.is_null()).then(|| self.member(next));
            at
        })
        .fuse()
    }

    pub(crate) fn each_from_newest(&self) -> impl Iterator<Item = Member<'_, T>> {
        let follow = |pointer: *mut Entry<T>| (!pointer.is_null()).then(|| self.member(pointer));
        // Acquire: pairs with the Release in `add`. Relaxed: written before that.
        let last = self.last.load(Ordering::Acquire);
        core::iter::successors(follow(last), move |member| follow(member.0.previous.load(Ordering::Relaxed)))
    }

    #[inline(always)]
    #[allow(unsafe_code)]
    fn member(&self, pointer: *mut Entry<T>) -> Member<'_, T> {
        // SAFETY: 1. every pointer in `cells`, `first`, `last`, `next` or `previous` is one that `add` made of a box (`publish`
        // takes members from here, and a filter has one directory), and is not null here: `new` has made all cells point to a
        // value; 2. the entry is freed only in `drop`, which has `&mut self`; 3. it is shared from `add` on, and changed only
        // through atomics; a thread that reads the pointer has synchronised with the thread that stored it.
        Member(unsafe { &*pointer })
    }
}

struct Unpublished<'a, T> {
    cells: slice::Iter<'a, AtomicPtr<Entry<T>>>,
    member: Member<'a, T>,
    turns: &'a AtomicU64,
}

impl<T> Unpublished<'_, T> {
    fn publish_next(&mut self) -> bool {
        // Release: pairs with the Acquire in `at`.
        let publish = |cell: &AtomicPtr<_>| cell.store(ptr::from_ref(self.member.0).cast_mut(), Ordering::Release);
        self.cells.next().map(publish).is_some()
    }
}

impl<T> Drop for Unpublished<'_, T> {
    fn drop(&mut self) {
        while self.publish_next() {}
        // Release: pairs with the Acquire in `turn`; all cells have been written (H1, models batch_during_*). One step, so that
        // each of two publications ends a turn of its own, and the later number follows the cells of both.
        self.turns.fetch_add(1, Ordering::Release);
    }
}

impl<T> Drop for Directory<T> {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        // Relaxed: no other thread has the directory.
        let mut last = self.last.load(Ordering::Relaxed);
        while !last.is_null() {
            // SAFETY: made by `New::into_raw`, in `add`, of this type; each entry is visited once.
            let entry = unsafe { Box::from_raw(last.cast::<[Entry<T>; 1]>()) };
            last = entry[0].previous.load(Ordering::Relaxed);
        }
    }
}

#[cfg(all(test, not(cuckoo_model)))]
#[allow(clippy::disallowed_types)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;
    use std::thread;

    struct Dropped {
        number: usize,
        dropped: Arc<AtomicUsize>,
    }

    impl Drop for Dropped {
        fn drop(&mut self) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn cells_point_to_published_values_and_each_value_is_dropped_once() {
        let dropped = Arc::new(AtomicUsize::new(0));
        let value = |number| New::of(Dropped { number, dropped: Arc::clone(&dropped) }).unwrap();
        {
            let directory = Directory::new(vec![value(0), value(1)], |_| 4).unwrap();
            let named = || (0..8).map(|cell| directory.at(cell).number).collect::<Vec<_>>();
            assert_eq!(named(), [0, 0, 0, 0, 1, 1, 1, 1]);
            let (zero, two) = (directory.at(0), directory.add(value(2), |_| ()).0);
            assert!(directory.is_at(3, zero) && !directory.is_at(4, zero));
            let turn = directory.turn();
            assert_eq!(directory.change_since(turn), 0);
            directory.publish(2..4, two, || {});
            assert_ne!(directory.change_since(turn), 0);
            assert_eq!(named(), [0, 0, 2, 2, 1, 1, 1, 1]);
            assert!(!directory.is_at(3, zero) && directory.is_at(3, two));
            assert_eq!(directory.each().map(|member| member.number).collect::<Vec<_>>(), [0, 1, 2]);
            assert_eq!(directory.each_from_newest().map(|member| member.number).collect::<Vec<_>>(), [2, 1, 0]);
            drop(value(3));
            assert_eq!(dropped.load(Ordering::Relaxed), 1);
        }
        assert_eq!(dropped.load(Ordering::Relaxed), 4);
    }

    /// AddressSanitizer would detect an entry that is freed early or twice.
    #[test]
    fn many_threads_add_and_follow() {
        let directory = Directory::new(vec![New::of(vec![0]).unwrap()], |_| 64).unwrap();
        thread::scope(|scope| {
            for thread in 0..4 {
                let directory = &directory;
                scope.spawn(move || {
                    for number in 0..500_usize {
                        let member = directory.add(New::of(vec![number; 3]).unwrap(), |_| ()).0;
                        directory.publish(number % 64..number % 64 + 1, member, || {});
                        let found = directory.at((number * 7 + thread) % 64);
                        assert!(found.iter().all(|&value| value == found[0]));
                    }
                });
            }
        });
        assert_eq!((directory.each().count(), directory.each_from_newest().count()), (2001, 2001));
    }
}
