//! The timer: expiry, and the end of idle dumps.
//!
//! Only the primary lets items expire by a clock. Its timer ticks each filter that is due and replicates the tick as `CF.TICK`, which
//! replicas and append-only files replay. The value contains the time of its next tick, so a restarted server catches up.

use crate::commands::{Outcome, filter, number};
use crate::settings;
use crate::sys::{self, Context, Failure, Text, timer};
use crate::value::Stored;
use concurrent_cuckoo_filter::Config;
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The minimum milliseconds between two visits of a key.
const PERIOD: i64 = 100;

/// The milliseconds until the next visit of a key that has dumps, or awaits a tick of the primary.
const SOON: i64 = 1000;

/// The maximum milliseconds until the next visit of a key. The name of a deleted key is forgotten then.
const LATE: i64 = 60_000;

/// The number of ticks after which every item has expired, whatever the time to live.
const ALL: i64 = 256;

/// In place of a database: all of them.
const ANY: i32 = -1;

/// A database and the name of a key in it.
type Name = (i32, Arc<[u8]>);

/// The keys that may hold an expiring filter or have dumps, and the times when the timer visits them.
struct Visits {
    times: BTreeMap<Name, i64>,
    order: BTreeSet<(i64, Name)>,
}

static VISITS: Mutex<Visits> = Mutex::new(Visits { times: BTreeMap::new(), order: BTreeSet::new() });

fn visits() -> MutexGuard<'static, Visits> {
    VISITS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Visits {
    /// Plans the next visit of a key.
    fn plan(&mut self, name: Name, time: i64) {
        if let Some(planned) = self.times.insert(name.clone(), time) {
            self.order.remove(&(planned, name.clone()));
        }
        self.order.insert((time, name));
    }

    /// Removes the first key that is to be visited by now.
    fn take_due(&mut self, now: i64) -> Option<Name> {
        self.order.first().filter(|&&(time, _)| time <= now)?;
        let (_, name) = self.order.pop_first()?;
        self.times.remove(&name);
        Some(name)
    }
}

pub(crate) fn begin(context: Context<'_>) {
    timer::watch_names(context);
    timer::watch_swaps(context);
    timer::watch_time(context);
}

/// Rounded up: six ticks are at least a time to live.
pub(crate) fn milliseconds(time: Duration) -> i64 {
    i64::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(i64::MAX).max(1)
}

/// Notes a key that may hold an expiring filter or have dumps. The timer visits it.
pub(crate) fn note(database: i32, name: &[u8]) {
    visits().plan((database, name.into()), 0);
}

/// Notes a key that is being loaded.
pub(crate) fn loaded(database: i32, name: &[u8]) {
    // Redis 7.0 numbers each database that a replica loads to the side 0 (`repl-diskless-load swapdb`).
    note(if database == 0 && !sys::is_primary() { ANY } else { database }, name);
}

/// Notes a key that appeared under this name, if the timer has work with it.
pub(crate) fn appeared(context: Context<'_>, name: Text<'_>) {
    if let Ok(Some(stored)) = filter(&mut context.look_at(name))
        && (stored.filter.expiring().is_some() || stored.has_dumps())
    {
        note(context.database(), name.bytes());
    }
}

pub(crate) fn swapped(one: i32, other: i32) {
    let visits = &mut *visits();
    for ((database, name), time) in core::mem::take(&mut visits.times) {
        let database = match database {
            number if number == one => other,
            number if number == other => one,
            number => number,
        };
        visits.times.insert((database, name), time);
    }
    visits.order = visits.times.iter().map(|(name, &time)| (time, name.clone())).collect();
}

/// Visits the keys that are due.
pub(crate) fn due(context: Context<'_>) {
    // While data is loaded, keys may be in databases to the side; while writes are paused, nothing may be replicated.
    if sys::is_loading() || sys::is_paused() {
        return;
    }
    let (now, elapsed) = (sys::now(), sys::elapsed());
    let next = || visits().take_due(elapsed);
    while let Some((database, name)) = next() {
        if database == ANY {
            let all = (0..).take_while(|&database| context.select(database));
            all.for_each(|_| context.with_text(&name, |name| appeared(context, name)));
            continue;
        }
        let selected = context.select(database);
        if let Some(time) = selected.then(|| context.with_text(&name, |name| visit(context, name, now))).flatten() {
            visits().plan((database, name), elapsed + (time - now).clamp(PERIOD, LATE));
        }
    }
}

/// Ends the idle dumps of a key and performs its ticks that are due. Returns the time of the next visit, if there is to be one.
fn visit(context: Context<'_>, name: Text<'_>, now: i64) -> Option<i64> {
    let mut key = context.look_at(name);
    let stored = filter(&mut key).ok()??;
    let has_dumps = stored.end_dumps_before(sys::elapsed() - milliseconds(settings::get().dump_idle));
    let soon = has_dumps.then_some(now + SOON);
    let Config { tick: Some(tick), time_to_live: Some(life), .. } = stored.filter.config() else { return soon };
    let next_tick = stored.head.next_tick;
    drop(key);
    let time = if (now + 1..=now + milliseconds(tick)).contains(&next_tick) {
        next_tick
    } else if sys::is_primary() {
        catch_up(context, name, now, next_tick, [tick, life])
    } else {
        now + milliseconds(tick).min(SOON)
    };
    Some(soon.map_or(time, |soon| soon.min(time)))
}

/// Performs the ticks of a key that are due, and returns the time of the next one. A tick that is more than a tick away was planned by
/// a clock that is ahead of this one, or before this one was set back.
fn catch_up(context: Context<'_>, name: Text<'_>, now: i64, due: i64, [tick, life]: [Duration; 2]) -> i64 {
    // A life may begin within a tick.
    let most = (life.as_nanos().div_ceil(tick.as_nanos()) + 1).min(ALL as u128) as i64;
    let tick = milliseconds(tick);
    let (count, next) = if now < due {
        (0, now + tick)
    } else {
        let ticks = (now - due) / tick + 1;
        (ticks.min(most), due + ticks * tick)
    };
    let mut key = context.open_to_tick(name);
    if let Ok(Some(stored)) = filter(&mut key) {
        make(stored, count, next);
        context.replicate(c"CF.TICK", &[name.into(), (&count).into(), (&next).into()]);
    }
    next
}

fn make(stored: &mut Stored, count: i64, next_tick: i64) {
    if let Some(filter) = stored.changing().expiring() {
        for _ in 0..count {
            filter.advance();
        }
        // Copies and loaded snapshots do not have the slots of expired items.
        while filter.sweep(usize::MAX) {}
    }
    stored.head.next_tick = next_tick;
}

/// A time in milliseconds since 1970.
pub(crate) fn time(text: Text<'_>, refused: &'static str) -> Result<i64, Failure> {
    let time: i64 = number(text, refused)?;
    if time < 0 { Err(refused.into()) } else { Ok(time) }
}

/// `CF.TICK key count next`: the ticks of the primary, replayed.
pub(crate) fn tick(context: Context<'_>, arguments: &[Text<'_>]) -> Outcome {
    let &[_, name, count, next] = arguments else { return Err(Failure::WrongArity) };
    let count: i64 = number(count, "ERR Bad number of ticks")?;
    let next = time(next, "ERR Bad time")?;
    let mut key = context.open_to_tick(name);
    match filter(&mut key)? {
        Some(stored) if stored.filter.expiring().is_some() && (0..=ALL).contains(&count) => make(stored, count, next),
        _ => return Err("ERR no filter whose items expire, or too many ticks".into()),
    }
    context.replicate_verbatim();
    context.reply_ok();
    Ok(())
}
