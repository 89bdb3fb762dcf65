//! Every key is asked for while nobody changes anything: what was acknowledged must be there, what is in doubt is known
//! from then on, and the server's own counts must be those of the keys.

use super::names;
use super::world::{PATIENCE, Visit, Window, World};
use crate::client::Client;
use std::sync::PoisonError;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

/// Keys that are asked for at once.
const BATCH: usize = 2000;

/// Keys that were never put, in each audit.
const NEVER: usize = 2000;

/// For the counts to be those of the keys; for a request that was cut off to have ended.
const SETTLING: Duration = Duration::from_secs(5);

/// Asks for every key. The error says what is not as it should be.
pub(super) fn run(world: &World, visit: Visit, rng: &mut fastrand::Rng) -> Result<(), String> {
    let begun = Instant::now();
    let alone = loop {
        let alone = world.changes.write().unwrap_or_else(PoisonError::into_inner);
        if *alone == Window::Closed {
            break alone;
        }
        // Whoever replaces the list closes the window when that is over, or cut off.
        drop(alone);
        if begun.elapsed() > PATIENCE {
            return Err("a replacement did not come to its end".into());
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let mut client = Client::new(visit.address, PATIENCE);
    let mut listed = stable_and_never(world, &mut client, rng)?;
    listed += changing(world, &mut client)?;
    listed += contended(world, &mut client)?;
    counts(&mut client, listed)?;
    drop(alone);
    world.counts.full_checks.add(1);
    Ok(())
}

fn ask(client: &mut Client, names: &[&str]) -> Result<Vec<bool>, String> {
    client.which_listed(names).map_err(|error| format!("a full check was not answered: {error}"))
}

fn stable_and_never(world: &World, client: &mut Client, rng: &mut fastrand::Rng) -> Result<usize, String> {
    let never: Vec<String> = (0..NEVER).map(|_| names::never(rng, world.stable.len())).collect();
    for (keys, right) in [(&world.stable, true), (&never, false)] {
        for keys in keys.chunks(BATCH) {
            let names: Vec<&str> = keys.iter().map(String::as_str).collect();
            let answers = ask(client, &names)?;
            if let Some(wrong) = answers.iter().position(|&listed| listed != right) {
                let kind = if right { "was never removed" } else { "was never put" };
                return Err(format!("a full check says listed: {} of {:?}, which {kind}", !right, names[wrong]));
            }
            world.counts.judged.add(names.len());
        }
    }
    Ok(world.stable.len())
}

fn changing(world: &World, client: &mut Client) -> Result<usize, String> {
    let all: Vec<usize> = (0..world.book.len()).collect();
    let mut sum = 0;
    for keys in all.chunks(BATCH) {
        let names: Vec<&str> = keys.iter().map(|&key| world.names[key].as_str()).collect();
        for (&key, listed) in keys.iter().zip(ask(client, &names)?) {
            match world.book.read(key).state().listed() {
                Some(right) if right != listed => {
                    let last = if right { "put" } else { "delete" };
                    let name = &world.names[key];
                    return Err(format!(
                        "a full check says listed: {listed} of {name:?}, whose {last} was acknowledged"
                    ));
                }
                Some(_) => world.counts.judged.add(1),
                None => {
                    world.book.settle(key, listed);
                    world.counts.settled.add(1);
                }
            }
            sum += usize::from(listed);
        }
    }
    let cut_off = std::mem::take(&mut *world.all_or_none.lock().unwrap_or_else(PoisonError::into_inner));
    let made = cut_off.iter().filter(|&&(key, then)| world.book.read(key).state().listed() == Some(then)).count();
    if made != 0 && made != cut_off.len() {
        return Err(format!("of the {} keys that a replacement was to change, it changed {made}", cut_off.len()));
    }
    Ok(sum)
}

fn contended(world: &World, client: &mut Client) -> Result<usize, String> {
    let names: Vec<&str> = world.contended.iter().map(|key| key.name.as_str()).collect();
    let answers = ask(client, &names)?;
    for (key, &listed) in world.contended.iter().zip(&answers) {
        let (balance, unsure) = (key.balance.swap(0, SeqCst), key.unsure.swap(false, SeqCst));
        let before = key.listed.swap(listed, SeqCst);
        if !unsure && i64::from(before) + balance != i64::from(listed) {
            return Err(format!(
                "{:?} was listed: {before}, the answers since then made {balance:+} of it, and it is listed: {listed}",
                key.name
            ));
        }
    }
    Ok(answers.iter().filter(|&&listed| listed).count())
}

/// The server counts as many keys, and each of them is once in front of the store. A moment may pass between an answer
/// and the counts.
fn counts(client: &mut Client, listed: usize) -> Result<(), String> {
    let begun = Instant::now();
    loop {
        let stats = client.get("/v1/stats").map_err(|error| format!("the stats were not answered: {error}"))?;
        let json = stats.json();
        let keys = json["keys"].as_u64();
        let held = json["filter"]["len"].as_u64().zip(json["overflow_keys"].as_u64()).map(|(one, other)| one + other);
        if json["filter_faults"].as_u64().is_some_and(|faults| faults > 0) {
            return Err(format!("the server tells of faults of its filter: {}", stats.text()));
        }
        if keys == Some(listed as u64) && held == keys {
            return Ok(());
        }
        if begun.elapsed() > SETTLING {
            return Err(format!("{listed} keys are listed, but the stats are {}", stats.text()));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
