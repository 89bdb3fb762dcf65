//! Whether a history can be explained: after Wing and Gong, "Testing and Verifying Concurrent Objects" (1993), with
//! the memory of failures that Lowe added ("Testing for linearizability", 2017).

use super::answer::Answer;
use super::history::{Event, History};
use core::fmt::Debug;
use core::hash::Hash;
use std::collections::HashSet;

/// Operations that have been put in order.
type Done = u128;

/// What an operation said, and what that means for its class.
pub(super) trait Says: Copy {
    /// The copies of the class.
    type State: Copy + Debug + Eq + Hash;

    /// The states after the operation if this was the one before; none if the answer was wrong then.
    fn states_after(self, state: Self::State) -> impl Iterator<Item = Self::State>;

    /// Whether the state stays as it is.
    fn only_tells(self) -> bool;
}

impl Says for Answer {
    type State = u8;

    fn states_after(self, copies: u8) -> impl Iterator<Item = u8> {
        self.after(copies).into_iter()
    }

    fn only_tells(self) -> bool {
        self.only_tells()
    }
}

impl<A: Says> History<A> {
    /// Whether there is an order of the events in which each comes at a moment between its begin and its end, and in
    /// which every answer is true.
    pub(super) fn is_linearizable(&self) -> bool {
        assert!(self.events.len() <= Done::BITS as usize, "{} events", self.events.len());
        Attempt { events: &self.events, failed: HashSet::new() }.explains(0, self.copies)
    }
}

struct Attempt<'a, A: Says> {
    events: &'a [Event<A>],
    /// From here on there was no way.
    failed: HashSet<(Done, A::State)>,
}

impl<A: Says> Attempt<'_, A> {
    fn explains(&mut self, mut done: Done, copies: A::State) -> bool {
        // What only tells and is true may as well come now: it takes nothing from what follows.
        loop {
            let told = self.next(done).find(|&number| {
                let answer = self.events[number].answer;
                answer.only_tells() && answer.states_after(copies).next().is_some()
            });
            let Some(number) = told else { break };
            done |= 1 << number;
        }
        if done.count_ones() as usize == self.events.len() {
            return true;
        }
        if !self.failed.insert((done, copies)) {
            return false;
        }
        let candidates: Vec<usize> =
            self.next(done).filter(|&number| !self.events[number].answer.only_tells()).collect();
        candidates.into_iter().any(|number| {
            let events = self.events;
            events[number].answer.states_after(copies).any(|copies| self.explains(done | 1 << number, copies))
        })
    }

    /// The events that may come next: no other one that is still to come ended before they began.
    fn next(&self, done: Done) -> impl Iterator<Item = usize> + use<'_, A> {
        let open = move |number: &usize| done >> number & 1 == 0;
        let events = self.events;
        let first_end = (0..events.len()).filter(open).map(|number| events[number].end).min().unwrap_or(0);
        (0..events.len()).filter(open).filter(move |&number| events[number].begin <= first_end)
    }
}

mod tests {
    use super::super::answer::Answer;
    use super::*;
    use proptest::prelude::*;

    fn history(copies: u8, events: &[(Answer, u64, u64)]) -> History {
        let events = events.iter().map(|&(answer, begin, end)| Event { answer, begin, end });
        History { copies, events: events.collect() }
    }

    /// Tries every order.
    fn naive(copies: u8, events: &[Event]) -> bool {
        events.is_empty()
            || events.iter().enumerate().any(|(number, event)| {
                let mut others = events.to_vec();
                others.remove(number);
                others.iter().all(|other| other.end >= event.begin)
                    && event.answer.after(copies).is_some_and(|copies| naive(copies, &others))
            })
    }

    fn answers() -> impl Strategy<Value = Answer> {
        prop_oneof![
            3 => Just(Answer::Stored),
            1 => Just(Answer::Full),
            1 => Just(Answer::TooManyCopies),
            2 => Just(Answer::Admitted),
            1 => Just(Answer::Present),
            1 => Just(Answer::NotAdmitted),
            3 => any::<bool>().prop_map(Answer::Found),
            1 => Just(Answer::FoundDuringWrite),
            2 => (0u8..=3).prop_map(Answer::Counted),
            3 => any::<bool>().prop_map(Answer::Removed),
            1 => (0u8..=3).prop_map(Answer::RemovedAll),
            1 => Just(Answer::Cleared),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

        /// Short histories, about half of which can be explained.
        #[test]
        fn the_check_agrees_with_trying_every_order(
            copies in prop_oneof![0u8..=2, Just(8)],
            events in prop::collection::vec((answers(), 0u64..12, 0u64..6), 1..=6),
        ) {
            let events: Vec<_> =
                events.into_iter().map(|(answer, begin, length)| Event { answer, begin, end: begin + length }).collect();
            let expected = naive(copies, &events);
            prop_assert_eq!(History { copies, events }.is_linearizable(), expected);
        }
    }

    #[test]
    fn a_key_that_was_never_absent_is_not_missed() {
        // Another copy comes and goes, whichever goes.
        let writer = [(Answer::Stored, 0, 10), (Answer::Removed(true), 11, 20)];
        let with = |copies, found| history(copies, &[writer[0], writer[1], (Answer::Found(found), 5, 15)]);
        assert!(!with(1, false).is_linearizable());
        assert!(with(1, true).is_linearizable());
        assert!(with(0, false).is_linearizable() && with(0, true).is_linearizable());
    }

    #[test]
    fn one_key_is_not_admitted_twice() {
        let twice = |begin| history(0, &[(Answer::Admitted, 0, 10), (Answer::Admitted, begin, 20)]);
        assert!(!twice(0).is_linearizable() && !twice(15).is_linearizable());
        let mut removed = twice(5);
        removed.events.push(Event { answer: Answer::Removed(true), begin: 8, end: 9 });
        assert!(removed.is_linearizable());
    }

    #[test]
    fn what_ended_before_another_began_comes_before_it() {
        let order = |end| history(0, &[(Answer::Stored, 0, end), (Answer::Found(false), 10, 20)]);
        assert!(order(10).is_linearizable());
        assert!(!order(9).is_linearizable());
    }
}
