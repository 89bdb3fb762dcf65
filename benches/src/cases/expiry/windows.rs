//! "Was it seen within the window?": this crate, and what one might use instead.

use ahash::RandomState;
use concurrent_cuckoo_filter::ExpiringFilter;
use cuckoo_clock::config::{BitCount, CuckooConfiguration, TtlConfig};
use cuckoo_clock::{InsertValues, LookupValues};
use dashmap::DashMap;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Ticks of a window.
pub(super) const STEPS: u32 = 6;

/// A key lives this long by the clock, where a tick is a sixth of it.
pub(super) const TIME: Duration = Duration::from_secs(6);

/// Keys seen within a window of time.
pub(super) trait Window: Sync {
    /// Says whether the key was seen within the window, and notes it as seen now.
    fn see(&self, key: u64) -> bool;

    /// Sees the keys, and counts those that were seen before. Compiled for each contestant.
    fn see_all(&self, keys: &[u64]) -> usize {
        keys.iter().filter(|&&key| self.see(key)).count()
    }

    /// A sixth of the window passes.
    fn tick(&self);

    /// What it says that it takes, if it says so.
    fn bytes(&self) -> Option<usize>;
}

/// Builds one for this many keys a window.
type Build = fn(usize) -> Box<dyn Window>;

/// All contestants, this crate first.
pub(super) fn all() -> [(&'static str, Build); 4] {
    [
        (super::ours::NAME, |keys| Box::new(ours(keys, STEPS))),
        ("cuckoo-clock", |keys| Box::new(cuckoo_clock(keys))),
        ("moka", |keys| Box::new(moka(keys))),
        ("DashMap and a sweeper", |keys| Box::new(Swept::new(keys))),
    ]
}

pub(super) type Ours = ExpiringFilter<u64>;

pub(super) fn ours(keys: usize, steps: u32) -> Ours {
    ExpiringFilter::builder().capacity(keys).time_to_live(TIME).steps(steps).build().expect("a possible filter")
}

impl Window for Ours {
    fn see(&self, key: u64) -> bool {
        Ours::see(self, &key).expect("room for the capacity")
    }

    fn tick(&self) {
        self.advance();
    }

    fn bytes(&self) -> Option<usize> {
        Some(self.memory_usage())
    }
}

/// Room for the keys of a window and of the tick that some live longer.
fn with_last_tick(keys: usize) -> usize {
    keys + keys.div_ceil(STEPS as usize)
}

pub(super) type CuckooClock = cuckoo_clock::CuckooFilter<RandomState>;

/// Bits as this crate has them: 13 of a fingerprint and 3 of a time to live that each tick counts down.
pub(super) fn cuckoo_clock(keys: usize) -> CuckooClock {
    let bits = |bits: usize| BitCount::try_from(bits).expect("a possible width");
    let ttl = TtlConfig { ttl: LIFE, ttl_bits: bits(3) };
    let configuration = CuckooConfiguration::builder(with_last_tick(keys)).fingerprint_bits(bits(13)).with_ttl(ttl);
    CuckooClock::new(configuration.build().expect("a possible filter"), RandomState::new())
}

/// Ticks that a key of cuckoo-clock lives: one of them may have passed.
const LIFE: NonZeroU32 = NonZeroU32::new(STEPS + 1).expect("not 0");

/// Two critical sections: no operation both tells and notes.
impl Window for CuckooClock {
    fn see(&self, key: u64) -> bool {
        let ttl = Some(LIFE.get());
        let renew = || LookupValues { ttl, ..LookupValues::default() };
        self.contains_with_update(&key, renew()) || {
            self.insert_if_not_present_with_update(&key, InsertValues { ttl, ..InsertValues::default() }, renew());
            false
        }
    }

    fn tick(&self) {
        self.scan_and_update_ttl();
    }

    /// Without what the allocator adds to each bucket.
    fn bytes(&self) -> Option<usize> {
        Some(self.get_memory_usage())
    }
}

type Moka = moka::sync::Cache<u64, (), RandomState>;

/// It has a clock of its own, which cannot be told the time.
fn moka(keys: usize) -> Moka {
    let builder = moka::sync::Cache::builder().max_capacity(with_last_tick(keys) as u64).time_to_live(TIME);
    // By default it keeps what is asked for often, and lets new keys go.
    let builder = builder.eviction_policy(moka::policy::EvictionPolicy::lru());
    builder.initial_capacity(with_last_tick(keys)).build_with_hasher(RandomState::new())
}

/// Two critical sections, too.
impl Window for Moka {
    fn see(&self, key: u64) -> bool {
        let seen = self.contains_key(&key);
        self.insert(key, ());
        seen
    }

    fn tick(&self) {
        self.run_pending_tasks();
    }

    fn bytes(&self) -> Option<usize> {
        None
    }
}

/// A map of times, through which a sweeper goes at each tick. The time is told by ticks: no clock is read for a key.
struct Swept {
    seen: DashMap<u64, Instant, RandomState>,
    start: Instant,
    ticks: AtomicU32,
}

impl Swept {
    fn new(keys: usize) -> Self {
        let seen = DashMap::with_capacity_and_hasher(with_last_tick(keys), RandomState::new());
        Swept { seen, start: Instant::now(), ticks: AtomicU32::new(0) }
    }

    fn now(&self) -> Instant {
        self.start + TIME / STEPS * self.ticks.load(Ordering::Relaxed)
    }
}

impl Window for Swept {
    fn see(&self, key: u64) -> bool {
        let now = self.now();
        self.seen.insert(key, now).is_some_and(|last| now - last <= TIME)
    }

    fn tick(&self) {
        self.ticks.fetch_add(1, Ordering::Relaxed);
        let now = self.now();
        self.seen.retain(|_, last| now - *last <= TIME);
    }

    /// A key, a time and a byte of the map for each place.
    fn bytes(&self) -> Option<usize> {
        Some(self.seen.capacity() * (size_of::<(u64, Instant)>() + 1))
    }
}
