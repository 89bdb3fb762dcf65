//! The value of a key.

use crate::pieces::{Joined, Part, Pieces, damaged};
use crate::sys::alloc::{Limit, limited, limited_and_refused};
use crate::sys::elapsed;
use concurrent_cuckoo_filter::{
    BuildError, Config, CuckooFilter, ExpiringFilter, InsertError, MergeError, SavedHasher, SnapshotError,
    SnapshotReader, StableHashBuilder, Stats,
};
use core::hash::BuildHasher;
use core::time::Duration;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::sync::Arc;

/// The size of a `CF.SCANDUMP` chunk in bytes.
pub(crate) const CHUNK: usize = 16 << 20;

/// The position after the head of a value: the head counts as one byte.
pub(crate) const HEAD: usize = 1;

/// Marks positions within a head that is longer than a chunk; the lower bits are an offset in the head.
const WITHIN_HEAD: usize = 1 << 39;

/// The ratio of the maximum capacity of a growing filter to its initial capacity.
const GROWTH: usize = 1 << 10;

/// The number of copies of an item that a filter holds. With more, two items that share a bucket would leave no room there for
/// any other one: with 2,000 items of 8 copies in a filter for 100,000, one new item in 50 was refused.
const COPIES: u32 = 2;

/// The maximum number of concurrent dumps per key. One more ends the oldest.
const DUMPS: usize = 4;

const MAGIC: &[u8; 8] = b"cf-head1";

/// The first bytes of the trailer, the last 64 bytes of a snapshot.
const TRAILER: &[u8; 8] = b"\xc0/cuckoo";
const TRAILER_BYTES: usize = 64;

type Plain = CuckooFilter<[u8], StableHashBuilder>;
type Expiring = ExpiringFilter<[u8], StableHashBuilder>;

pub(crate) enum Value {
    Filter(Stored),
    Arriving(Arriving),
}

#[expect(clippy::large_enum_variant, reason = "most filters are plain, and each is in an Arc")]
pub(crate) enum Filter {
    Plain(Plain),
    Expiring(Box<Expiring>),
}

/// The arguments of `CF.RESERVE`.
#[derive(Clone, Debug)]
pub(crate) struct Reservation {
    pub(crate) capacity: usize,
    pub(crate) seed: u64,
    /// In seconds, if items expire.
    pub(crate) time_to_live: Option<u64>,
    pub(crate) parameters: Parameters,
    /// The time of the first tick, in milliseconds since 1970.
    pub(crate) next_tick: i64,
}

/// Parameters of `CF.RESERVE` that are reported and replicated unchanged. The filter grows unless `expansion` is 0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parameters {
    pub(crate) rate: f64,
    pub(crate) expansion: u32,
    pub(crate) bucket_size: u32,
    pub(crate) max_iterations: u32,
}

/// A filter and its bookkeeping.
pub(crate) struct Stored {
    /// Shared with a running export.
    pub(crate) filter: Arc<Filter>,
    pub(crate) head: Head,
    dumps: Vec<Dump>,
}

/// The bookkeeping that stands before the filter in files.
#[derive(Clone)]
pub(crate) struct Head {
    pub(crate) parameters: Parameters,
    pub(crate) next_tick: i64,
    pub(crate) deleted: u64,
    /// The number of further copies, by class, of a plain filter. It holds at least one copy of each of these classes.
    overflow: BTreeMap<u128, u64>,
}

/// A snapshot sent in chunks, each of which is written when a client requests it.
struct Dump {
    number: u64,
    head: Vec<u8>,
    /// The filter when the dump began, if it has changed since.
    copy: Option<Arc<Filter>>,
    /// The size of the snapshot in bytes, once known.
    bytes: Option<usize>,
    used: i64,
}

/// The result of an insertion (`false` if a unique insertion found the item), and whether the filter failed to grow for lack of memory:
/// a replica must not grow then, either.
pub(crate) type Put = (Result<bool, InsertError>, bool);

/// A chunk of a dump, and the position after it.
type Chunk<'a> = (u64, Cow<'a, [u8]>);

/// A snapshot received in chunks.
#[derive(Clone)]
pub(crate) struct Arriving {
    head: Vec<u8>,
    chunks: Vec<Vec<u8>>,
    bytes: usize,
}

