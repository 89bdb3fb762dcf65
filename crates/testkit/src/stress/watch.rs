//! What `stats` says during the work.

use super::Exact;
use crate::Promise;
use concurrent_cuckoo_filter::Stats;
use std::thread;
use std::time::Duration;

pub(super) struct Watched {
    pub(super) calls: u64,
    pub(super) mean_load: f64,
    pub(super) last: Stats,
}

pub(super) fn watch(field: &Exact) -> Watched {
    let slots = field.shape.slots();
    let mut watched = Watched { calls: 0, mean_load: 0.0, last: field.filter.stats() };
    let mut sum = 0.0;
    loop {
        let stats = field.filter.stats();
        let counters =
            |stats: &Stats| [stats.relocations, stats.longest_path, stats.refused_full, stats.refused_too_many_copies];
        if counters(&stats).iter().zip(counters(&watched.last)).any(|(now, before)| *now < before) {
            field.broken(Promise::Stats, None, format_args!("a counter fell: {stats:?} after {:?}", watched.last));
        }
        if stats.len > slots || stats.load_factor != stats.len as f64 / slots as f64 {
            field.broken(Promise::Stats, None, format_args!("{stats:?} of {slots} slots"));
        }
        watched.calls += 1;
        watched.last = stats;
        sum += stats.load_factor;
        thread::sleep(Duration::from_millis(5));
        if !field.is_worked_on() {
            break;
        }
    }
    watched.mean_load = sum / watched.calls as f64;
    watched
}
