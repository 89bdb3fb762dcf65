//! Many keys at once, now and then: a bulk load, or a whole new list.

use super::world::{Gone, Visit, Window, World};
use crate::client::Client;
use crate::http;
use std::sync::PoisonError;
use std::sync::atomic::Ordering::SeqCst;

/// So many bulk loads in a wave of the number of keys, about, and so many replacements.
const LOADS: u32 = 20;
const REPLACEMENTS: u32 = 6;

/// The pieces in which a list is sent.
const PIECES: usize = 16;

/// Loads until the soak is over.
pub(super) fn run_loads(world: &World, mut rng: fastrand::Rng) {
    world.keep_on(|client, visit| {
        world.pause((world.wave / LOADS).mul_f64(2.0 * rng.f64()));
        load(world, client, visit, &mut rng)
    });
}

/// Puts some keys, of which some are listed already.
fn load(world: &World, client: &mut Client, visit: Visit, rng: &mut fastrand::Rng) -> Result<(), Gone> {
    let window = world.changes.read().unwrap_or_else(PoisonError::into_inner);
    let number = rng.usize(1..=world.book.len() / 4);
    let first = rng.usize(..world.book.len());
    let keys = (first..first + number).map(|key| key % world.book.len());
    let claimed: Vec<(usize, bool)> = keys.filter_map(|key| Some((key, world.book.claim(key)?))).collect();
    let mut body: String = claimed.iter().map(|&(key, _)| world.names[key].clone() + "\r\n").collect();
    // A line that was there already.
    body += &world.stable[0];
    let already = claimed.iter().filter(|(_, listed)| *listed).count() + 1;
    let answered = client.ask(&http::with_body("POST", "/v1/keys", body.as_bytes()));
    let told = match answered {
        Ok(answer) if answer.status == 200 => Ok(answer),
        Ok(answer) => Err(world.refused(visit, "a bulk load", answer.status, &answer.text())),
        Err(error) => Err(world.broke(visit, "a bulk load", &error)),
    };
    for &(key, _) in &claimed {
        if told.is_ok() && *window == Window::Closed {
            world.book.settle(key, true);
        } else {
            world.book.doubt(key);
        }
    }
    let answer = told.inspect_err(|_| world.counts.cut_off.add(1))?;
    world.counts.bulk_loads.add(1);
    world.counts.bulk_keys.add(claimed.len());
    let (lines, added) = (claimed.len() + 1, claimed.len() + 1 - already);
    let right = serde_json::json!({"lines": lines, "added": added, "already": already});
    if *window == Window::Closed && answer.json() != right {
        world.fail(format!("a bulk load was to be answered {right}, and was answered {}", answer.text()));
    }
    Ok(())
}

/// Replaces until the soak is over.
pub(super) fn run_replacements(world: &World, mut rng: fastrand::Rng) {
    world.keep_on(|_, visit| {
        world.pause((world.wave / REPLACEMENTS).mul_f64(2.0 * rng.f64()));
        // One of its own: the server may have closed a connection that was silent for so long.
        let mut client = Client::new(visit.address, super::world::PATIENCE);
        if world.is_up(visit) { replace(world, &mut client, visit, &mut rng) } else { Err(Gone) }
    });
}

/// A new list: all stable keys, most of what is listed, and some of what is not. Other changes wait, or they go on and
/// are in doubt until they are asked for. Keys on both lists are checked all the time.
fn replace(world: &World, client: &mut Client, visit: Visit, rng: &mut fastrand::Rng) -> Result<(), Gone> {
    let mut alone = Some(world.changes.write().unwrap_or_else(PoisonError::into_inner));
    if !world.is_up(visit) {
        return Err(Gone);
    }
    let mut body: Vec<&str> = world.stable.iter().map(String::as_str).collect();
    let mut switched = Vec::new();
    for (key, name) in world.names.iter().enumerate() {
        let now = world.book.read(key).state().listed();
        let then = if rng.u8(..6) == 0 { rng.bool() } else { now.unwrap_or(false) };
        if now.is_some_and(|now| now != then) && world.book.claim(key).is_some() {
            switched.push((key, then));
        }
        if then {
            body.push(name);
        }
    }
    for key in &world.contended {
        key.unsure.store(true, SeqCst);
        if rng.bool() {
            body.push(&key.name);
        }
    }
    let keys = body.len();
    rng.shuffle(&mut body);
    // Twice on the list is once.
    body.push(&world.stable[0]);
    let body = body.join("\n");
    if rng.bool()
        && let Some(mut window) = alone.take()
    {
        *window = Window::Open;
    }

    let head = http::head("POST", "/v1/keys?replace=true", Some(body.len()));
    let pieces = std::iter::once(head.as_bytes()).chain(body.as_bytes().chunks(body.len().div_ceil(PIECES)));
    // So that changes, snapshots and kills come amid it.
    let pause = (world.wave / 800).mul_f64(rng.f64());
    // The head is the first.
    let hangs_up_after = (rng.u8(..4) == 0).then(|| rng.usize(1..PIECES));
    let mut sent = 0;
    let answered = client.ask_in_pieces(pieces, || {
        sent += 1;
        std::thread::sleep(pause);
        hangs_up_after != Some(sent)
    });

    let mut window = alone.unwrap_or_else(|| world.changes.write().unwrap_or_else(PoisonError::into_inner));
    *window = Window::Closed;
    let settle = |made: bool| switched.iter().for_each(|&(key, then)| world.book.settle(key, then == made));
    match answered {
        Ok(answer) if answer.status == 200 => {
            settle(true);
            world.counts.replacements.add(1);
            if answer.json()["keys"] != keys {
                world.fail(format!("a replacement by {keys} keys was answered {}", answer.text()));
            }
            Ok(())
        }
        Ok(answer) if answer.status == 409 => {
            // What one that hung up left is still being removed.
            settle(false);
            world.counts.busy_replacements.add(1);
            Ok(())
        }
        Err(_) if hangs_up_after == Some(sent) => {
            settle(false);
            world.counts.broken_replacements.add(1);
            Ok(())
        }
        other => {
            switched.iter().for_each(|&(key, _)| world.book.doubt(key));
            world.all_or_none.lock().unwrap_or_else(PoisonError::into_inner).extend(switched);
            world.counts.cut_off.add(1);
            Err(match other {
                Ok(answer) => world.refused(visit, "a replacement", answer.status, &answer.text()),
                Err(error) => world.broke(visit, "a replacement", &error),
            })
        }
    }
}