/// Evaluates one expression for either kind of filter.
macro_rules! either {
    ($self:expr, $filter:ident => $result:expr) => {
        match $self {
            $crate::value::Filter::Plain($filter) => $result,
            $crate::value::Filter::Expiring($filter) => $result,
        }
    };
}
pub(crate) use either;

impl Filter {
    pub(crate) fn memory_usage(&self) -> usize {
        either!(self, filter => filter.memory_usage())
    }

    pub(crate) fn config(&self) -> Config {
        either!(self, filter => filter.config())
    }

    pub(crate) fn stats(&self) -> Stats {
        either!(self, filter => filter.stats())
    }

    pub(crate) fn seed(&self) -> u64 {
        either!(self, filter => filter.hasher()).seeds().map_or(0, |[seed, ..]| seed)
    }

    pub(crate) fn expiring(&self) -> Option<&Expiring> {
        match self {
            Filter::Plain(_) => None,
            Filter::Expiring(filter) => Some(filter),
        }
    }

    fn try_clone(&self) -> Result<Self, BuildError> {
        Ok(match self {
            Filter::Plain(filter) => Filter::Plain(filter.try_clone()?),
            Filter::Expiring(filter) => Filter::Expiring(Box::new(filter.try_clone()?)),
        })
    }

    /// Writes the filter's snapshot, table by table.
    pub(crate) fn write_to(&self, writer: impl Write) -> Result<(), SnapshotError> {
        either!(self, filter => filter.write_to(writer))
    }

    fn read_from(reader: impl Read, expires: bool) -> Result<Self, SnapshotError> {
        let reader = SnapshotReader::new(reader)?;
        if expires {
            return Ok(Filter::Expiring(Box::new(reader.into_filter()?)));
        }
        reader.into_filter().map(Filter::Plain)
    }
}

impl Reservation {
    pub(crate) fn build(&self) -> Result<Stored, BuildError> {
        let Reservation { capacity, seed, time_to_live, parameters, next_tick } = *self;
        let hasher = StableHashBuilder::with_seeds(seed, 0);
        let most = if parameters.expansion == 0 { capacity } else { capacity.saturating_mul(GROWTH) };
        macro_rules! configured {
            ($builder:expr) => {
                match $builder.capacity(capacity).false_positive_rate(parameters.rate).hasher(hasher) {
                    builder if most > capacity => builder.max_capacity(most),
                    builder => builder,
                }
            };
        }
        let built = limited(Limit::MaxMemory, || match time_to_live {
            None => configured!(CuckooFilter::<[u8]>::builder()).build().map(Filter::Plain),
            Some(seconds) => configured!(ExpiringFilter::<[u8]>::builder().time_to_live(Duration::from_secs(seconds)))
                .build()
                .map(|filter| Filter::Expiring(Box::new(filter))),
        })?;
        Ok(Stored::new(built, Head { parameters, next_tick, deleted: 0, overflow: BTreeMap::new() }))
    }
}

impl Stored {
    fn new(filter: Filter, head: Head) -> Self {
        Stored { filter: Arc::new(filter), head, dumps: Vec::new() }
    }

    /// The filter, about to be changed: dumps that have begun keep the filter that they began with.
    pub(crate) fn changing(&mut self) -> &Filter {
        if self.dumps.iter().any(|dump| dump.copy.is_none()) {
            self.part_from_dumps();
        }
        &self.filter
    }

    #[cold]
    fn part_from_dumps(&mut self) {
        // Without memory the dumps end, and their clients begin others.
        let copy = limited(Limit::MaxMemory, || self.filter.try_clone().ok()).map(Arc::new);
        self.dumps.retain_mut(|dump| {
            if dump.copy.is_none() {
                dump.copy.clone_from(&copy);
            }
            dump.copy.is_some()
        });
    }

    /// Ends dumps that were last used before this time, and returns whether others are left.
    pub(crate) fn end_dumps_before(&mut self, time: i64) -> bool {
        self.dumps.retain(|dump| dump.used >= time);
        self.has_dumps()
    }

    pub(crate) fn has_dumps(&self) -> bool {
        !self.dumps.is_empty()
    }

