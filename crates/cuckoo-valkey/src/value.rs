//! The value of a key.

use crate::pieces::{Joined, Pieces, damaged};
use crate::sys::alloc::{Limit, limited};
use concurrent_cuckoo_filter::{
    BuildError, CuckooFilter, ExpiringFilter, InsertError, MergeError, SavedHasher, SnapshotError, SnapshotReader,
    StableHashBuilder,
};
use core::hash::BuildHasher;
use core::time::Duration;
use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::sync::Arc;

/// Bytes of a chunk of `CF.SCANDUMP`.
pub(crate) const CHUNK: usize = 16 << 20;

/// The position behind the head of a value, which counts as one byte.
pub(crate) const HEAD: usize = 1;

/// How many times its capacity a filter grows to.
const GROWTH: usize = 1 << 10;

/// Dumps of one key at a time; of more, the oldest ends.
const DUMPS: usize = 4;

const MAGIC: &[u8; 8] = b"cf-head1";

/// What the last 64 bytes of a filter's file begin with.
const TRAILER: &[u8; 8] = b"\xc0/cuckoo";
const TRAILER_BYTES: usize = 64;

type Plain = CuckooFilter<[u8], StableHashBuilder>;
type Expiring = ExpiringFilter<[u8], StableHashBuilder>;

/// What a key holds.
pub(crate) enum Value {
    Filter(Stored),
    Arriving(Arriving),
}

#[expect(clippy::large_enum_variant, reason = "most filters are plain, and an Arc has each of them")]
pub(crate) enum Filter {
    Plain(Plain),
    Expiring(Box<Expiring>),
}

/// Parameters of `CF.RESERVE`.
#[derive(Clone, Debug)]
pub(crate) struct Wish {
    pub(crate) capacity: usize,
    pub(crate) seed: u64,
    /// In seconds, if items expire.
    pub(crate) time_to_live: Option<u64>,
    pub(crate) told: Told,
    /// When the first tick is due, in milliseconds since 1970.
    pub(crate) next_tick: i64,
}

/// Parameters of `CF.RESERVE` that are told again. The expansion says whether the filter grows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Told {
    pub(crate) rate: f64,
    pub(crate) expansion: u32,
    pub(crate) bucket_size: u32,
    pub(crate) max_iterations: u32,
}

/// A filter, and what belongs to it.
pub(crate) struct Stored {
    /// An export shares it.
    pub(crate) filter: Arc<Filter>,
    pub(crate) told: Told,
    /// Copies beyond the eighth, by the class of their item.
    further: BTreeMap<u128, u64>,
    pub(crate) deleted: u64,
    pub(crate) next_tick: i64,
    dumps: Vec<Dump>,
}

/// A file that is handed out in chunks.
struct Dump {
    number: u64,
    /// Those that were handed out, but for the last one, are empty.
    chunks: Vec<Vec<u8>>,
    bytes: usize,
}

/// A file that comes in chunks.
pub(crate) struct Arriving {
    head: Vec<u8>,
    chunks: Vec<Vec<u8>>,
    bytes: usize,
}

impl Filter {
    pub(crate) fn contains(&self, item: &[u8]) -> bool {
        match self {
            Filter::Plain(filter) => filter.contains(item),
            Filter::Expiring(filter) => filter.contains(item),
        }
    }

    pub(crate) fn contains_batch<T: Borrow<[u8]>>(&self, items: &[T], found: &mut [bool]) {
        match self {
            Filter::Plain(filter) => filter.contains_batch(items, found),
            Filter::Expiring(filter) => filter.contains_batch(items, found),
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Filter::Plain(filter) => filter.len(),
            Filter::Expiring(filter) => filter.len(),
        }
    }

    pub(crate) fn memory_usage(&self) -> usize {
        match self {
            Filter::Plain(filter) => filter.memory_usage(),
            Filter::Expiring(filter) => filter.memory_usage(),
        }
    }

    /// The number of keys that it was built for, and that it grows to.
    pub(crate) fn capacities(&self) -> [usize; 2] {
        match self {
            Filter::Plain(filter) => [filter.capacity(), filter.max_capacity()],
            Filter::Expiring(filter) => [filter.capacity(), filter.max_capacity()],
        }
    }

