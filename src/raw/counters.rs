//! Statistics per stripe. No decision depends on them.

use crate::sys::sync::RelaxedCounter;

/// The counters of a stripe, changed under its lock, apart from `refused_full`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counters<N = RelaxedCounter> {
    pub(crate) relocations: N,
    pub(crate) longest_path: N,
    pub(crate) refused_full: N,
    pub(crate) refused_copies: N,
}

/// The sums of the counters of many stripes.
pub(crate) type Totals = Counters<u64>;

/// An event that is counted.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// A fingerprint moved to its other bucket.
    Relocated,
    /// A key was inserted after `length` relocations, of which `relocated` are counted with it.
    Path { length: u64, relocated: u64 },
    /// A key was refused for lack of room.
    RefusedFull,
    /// A key was refused because its class occupies all slots of its pair.
    RefusedCopies,
}

impl Counters {
    /// Counts an event. The caller holds the lock of the stripe, unless the event is [`RefusedFull`](Event::RefusedFull).
    #[inline(always)]
    pub(crate) fn note(&self, event: Event) {
        match event {
            Event::Relocated => self.relocations.change(|count| count + 1),
            Event::Path { length, relocated } => {
                self.relocations.change(|count| count + relocated);
                self.longest_path.change(|longest| longest.max(length));
            }
            Event::RefusedFull => {
                self.refused_full.add(1);
            }
            Event::RefusedCopies => self.refused_copies.change(|count| count + 1),
        }
    }

    pub(super) fn reset(&self) {
        let Counters { relocations, longest_path, refused_full, refused_copies } = self;
        [relocations, longest_path, refused_full, refused_copies].iter().for_each(|counter| counter.change(|_| 0));
    }

    pub(crate) fn add_to(&self, totals: &mut Totals) {
        totals.relocations += self.relocations.get();
        totals.longest_path = totals.longest_path.max(self.longest_path.get());
        totals.refused_full += self.refused_full.get();
        totals.refused_copies += self.refused_copies.get();
    }
}
