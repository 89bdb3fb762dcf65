//! The commands.

use crate::sys::alloc::Limit;
use crate::sys::{Argument, Context, Failure, Key, Text, now};
use crate::ticks;
use crate::value::{Parameters, Put, Reservation, Stored, Value, either, random};
use concurrent_cuckoo_filter::{BuildError, InsertError};

pub(crate) type Outcome = Result<(), Failure>;

const DEFAULT_CAPACITY: usize = 1024;
const DEFAULT_RATE: f64 = 0.001;

impl Reservation {
    fn new(capacity: usize) -> Self {
        let parameters = Parameters { rate: DEFAULT_RATE, expansion: 1, bucket_size: 2, max_iterations: 20 };
        Reservation { capacity, seed: random(), time_to_live: None, parameters, next_tick: 0 }
    }

    /// Builds the filter, and replicates its creation with all parameters and the seed.
    fn create<'k>(
        mut self,
        context: Context<'_>,
        name: Text<'_>,
        key: &'k mut Key<'_>,
    ) -> Result<&'k mut Stored, Failure> {
        let mut stored = self.build().map_err(|error| match error {
            BuildError::OutOfMemory { .. } => format!("OOM {error}"),
            BuildError::TooLarge { capacity: most, .. } => {
                format!("ERR a capacity of {}, for up to {most} items, does not fit the address space", self.capacity)
            }
            error => format!("ERR {error}"),
        })?;
        if let Some(tick) = stored.filter.config().tick {
            if self.next_tick == 0 {
                self.next_tick = now() + ticks::milliseconds(tick);
            }
            stored.head.next_tick = self.next_tick;
            ticks::note(context.database(), name.bytes());
        }
        let Parameters { rate, expansion, bucket_size, max_iterations } = self.parameters;
        let Reservation { capacity, seed, next_tick, .. } = self;
        let mut options = format!(
            "{capacity} ERROR {rate} EXPANSION {expansion} BUCKETSIZE {bucket_size} MAXITERATIONS {max_iterations} SEED {seed}"
        );
        if let Some(seconds) = self.time_to_live {
            options += &format!(" TTL {seconds} TICK {next_tick}");
        }
        let options = options.split(' ').map(|option| Argument::from(&option));
        context.replicate(c"CF.RESERVE", &[name.into()].into_iter().chain(options).collect::<Vec<_>>());
        key.set(Value::Filter(stored));
        filter(key)?.ok_or_else(|| Failure::from("ERR the server did not store the filter"))
    }
}

/// The number of slots in a bucket.
const SLOTS: usize = 4;

const OUT_OF_MEMORY: &str = "OOM command not allowed when used memory > 'maxmemory'.";
const NOT_FOUND: &str = "ERR not found";
const EXISTS: &str = "ERR item exists";
const ARRIVING: &str = "ERR the filter is being loaded: CF.LOADCHUNK has not reached its end";

/// The filter of a key, if it has one.
pub(crate) fn filter<'k>(key: &'k mut Key<'_>) -> Result<Option<&'k mut Stored>, Failure> {
    match key.get()? {
        None => Ok(None),
        Some(Value::Filter(stored)) => Ok(Some(stored)),
        Some(Value::Arriving(_)) => Err(ARRIVING.into()),
    }
}

/// The filter of a key, or the error `missing`.
pub(crate) fn existing<'k>(key: &'k mut Key<'_>, missing: &'static str) -> Result<&'k mut Stored, Failure> {
    filter(key)?.ok_or_else(|| missing.into())
}

pub(crate) fn number<T: core::str::FromStr>(text: Text<'_>, refused: &'static str) -> Result<T, Failure> {
    str::from_utf8(text.bytes()).ok().and_then(|text| text.parse().ok()).ok_or_else(|| refused.into())
}

fn capacity(text: Text<'_>) -> Result<usize, Failure> {
    number(text, "ERR Bad capacity").and_then(|keys| if keys == 0 { Err("ERR Bad capacity".into()) } else { Ok(keys) })
}

