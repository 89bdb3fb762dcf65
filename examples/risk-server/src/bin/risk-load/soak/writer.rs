//! Changes of single keys.

use super::names;
use super::world::{Gone, Visit, Window, World};
use crate::client::Client;
use crate::http;
use std::sync::PoisonError;
use std::sync::atomic::Ordering::SeqCst;

/// Changes until the soak is over.
pub(super) fn run(world: &World, mut rng: fastrand::Rng) {
    world.keep_on(|client, visit| {
        let window = world.changes.read().unwrap_or_else(PoisonError::into_inner);
        let mut writer = Writer { world, client, visit, window: *window };
        match rng.u8(..20) {
            0 => writer.change_contended(&mut rng),
            1 | 2 => writer.delete_stranger(&mut rng),
            _ => writer.change(&mut rng),
        }
    });
}

struct Writer<'w> {
    world: &'w World,
    client: &'w mut Client,
    visit: Visit,
    /// It stays so while the change is under way.
    window: Window,
}

impl Writer<'_> {
    /// Puts a key or deletes it, whatever it is: a repeat must be harmless.
    fn change(&mut self, rng: &mut fastrand::Rng) -> Result<(), Gone> {
        let Writer { world, window, .. } = *self;
        let key = rng.usize(..world.book.len());
        let Some(listed) = world.book.claim(key) else { return Ok(()) };
        let put = rng.f64() < world.tide();
        let name = &world.names[key];
        let changed = self.send(name, put).inspect_err(|_| world.book.doubt(key))?;
        if window == Window::Open {
            // It may vanish with the old list.
            world.book.doubt(key);
            return Ok(());
        }
        world.book.settle(key, put);
        if changed != (listed != put) {
            let (was, did) = (if listed { "listed" } else { "absent" }, if put { "PUT" } else { "DELETE" });
            world.fail(format!("{did} of {name:?}, which was {was}, says that it changed the list: {changed}"));
        }
        Ok(())
    }

    /// Deletes a key that was never put. It must not take another one with it, as it would from a filter alone.
    fn delete_stranger(&mut self, rng: &mut fastrand::Rng) -> Result<(), Gone> {
        let name = names::never(rng, self.world.stable.len());
        if self.send(&name, false)? {
            self.world.fail(format!("DELETE of {name:?}, which was never put, says that it changed the list"));
        }
        Ok(())
    }

    /// Changes a key that others change at the same time.
    fn change_contended(&mut self, rng: &mut fastrand::Rng) -> Result<(), Gone> {
        let key = &self.world.contended[rng.usize(..self.world.contended.len())];
        let put = rng.bool();
        if self.window == Window::Open {
            key.unsure.store(true, SeqCst);
        }
        let changed = self.send(&key.name, put).inspect_err(|_| key.unsure.store(true, SeqCst))?;
        if changed {
            key.balance.fetch_add(if put { 1 } else { -1 }, SeqCst);
        }
        Ok(())
    }

    /// Whether the list was changed.
    fn send(&mut self, name: &str, put: bool) -> Result<bool, Gone> {
        let what = || format!("{} of {name:?}", if put { "PUT" } else { "DELETE" });
        let answer = self.client.ask(&http::change(put, name)).map_err(|error| {
            self.world.counts.cut_off.add(1);
            self.world.broke(self.visit, &what(), &error)
        })?;
        let changed = answer.json()[if put { "added" } else { "removed" }].as_bool();
        match (answer.status, changed) {
            (201, Some(true)) | (200, Some(false)) if put => {}
            (200, Some(_)) if !put => {}
            _ => {
                self.world.counts.cut_off.add(1);
                return Err(self.world.refused(self.visit, &what(), answer.status, &answer.text()));
            }
        }
        self.world.counts.changes.add(1);
        Ok(changed == Some(true))
    }
}
