//! Expiry: ticks of the primary, replicated.
//!
//! Only the primary reads a clock. Its timer ticks each filter that is due and replicates the tick as `CF.TICK`, which
//! replicas and
//! append-only files replay. The value contains the time of its next tick, so a restarted server catches up.

use crate::commands::{Outcome, filter_mut, number};
use crate::sys::{self, Context, Failure, Text, timer};
use crate::value::{Stored, Value};
use core::time::Duration;
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The interval between clock readings in milliseconds.
pub(crate) const PERIOD: i64 = 100;

/// The number of ticks after which every item has expired, whatever the time to live.
const ALL: i64 = 256;

/// Database and name of each key that may hold an expiring filter. A timer call removes keys that no longer hold one.
static KEYS: Mutex<BTreeSet<(i32, Vec<u8>)>> = Mutex::new(BTreeSet::new());

fn keys() -> MutexGuard<'static, BTreeSet<(i32, Vec<u8>)>> {
    KEYS.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn begin(context: Context<'_>) {
    timer::watch_names(context);
    timer::watch_swaps(context);
    timer::call_in(context, PERIOD);
}

pub(crate) fn milliseconds(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX).max(1)
}

/// Adds a key with an expiring filter.
pub(crate) fn note_stored(database: i32, name: &[u8]) {
    keys().insert((database, name.into()));
}

/// Adds a key if its items expire.
pub(crate) fn note(context: Context<'_>, name: Text<'_>) {
    if let Ok(Some(Value::Filter(stored))) = context.open(name).get()
        && stored.filter.expiring().is_some()
    {
        note_stored(context.database(), name.bytes());
    }
}

pub(crate) fn swapped(one: i32, other: i32) {
    let mut keys = keys();
    *keys = core::mem::take(&mut *keys)
        .into_iter()
        .map(|(database, name)| match database {
            number if number == one => (other, name),
            number if number == other => (one, name),
            number => (number, name),
        })
        .collect();
}

/// Performs the ticks that are due. Replicas do nothing.
pub(crate) fn due(context: Context<'_>) {
    if !sys::is_primary() || sys::is_loading() {
        return;
    }
    let (now, noted) = (sys::now(), keys().clone());
    for (database, name) in noted {
        let expires = context.select(database) && context.with_text(&name, |text| make_due(context, text, now));
        if !expires {
            keys().remove(&(database, name));
        }
    }
}

/// Performs the ticks of one key that are due, and returns whether its items expire.
fn make_due(context: Context<'_>, name: Text<'_>, now: i64) -> bool {
    let (next_tick, tick) = match context.open(name).get() {
        Ok(Some(Value::Filter(Stored { filter, next_tick, .. }))) => match filter.expiring() {
            Some(filter) => (*next_tick, milliseconds(filter.tick())),
            None => return false,
        },
        _ => return false,
    };
    if now >= next_tick {
        let ticks = (now - next_tick) / tick + 1;
        let (count, next) = (ticks.min(ALL), next_tick + ticks * tick);
        let mut key = context.open_to_write(name);
        if let Ok(Some(stored)) = filter_mut(&mut key) {
            make(stored, count, next);
            context.replicate(c"CF.TICK", &[name.into(), (&count).into(), (&next).into()]);
        }
    }
    true
}

fn make(stored: &mut Stored, count: i64, next_tick: i64) {
    if let Some(filter) = stored.filter.expiring() {
        for _ in 0..count {
            filter.advance();
        }
    }
    stored.next_tick = next_tick;
}

/// `CF.TICK key count next`: the ticks of the primary, replayed.
pub(crate) fn tick(context: Context<'_>, arguments: &[Text<'_>]) -> Outcome {
    let &[_, name, count, next] = arguments else { return Err(Failure::WrongArity) };
    let count: i64 = number(count, "ERR Bad number of ticks")?;
    let next = number(next, "ERR Bad time")?;
    let mut key = context.open_to_write(name);
    match filter_mut(&mut key)? {
        Some(stored) if stored.filter.expiring().is_some() && (0..=ALL).contains(&count) => make(stored, count, next),
        _ => return Err("ERR no filter whose items expire, or too many ticks".into()),
    }
    context.replicate_verbatim();
    context.reply_ok();
    Ok(())
}
