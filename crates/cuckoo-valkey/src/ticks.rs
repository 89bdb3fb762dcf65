//! The timer: expiry, and the end of idle dumps.
//!
//! Only the primary lets items expire by a clock. Its timer ticks each filter that is due and replicates the tick as `CF.TICK`, which
//! replicas and append-only files replay. The value contains the time of its next tick, so a restarted server catches up.

use crate::commands::{Outcome, filter_mut, number};
use crate::settings;
use crate::sys::{self, Context, Failure, Text, timer};
use crate::value::{Stored, Value};
use core::time::Duration;
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The interval between clock readings in milliseconds.
pub(crate) const PERIOD: i64 = 100;

/// The number of ticks after which every item has expired, whatever the time to live.
const ALL: i64 = 256;

/// Databases and names of keys that the timer visits.
struct Names(Mutex<BTreeSet<(i32, Vec<u8>)>>);

/// Keys that may hold an expiring filter.
static EXPIRING: Names = Names::new();

/// Keys that may have dumps.
static DUMPED: Names = Names::new();

impl Names {
    const fn new() -> Self {
        Names(Mutex::new(BTreeSet::new()))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<(i32, Vec<u8>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, database: i32, name: &[u8]) {
        self.lock().insert((database, name.into()));
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

/// Adds a key with an expiring filter.
pub(crate) fn note_stored(database: i32, name: &[u8]) {
    EXPIRING.add(database, name);
}

/// Adds a key with a dump.
pub(crate) fn note_dumped(database: i32, name: &[u8]) {
    DUMPED.add(database, name);
}

/// Adds a key that appears under this name.
pub(crate) fn note(context: Context<'_>, name: Text<'_>) {
    if let Ok(Some(Value::Filter(stored))) = context.open(name).get() {
        if stored.filter.expiring().is_some() {
            note_stored(context.database(), name.bytes());
        }
        if stored.has_dumps() {
            note_dumped(context.database(), name.bytes());
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
        let mut key = context.open(name);
        filter_mut(&mut key).is_ok_and(|stored| stored.is_some_and(|stored| stored.end_dumps_before(oldest)))
    });
    if sys::is_primary() {
        EXPIRING.visit(context, |name| make_due(context, name, now));
    }
}

/// Performs the ticks of one key that are due, and returns whether its items expire.
fn make_due(context: Context<'_>, name: Text<'_>, now: i64) -> bool {
    let (next_tick, tick) = match context.open(name).get() {
        Ok(Some(Value::Filter(Stored { filter, next_tick, .. }))) => match filter.tick() {
            Some(tick) => (*next_tick, milliseconds(tick)),
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
    if let Some(filter) = stored.changing().expiring() {
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
