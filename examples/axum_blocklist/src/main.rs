//! A block list in an async server: what to copy.
//!
//! ```text
//! cargo run --release -p axum_blocklist -- 127.0.0.1:8080 examples/data/disposable-email-domains.txt /tmp/blocklist
//! curl http://127.0.0.1:8080/check/mailinator.com     # {"listed":true}
//! curl -X PUT http://127.0.0.1:8080/keys/example.com  # 201
//! ```
//!
//! The filter is shared in an `Arc`. Single operations run on the executor: a lookup takes no lock, and a write parks its
//! thread at most for another writer's critical section. Bulk loads and snapshots take long, so they run in
//! `spawn_blocking`. The filter is saved at shutdown and loaded at start.
//!
//! An answer "listed" is wrong for one absent key in a thousand. And a filter alone cannot know whether a key was ever
//! put: only keys that are on the list may be deleted, each once. If your list changes through requests, an exact store
//! decides; `crates/risk-server` is that server.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, put};
use axum::{Json, Router};
use concurrent_cuckoo_filter::{CuckooFilter, InsertError, StableHashBuilder};
use serde_json::{Value, json};
use std::error::Error;
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::spawn_blocking;

/// Saved filters need a hash function that is the same in every build.
type BlockList = CuckooFilter<str, StableHashBuilder>;

/// Keys that may be added after the list is loaded.
const ROOM: usize = 100_000;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut arguments = std::env::args_os().skip(1);
    let (Some(address), Some(list), Some(snapshot)) = (arguments.next(), arguments.next(), arguments.next()) else {
        return Err("usage: axum_blocklist ADDRESS:PORT LIST SNAPSHOT".into());
    };
    let address = address.into_string().map_err(|_| "the address is not Unicode text")?;
    let (list, snapshot) = (PathBuf::from(list), PathBuf::from(snapshot));

    // Requests can wait in the listener until the list is there.
    let listener = TcpListener::bind(address).await?;
    let path = snapshot.clone();
    let filter = Arc::new(spawn_blocking(move || load(list, path)).await??);
    println!("{} keys; listening on http://{}", filter.len(), listener.local_addr()?);

    let routes = Router::new()
        .route("/check/{key}", get(check))
        .route("/check", axum::routing::post(check_batch))
        .route("/keys/{key}", put(insert).delete(remove))
        .route("/stats", get(stats))
        .with_state(Arc::clone(&filter));
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let shutdown = async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    };
    axum::serve(listener, routes).with_graceful_shutdown(shutdown).await?;

    // Requests have ended. The file is the old one or the new one, whatever happens.
    spawn_blocking(move || filter.save(snapshot)).await??;
    println!("saved");
    Ok(())
}

/// The snapshot of the last run, or without one the list, a key on each line. Blocks.
fn load(list: PathBuf, snapshot: PathBuf) -> Result<BlockList, Box<dyn Error + Send + Sync>> {
    match File::open(&snapshot) {
        // Checked: a damaged snapshot is an error, not a filter that misses keys.
        Ok(_) => return Ok(BlockList::par_load(snapshot)?),
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(format!("{}: {error}", snapshot.display()).into()),
    }
    let file = File::open(&list).map_err(|error| format!("{}: {error}", list.display()))?;
    let mut keys = BufReader::new(file).lines().collect::<Result<Vec<String>, _>>()?;
    // A key that is there twice would have to be removed twice.
    keys.sort_unstable();
    keys.dedup();
    let filter = BlockList::with_capacity_and_hasher(keys.len() + ROOM, StableHashBuilder::new());
    // On all threads of rayon's pool.
    let report = filter.par_insert(&keys);
    match report.rejected.first() {
        None => Ok(filter),
        Some(rejected) => Err(format!("{:?}: {}", keys[rejected.index], rejected.error).into()),
    }
}

async fn check(State(filter): State<Arc<BlockList>>, Path(key): Path<String>) -> Json<Value> {
    Json(json!({ "listed": filter.contains(&key) }))
}

/// Faster than one by one: the memory for the next keys is fetched while one is looked up.
async fn check_batch(State(filter): State<Arc<BlockList>>, Json(keys): Json<Vec<String>>) -> Json<Value> {
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let mut listed = vec![false; keys.len()];
    filter.contains_batch(&keys, &mut listed);
    Json(json!({ "listed": listed }))
}

/// 201 if the key is new, and 200 if it was listed, or is mistaken for a key that is. A full filter refuses it and is as
/// it was.
async fn insert(State(filter): State<Arc<BlockList>>, Path(key): Path<String>) -> (StatusCode, String) {
    match filter.insert_unique(&key) {
        Ok(true) => (StatusCode::CREATED, "added".to_owned()),
        Ok(false) => (StatusCode::OK, "already listed".to_owned()),
        Err(error @ InsertError::Full) => (StatusCode::INSUFFICIENT_STORAGE, error.to_string()),
        Err(error) => (StatusCode::CONFLICT, error.to_string()),
    }
}

/// Only of a key that is on the list: of another one, it may remove a key that has the same fingerprint.
async fn remove(State(filter): State<Arc<BlockList>>, Path(key): Path<String>) -> StatusCode {
    if filter.remove(&key) { StatusCode::NO_CONTENT } else { StatusCode::NOT_FOUND }
}

async fn stats(State(filter): State<Arc<BlockList>>) -> Json<Value> {
    let stats = filter.stats();
    Json(json!({
        "keys": stats.len,
        "load_factor": stats.load_factor,
        "expected_false_positive_rate": stats.expected_false_positive_rate,
        "memory_bytes": filter.memory_usage(),
    }))
}
