//! Histories with one fault each: what an operation said is changed so that no order can explain it. A check that takes
//! one of them for right is no check.

use super::answer::Answer;
use super::history::{Event, History};

/// The faults that this history can be given, by name. Each is wrong whatever the order: either the sum of what was
/// stored and taken away no longer leads to what is left, or an answer is outside what the copies may have been
/// between its begin and its end.
pub(super) fn corrupted(history: &History) -> Vec<(&'static str, History)> {
    let Some(differences) = differences(history) else { return Vec::new() };
    let mut faults = Vec::new();
    for (number, event) in history.events.iter().enumerate() {
        let mut says = |name, answer| {
            let mut history = history.clone();
            history.events[number].answer = answer;
            faults.push((name, history));
        };
        let (least, most) = range(history, &differences, event);
        match event.answer {
            Answer::Present => says("a present key is admitted", Answer::Admitted),
            Answer::Admitted => says("an admitted key was there", Answer::Present),
            Answer::Stored => says("a stored copy is refused", Answer::Full),
            Answer::Removed(true) => says("a removed copy is not there", Answer::Removed(false)),
            Answer::Removed(false) => says("an absent copy is removed", Answer::Removed(true)),
            Answer::RemovedAll(copies) => says("one copy more is removed", Answer::RemovedAll(copies + 1)),
            Answer::Counted(_) => says("more are counted than there can be", Answer::Counted((most + 1) as u8)),
            Answer::Found(true) if least > 0 => says("a key that is there is missed", Answer::Found(false)),
            Answer::Found(false) if most == 0 => says("a key that is not there is found", Answer::Found(true)),
            _ => {}
        }
        if differences[number] != 0 {
            let mut history = history.clone();
            history.events.remove(number);
            faults.push(("a change is not told", history));
        }
        if differences[number] == 1 {
            let mut history = history.clone();
            history.events.push(*event);
            faults.push(("a copy is stored once and told twice", history));
        }
    }
    faults
}

/// What each event adds or takes away; `None` if a clear makes that uncertain.
fn differences(history: &History) -> Option<Vec<i32>> {
    history.events.iter().map(|event| event.answer.difference()).collect()
}

/// The fewest and the most copies that there may have been between the begin and the end of the event.
fn range(history: &History, differences: &[i32], event: &Event) -> (i32, i32) {
    let (mut least, mut most) = (i32::from(history.copies), i32::from(history.copies));
    for (other, &difference) in history.events.iter().zip(differences) {
        let before = other.end < event.begin;
        let overlaps = !before && other.begin <= event.end;
        least += if before || overlaps && difference < 0 { difference } else { 0 };
        most += if before || overlaps && difference > 0 { difference } else { 0 };
    }
    (least.max(0), most)
}