    /// Stores a copy, and grows within the limit. An item that is present is not refused: a plain filter counts its further copies in
    /// `overflow`, and an expiring filter renews one of those that it holds.
    pub(crate) fn add(&mut self, item: &[u8], limit: Limit) -> Put {
        // May copy the filter for a running dump, outside the limit: a refusal of that copy is no refusal to grow.
        self.changing();
        limited_and_refused(limit, || self.add_within_limit(item).map(|()| true))
    }

    fn add_within_limit(&mut self, item: &[u8]) -> Result<(), InsertError> {
        let filter = self.changing();
        let hash = either!(filter, filter => filter.hash(item));
        let stored = either!(filter, filter => {
            let filter = filter.hashed();
            filter.insert_unique(&hash)? || filter.count(&hash) < COPIES && filter.insert(&hash).is_ok()
        });
        match &*self.filter {
            _ if stored => {}
            Filter::Plain(filter) => add_to(self.head.overflow.entry(filter.hashed().class_of(&hash)).or_default(), 1),
            Filter::Expiring(filter) => {
                filter.hashed().renew(&hash);
            }
        }
        Ok(())
    }

    /// Stores an item if it is absent.
    pub(crate) fn add_new(&mut self, item: &[u8], limit: Limit) -> Put {
        let filter = self.changing();
        limited_and_refused(limit, || either!(filter, filter => filter.insert_unique(item)))
    }

    pub(crate) fn remove(&mut self, item: &[u8]) -> bool {
        let removed = self.remove_further(item) || either!(self.changing(), filter => filter.remove(item));
        add_to(&mut self.head.deleted, removed.into());
        removed
    }

    /// Removes one of the copies that the filter does not hold.
    fn remove_further(&mut self, item: &[u8]) -> bool {
        if self.head.overflow.is_empty() {
            return false;
        }
        let Filter::Plain(filter) = &*self.filter else { return false };
        let class = filter.class_of(item);
        let Some(copies) = self.head.overflow.get_mut(&class) else { return false };
        *copies -= 1;
        if *copies == 0 {
            self.head.overflow.remove(&class);
        }
        true
    }

    pub(crate) fn contains(&self, item: &[u8]) -> bool {
        either!(&*self.filter, filter => filter.contains(item))
    }

    /// The number of copies. An expiring filter returns 1 or 0.
    pub(crate) fn count(&self, item: &[u8]) -> u64 {
        match &*self.filter {
            Filter::Plain(filter) => {
                let overflow =
                    if self.head.overflow.is_empty() { None } else { self.head.overflow.get(&filter.class_of(item)) };
                overflow.copied().unwrap_or(0).saturating_add(filter.count(item).into())
            }
            Filter::Expiring(filter) => filter.contains(item).into(),
        }
    }

    /// The total number of copies.
    pub(crate) fn items(&self) -> u64 {
        self.overflow().saturating_add(either!(&*self.filter, filter => filter.len()) as u64)
    }

    /// The total number of copies that the filter does not hold.
    pub(crate) fn overflow(&self) -> u64 {
        self.head.overflow.values().copied().fold(0, u64::saturating_add)
    }

    pub(crate) fn memory_usage(&self) -> usize {
        let mut copies: Vec<_> = self.dumps.iter().flat_map(|dump| &dump.copy).collect();
        copies.dedup_by(|one, other| Arc::ptr_eq(one, other));
        let dumped = copies.iter().map(|copy| copy.memory_usage()).sum::<usize>();
        let heads = self.dumps.iter().map(|dump| dump.head.capacity()).sum::<usize>();
        let entry = size_of::<(u128, u64)>() * 3 / 2;
        size_of::<Value>() + self.filter.memory_usage() + self.head.overflow.len() * entry + dumped + heads
    }

    /// Copies the filter and its bookkeeping, without the dumps, or fails if the copy would exceed `maxmemory`.
    pub(crate) fn try_clone(&self) -> Result<Self, BuildError> {
        Ok(Stored::new(limited(Limit::MaxMemory, || self.filter.try_clone())?, self.head.clone()))
    }

