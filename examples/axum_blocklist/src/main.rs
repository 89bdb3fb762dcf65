//! A block list in an async server, as a template.
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
//! A list for many servers is published to a shared folder, and each server follows it without a restart:
//!
//! ```text
//! axum_blocklist publish examples/data/disposable-email-domains.txt /shared/blocklist   # whenever the list changes
//! axum_blocklist follow 127.0.0.1:8080 /shared/blocklist
//! ```
//!
//! The answer "listed" is wrong for one absent key in a thousand, and a filter alone does not know the inserted keys:
//! each line of the list and each PUT that returned 201 stores one copy, so delete a key at most that often. If requests
//! change your list, put an exact store behind the filter, as in `crates/risk-server`.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, put};
use axum::{Json, Router};
use concurrent_cuckoo_filter::{CuckooFilter, InsertError, SnapshotError, SnapshotReader, StableHashBuilder};
use serde_json::{Value, json};
use std::error::Error;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, ErrorKind};
use std::path::{self, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::spawn_blocking;

/// Saved filters need a hash function with equal output in every build.
type BlockList = CuckooFilter<String, StableHashBuilder>;

/// The number of keys that can be added after the list is loaded.
const ROOM: usize = 100_000;

/// The snapshot in a published folder, with its digest as metadata. The deltas beside it are named by the digest of their
/// older snapshot.
const PUBLISHED: &str = "list.filter";

/// The interval at which a following server checks for a delta.
const LOOK_EVERY: Duration = Duration::from_millis(200);

type Failure = Box<dyn Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let arguments: Vec<&str> =
        arguments.iter().map(|text| text.to_str().ok_or("not Unicode text")).collect::<Result<_, _>>()?;
    match arguments[..] {
        ["publish", list, folder] => {
            let (list, folder) = (PathBuf::from(list), PathBuf::from(folder));
            spawn_blocking(move || publish(list, folder)).await?
        }
        ["follow", address, folder] => follow(address, folder.into()).await,
        [address, list, snapshot] => run(address, list.into(), snapshot.into()).await,
        _ => {
            Err("usage: axum_blocklist ADDRESS:PORT LIST SNAPSHOT, publish LIST FOLDER, or follow ADDRESS:PORT FOLDER"
                .into())
        }
    }
}

/// Serves a list that requests change.
async fn run(address: &str, list: PathBuf, snapshot: PathBuf) -> Result<(), Failure> {
    // Requests wait in the listener until the list is loaded.
    let listener = TcpListener::bind(address).await?;
    let path = snapshot.clone();
    let filter = Arc::new(spawn_blocking(move || load_or_fill(list, path)).await??);
    let routes = lookups().route("/keys/{key}", put(insert).delete(remove));
    serve(listener, routes, &filter).await?;

    // Requests have ended. A crash leaves the old file or the new one.
    spawn_blocking(move || filter.save(snapshot)).await??;
    println!("saved");
    Ok(())
}

/// Loads a snapshot on all cores; `None` if there is no file. A damaged one is an error, not a filter that misses keys.
fn load(path: &path::Path) -> Result<Option<BlockList>, Failure> {
    match SnapshotReader::open(path).and_then(|reader| reader.in_parallel().into_filter()) {
        Ok(filter) => Ok(Some(filter)),
        Err(SnapshotError::Io(error)) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("{}: {error}", path.display()).into()),
    }
}

