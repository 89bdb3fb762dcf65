//! Named steps of the operations, where a test can look on or freeze a thread. Nothing is left of them outside unit
//! tests.

/// A step that has just been finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The stripes of the operation are locked.
    Locked,
    /// A search for a path without locks has ended.
    Searched,
    /// One of the words of a slot is written; a slot that straddles two words passes here twice.
    WordWritten,
    /// A relocation's copy stands in both buckets, or that of a split in both tables.
    Copied,
    /// A cell names the new table of a split.
    Published,
    /// A version was advanced.
    Bumped,
    /// A slot is empty again.
    Cleared,
    /// What a writer is about to do is noted, or that it is done.
    Intended,
    /// The element count is up to date.
    Counted,
    /// A tick was made.
    Ticked,
    /// A lookup found the version, the epoch or the cell changed and begins again.
    Repeated,
    /// A lookup has read one of its two buckets: it passes here twice before it looks at the version again.
    BucketRead,
}

/// Marks the end of a step.
#[cfg(not(test))]
#[inline(always)]
pub(crate) fn reached(_: Step) {}

#[cfg(test)]
pub(crate) use hooked::reached;
#[cfg(test)]
pub(crate) use hooked::with_hook;

#[cfg(test)]
mod hooked {
    use super::Step;
    use std::cell::Cell;

    type Hook = Box<dyn FnMut(Step)>;

    thread_local! {
        static HOOK: Cell<Option<Hook>> = const { Cell::new(None) };
    }

    /// Marks the end of a step: calls this thread's hook, if it has one. A hook may use the filter itself: it is not told
    /// of its own steps.
    pub(crate) fn reached(step: Step) {
        if let Some(mut hook) = HOOK.take() {
            hook(step);
            HOOK.set(Some(hook));
        }
    }

    /// Runs `work` with `hook` called at each step that this thread passes. In a model, all threads are one.
    pub(crate) fn with_hook<T>(hook: impl FnMut(Step) + 'static, work: impl FnOnce() -> T) -> T {
        HOOK.set(Some(Box::new(hook)));
        // Also when the work panics: the thread may be used again.
        let _unset = Unset;
        work()
    }

    struct Unset;

    impl Drop for Unset {
        fn drop(&mut self) {
            HOOK.set(None);
        }
    }
}
