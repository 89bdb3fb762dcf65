//! The timer: expiry, and the end of idle dumps.
//!
//! Only the primary lets items expire by a clock. Its timer ticks each filter that is due and replicates the tick as `CF.TICK`, which
//! replicas and append-only files replay. The value contains the time of its next tick, so a restarted server catches up.

use crate::commands::{Outcome, filter, number};
use crate::settings;
use crate::sys::{self, Context, Failure, Text, timer};
use crate::value::Stored;
use core::time::Duration;
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The interval between clock readings in milliseconds.
pub(crate) const PERIOD: i64 = 100;

/// The number of ticks after which every item has expired, whatever the time to live.
const ALL: i64 = 256;

/// Databases and names of keys that the timer visits.
pub(crate) struct Names(Mutex<BTreeSet<(i32, Vec<u8>)>>);

/// Keys that may hold an expiring filter.
pub(crate) static EXPIRING: Names = Names::new();

/// Keys that may have dumps.
pub(crate) static DUMPED: Names = Names::new();

impl Names {
    const fn new() -> Self {
        Names(Mutex::new(BTreeSet::new()))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<(i32, Vec<u8>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a key of the selected database.
    pub(crate) fn add(&self, context: Context<'_>, name: Text<'_>) {
        self.lock().insert((context.database(), name.bytes().into()));
    }

    fn swap(&self, one: i32, other: i32) {
        let mut names = self.lock();
        *names = core::mem::take(&mut *names)
            .into_iter()
            .map(|(database, name)| match database {
                number if number == one => (other, name),
                number if number == other => (one, name),
                number => (number, name),
            })
            .collect();
    }

    /// Calls `work` with each name, and removes those for which it returns false.
    fn visit(&self, context: Context<'_>, work: impl Fn(Text<'_>) -> bool) {
        let names = self.lock().clone();
        for (database, name) in names {
            if !(context.select(database) && context.with_text(&name, &work)) {
                self.lock().remove(&(database, name));
            }
        }
    }
}

pub(crate) fn begin(context: Context<'_>) {
    timer::watch_names(context);
    timer::watch_swaps(context);
    timer::call_in(context, PERIOD);
}

pub(crate) fn milliseconds(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX).max(1)
}

/// Adds a key that appears under this name.
pub(crate) fn note(context: Context<'_>, name: Text<'_>) {
    if let Ok(Some(stored)) = filter(&mut context.open(name)) {
        if stored.filter.expiring().is_some() {
            EXPIRING.add(context, name);
        }
        if stored.has_dumps() {
            DUMPED.add(context, name);
        }
    }
}

pub(crate) fn swapped(one: i32, other: i32) {
    EXPIRING.swap(one, other);
    DUMPED.swap(one, other);
}

/// Ends idle dumps, and performs the ticks that are due. Replicas perform no ticks of their own.
pub(crate) fn due(context: Context<'_>) {
    if sys::is_loading() {
        return;
    }
    let now = sys::now();
    let oldest = now - milliseconds(settings::dump_idle());
    DUMPED.visit(context, |name| {
        let key = &mut context.open(name);
        filter(key).is_ok_and(|stored| stored.is_some_and(|stored| stored.end_dumps_before(oldest)))
    });
    if sys::is_primary() {
        EXPIRING.visit(context, |name| make_due(context, name, now));
    }
}

/// Performs the ticks of one key that are due, and returns whether its items expire.
fn make_due(context: Context<'_>, name: Text<'_>, now: i64) -> bool {
    let expiring = match filter(&mut context.open(name)) {
        Ok(Some(stored)) => stored.filter.config().tick.map(|tick| (stored.head.next_tick, milliseconds(tick))),
        _ => None,
    };
    let Some((next_tick, tick)) = expiring else { return false };
    if now >= next_tick {
        let ticks = (now - next_tick) / tick + 1;
        let (count, next) = (ticks.min(ALL), next_tick + ticks * tick);
        let mut key = context.open_to_write(name);
        if let Ok(Some(stored)) = filter(&mut key) {
            make(stored, count, next);
            context.replicate(c"CF.TICK", &[name.into(), (&count).into(), (&next).into()]);
        }
    }
    true
}

fn make(stored: &mut Stored, count: i64, next_tick: i64) {
    if let Some(filter) = stored.changing().expiring() {
        for _ in 0..count {
            filter.advance();
        }
    }
    stored.head.next_tick = next_tick;
}

/// `CF.TICK key count next`: the ticks of the primary, replayed.
pub(crate) fn tick(context: Context<'_>, arguments: &[Text<'_>]) -> Outcome {
    let &[_, name, count, next] = arguments else { return Err(Failure::WrongArity) };
    let count: i64 = number(count, "ERR Bad number of ticks")?;
    let next = number(next, "ERR Bad time")?;
    let mut key = context.open_to_write(name);
    match filter(&mut key)? {
        Some(stored) if stored.filter.expiring().is_some() && (0..=ALL).contains(&count) => make(stored, count, next),
        _ => return Err("ERR no filter whose items expire, or too many ticks".into()),
    }
    context.replicate_verbatim();
    context.reply_ok();
    Ok(())
}