/// A number of items for a reply.
fn signed(items: u64) -> i64 {
    items.try_into().unwrap_or(i64::MAX)
}

fn unknown(option: Text<'_>) -> Failure {
    format!("ERR unknown option '{}'", option.bytes().escape_ascii()).into()
}

pub(crate) fn reserve(context: Context<'_>, arguments: &[Text<'_>]) -> Outcome {
    let [_, name, keys, options @ ..] = arguments else { return Err(Failure::WrongArity) };
    let mut reservation = Reservation::new(capacity(*keys)?);
    let (pairs, rest) = options.as_chunks();
    if !rest.is_empty() {
        return Err(Failure::WrongArity);
    }
    let parameters = &mut reservation.parameters;
    for &[option, value] in pairs {
        let limited = |limits: core::ops::RangeInclusive<u32>, refused| {
            let number = number(value, refused)?;
            if limits.contains(&number) { Ok(number) } else { Err(Failure::from(refused)) }
        };
        match &option.bytes().to_ascii_uppercase()[..] {
            b"ERROR" => parameters.rate = number(value, "ERR Bad error rate: a number between 0 and 1 is possible")?,
            b"EXPANSION" => parameters.expansion = limited(0..=32768, "ERR Bad expansion: 0 to 32768 is possible")?,
            b"BUCKETSIZE" => parameters.bucket_size = limited(1..=255, "ERR Bad bucket size: 1 to 255 is possible")?,
            b"MAXITERATIONS" => {
                parameters.max_iterations = limited(1..=65535, "ERR Bad max iterations: 1 to 65535 is possible")?;
            }
            b"SEED" => reservation.seed = number(value, "ERR Bad seed: a number of 64 bits is possible")?,
            b"TTL" => {
                reservation.time_to_live = Some(number(value, "ERR Bad time to live: a number of seconds is possible")?)
            }
            // Replicated by a primary; not for users.
            b"TICK" => reservation.next_tick = ticks::time(value, "ERR Bad tick")?,
            _ => return Err(unknown(option)),
        }
    }
    let mut key = context.open_to_write(*name);
    if key.get()?.is_some() {
        return Err(EXISTS.into());
    }
    reservation.create(context, *name, &mut key)?;
    context.reply_ok();
    Ok(())
}

/// Converts an error of an insertion into its reply.
fn refused(error: InsertError, stored: &Stored) -> Failure {
    match error {
        InsertError::OutOfMemory => OUT_OF_MEMORY.into(),
        _ if stored.head.parameters.expansion == 0 => "ERR Filter is full".into(),
        _ => "ERR Maximum expansions reached".into(),
    }
}

/// The filter of a key that is open for writing. An empty key gets a new one.
fn filter_or_new<'k>(
    context: Context<'_>,
    name: Text<'_>,
    key: &'k mut Key<'_>,
    capacity: usize,
) -> Result<&'k mut Stored, Failure> {
    if key.get()?.is_none() {
        return Reservation::new(capacity).create(context, name, key);
    }
    existing(key, NOT_FOUND)
}