    fn hasher(&self) -> &StableHashBuilder {
        match self {
            Filter::Plain(filter) => filter.hasher(),
            Filter::Expiring(filter) => filter.hasher(),
        }
    }

    pub(crate) fn seed(&self) -> u64 {
        self.hasher().keys().map_or(0, |[seed, ..]| seed)
    }

    pub(crate) fn slots(&self) -> usize {
        match self {
            Filter::Plain(filter) => filter.slots(),
            // By the part of them that is taken; 0 of an empty one.
            Filter::Expiring(filter) => match filter.stats() {
                stats if stats.len == 0 => 0,
                stats => (stats.len as f64 / stats.load_factor).round() as usize,
            },
        }
    }

    /// The false-positive rate at what it holds.
    pub(crate) fn rate_now(&self) -> f64 {
        match self {
            Filter::Plain(filter) => filter.expected_false_positive_rate(),
            Filter::Expiring(filter) => filter.stats().expected_false_positive_rate,
        }
    }

    pub(crate) fn expiring(&self) -> Option<&Expiring> {
        match self {
            Filter::Plain(_) => None,
            Filter::Expiring(filter) => Some(filter),
        }
    }

    /// Writes the file of the filter, table by table.
    pub(crate) fn write_to(&self, writer: impl Write) -> Result<(), SnapshotError> {
        match self {
            Filter::Plain(filter) => filter.write_to(writer),
            Filter::Expiring(filter) => filter.write_to(writer),
        }
    }

    fn read_from(reader: impl Read, expires: bool) -> Result<Self, SnapshotError> {
        let reader = SnapshotReader::new(reader)?;
        if expires {
            return ExpiringFilter::from_snapshot(reader, None, Duration::ZERO)
                .map(|filter| Filter::Expiring(Box::new(filter)));
        }
        reader.into_filter_with_stored_keys().map(Filter::Plain)
    }
}

impl Wish {
    pub(crate) fn build(&self) -> Result<Stored, BuildError> {
        let Wish { capacity, seed, time_to_live, told, next_tick } = *self;
        let hasher = StableHashBuilder::with_keys(seed, 0);
        let most = if told.expansion == 0 { capacity } else { capacity.saturating_mul(GROWTH) };
        let built = limited(Limit::MaxMemory, || match time_to_live {
            None => {
                let builder =
                    CuckooFilter::<[u8]>::builder().capacity(capacity).false_positive_rate(told.rate).hasher(hasher);
                let builder = if most > capacity { builder.max_capacity(most) } else { builder };
                builder.build().map(Filter::Plain)
            }
            Some(seconds) => {
                let builder = ExpiringFilter::<[u8]>::builder().capacity(capacity).false_positive_rate(told.rate);
                let builder = builder.time_to_live(Duration::from_secs(seconds)).hasher(hasher);
                let builder = if most > capacity { builder.max_capacity(most) } else { builder };
                builder.build().map(|filter| Filter::Expiring(Box::new(filter)))
            }
        })?;
        Ok(Stored::new(built, told, BTreeMap::new(), 0, next_tick))
    }
}

impl Stored {
    fn new(filter: Filter, told: Told, further: BTreeMap<u128, u64>, deleted: u64, next_tick: i64) -> Self {
        Stored { filter: Arc::new(filter), told, further, deleted, next_tick, dumps: Vec::new() }
    }

    /// Stores a copy. The ninth of a class and those after it are a number in the side table; where items expire, one of the
    /// eight begins its time anew instead.
    pub(crate) fn add(&mut self, item: &[u8]) -> Result<(), InsertError> {
        let added = limited(Limit::MaxMemory, || match &*self.filter {
            Filter::Plain(filter) => filter.insert(item),
            Filter::Expiring(filter) => filter.insert(item),
        });
        if added != Err(InsertError::TooManyCopies) {
            return added;
        }
        match &*self.filter {
            Filter::Plain(filter) => *self.further.entry(filter.class_of(item)).or_default() += 1,
            Filter::Expiring(filter) => {
                filter.renew(item);
            }
        }
        Ok(())
    }

