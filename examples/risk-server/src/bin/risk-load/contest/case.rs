//! The cases, and what is asked in them.

use super::BATCH;
use crate::keys::{Kind, made};
use crate::questions::Questions;
use std::collections::HashSet;
use std::fmt;

/// What is asked, and whether the list is changed meanwhile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    pub(crate) batch: bool,
    /// No key that is asked for is listed, so only a wrong "maybe" reads the store.
    pub(crate) absent_only: bool,
    pub(crate) writers: bool,
}

impl Case {
    pub(crate) fn all() -> [Case; 6] {
        let case = |absent_only, writers, batch| Case { batch, absent_only, writers };
        [
            case(true, false, false),
            case(true, false, true),
            case(false, false, false),
            case(false, false, true),
            case(false, true, false),
            case(false, true, true),
        ]
    }

    pub(crate) fn questions(&self, sample: &Sample, singles: usize, batches: usize) -> Questions {
        let keys = |number| sample.keys(number, self.absent_only);
        if self.batch { Questions::batches(&keys(batches * BATCH), BATCH) } else { Questions::single(&keys(singles)) }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.batch {
            write!(f, "batches of {BATCH}")?
        } else {
            f.write_str("single checks")?
        }
        f.write_str(if self.absent_only { ", all absent" } else { "" })?;
        f.write_str(if self.writers { ", writers" } else { "" })
    }
}

/// Keys to be asked for.
pub(crate) struct Sample {
    mixed: Vec<(String, bool)>,
    absent: Vec<String>,
}

impl Sample {
    /// So many keys, of which this percentage is on the list: some of these, and some of the made-up ones.
    pub(crate) fn new(listed: &[String], made_keys: u64, size: usize, listed_percent: f64) -> Self {
        let mut rng = fastrand::Rng::with_seed(6);
        let real: HashSet<&str> = listed.iter().map(String::as_str).collect();
        let absent: Vec<String> = (0..)
            .map(|number| made(Kind::Absent, number))
            .filter(|key| !real.contains(key.as_str()))
            .take(size)
            .collect();
        let mut one = |absent: &String| {
            if rng.f64() * 100.0 >= listed_percent {
                return (absent.clone(), false);
            }
            let index = rng.u64(..listed.len() as u64 + made_keys);
            let real = usize::try_from(index).ok().and_then(|index| listed.get(index));
            (real.cloned().unwrap_or_else(|| made(Kind::Listed, index - listed.len() as u64)), true)
        };
        Sample { mixed: absent.iter().map(&mut one).collect(), absent }
    }

    fn keys(&self, number: usize, absent_only: bool) -> Vec<(&str, Option<bool>)> {
        if absent_only {
            self.absent.iter().take(number).map(|key| (key.as_str(), Some(false))).collect()
        } else {
            self.mixed.iter().take(number).map(|(key, listed)| (key.as_str(), Some(*listed))).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_keys_are_listed_as_asked_for_and_those_are_on_the_list() {
        let list: Vec<String> = (0..1000).map(|key| format!("real-{key}.com")).collect();
        let on_list: HashSet<String> =
            list.iter().cloned().chain((0..9000).map(|key| made(Kind::Listed, key))).collect();
        let sample = Sample::new(&list, 9000, 20_000, 5.0);
        assert!(sample.mixed.iter().all(|(key, listed)| on_list.contains(key) == *listed));
        assert!(sample.absent.iter().all(|key| !on_list.contains(key)));
        let listed = || sample.mixed.iter().filter(|(_, listed)| *listed);
        assert!((800..1200).contains(&listed().count()));
        assert!((50..200).contains(&listed().filter(|(key, _)| key.starts_with("real")).count()));
        assert_eq!(sample.keys(7, true).len(), 7);
        assert!(Sample::new(&list, 0, 1000, 0.0).mixed.iter().all(|(_, listed)| !listed));
        assert!(Sample::new(&list, 0, 1000, 100.0).mixed.iter().all(|(_, listed)| *listed));
    }
}