    /// Adds all copies of `other`. After an error, `self` may hold some of them.
    pub(crate) fn merge_from(&mut self, other: &Self) -> Result<(), String> {
        let (report, is_stunted) = limited_and_refused(Limit::MaxMemory, || match (&*self.filter, &*other.filter) {
            (Filter::Plain(to), Filter::Plain(from)) => to.merge_from(from),
            (Filter::Expiring(to), Filter::Expiring(from)) => to.merge_from(from),
            _ => Err(MergeError::SizesDiffer),
        });
        let report = report.map_err(|error| match error {
            MergeError::OutOfMemory { .. } => format!("OOM {error}"),
            error => format!("ERR {error}"),
        })?;
        if is_stunted {
            // A replica has the memory, and would grow.
            return Err("OOM no memory for the filter of all; nothing was merged".into());
        }
        if report.refused > 0 {
            let refused = report.refused;
            return Err(format!("ERR no room for {refused} items, or more than 8 copies of one; nothing was merged"));
        }
        for (&class, &copies) in &other.head.overflow {
            add_to(self.head.overflow.entry(class).or_default(), copies);
        }
        add_to(&mut self.head.deleted, other.head.deleted);
        Ok(())
    }

    /// Returns the chunk at `position` and the position after it, or `None` after the last chunk. Position 0 begins a dump.
    pub(crate) fn dump(&mut self, position: u64) -> Result<Option<Chunk<'_>>, String> {
        let position = if position == 0 { self.begin_dump()? } else { position };
        let (number, at) = (position >> POSITION_BITS, (position & POSITION) as usize);
        let index = self.dumps.iter().position(|dump| dump.number == number).ok_or(ENDED)?;
        let dump = &mut self.dumps[index];
        dump.used = elapsed();
        let after = |at: usize| number << POSITION_BITS | at as u64;
        let at = match at.checked_sub(WITHIN_HEAD) {
            // Beyond 512 GiB, positions in a filter have this bit, too, but none is a multiple of the chunk size.
            Some(begin) if begin < dump.head.len() && begin.is_multiple_of(CHUNK) => {
                let (end, part) = part_of_head(&self.dumps[index].head, begin);
                return Ok(Some((after(end), part.into())));
            }
            Some(begin) if begin == dump.head.len() => 0,
            _ => at.checked_sub(HEAD).ok_or(INVALID_POSITION)?,
        };
        if dump.bytes == Some(at) {
            self.dumps.remove(index);
            return Ok(None);
        }
        if !at.is_multiple_of(CHUNK) {
            return Err(INVALID_POSITION.into());
        }
        let filter = dump.copy.as_deref().unwrap_or(&self.filter);
        let mut part = Part::new(at, CHUNK);
        let written = limited(Limit::MaxMemory, || filter.write_to(&mut part));
        let chunk = match written {
            // Written to its end.
            Ok(()) => {
                let chunk = part.end();
                dump.bytes = Some(at + chunk.len());
                chunk
            }
            Err(_) if part.is_complete() => part.end(),
            Err(error) => return Err(format!("OOM {error}")),
        };
        if chunk.is_empty() {
            return Err(INVALID_POSITION.into());
        }
        Ok(Some((after(HEAD + at + chunk.len()), chunk.into())))
    }

    /// Returns the position before the head.
    fn begin_dump(&mut self) -> Result<u64, String> {
        let head = limited(Limit::MaxMemory, || self.head.bytes(self.filter.expiring().is_some()));
        let head = head.map_err(|error| format!("OOM {error}"))?;
        if self.dumps.len() == DUMPS {
            self.dumps.remove(0);
        }
        let is_new = |&number: &u64| self.dumps.iter().all(|dump| dump.number != number);
        let number = core::iter::repeat_with(|| random() >> (64 - NUMBER_BITS)).find(is_new).unwrap_or_default();
        self.dumps.push(Dump { number, head, copy: None, bytes: None, used: elapsed() });
        Ok(number << POSITION_BITS | WITHIN_HEAD as u64)
    }
}

/// Returns the chunk of a head that begins at this offset, and the position after it.
pub(crate) fn part_of_head(head: &[u8], begin: usize) -> (usize, &[u8]) {
    let end = head.len().min(begin + CHUNK);
    let is_whole = (begin, end) == (0, head.len());
    (if is_whole { HEAD } else { WITHIN_HEAD | end }, &head[begin..end])
}