/// Replicates items that went in, in this order, each with whether the filter lacked the memory to grow: as insertions that decide nothing
/// anew, neither whether an item is absent, nor whether the filter has the memory to grow.
fn replicate(context: Context<'_>, name: Text<'_>, inserted: &[(Text<'_>, bool)]) {
    for items in inserted.chunk_by(|one, other| one.1 == other.1) {
        let options: &[_] = if items[0].1 { &["NOCREATE", "NOGROW", "ITEMS"] } else { &["NOCREATE", "ITEMS"] };
        let options = options.iter().map(Argument::from);
        let arguments = [name.into()].into_iter().chain(options).chain(items.iter().map(|&(item, _)| item.into()));
        context.replicate(c"CF.INSERT", &arguments.collect::<Vec<_>>());
    }
}

/// Stores one item. `replicate_whole` replicates an insertion for which the filter had the memory.
fn insert_one(
    context: Context<'_>,
    arguments: &[Text<'_>],
    put: impl FnOnce(&mut Stored, &[u8], Limit) -> Put,
    replicate_whole: impl FnOnce(Text<'_>, Text<'_>),
) -> Outcome {
    let &[_, name, item] = arguments else { return Err(Failure::WrongArity) };
    let mut key = context.open_to_write(name);
    let stored = filter_or_new(context, name, &mut key, DEFAULT_CAPACITY)?;
    let (result, is_stunted) = put(stored, item.bytes(), Limit::MaxMemory);
    let is_in = result.map_err(|error| refused(error, stored))?;
    match (is_in, is_stunted) {
        (true, true) => replicate(context, name, &[(item, true)]),
        (true, false) => replicate_whole(name, item),
        (false, _) => {}
    }
    context.reply_bool(is_in);
    Ok(())
}

pub(crate) fn add(context: Context<'_>, arguments: &[Text<'_>]) -> Outcome {
    insert_one(context, arguments, Stored::add, |_, _| context.replicate_verbatim())
}

pub(crate) fn add_new(context: Context<'_>, arguments: &[Text<'_>]) -> Outcome {
    insert_one(context, arguments, Stored::add_new, |name, item| {
        context.replicate(c"CF.ADD", &[name.into(), item.into()]);
    })
}

pub(crate) fn insert(context: Context<'_>, arguments: &[Text<'_>]) -> Outcome {
    insert_each(context, arguments, Stored::add)
}

pub(crate) fn insert_new(context: Context<'_>, arguments: &[Text<'_>]) -> Outcome {
    insert_each(context, arguments, Stored::add_new)
}

fn insert_each(
    context: Context<'_>,
    arguments: &[Text<'_>],
    put: impl Fn(&mut Stored, &[u8], Limit) -> Put,
) -> Outcome {
    let [_, name, options @ ..] = arguments else { return Err(Failure::WrongArity) };
    let (mut keys, mut create, mut limit, mut rest) = (None, true, Limit::MaxMemory, options);
    let items = loop {
        match rest {
            [option, items @ ..] if option.bytes().eq_ignore_ascii_case(b"ITEMS") => break items,
            [option, more @ ..] if option.bytes().eq_ignore_ascii_case(b"NOCREATE") => (create, rest) = (false, more),
            // Replicated by a primary; not for users.
            [option, more @ ..] if option.bytes().eq_ignore_ascii_case(b"NOGROW") => {
                (limit, rest) = (Limit::Bytes(0), more);
            }
            [option, value, more @ ..] if option.bytes().eq_ignore_ascii_case(b"CAPACITY") => {
                (keys, rest) = (Some(capacity(*value)?), more);
            }
            [] => return Err(Failure::WrongArity),
            [option, ..] => return Err(unknown(*option)),
        }
    };
    if items.is_empty() {
        return Err(Failure::WrongArity);
    }
    if !create && keys.is_some() {
        return Err("ERR NOCREATE and CAPACITY exclude each other".into());
    }
    let mut key = context.open_to_write(*name);
    if !create && key.get()?.is_none() {
        return Err(NOT_FOUND.into());
    }
    let stored = filter_or_new(context, *name, &mut key, keys.unwrap_or(DEFAULT_CAPACITY))?;
    let mut inserted = Vec::new();
    context.reply_array(items.len());
    for &item in items {
        let (result, is_stunted) = put(stored, item.bytes(), limit);
        match result {
            Ok(true) => {
                inserted.push((item, is_stunted));
                context.reply_integer(1);
            }
            Ok(false) => context.reply_integer(0),
            Err(InsertError::OutOfMemory) => context.reply_failure(OUT_OF_MEMORY.into()),
            Err(_) => context.reply_integer(-1),
        }
    }
    replicate(context, *name, &inserted);
    Ok(())
}

pub(crate) fn exists(context: Context<'_>, arguments: &[Text<'_>]) -> Outcome {
    let &[_, name, item] = arguments else { return Err(Failure::WrongArity) };
    let key = &mut context.open(name);
    context.reply_bool(filter(key)?.is_some_and(|stored| stored.contains(item.bytes())));
    Ok(())
}