    /// Stores a copy of an item that is absent, and says whether it was.
    pub(crate) fn add_new(&mut self, item: &[u8]) -> Result<bool, InsertError> {
        limited(Limit::MaxMemory, || match &*self.filter {
            Filter::Plain(filter) => filter.insert_unique(item),
            Filter::Expiring(filter) => filter.insert_unique(item),
        })
    }

    pub(crate) fn remove(&mut self, item: &[u8]) -> bool {
        let removed = match &*self.filter {
            Filter::Plain(filter) => {
                let class = (!self.further.is_empty()).then(|| filter.class_of(item));
                match class.and_then(|class| Some((class, self.further.get_mut(&class)?))) {
                    None => filter.remove(item),
                    Some((class, copies)) => {
                        *copies -= 1;
                        if *copies == 0 {
                            self.further.remove(&class);
                        }
                        true
                    }
                }
            }
            Filter::Expiring(filter) => filter.remove(item),
        };
        self.deleted += u64::from(removed);
        removed
    }

    /// The number of copies; of a filter whose items expire, whether there is one.
    pub(crate) fn count(&self, item: &[u8]) -> u64 {
        match &*self.filter {
            Filter::Plain(filter) => {
                let further = if self.further.is_empty() { None } else { self.further.get(&filter.class_of(item)) };
                filter.count(item) as u64 + further.copied().unwrap_or(0)
            }
            Filter::Expiring(filter) => filter.contains(item).into(),
        }
    }

    /// The copies of all items.
    pub(crate) fn items(&self) -> u64 {
        self.filter.len() as u64 + self.further()
    }

    /// Copies beyond the eighth.
    pub(crate) fn further(&self) -> u64 {
        self.further.values().sum()
    }

    pub(crate) fn memory_usage(&self) -> usize {
        let dumped = self.dumps.iter().flat_map(|dump| &dump.chunks).map(Vec::len).sum::<usize>();
        let entry = size_of::<(u128, u64)>() * 3 / 2;
        size_of::<Value>() + self.filter.memory_usage() + self.further.len() * entry + dumped
    }

    /// As [`try_clone`](Self::try_clone), as far as `maxmemory` allows.
    pub(crate) fn try_clone_limited(&self) -> Result<Self, BuildError> {
        limited(Limit::MaxMemory, || self.try_clone())
    }

    /// Another one, without the dumps.
    pub(crate) fn try_clone(&self) -> Result<Self, BuildError> {
        let filter = match &*self.filter {
            Filter::Plain(filter) => Filter::Plain(filter.try_clone()?),
            Filter::Expiring(filter) => Filter::Expiring(Box::new(filter.try_clone()?)),
        };
        Ok(Stored::new(filter, self.told, self.further.clone(), self.deleted, self.next_tick))
    }

    /// Stores what the other one holds. If that is refused, some of it may be stored.
    pub(crate) fn merge_from(&mut self, other: &Self) -> Result<(), String> {
        let report = limited(Limit::MaxMemory, || match (&*self.filter, &*other.filter) {
            (Filter::Plain(to), Filter::Plain(from)) => to.merge_from(from).map_err(|error| error.to_string()),
            (Filter::Expiring(to), Filter::Expiring(from)) => to.merge_from(from).map_err(|error| error.to_string()),
            _ => Err(MergeError::SizesDiffer.to_string()),
        });
        let report = report.map_err(|error| format!("ERR {error}"))?;
        if report.refused > 0 {
            let refused = report.refused;
            return Err(format!("ERR no room for {refused} items, or more than 8 copies of one; nothing was merged"));
        }
        for (&class, copies) in &other.further {
            *self.further.entry(class).or_default() += copies;
        }
        self.deleted += other.deleted;
        Ok(())
    }

    fn head(&self) -> Vec<u8> {
        let Told { rate, expansion, bucket_size, max_iterations } = self.told;
        let mut bytes = MAGIC.to_vec();
        bytes.push(self.filter.expiring().is_some().into());
        bytes.extend(rate.to_le_bytes());
        [expansion, bucket_size, max_iterations].iter().for_each(|number| bytes.extend(number.to_le_bytes()));
        bytes.extend(self.next_tick.to_le_bytes());
        bytes.extend(self.deleted.to_le_bytes());
        for (class, copies) in &self.further {
            bytes.extend(class.to_le_bytes());
            bytes.extend(copies.to_le_bytes());
        }
        let sum = checksum(&bytes);
        bytes.extend(sum.to_le_bytes());
        bytes
    }