/// The low bits of a position hold an offset in bytes, the others the number of the dump. A double, which is the number of Lua and of
/// JavaScript, holds all 53.
const POSITION_BITS: u32 = 40;
const NUMBER_BITS: u32 = 13;
const POSITION: u64 = (1 << POSITION_BITS) - 1;
const INVALID_POSITION: &str = "ERR Invalid position";
const ENDED: &str = "ERR Invalid position: this dump has ended; begin another one at 0";
const NO_MEMORY: &str = "OOM no memory for the chunk";

/// A random number, from the keys of the standard library's hash maps.
pub(crate) fn random() -> u64 {
    std::hash::RandomState::new().hash_one(0_u8)
}

/// Adds to a number that may come from a file.
fn add_to(number: &mut u64, more: u64) {
    *number = number.saturating_add(more);
}

fn checksum(bytes: &[u8]) -> u64 {
    StableHashBuilder::with_seeds(0, 0).hash_one(bytes)
}

impl Value {
    /// Reads a filter within the limit, up to the end of the reader; more bytes are an error.
    pub(crate) fn read(head: &[u8], limit: Limit, mut reader: impl Read) -> io::Result<Self> {
        // Not within the limit: a refused allocation of its table would abort the server. Its size is that of the bytes that are here.
        let (expires, mut head) = Head::parse(head)?;
        let filter = limited(limit, || Filter::read_from(&mut reader, expires)).map_err(|error| match error {
            SnapshotError::Io(error) => error,
            error => damaged(&error.to_string()),
        })?;
        if reader.read(&mut [0])? != 0 {
            return Err(damaged("more bytes than a filter has"));
        }
        if expires {
            head.overflow.clear();
        }
        Ok(Value::Filter(Stored::new(filter, head)))
    }

    /// Whether a chunk begins a head, by the position after it.
    pub(crate) fn begins(position: u64, chunk: &[u8]) -> bool {
        [HEAD, WITHIN_HEAD + chunk.len()].contains(&((position & POSITION) as usize))
    }

    /// A filter that is still being loaded, with the chunks received so far.
    pub(crate) fn arriving(mut head: &[u8], chunks: impl Iterator<Item = Vec<u8>>) -> io::Result<Self> {
        // A head of a chunk or more may still lack parts; it is checked with the last chunk.
        if head.len() < CHUNK {
            Head::parse(head)?;
        }
        let mut room = Vec::new();
        head.read_to_end(&mut room)?;
        let chunks: Vec<_> = chunks.collect();
        let bytes = chunks.iter().map(Vec::len).sum();
        Ok(Value::Arriving(Arriving { head: room, chunks, bytes }))
    }

    pub(crate) fn expires(&self) -> bool {
        matches!(self, Value::Filter(stored) if stored.filter.expiring().is_some())
    }

    pub(crate) fn is_arriving(&self) -> bool {
        matches!(self, Value::Arriving(_))
    }

    pub(crate) fn head(&self) -> io::Result<Cow<'_, [u8]>> {
        Ok(match self {
            Value::Filter(stored) => stored.head.bytes(stored.filter.expiring().is_some())?.into(),
            Value::Arriving(arriving) => (&arriving.head).into(),
        })
    }

    /// Writes all bytes after the head: a filter in pieces of this size, received chunks unchanged.
    pub(crate) fn write(&self, size: usize, mut put: impl FnMut(&[u8])) -> io::Result<()> {
        match self {
            Value::Filter(stored) => {
                let mut writer = Pieces::new(size, put);
                let written = stored.filter.write_to(&mut writer);
                written.map_err(|error| io::Error::other(error.to_string()))?;
                writer.end();
            }
            Value::Arriving(arriving) => arriving.chunks.iter().for_each(|chunk| put(chunk)),
        }
        Ok(())
    }

    pub(crate) fn memory_usage(&self) -> usize {
        match self {
            Value::Filter(stored) => stored.memory_usage(),
            Value::Arriving(arriving) => size_of::<Value>() + arriving.head.capacity() + arriving.bytes,
        }
    }

    pub(crate) fn try_clone(&self) -> Result<Self, BuildError> {
        Ok(match self {
            Value::Filter(stored) => Value::Filter(stored.try_clone()?),
            Value::Arriving(arriving) => Value::Arriving(arriving.clone()),
        })
    }
}