pub(crate) fn contains_batch(context: Context<'_>, arguments: &[Text<'_>]) -> Outcome {
    let [_, name, items @ ..] = arguments else { return Err(Failure::WrongArity) };
    let mut found = vec![false; items.len()];
    if let Some(stored) = filter(&mut context.open(*name))? {
        let items: Vec<_> = items.iter().map(|item| item.bytes()).collect();
        either!(&*stored.filter, filter => filter.contains_batch(&items, &mut found));
    }
    context.reply_array(found.len());
    found.into_iter().for_each(|found| context.reply_bool(found));
    Ok(())
}

pub(crate) fn count(context: Context<'_>, arguments: &[Text<'_>]) -> Outcome {
    let &[_, name, item] = arguments else { return Err(Failure::WrongArity) };
    let count = filter(&mut context.open(name))?.map_or(0, |stored| stored.count(item.bytes()));
    context.reply_integer(signed(count));
    Ok(())
}

pub(crate) fn delete(context: Context<'_>, arguments: &[Text<'_>]) -> Outcome {
    let &[_, name, item] = arguments else { return Err(Failure::WrongArity) };
    let mut key = context.open_to_write(name);
    let stored = existing(&mut key, "Not found")?;
    let removed = stored.remove(item.bytes());
    if removed {
        context.replicate_verbatim();
    }
    context.reply_bool(removed);
    Ok(())
}

pub(crate) fn info(context: Context<'_>, arguments: &[Text<'_>]) -> Outcome {
    let [_, name, options @ ..] = arguments else { return Err(Failure::WrongArity) };
    let is_full = match options {
        [] => false,
        [option] if option.bytes().eq_ignore_ascii_case(b"FULL") => true,
        [option, ..] => return Err(unknown(*option)),
    };
    let key = &mut context.open(*name);
    let stored = existing(key, NOT_FOUND)?;
    let (config, stats) = (stored.filter.config(), stored.filter.stats());
    let Parameters { rate, expansion, bucket_size, max_iterations } = stored.head.parameters;
    let numbers = [
        ("Size", stored.memory_usage() as i64),
        ("Number of buckets", (stats.slots / SLOTS) as i64),
        ("Number of filters", 1),
        ("Number of items inserted", signed(stored.items())),
        ("Number of items deleted", signed(stored.head.deleted)),
        ("Bucket size", bucket_size.into()),
        ("Expansion rate", expansion.into()),
        ("Max iterations", max_iterations.into()),
        ("Capacity", config.capacity as i64),
        ("Max capacity", config.max_capacity as i64),
        ("Copies beside the filter", signed(stored.overflow())),
        ("Time to live", config.time_to_live.map_or(0, |time| time.as_secs() as i64)),
    ];
    // Without `FULL`, RedisBloom's fields: go-redis refuses a reply with others.
    let (fields, numbers) = if is_full { (numbers.len() + 3, &numbers[..]) } else { (8, &numbers[..8]) };
    context.reply_map(fields);
    for &(label, number) in numbers {
        context.reply_bytes(label.as_bytes());
        context.reply_integer(number);
    }
    if !is_full {
        return Ok(());
    }
    for (label, rate) in [("Error rate", rate), ("Error rate now", stats.expected_false_positive_rate)] {
        context.reply_bytes(label.as_bytes());
        context.reply_double(rate);
    }
    context.reply_bytes(b"Seed");
    // As text: it may exceed the 64-bit signed integers of the protocol.
    context.reply_bytes(stored.filter.seed().to_string().as_bytes());
    Ok(())
}

