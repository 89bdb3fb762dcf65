//! Look-ups all the time: what is known must be what is answered.

use super::book::Word;
use super::names;
use super::world::World;
use crate::client::Client;
use crate::http;
use std::io;

/// Keys in a batch at the most.
const BATCH: usize = 200;

/// A key to be asked for.
enum Asked<'w> {
    Stable(&'w str),
    Never(String),
    /// One of the book, and what was known before it was asked for.
    Changing(usize, Word),
}

impl Asked<'_> {
    fn choose<'w>(world: &'w World, rng: &mut fastrand::Rng) -> Asked<'w> {
        match rng.u8(..10) {
            0..3 => Asked::Stable(&world.stable[rng.usize(..world.stable.len())]),
            3..5 => Asked::Never(names::never(rng, world.stable.len())),
            _ => {
                let key = rng.usize(..world.book.len());
                Asked::Changing(key, world.book.read(key))
            }
        }
    }

    fn name<'k>(&'k self, world: &'k World) -> &'k str {
        match self {
            Asked::Stable(name) => name,
            Asked::Never(name) => name,
            Asked::Changing(key, _) => &world.names[*key],
        }
    }

    /// Whether it is listed, if that was known from before the question to after the answer.
    fn right(&self, world: &World) -> Option<bool> {
        match self {
            Asked::Stable(_) => Some(true),
            Asked::Never(_) => Some(false),
            Asked::Changing(key, before) => before.state().listed().filter(|_| world.book.read(*key) == *before),
        }
    }

    fn judge(&self, world: &World, listed: bool, how: &str) {
        match self.right(world) {
            Some(right) if right == listed => world.counts.judged.add(1),
            Some(right) => {
                let kind = match self {
                    Asked::Stable(_) => "it was put in the beginning and never removed",
                    Asked::Never(_) => "it was never put",
                    Asked::Changing(..) if right => "its put was acknowledged",
                    Asked::Changing(..) => "its delete was acknowledged",
                };
                let name = self.name(world);
                world.fail(format!("{how} says listed: {listed} of {name:?}, but {kind}"));
            }
            None => world.counts.open.add(1),
        }
    }
}

/// Asks until the soak is over.
pub(super) fn run(world: &World, mut rng: fastrand::Rng) {
    world.keep_on(|client, visit| {
        let asked = if rng.bool() { single(world, client, &mut rng) } else { batch(world, client, &mut rng) };
        asked.map_err(|error| match error {
            Trouble::Broke(error) => world.broke(visit, "a check", &error),
            Trouble::Refused(status, body) => world.refused(visit, "a check", status, &body),
        })
    });
}

enum Trouble {
    Broke(io::Error),
    Refused(u16, String),
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Trouble::Broke(error)
    }
}

fn single(world: &World, client: &mut Client, rng: &mut fastrand::Rng) -> Result<(), Trouble> {
    let asked = Asked::choose(world, rng);
    let answer = client.ask(&http::check(asked.name(world)))?;
    world.counts.single_requests.add(1);
    let json = answer.json();
    match json["listed"].as_bool().filter(|_| answer.status == 200 && json["key"] == asked.name(world)) {
        Some(listed) => asked.judge(world, listed, "a single check"),
        None => return Err(Trouble::Refused(answer.status, answer.text())),
    }
    Ok(())
}

fn batch(world: &World, client: &mut Client, rng: &mut fastrand::Rng) -> Result<(), Trouble> {
    let asked: Vec<Asked<'_>> = (0..rng.usize(1..=BATCH)).map(|_| Asked::choose(world, rng)).collect();
    let names: Vec<&str> = asked.iter().map(|asked| asked.name(world)).collect();
    let answer = client.ask(&http::check_batch(&names))?;
    world.counts.batch_requests.add(1);
    let listed: Option<Vec<bool>> = serde_json::from_value(answer.json()["listed"].take()).ok();
    let listed = listed.filter(|listed| answer.status == 200 && listed.len() == asked.len());
    let listed = listed.ok_or_else(|| Trouble::Refused(answer.status, answer.text()))?;
    for (asked, listed) in asked.iter().zip(listed) {
        asked.judge(world, listed, "a batch");
    }
    Ok(())
}

/// While the list is being loaded there is no answer, rather than a wrong one.
pub(super) fn while_loading(world: &World, client: &mut Client) -> Result<(), String> {
    let Some(name) = world.stable.first() else { return Ok(()) };
    match client.ask(&http::check(name)) {
        Ok(answer) if answer.status == 503 || answer.json()["listed"] == true => Ok(()),
        Ok(answer) => {
            Err(format!("while it was loading, a stable key was answered {}: {}", answer.status, answer.text()))
        }
        Err(_) => Ok(()),
    }
}
