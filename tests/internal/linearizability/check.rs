//! Whether some order explains a history, after Wing and Gong, "Testing and Verifying Concurrent Objects" (1993), with the cache
//! of failures that Lowe added ("Testing for linearizability", 2017).

use super::said::{Event, Left, Values};
use crate::layout::Tags;
use std::collections::HashSet;

type Done = u128;

#[derive(Clone, Debug)]
pub(super) struct History {
    pub(super) tags: Tags,
    left: Left,
    pub(super) events: Vec<Event>,
}

impl History {
    pub(super) fn new(tags: Tags, values: Values, events: Vec<Event>) -> Self {
        let left = values.map(|value| if value == 0 { 0 } else { value + tags.value_for(1) });
        History { tags, left, events }
    }

    pub(super) fn copies(&self) -> usize {
        self.left.iter().filter(|&&left| left > 0).count()
    }

    /// Returns whether there is an order of the events in which each event takes effect between its begin and its end, and in
    /// which all results are right.
    pub(super) fn is_linearizable(&self) -> bool {
        assert!(self.events.len() <= Done::BITS as usize, "{} events", self.events.len());
        Attempt { history: self, failed: HashSet::new() }.explains(0, self.left)
    }
}

struct Attempt<'a> {
    history: &'a History,
    /// States from which no order was found.
    failed: HashSet<(Done, Left)>,
}

impl<'a> Attempt<'a> {
    fn explains(&mut self, mut done: Done, left: Left) -> bool {
        let &History { tags, ref events, .. } = self.history;
        // A read whose result is right now may come next: it changes nothing for the others.
        loop {
            let told = self.next(done).find(|&number| {
                let event = events[number];
                event.said.only_tells() && event.left_after(left, tags).next().is_some()
            });
            let Some(number) = told else { break };
            done |= 1 << number;
        }
        if done.count_ones() as usize == events.len() {
            return true;
        }
        if !self.failed.insert((done, left)) {
            return false;
        }
        let candidates: Vec<usize> = self.next(done).filter(|&number| !events[number].said.only_tells()).collect();
        candidates
            .into_iter()
            .any(|number| events[number].left_after(left, tags).any(|left| self.explains(done | 1 << number, left)))
    }

    /// The events that may come next: those that began before any remaining event ended.
    fn next(&self, done: Done) -> impl Iterator<Item = usize> + use<'a> {
        let events = &self.history.events;
        let open = core::iter::successors(Some(!done), |open| Some(open & open.wrapping_sub(1)));
        let open = open.map(|open| open.trailing_zeros() as usize).take_while(|&number| number < events.len());
        let first_end = open.clone().map(|number| events[number].end).min().unwrap_or(0);
        open.filter(move |&number| events[number].begin <= first_end)
    }
}

#[cfg(not(cuckoo_model))]
mod tests {
    use super::super::answer::Answer;
    use super::super::said::{Said, ones, sorted};
    use super::super::shape::tags_of;
    use super::*;
    use crate::InsertError;
    use crate::layout::Plan;
    use crate::raw::{IfPresent, Put};
    use proptest::prelude::*;

    /// Tries every order, with the oracle of bare slots.
    fn naive(copies: u8, events: &[(Answer, u64, u64)]) -> bool {
        events.is_empty()
            || events.iter().enumerate().any(|(number, &(answer, begin, _))| {
                let mut others = events.to_vec();
                others.remove(number);
                others.iter().all(|&(_, _, end)| end >= begin)
                    && answer.after(copies).is_some_and(|copies| naive(copies, &others))
            })
    }

    fn said(answer: Answer) -> Said {
        match answer {
            Answer::Stored => Said::put(Put::COPY, Ok(0)),
            Answer::Full => Said::put(Put::COPY, Err(InsertError::Full)),
            Answer::TooManyCopies => Said::put(Put::COPY, Err(InsertError::TooManyCopies)),
            Answer::Admitted => Said::put(Put::UNIQUE, Ok(0)),
            Answer::Present => Said::put(Put::UNIQUE, Ok(1)),
            Answer::NotAdmitted => Said::put(Put::UNIQUE, Err(InsertError::Full)),
            Answer::Found(found) => Said::Found(found),
            Answer::Counted(copies) => Said::Counted(copies.into()),
            Answer::Removed(removed) => Said::Removed(removed.into()),
            Answer::RemovedAll(copies) => Said::RemovedAll(copies.into()),
            Answer::Cleared => Said::Cleared,
        }
    }