pub(crate) fn debug(context: Context<'_>, arguments: &[Text<'_>]) -> Outcome {
    let &[_, name] = arguments else { return Err(Failure::WrongArity) };
    let key = &mut context.open(name);
    let stored = existing(key, NOT_FOUND)?;
    let Parameters { expansion, bucket_size, max_iterations, .. } = stored.head.parameters;
    let (buckets, items, deleted) = (stored.filter.stats().slots / SLOTS, stored.items(), stored.head.deleted);
    let text = format!(
        "bktsize:{bucket_size} buckets:{buckets} items:{items} deletes:{deleted} filters:1 \
         max_iterations:{max_iterations} expansion:{expansion}"
    );
    context.reply_bytes(text.as_bytes());
    Ok(())
}

/// Has no effect: a removal frees its slot at once.
pub(crate) fn compact(context: Context<'_>, arguments: &[Text<'_>]) -> Outcome {
    let &[_, name] = arguments else { return Err(Failure::WrongArity) };
    existing(&mut context.open(name), "Cuckoo filter was not found")?;
    context.reply_ok();
    Ok(())
}

pub(crate) fn scan_dump(context: Context<'_>, arguments: &[Text<'_>]) -> Outcome {
    let &[_, name, position] = arguments else { return Err(Failure::WrongArity) };
    let position = number(position, "ERR Invalid position")?;
    // Opened for reading: a dump does not change the contents, so no command is replicated.
    let key = &mut context.open(name);
    let stored = existing(key, NOT_FOUND)?;
    if position == 0 {
        ticks::note(context.database(), name.bytes());
    }
    let next = stored.dump(position)?;
    context.reply_array(2);
    context.reply_integer(next.as_ref().map_or(0, |(position, _)| *position as i64));
    match next {
        None => context.reply_null(),
        Some((_, chunk)) => context.reply_bytes(&chunk),
    }
    Ok(())
}

pub(crate) fn load_chunk(context: Context<'_>, arguments: &[Text<'_>]) -> Outcome {
    let &[_, name, position, chunk] = arguments else { return Err(Failure::WrongArity) };
    let position: u64 = number(position, "ERR Invalid position")?;
    let (mut key, chunk) = (context.open_to_write(name), chunk.bytes());
    let value = key.get()?;
    if Value::begins(position, chunk) {
        if value.is_some_and(|value| !value.is_arriving()) {
            return Err(EXISTS.into());
        }
        let value = Value::arriving(chunk, core::iter::empty()).map_err(|error| format!("ERR {error}"))?;
        key.set(value);
    } else {
        let Some(Value::Arriving(arriving)) = value else { return Err("ERR Invalid position".into()) };
        if let Some(value) = arriving.take(position, chunk)? {
            key.set(value);
            ticks::note(context.database(), name.bytes());
        }
    }
    context.replicate_verbatim();
    context.reply_ok();
    Ok(())
}

pub(crate) fn merge(context: Context<'_>, arguments: &[Text<'_>]) -> Outcome {
    let [_, to, from @ ..] = arguments else { return Err(Failure::WrongArity) };
    let copy = |stored: &mut Stored| stored.try_clone().map_err(|error| Failure::from(format!("OOM {error}")));
    let mut merged = filter(&mut context.open(*to))?.map(copy).transpose()?;
    for &name in from {
        let key = &mut context.open(name);
        let stored = existing(key, NOT_FOUND)?;
        match &mut merged {
            None => merged = Some(copy(stored)?),
            Some(merged) => merged.merge_from(stored)?,
        }
    }
    let merged = merged.ok_or(NOT_FOUND)?;
    if merged.filter.expiring().is_some() {
        ticks::note(context.database(), to.bytes());
    }
    context.open_to_write(*to).set(Value::Filter(merged));
    context.replicate_verbatim();
    context.reply_ok();
    Ok(())
}
