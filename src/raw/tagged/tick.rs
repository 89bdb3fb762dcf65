//! Ticks: what is dead is swept, then the epoch advances. In this order: an insertion for the longest time has, after the
//! tick, the tag that was dead before it (models tick_and_insertion_*).

use super::epoch::Pass;
use super::filter::{Held, Tagged, TaggedShard};

/// Buckets that are swept under one lock: a few microseconds.
const CHUNK: u32 = 512;

impl Tagged {
    /// Sweeps what is left to sweep, and ends the epoch: everything of which one tick was left is dead when this returns.
    /// Returns how many slots were cleared.
    pub(crate) fn advance(&self) -> usize {
        let pass = self.epoch.pass();
        let cleared = self.sweep_up_to(&pass, u64::MAX);
        pass.advance(1);
        cleared
    }

    /// Advances to this epoch, unless it is past already, tick by tick; returns how many epochs it went. Where every slot
    /// has died on the way, the filter is cleared, and of the ticks only as many are made as make tags come out right.
    pub(crate) fn advance_to(&self, epoch: u64) -> u64 {
        let pass = self.epoch.pass();
        let mut due = epoch.saturating_sub(pass.now());
        let all = due;
        let cycle = u64::from(self.most()) + 1;
        if due >= cycle {
            self.shards.clear();
            // What is stored meanwhile has its time from then on: tags say the same a whole number of cycles later.
            pass.advance(due - due % cycle);
            due %= cycle;
        }
        for _ in 0..due {
            self.sweep_up_to(&pass, u64::MAX);
            pass.advance(1);
        }
        all
    }

    /// Sweeps about this many buckets more, ahead of the next tick; says whether any are left for it.
    pub(crate) fn sweep(&self, buckets: usize) -> bool {
        let pass = self.epoch.pass();
        let chunks = (buckets as u64).div_ceil(u64::from(self.chunk()));
        self.sweep_up_to(&pass, pass.swept().saturating_add(chunks));
        pass.swept() < self.chunks_of_a_shard() * self.shards.plan().shards as u64
    }

    /// Buckets that are swept under one lock: of one stripe.
    fn chunk(&self) -> u32 {
        CHUNK.min(1 << self.shards.plan().stripe_shift)
    }

    fn chunks_of_a_shard(&self) -> u64 {
        u64::from(self.shards.plan().buckets.div_ceil(self.chunk()))
    }

    /// Sweeps up to the chunk with this number, counted through all shards.
    fn sweep_up_to(&self, pass: &Pass<'_>, end: u64) -> usize {
        let (chunk, chunks) = (self.chunk(), self.chunks_of_a_shard());
        let end = end.min(chunks * self.shards.plan().shards as u64);
        let mut cleared = 0;
        for number in pass.swept()..end {
            let shard = self.at((number / chunks) as usize);
            cleared += shard.sweep(pass, (number % chunks) as u32 * chunk, chunk);
            pass.set_swept(number + 1);
        }
        cleared
    }
}

impl TaggedShard<'_> {
    /// Clears the dead slots of some buckets of one stripe. No version advances: to whoever reads this epoch they are dead,
    /// and who read an older one repeats.
    fn sweep(self, pass: &Pass<'_>, first: u32, count: u32) -> usize {
        let mut buckets = self.shard.geometry().buckets_from(first, count).peekable();
        let Some(&any) = buckets.peek() else { return 0 };
        let change = self.shard.begin_change();
        let locked = self.shard.stripes().lock_one(any);
        // The pass holds the epoch, so it is no other one than before the lock.
        let held = Held { moment: self.tags().moment(pass.now()), locked };
        let mut cleared = 0;
        for bucket in buckets {
            let dead = self.dead(&held, bucket);
            for slot in dead.slots(self.format()) {
                self.table().clear(&held.locked, slot);
                cleared += 1;
            }
        }
        if cleared > 0 {
            held.locked.count(any, |count| count.wrapping_sub(cleared));
        }
        drop(held);
        change.end();
        cleared as usize
    }
}