    /// The next chunk of the dump at this position, and the position behind it. `None` behind the last one.
    pub(crate) fn dump(&mut self, position: u64) -> Result<Option<(u64, Vec<u8>)>, String> {
        if position == 0 {
            return self.begin_dump().map(Some);
        }
        let (number, at) = (position >> POSITION_BITS, (position & POSITION) as usize);
        let place = self.dumps.iter().position(|dump| dump.number == number).ok_or(INVALID_POSITION)?;
        let dump = &mut self.dumps[place];
        if at == HEAD + dump.bytes {
            self.dumps.remove(place);
            return Ok(None);
        }
        let index = (at - HEAD) / CHUNK;
        if at < HEAD || !(at - HEAD).is_multiple_of(CHUNK) || dump.chunks.get(index).is_none_or(Vec::is_empty) {
            return Err(INVALID_POSITION.into());
        }
        // The client has what came before; this one it may ask for again.
        dump.chunks[..index].fill(Vec::new());
        let chunk = dump.chunks[index].clone();
        Ok(Some((position + chunk.len() as u64, chunk)))
    }

    fn begin_dump(&mut self) -> Result<(u64, Vec<u8>), String> {
        let mut dump = Dump { number: random() >> (POSITION_BITS + 1) | 1, chunks: Vec::new(), bytes: 0 };
        let mut writer = Pieces::new(CHUNK, |chunk: &[u8]| {
            dump.bytes += chunk.len();
            dump.chunks.push(chunk.to_vec());
        });
        let written = limited(Limit::MaxMemory, || self.filter.write_to(&mut writer));
        writer.end();
        written.map_err(|error| format!("ERR {error}"))?;
        if self.dumps.len() == DUMPS {
            self.dumps.remove(0);
        }
        let position = dump.number << POSITION_BITS | HEAD as u64;
        self.dumps.push(dump);
        Ok((position, self.head()))
    }
}

/// A position is the number of a dump and, in so many bits, the bytes of it.
const POSITION_BITS: u32 = 40;
const POSITION: u64 = (1 << POSITION_BITS) - 1;
const INVALID_POSITION: &str = "ERR Invalid position";

/// A number that nobody knows.
pub(crate) fn random() -> u64 {
    std::hash::RandomState::new().hash_one(0_u8)
}

fn checksum(bytes: &[u8]) -> u64 {
    StableHashBuilder::with_keys(0, 0).hash_one(bytes)
}

impl Value {
    /// Reads a filter, of which nothing is left in the reader.
    pub(crate) fn read(head: &[u8], mut reader: impl Read) -> io::Result<Self> {
        let mut stored = Head::parse(head)?.read(&mut reader).map_err(|error| match error {
            SnapshotError::Io(error) => error,
            error => io::Error::new(io::ErrorKind::InvalidData, error.to_string()),
        })?;
        if reader.read(&mut [0])? != 0 {
            return Err(damaged("more bytes than a filter has"));
        }
        if stored.filter.expiring().is_some() {
            stored.further.clear();
        }
        Ok(Value::Filter(stored))
    }

    /// Whether the bytes behind which this position lies are a head.
    pub(crate) fn is_head(position: u64) -> bool {
        position & POSITION == HEAD as u64
    }

    /// A filter of which these chunks have arrived.
    pub(crate) fn arriving(head: &[u8], chunks: impl Iterator<Item = Vec<u8>>) -> io::Result<Self> {
        Head::parse(head)?;
        let chunks: Vec<_> = chunks.collect();
        let bytes = chunks.iter().map(Vec::len).sum();
        Ok(Value::Arriving(Arriving { head: head.into(), chunks, bytes }))
    }

    pub(crate) fn is_arriving(&self) -> bool {
        matches!(self, Value::Arriving(_))
    }

    pub(crate) fn head(&self) -> Vec<u8> {
        match self {
            Value::Filter(stored) => stored.head(),
            Value::Arriving(arriving) => arriving.head.clone(),
        }
    }