    /// Checks a history of bare slots, in which the class has this number of copies before.
    fn is_explained(copies: u8, events: impl IntoIterator<Item = Event>) -> bool {
        let tags = tags_of(&Plan::one_shard(16, 2, 4));
        History::new(tags, ones(copies.into()), events.into_iter().collect()).is_linearizable()
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
            let events: Vec<_> = events.into_iter().map(|(answer, begin, length)| (answer, begin, begin + length)).collect();
            let all = events.iter().map(|&(answer, begin, end)| Event::new(said(answer), begin, end));
            prop_assert_eq!(is_explained(copies, all), naive(copies, &events));
        }
    }

    /// The results that the oracle of bare slots does not have.
    #[test]
    fn half_read_slots_and_copies_of_a_table_hide_no_class() {
        // Another copy is stored and one copy is removed, either of the two.
        let writes = [Event::new(Said::put(Put::COPY, Ok(0)), 0, 10), Event::new(Said::Removed(1), 11, 20)];
        let with = |copies, told| is_explained(copies, writes.into_iter().chain([told]));
        // A lookup may find the class in half of a slot that another key is being written to, but half of a slot hides no class.
        let half = |found| Event { half_read: true, ..Event::new(Said::Found(found), 21, 22) };
        assert!(with(0, half(true)) && with(0, half(false)) && with(1, half(true)) && !with(1, half(false)));
        assert!(!with(0, Event::new(Said::Found(true), 21, 22)));
        let copied = |copies| Event::new(Said::Copied(ones(copies)), 5, 15);
        assert!([0, 1].into_iter().all(|copies| with(0, copied(copies))) && !with(0, copied(2)));
        assert!([1, 2].into_iter().all(|copies| with(1, copied(copies))) && !with(1, copied(0)) && !with(1, copied(3)));
    }

    /// Results with one fault each, which no order explains.
    #[test]
    fn wrong_answers_beside_ticks_are_refused() {
        let tags = tags_of(&Plan::one_shard(16, 2, 4).with_tags(2));
        let explained = |events: &[Event]| History::new(tags, Values::default(), events.to_vec()).is_linearizable();
        let raise = |value, had| Said::Put { value, if_present: IfPresent::Raise, had: Ok(had) };
        let ticked = [Event::new(raise(2, 0), 0, 1), Event::new(Said::Ticked, 2, 3)];
        let once = |told| explained(&[ticked[0], ticked[1], Event::new(told, 6, 7)]);
        assert!(once(raise(3, 1)) && !once(raise(3, 0)) && !once(raise(3, 2)));
        assert!(once(Said::Found(true)) && !once(Said::Found(false)));
        assert!(once(Said::Removed(1)) && !once(Said::Removed(2)) && !once(Said::Removed(0)));
        assert!(once(Said::Raised { value: 3, had: 1 }) && !once(Said::Raised { value: 3, had: 2 }));
        assert!(once(Said::Copied(sorted([1]))) && !once(Said::Copied(sorted([2]))) && !once(Said::Copied(sorted([]))));
        assert!(!once(Said::put(Put::COPY, Err(InsertError::TooManyCopies))));
        let twice = |told| explained(&[ticked[0], ticked[1], Event::new(Said::Ticked, 4, 5), Event::new(told, 6, 7)]);
        assert!(twice(Said::Found(false)) && !twice(Said::Found(true)));
        // An operation concurrent with the second tick may go by the epoch before it, except a lookup that found nothing, which
        // has read the epoch twice.
        let beside = |told| {
            let told = Event { beside_a_tick: true, ..Event::new(told, 5, 6) };
            [8, 4].iter().all(|&end| explained(&[ticked[0], ticked[1], Event::new(Said::Ticked, 4, end), told]))
        };
        assert!(beside(raise(3, 1)) && beside(raise(3, 0)) && beside(Said::Found(true)) && !beside(raise(3, 2)));
    }
}
