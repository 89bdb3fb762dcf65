//! Histories with one fault each: a result is changed so that no order explains it. The check must refuse all of them.

use super::check::History;
use super::said::{Event, Said, Values, ones};
use crate::InsertError;
use crate::raw::{IfPresent, Put};

/// Every fault that this history of bare slots can be given, with its name. Each is wrong in every order: either the sum of
/// insertions and removals no longer gives the final number of copies, or a result is outside the numbers of copies that were
/// possible between its begin and its end.
pub(super) fn corrupted(history: &History) -> Vec<(&'static str, History)> {
    let differences: Option<Vec<i32>> = history.events.iter().map(|event| event.said.difference()).collect();
    // With a clear, the number of copies that it removes is unknown.
    let Some(differences) = differences else { return Vec::new() };
    let mut faults = Vec::new();
    for (number, event) in history.events.iter().enumerate() {
        let mut with = |name, change: &dyn Fn(&mut Vec<Event>)| {
            let mut history = history.clone();
            change(&mut history.events);
            faults.push((name, history));
        };
        let (least, most) = range(history, &differences, event);
        let says = match event.said {
            Said::Put { if_present: IfPresent::Keep, had: Ok(1), .. } => {
                Some(("a present key is admitted", Said::put(Put::UNIQUE, Ok(0))))
            }
            Said::Put { if_present: IfPresent::Keep, had: Ok(_), .. } => {
                Some(("an admitted key was there", Said::put(Put::UNIQUE, Ok(1))))
            }
            Said::Put { had: Ok(_), .. } => {
                Some(("a stored copy is refused", Said::put(Put::COPY, Err(InsertError::Full))))
            }
            Said::Removed(1) => Some(("a removed copy is not there", Said::Removed(0))),
            Said::Removed(_) => Some(("an absent copy is removed", Said::Removed(1))),
            Said::RemovedAll(copies) => Some(("one copy more is removed", Said::RemovedAll(copies + 1))),
            Said::Counted(_) => Some(("more are counted than there can be", Said::Counted(most as usize + 1))),
            Said::Found(true) if least > 0 => Some(("a key that is there is missed", Said::Found(false))),
            Said::Found(false) if most == 0 => Some(("a key that is not there is found", Said::Found(true))),
            Said::Copied(_) if least > 0 => {
                Some(("a copy of the table has none of them", Said::Copied(Values::default())))
            }
            Said::Copied(_) if most < 8 => {
                Some(("more are copied than there can be", Said::Copied(ones(most as u32 + 1))))
            }
            _ => None,
        };
        if let Some((name, said)) = says {
            with(name, &|events| events[number].said = said);
        }
        if differences[number] != 0 {
            with("a change is not told", &|events| _ = events.remove(number));
        }
        if differences[number] == 1 {
            with("a copy is stored once and told twice", &|events| events.push(*event));
        }
    }
    faults
}

/// The least and the largest possible number of copies between the begin and the end of the event.
fn range(history: &History, differences: &[i32], event: &Event) -> (i32, i32) {
    let (mut least, mut most) = (history.copies() as i32, history.copies() as i32);
    for (other, &difference) in history.events.iter().zip(differences) {
        let (before, overlaps) = (other.end < event.begin, event.overlaps(&(other.begin, other.end)));
        least += if before || overlaps && difference < 0 { difference } else { 0 };
        most += if before || overlaps && difference > 0 { difference } else { 0 };
    }
    (least.max(0), most)
}
