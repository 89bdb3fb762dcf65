//! Named steps of the writers, where a test can freeze a thread. Nothing is left of them outside unit tests.

/// A step that a writer has just finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(all(test, not(cuckoo_loom))), allow(dead_code))]
pub(crate) enum Step {
    /// The stripes of the operation are locked.
    Locked,
    /// One of the words of a slot is written; a slot that straddles two words passes here twice.
    WordWritten,
    /// A relocation's copy stands in both buckets.
    Copied,
    /// A version was advanced.
    Bumped,
    /// A slot is empty again.
    Cleared,
    /// The element count is up to date.
    Counted,
}

/// Marks the end of a step.
#[cfg(not(all(test, not(cuckoo_loom))))]
#[inline(always)]
pub(crate) fn reached(_: Step) {}

#[cfg(all(test, not(cuckoo_loom)))]
pub(crate) use hooked::{reached, with_hook};

#[cfg(all(test, not(cuckoo_loom)))]
mod hooked {
    use super::Step;
    use std::cell::RefCell;

    type Hook = Box<dyn FnMut(Step)>;

    thread_local! {
        static HOOK: RefCell<Option<Hook>> = const { RefCell::new(None) };
    }

    /// Marks the end of a step: calls this thread's hook, if it has one.
    pub(crate) fn reached(step: Step) {
        HOOK.with_borrow_mut(|hook| {
            if let Some(hook) = hook {
                hook(step);
            }
        });
    }

    /// Runs `work` with `hook` called at each step that this thread's writers pass.
    pub(crate) fn with_hook<T>(hook: impl FnMut(Step) + 'static, work: impl FnOnce() -> T) -> T {
        HOOK.set(Some(Box::new(hook)));
        let result = work();
        HOOK.set(None);
        result
    }
}