impl Arriving {
    /// Appends the chunk that ends at this position, and returns the filter if the chunk was the last one.
    pub(crate) fn take(&mut self, position: u64, mut chunk: &[u8]) -> Result<Option<Value>, String> {
        let (at, head, len) = ((position & POSITION) as usize, self.head.len(), chunk.len());
        // A further part of the head follows whole chunks: a shorter head was checked, and is whole.
        if self.bytes == 0 && head.is_multiple_of(CHUNK) && at == WITHIN_HEAD + head + len {
            chunk.read_to_end(&mut self.head).map_err(|_| NO_MEMORY)?;
            return Ok(None);
        }
        if at != HEAD + self.bytes + len || len == 0 {
            return Err(INVALID_POSITION.into());
        }
        let mut room = Vec::new();
        chunk.read_to_end(&mut room).map_err(|_| NO_MEMORY)?;
        self.chunks.push(room);
        let bytes = self.bytes + len;
        if self.ends(bytes) {
            let mut chunks = self.chunks.iter().map(|chunk| &chunk[..]);
            let limit = Limit::Bytes(8 * bytes + (1 << 20));
            let read = Value::read(&self.head, limit, Joined::new(|| chunks.next()));
            return read.map(Some).map_err(|error| {
                self.chunks.pop();
                format!("ERR Couldn't load chunk! {error}")
            });
        }
        self.bytes = bytes;
        Ok(None)
    }

    /// Whether the first `bytes` bytes end with a trailer. The words of a table do with a probability of 2^-64.
    fn ends(&self, bytes: usize) -> bool {
        let Some(mut skipped) = bytes.checked_sub(TRAILER_BYTES) else { return false };
        let mut chunks = self.chunks.iter().map(|chunk| {
            let from = skipped.min(chunk.len());
            skipped -= from;
            &chunk[from..]
        });
        let mut magic = [0; TRAILER.len()];
        Joined::new(|| chunks.next()).read_exact(&mut magic).is_ok() && magic == *TRAILER
    }
}

impl Head {
    /// A magic, 64-bit numbers and a checksum.
    fn bytes(&self, expires: bool) -> io::Result<Vec<u8>> {
        let Parameters { rate, expansion, bucket_size, max_iterations } = self.parameters;
        let parameters = [rate.to_bits(), expansion.into(), bucket_size.into(), max_iterations.into()];
        let overflow = self.overflow.iter().flat_map(|(&class, &copies)| [class as u64, (class >> 64) as u64, copies]);
        let numbers = [expires.into()].into_iter().chain(parameters);
        let numbers = numbers.chain([self.next_tick as u64, self.deleted]).chain(overflow);
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(8 * (9 + 3 * self.overflow.len()))?;
        bytes.extend(MAGIC);
        numbers.for_each(|number| bytes.extend(number.to_le_bytes()));
        let sum = checksum(&bytes);
        bytes.extend(sum.to_le_bytes());
        Ok(bytes)
    }

    /// Checks a head, and returns whether the items of its filter expire.
    fn parse(bytes: &[u8]) -> io::Result<(bool, Self)> {
        let parse = || {
            let (bytes, sum) = bytes.split_last_chunk()?;
            let numbers = bytes.strip_prefix(MAGIC)?.as_chunks();
            if checksum(bytes) != u64::from_le_bytes(*sum) || !numbers.1.is_empty() {
                return None;
            }
            let numbers: Vec<_> = numbers.0.iter().map(|&number| u64::from_le_bytes(number)).collect();
            let (&[expires, rate, expansion, bucket_size, max_iterations, next_tick, deleted], overflow) =
                numbers.split_first_chunk()?;
            let (overflow, []) = overflow.as_chunks() else { return None };
            let overflow =
                overflow.iter().map(|&[low, high, copies]| (u128::from(high) << 64 | u128::from(low), copies));
            let head = Head {
                parameters: Parameters {
                    rate: f64::from_bits(rate),
                    expansion: expansion.try_into().ok()?,
                    bucket_size: bucket_size.try_into().ok()?,
                    max_iterations: max_iterations.try_into().ok()?,
                },
                next_tick: next_tick.try_into().ok()?,
                deleted,
                overflow: overflow.filter(|&(_, copies)| copies > 0).collect(),
            };
            Some((expires != 0, head))
        };
        parse().ok_or_else(|| damaged("Invalid header"))
    }
}
