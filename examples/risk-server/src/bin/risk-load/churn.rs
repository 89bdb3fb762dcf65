//! Changes without end that leave the size of a list as it is.

use crate::http;
use crate::keys::{Kind, made};
use std::collections::VecDeque;

/// Keys that are put on a list and taken off it again, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Churn {
    /// Those that are listed, and that no request is about.
    listed: VecDeque<String>,
    next: u64,
}

/// A change on its way.
#[derive(Debug)]
pub(crate) struct Change {
    key: String,
    put: bool,
}

impl Change {
    pub(crate) fn request(&self) -> Vec<u8> {
        http::change(self.put, &self.key)
    }
}

impl Churn {
    /// Keys that are listed at a time.
    const LEVEL: usize = 1000;

    /// A put of a key that was never there, or the delete of one that is.
    pub(crate) fn begin(&mut self) -> Change {
        let delete = if self.listed.len() > Self::LEVEL { self.listed.pop_front() } else { None };
        match delete {
            Some(key) => Change { key, put: false },
            None => {
                self.next += 1;
                Change { key: made(Kind::Churn, self.next), put: true }
            }
        }
    }

    /// Judges the answer to a change.
    pub(crate) fn end(&mut self, change: Change, status: u16, body: &[u8]) -> Result<(), String> {
        let Change { key, put } = change;
        let right = if put { (201, "added") } else { (200, "removed") };
        if (status, body) != (right.0, format!("{{\"key\":\"{key}\",\"{}\":true}}", right.1).as_bytes()) {
            let (method, body) = (if put { "PUT" } else { "DELETE" }, String::from_utf8_lossy(body));
            return Err(format!("{method} of {key:?} was answered {status}: {body}"));
        }
        if put {
            self.listed.push_back(key);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_change_changes_the_list_and_its_size_stays_within_bounds() {
        let (mut churn, mut list, mut under_way) = (Churn::default(), HashSet::new(), VecDeque::new());
        let mut puts = 0;
        for _ in 0..20_000 {
            under_way.push_back(churn.begin());
            if under_way.len() < 16 {
                continue;
            }
            let change = under_way.pop_front().unwrap();
            let (key, put) = (change.key.clone(), change.put);
            puts += usize::from(put);
            assert!(if put { list.insert(key.clone()) } else { list.remove(&key) }, "{key}, put: {put}");
            let (status, what) = if put { (201, "added") } else { (200, "removed") };
            churn.end(change, status, format!("{{\"key\":\"{key}\",\"{what}\":true}}").as_bytes()).unwrap();
            assert!(list.len() <= Churn::LEVEL + 17);
        }
        assert!(list.len() > Churn::LEVEL - 17);
        assert!((9_000..11_500).contains(&puts), "{puts}");
    }

    #[test]
    fn a_change_that_changed_nothing_is_told() {
        let mut churn = Churn::default();
        let change = churn.begin();
        let body = format!("{{\"key\":\"{}\",\"added\":false}}", change.key);
        assert!(churn.end(change, 200, body.as_bytes()).unwrap_err().contains("PUT"));
    }
}