    /// Writes what follows the head, in pieces of this size; chunks that have arrived as they came.
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
            Value::Arriving(arriving) => size_of::<Value>() + arriving.head.len() + arriving.bytes,
        }
    }

    pub(crate) fn try_clone(&self) -> Result<Self, BuildError> {
        Ok(match self {
            Value::Filter(stored) => Value::Filter(stored.try_clone()?),
            Value::Arriving(Arriving { head, chunks, bytes }) => {
                Value::Arriving(Arriving { head: head.clone(), chunks: chunks.clone(), bytes: *bytes })
            }
        })
    }
}

impl Arriving {
    /// Takes the chunk that ends at this position. Returns the filter, if it was the last one.
    pub(crate) fn take(&mut self, position: u64, chunk: &[u8]) -> Result<Option<Value>, String> {
        if (position & POSITION) as usize != HEAD + self.bytes + chunk.len() || chunk.is_empty() {
            return Err(INVALID_POSITION.into());
        }
        let mut room = Vec::new();
        room.try_reserve_exact(chunk.len()).map_err(|_| "OOM no memory for the chunk")?;
        room.extend_from_slice(chunk);
        self.chunks.push(room);
        let bytes = self.bytes + chunk.len();
        if self.ends(bytes) {
            let mut chunks = self.chunks.iter().map(|chunk| &chunk[..]);
            let limit = Limit::Bytes(8 * bytes + (1 << 20));
            let read = limited(limit, || Value::read(&self.head, Joined::new(|| chunks.next())));
            match read {
                Ok(value) => return Ok(Some(value)),
                // The trailer of what is not whole was part of a table.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {}
                Err(error) => {
                    self.chunks.pop();
                    return Err(format!("ERR Couldn't load chunk! {error}"));
                }
            }
        }
        self.bytes = bytes;
        Ok(None)
    }

    /// Whether so many bytes may end with a trailer.
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

/// A head that was checked.
struct Head<'a> {
    expires: bool,
    told: Told,
    next_tick: i64,
    deleted: u64,
    further: &'a [u8],
}

impl<'a> Head<'a> {
    fn parse(bytes: &'a [u8]) -> io::Result<Self> {
        const ENTRY: usize = size_of::<u128>() + size_of::<u64>();
        let parse = || {
            let (bytes, sum) = bytes.split_last_chunk()?;
            let (magic, rest) = bytes.split_first_chunk()?;
            let (&[expires], rest) = rest.split_first_chunk()?;
            let (&rate, rest) = rest.split_first_chunk()?;
            let (&expansion, rest) = rest.split_first_chunk()?;
            let (&bucket_size, rest) = rest.split_first_chunk()?;
            let (&max_iterations, rest) = rest.split_first_chunk()?;
            let (&next_tick, rest) = rest.split_first_chunk()?;
            let (&deleted, further) = rest.split_first_chunk()?;
            let right = *magic == *MAGIC && checksum(bytes) == u64::from_le_bytes(*sum);
            (right && expires <= 1 && further.len().is_multiple_of(ENTRY)).then(|| Head {
                expires: expires == 1,
                told: Told {
                    rate: f64::from_le_bytes(rate),
                    expansion: u32::from_le_bytes(expansion),
                    bucket_size: u32::from_le_bytes(bucket_size),
                    max_iterations: u32::from_le_bytes(max_iterations),
                },
                next_tick: i64::from_le_bytes(next_tick),
                deleted: u64::from_le_bytes(deleted),
                further,
            })
        };
        parse().ok_or_else(|| damaged("Invalid header"))
    }

    fn read(self, reader: impl Read) -> Result<Stored, SnapshotError> {
        let filter = Filter::read_from(reader, self.expires)?;
        let entries = self.further.chunks_exact(size_of::<u128>() + size_of::<u64>()).filter_map(|entry| {
            let (&class, copies) = entry.split_first_chunk()?;
            Some((u128::from_le_bytes(class), u64::from_le_bytes(copies.try_into().ok()?)))
        });
        let further = entries.filter(|&(_, copies)| copies > 0).collect();
        Ok(Stored::new(filter, self.told, further, self.deleted, self.next_tick))
    }
}