/// Serves a list that is published to a folder. Nothing else changes the filter, since a delta requires the contents of
/// its older snapshot.
async fn follow(address: &str, folder: PathBuf) -> Result<(), Failure> {
    let listener = TcpListener::bind(address).await?;
    let path = folder.join(PUBLISHED);
    let filter = Arc::new(spawn_blocking(move || load(&path)).await??.ok_or("no list is published yet")?);
    let replica = Arc::clone(&filter);
    let following = tokio::spawn(async move {
        loop {
            let (filter, folder) = (Arc::clone(&replica), folder.clone());
            let taken_over = spawn_blocking(move || take_over(&filter, &folder)).await;
            // The filter is unchanged; a damaged delta may be written again.
            if let Err(error) = taken_over.unwrap_or_else(|panic| Err(panic.into())) {
                eprintln!("error: {error}");
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    });
    serve(listener, lookups(), &filter).await?;
    following.abort();
    Ok(())
}

/// Takes a step from the contents of the filter to the published ones, while requests query it. Blocks.
fn take_over(filter: &BlockList, folder: &path::Path) -> Result<(), Failure> {
    let published = SnapshotReader::open(folder.join(PUBLISHED))?;
    // A delta from the published contents is obsolete, or its publisher has not replaced the snapshot yet.
    if published.header().metadata == filter.digest().to_le_bytes() {
        return Ok(());
    }
    let delta = delta_from(filter, folder);
    let report = match File::open(&delta) {
        Ok(file) => {
            filter.apply_delta(BufReader::new(file)).map_err(|error| format!("{}: {error}", delta.display()))?
        }
        // A step was missed, or the last publisher was killed.
        Err(_) => {
            let (mut own, mut delta) = (Vec::new(), Vec::new());
            filter.write_to(&mut own)?;
            published.write_delta_since(SnapshotReader::new(&own[..])?, &mut delta)?;
            filter.apply_delta(&delta[..])?
        }
    };
    println!("{} keys inserted, {} removed", report.inserted, report.removed);
    Ok(())
}

/// Returns the path of the delta that follows the contents of the filter.
fn delta_from(filter: &BlockList, folder: &path::Path) -> PathBuf {
    folder.join(format!("{:016x}.delta", filter.digest()))
}

/// Publishes the list and the delta from the last published one to a folder. Blocks.
fn publish(list: PathBuf, folder: PathBuf) -> Result<(), Failure> {
    let (current, next) = (folder.join(PUBLISHED), folder.join("next.filter"));
    let keys = read(&list)?;
    let older = load(&current)?;
    let (capacity, hasher) = match &older {
        None => (keys.len() + ROOM, StableHashBuilder::default()),
        Some(older) => (older.capacity(), older.hasher().clone()),
    };
    if keys.len() > capacity {
        return Err(format!("{} keys exceed the capacity of {capacity}: publish to a new folder", keys.len()).into());
    }
    let filter = BlockList::with_capacity_and_hasher(capacity, hasher);
    fill(&filter, &keys)?;
    // Like deltas, and unlike a file of `save`, it has the default permissions.
    let mut to = BufWriter::new(File::create(&next)?);
    filter.snapshot().metadata(&filter.digest().to_le_bytes()).write_to(&mut to)?;
    to.into_inner()?.sync_all()?;
    if let Some(older) = older.filter(|older| older.digest() != filter.digest()) {
        let (delta, unfinished) = (delta_from(&older, &folder), folder.join("next.delta"));
        let mut to = BufWriter::new(File::create(&unfinished)?);
        SnapshotReader::open(&next)?.write_delta_since(SnapshotReader::open(&current)?, &mut to)?;
        to.into_inner()?.sync_all()?;
        // Followers see the complete delta or none.
        std::fs::rename(unfinished, delta)?;
    }
    std::fs::rename(next, current)?;
    println!("{} keys", keys.len());
    Ok(())
}

fn lookups() -> Router<Arc<BlockList>> {
    Router::new()
        .route("/check/{key}", get(check))
        .route("/check", axum::routing::post(check_batch))
        .route("/stats", get(stats))
}

/// Serves requests until a signal.
async fn serve(listener: TcpListener, routes: Router<Arc<BlockList>>, filter: &Arc<BlockList>) -> Result<(), Failure> {
    println!("{} keys; listening on http://{}", filter.len(), listener.local_addr()?);
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let shutdown = async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    };
    axum::serve(listener, routes.with_state(Arc::clone(filter))).with_graceful_shutdown(shutdown).await?;
    Ok(())
}

/// Loads the snapshot of the last run, or without one the list, with one key per line. Blocks.
fn load_or_fill(list: PathBuf, snapshot: PathBuf) -> Result<BlockList, Failure> {
    if let Some(filter) = load(&snapshot)? {
        return Ok(filter);
    }
    let keys = read(&list)?;
    let filter = BlockList::with_capacity_and_hasher(keys.len() + ROOM, StableHashBuilder::default());
    fill(&filter, &keys)?;
    Ok(filter)
}

/// Reads the distinct keys of a list: a repeated key would need two removals.
fn read(list: &path::Path) -> Result<Vec<String>, Failure> {
    let file = File::open(list).map_err(|error| format!("{}: {error}", list.display()))?;
    let mut keys = BufReader::new(file).lines().collect::<Result<Vec<String>, _>>()?;
    keys.sort_unstable();
    keys.dedup();
    Ok(keys)
}

/// Inserts the keys on all threads of the rayon pool.
fn fill(filter: &BlockList, keys: &[String]) -> Result<(), Failure> {
    match filter.par_insert(keys).refused.first() {
        None => Ok(()),
        Some(refused) => Err(format!("{:?}: {}", keys[refused.index], refused.error).into()),
    }
}

async fn check(State(filter): State<Arc<BlockList>>, Path(key): Path<String>) -> Json<Value> {
    Json(json!({ "listed": filter.contains(&key) }))
}

/// Faster than single lookups, since the memory of the next keys is prefetched.
async fn check_batch(State(filter): State<Arc<BlockList>>, Json(keys): Json<Vec<String>>) -> Json<Value> {
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let mut listed = vec![false; keys.len()];
    filter.contains_batch(&keys, &mut listed);
    Json(json!({ "listed": listed }))
}

/// Stores a copy of the key, even if the key is listed or a false positive, so each PUT needs a DELETE of its own. Returns 507
/// if the filter is full, and 409 if it has eight copies of the key; both change nothing.
async fn insert(State(filter): State<Arc<BlockList>>, Path(key): Path<String>) -> (StatusCode, String) {
    match filter.insert(&key) {
        Ok(()) => (StatusCode::CREATED, "added".to_owned()),
        Err(error @ InsertError::Full) => (StatusCode::INSUFFICIENT_STORAGE, error.to_string()),
        Err(error) => (StatusCode::CONFLICT, error.to_string()),
    }
}

/// Removes a copy of a key of the list. Removing any other key may remove a listed key with the same fingerprint.
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
