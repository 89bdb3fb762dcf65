//! What has happened in a stripe, for whoever watches the filter. Nothing is decided by these numbers.

use crate::sync::Tick;

/// The counters of a stripe, written under its lock.
#[derive(Default)]
pub(crate) struct Tally {
    relocations: Tick,
    longest_path: Tick,
    refused_full: Tick,
    refused_copies: Tick,
}

/// Something that is counted.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// A fingerprint moved to its other bucket.
    Relocated,
    /// A key found its place at the end of so many relocations, of which some are counted with it.
    Path { length: u64, relocated: u64 },
    /// A key was refused for lack of room.
    RefusedFull,
    /// A key was refused because its class has all the slots of its pair.
    RefusedCopies,
}

/// Tallies of many stripes, added up.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tallies {
    pub(crate) relocations: u64,
    pub(crate) longest_path: u64,
    pub(crate) refused_full: u64,
    pub(crate) refused_copies: u64,
}

impl Tally {
    /// Counts, by the holder of the stripe's lock.
    #[inline(always)]
    pub(crate) fn note(&self, event: Event) {
        match event {
            Event::Relocated => self.relocations.change(|count| count + 1),
            Event::Path { length, relocated } => {
                self.relocations.change(|count| count + relocated);
                self.longest_path.change(|longest| longest.max(length));
            }
            Event::RefusedFull => self.refused_full.change(|count| count + 1),
            Event::RefusedCopies => self.refused_copies.change(|count| count + 1),
        }
    }

    pub(crate) fn add_to(&self, tallies: &mut Tallies) {
        tallies.relocations += self.relocations.get();
        tallies.longest_path = tallies.longest_path.max(self.longest_path.get());
        tallies.refused_full += self.refused_full.get();
        tallies.refused_copies += self.refused_copies.get();
    }
}
