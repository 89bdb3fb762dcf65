//! Named steps of the operations, at which a test can inspect or freeze a thread. Outside unit tests they compile to nothing.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Locked,
    Searched,
    /// One word of a slot is written; a slot that straddles two words has two such steps.
    WordWritten,
    /// A relocation's fingerprint is in both buckets, or a split's in both tables.
    Copied,
    Published,
    Bumped,
    Cleared,
    /// The intent of a writer is noted or taken back.
    Intended,
    Counted,
    Ticked,
    /// A lookup found the version, the epoch or the cell changed, and repeats.
    Repeated,
    BucketRead,
}

#[cfg(not(test))]
#[inline(always)]
pub(crate) fn reached(_: Step) {}

#[cfg(test)]
pub(crate) use hooked::{number_of, reached, steps_of, with_hook};

#[cfg(test)]
mod hooked {
    use super::Step;
    use std::cell::{Cell, RefCell};
    use std::rc::Rc;

    type Hook = Box<dyn FnMut(Step)>;

    thread_local! {
        static HOOK: Cell<Option<Hook>> = const { Cell::new(None) };
    }

    /// Marks the end of a step: calls this thread's hook, if any. Steps of the hook itself call no hook.
    pub(crate) fn reached(step: Step) {
        if let Some(mut hook) = HOOK.take() {
            hook(step);
            HOOK.set(Some(hook));
        }
    }

    /// Runs `work` with `hook` called at each step of this thread. In a model, all threads are one.
    pub(crate) fn with_hook<T>(hook: impl FnMut(Step) + 'static, work: impl FnOnce() -> T) -> T {
        HOOK.set(Some(Box::new(hook)));
        // The thread may be used again after a panic.
        let _unset = Unset;
        work()
    }

    /// Runs `work`, and returns the steps of this thread in it, too.
    pub(crate) fn steps_of<T>(work: impl FnOnce() -> T) -> (Vec<Step>, T) {
        let steps = Rc::new(RefCell::new(Vec::new()));
        let noted = Rc::clone(&steps);
        let result = with_hook(move |step| noted.borrow_mut().push(step), work);
        (steps.take(), result)
    }

    /// Runs `work`, and returns the number of steps of this kind in it, too.
    pub(crate) fn number_of<T>(wanted: Step, work: impl FnOnce() -> T) -> (usize, T) {
        let (steps, result) = steps_of(work);
        (steps.into_iter().filter(|&step| step == wanted).count(), result)
    }

    struct Unset;

    impl Drop for Unset {
        fn drop(&mut self) {
            HOOK.set(None);
        }
    }
}
