//! What was done.

use crate::text::count;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A number that only grows.
#[derive(Debug, Default)]
pub(super) struct Count(AtomicU64);

impl Count {
    pub(super) fn add(&self, more: usize) {
        self.0.fetch_add(more as u64, Relaxed);
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// What was done since the beginning.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// Answers about keys whose state was known.
    pub(super) judged: Count,
    /// Answers about keys that changed meanwhile.
    pub(super) open: Count,
    pub(super) single_requests: Count,
    pub(super) batch_requests: Count,
    /// Single changes that were acknowledged.
    pub(super) changes: Count,
    /// Keys of bulk loads that were acknowledged.
    pub(super) bulk_keys: Count,
    pub(super) bulk_loads: Count,
    pub(super) replacements: Count,
    /// Replacements that hung up amid their list.
    pub(super) broken_replacements: Count,
    /// Replacements that met what an earlier one left.
    pub(super) busy_replacements: Count,
    /// Changes and replacements whose answer was lost.
    pub(super) cut_off: Count,
    /// Keys that were in doubt and were asked for.
    pub(super) settled: Count,
    /// Times that every key was asked for.
    pub(super) full_checks: Count,
    pub(super) kills: Count,
    /// Kills before the server was ready.
    pub(super) early_kills: Count,
    pub(super) shutdowns: Count,
    pub(super) from_snapshot: Count,
    pub(super) by_bulk_load: Count,
    /// Larger filters, as far as they were seen.
    pub(super) rebuilds: Count,
    pub(super) violations: Count,
}

impl Counts {
    /// One line for people who wait.
    pub(super) fn line(&self) -> String {
        let of = |number: &Count| count(number.get());
        format!(
            "{} answers judged, {} changes and {} bulk keys acknowledged, {} replacements, {} kills, {} shutdowns",
            of(&self.judged),
            of(&self.changes),
            of(&self.bulk_keys),
            of(&self.replacements),
            of(&self.kills),
            of(&self.shutdowns)
        )
    }

    pub(super) fn summary(&self) -> String {
        let of = |number: &Count| count(number.get());
        format!(
            "answers judged          {} ({} more about keys that changed meanwhile), in {} single and {} batch \
             requests\n\
             full checks             {} of every key\n\
             changes acknowledged    {} single, {} keys in {} bulk loads\n\
             replacements            {} made, {} broken off amid their list, {} met one under way\n\
             in doubt                {} requests cut off, {} keys settled by asking\n\
             ends                    {} by SIGKILL, {} of them before the server was ready; {} by SIGTERM\n\
             starts                  {} from a snapshot, {} by bulk load\n\
             larger filters          {}\n\
             violations              {}\n",
            of(&self.judged),
            of(&self.open),
            of(&self.single_requests),
            of(&self.batch_requests),
            of(&self.full_checks),
            of(&self.changes),
            of(&self.bulk_keys),
            of(&self.bulk_loads),
            of(&self.replacements),
            of(&self.broken_replacements),
            of(&self.busy_replacements),
            of(&self.cut_off),
            of(&self.settled),
            of(&self.kills),
            of(&self.early_kills),
            of(&self.shutdowns),
            of(&self.from_snapshot),
            of(&self.by_bulk_load),
            of(&self.rebuilds),
            of(&self.violations),
        )
    }
}
