//! A soak: the real server under changes and look-ups, killed and started again.
//!
//! ```text
//! mod (the server's life)    checker, writer, bulk (threads)    audit (every key, while nothing changes)
//! program, memory, plan      world (what they share), counts
//!                            book (what is known of each key), names
//! ```

mod audit;
mod book;
mod bulk;
mod checker;
mod counts;
mod life;
mod memory;
mod names;
mod plan;
mod program;
mod world;
mod writer;

use crate::args::{minutes, seconds};
use crate::text;
use clap::Args;
use life::Life;
use plan::Plan;
use program::Program;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use world::World;

/// Changes a real server and asks it all the time, kills it now and then, and checks that it keeps its word.
///
/// Writers put and delete single keys, load many, and replace the whole list; checkers ask for keys of which it is
/// known whether they are listed, because they never change or because their last change was acknowledged. The server
/// is ended by SIGKILL at random moments, some of them while it starts, and by SIGTERM; its snapshot is damaged or lost
/// now and then. After each start, and every few seconds, every key is asked for. The last two fifths of the time it is
/// left alive, so that its memory can be watched. The first wrong answer ends the soak, with exit code 1.
#[derive(Args)]
pub(crate) struct Options {
    /// Minutes to go on for
    #[arg(long, value_name = "MINUTES", default_value = "5", value_parser = minutes)]
    minutes: Duration,

    /// Seconds from one kill to the next, about
    #[arg(long, value_name = "SECONDS", default_value = "20", value_parser = seconds)]
    kill_every: Duration,

    /// The server [default: risk-server beside this program]
    #[arg(long, value_name = "PATH")]
    server: Option<PathBuf>,

    /// The seed of what is left to chance [default: another one each time]
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,

    /// Ten seconds with few keys and many kills
    #[arg(long, conflicts_with_all = ["minutes", "kill_every"])]
    quick: bool,
}

/// Threads that check, and threads that change single keys.
const CHECKERS: usize = 2;
const WRITERS: usize = 6;

pub(crate) fn run(options: &Options) -> Result<(), String> {
    let server = match &options.server {
        Some(path) => path.clone(),
        None => std::env::current_exe()
            .map_err(|error| format!("the path of this program is not known: {error}; give --server"))?
            .with_file_name(format!("risk-server{}", std::env::consts::EXE_SUFFIX)),
    };
    if !server.is_file() {
        return Err(format!("{} is not there: build risk-server, or give its path with --server", server.display()));
    }
    let seed = options.seed.unwrap_or_else(|| fastrand::u64(..1_000_000));
    let (plan, stable, changing, wave) = if options.quick {
        (Plan::new(Duration::from_secs(10), Duration::from_millis(600)), 1000, 2000, Duration::from_secs(4))
    } else {
        (Plan::new(options.minutes, options.kill_every), 10_000, 20_000, Duration::from_secs(20))
    };
    let folder = tempfile::Builder::new().prefix("risk-load.").tempdir();
    let folder = folder.map_err(|error| format!("no temporary folder: {error}"))?;
    eprintln!("seed {seed}; {} for {}; data in {}", server.display(), text::time(plan.time), folder.path().display());

    let world = Arc::new(World::new(stable, changing, wave));
    stop_on_ctrl_c(&world);
    end_in_time(&world, plan.time);
    let program = Program::new(&server, &folder.path().join("data"));
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut life = Life::new(&world, &program, plan, rng.fork());
    std::thread::scope(|scope| {
        let world = &*world;
        let mut spawn = |work: fn(&World, fastrand::Rng)| {
            let rng = rng.fork();
            scope.spawn(move || work(world, rng));
        };
        (0..CHECKERS).for_each(|_| spawn(checker::run));
        (0..WRITERS).for_each(|_| spawn(writer::run));
        spawn(bulk::run_loads);
        spawn(bulk::run_replacements);
        if let Err(fault) = life.run() {
            world.fail(fault);
        }
        world.stop();
    });

    let verdict = memory::judge(&life.samples);
    if let (None, Some(creeps)) = (world.fault(), verdict.creeps) {
        world.fail(creeps);
    }
    print!("{}", world.counts.summary());
    println!("worst start             {}", text::time(life.worst_start));
    print!("{}", verdict.lines);
    match world.fault() {
        None => Ok(()),
        Some(fault) => {
            let kept = folder.keep();
            Err(format!(
                "the server broke its word {fault}\nthe end of its log:\n{}seed {seed}; its data are in {}",
                life.last_log,
                kept.display()
            ))
        }
    }
}

/// Every wait has its bound; should one be forgotten, this ends the soak all the same.
fn end_in_time(world: &Arc<World>, time: Duration) {
    let world = Arc::clone(world);
    std::thread::spawn(move || {
        std::thread::sleep(time + 2 * world::PATIENCE);
        world.fail("the soak does not come to its end".into());
        std::thread::sleep(2 * world::PATIENCE);
        eprintln!("risk-load: the soak hangs, its server has the number {}", world.process.load(Relaxed));
        std::process::exit(1);
    });
}

/// Ctrl-C ends the soak as if its time were over. Without a thread or the system's help it ends everything at once.
fn stop_on_ctrl_c(world: &Arc<World>) {
    let world = Arc::clone(world);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    std::thread::spawn(move || {
        if let Ok(runtime) = runtime
            && runtime.block_on(tokio::signal::ctrl_c()).is_ok()
        {
            eprintln!("ending; once more ends at once");
            world.stop();
            let _ = runtime.block_on(tokio::signal::ctrl_c());
            std::process::exit(1);
        }
    });
}
