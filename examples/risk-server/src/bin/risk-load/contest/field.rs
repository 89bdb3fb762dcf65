//! The variants as processes, each with a copy of the list.

use super::case::Case;
use crate::child::Server;
use crate::churn::Churn;
use crate::fronts::Variant;
use crate::keys::{Kind, made};
use crate::load::{self, Load, Outcome};
use crate::questions::Questions;
use crate::{serve, system};
use risk_server::list::{self, List};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// To open a list, and for a set to be filled.
const PATIENCE: Duration = Duration::from_secs(120);

/// Keys that are stored in one transaction.
const GROUP: usize = 1 << 14;

/// All variants.
pub(crate) struct Field {
    contestants: Vec<Contestant>,
    /// Keys on each list.
    pub(crate) keys: u64,
    /// Removed in the end.
    _folder: TempDir,
}

struct Contestant {
    variant: Variant,
    server: Server,
    churn: Churn,
    /// When it was ready.
    memory: Option<u64>,
}

/// What a variant holds of the memory: in the beginning, and now.
pub(crate) struct Memory {
    pub(crate) variant: Variant,
    pub(crate) start: Option<u64>,
    pub(crate) end: Option<u64>,
}

impl Field {
    /// Stores the list, and starts a server of each variant on a copy. The capacity that is asked for is raised to what
    /// the list takes, and some more.
    pub(crate) fn start(
        variants: &[Variant],
        listed: &[String],
        options: &serve::Options,
        tell: impl Fn(&str),
    ) -> Result<Self, String> {
        let folder = tempfile::Builder::new().prefix("risk-load.").tempdir();
        let folder = folder.map_err(|error| format!("no temporary folder: {error}"))?;
        let made = usize::try_from(options.keys).map_err(|_| "there are too many keys")?;
        let mut options = serve::Options { data: folder.path().join("list"), ..options.clone() };
        options.capacity = options.capacity.max((listed.len() + made) / 8 * 9);
        let keys = store(&options, listed)?;
        let mut contestants = Vec::new();
        for &variant in variants {
            let own = serve::Options { front: variant, data: folder.path().join(variant.name()), ..options.clone() };
            copy(&options.data, &own.data).map_err(|error| format!("the list cannot be copied: {error}"))?;
            let server = start(&own)?;
            let memory = system::memory(server.child.id());
            tell(&format!("{variant} is ready"));
            contestants.push(Contestant { variant, server, churn: Churn::default(), memory });
        }
        Ok(Field { contestants, keys, _folder: folder })
    }

    /// Measures one variant in one case.
    pub(crate) fn measure(
        &mut self,
        variant: usize,
        case: &Case,
        questions: &Questions,
        connections: usize,
        time: Duration,
        changes: Option<f64>,
    ) -> Result<Outcome, String> {
        let contestant = &mut self.contestants[variant];
        let process = contestant.server.child.id();
        let load = Load {
            address: contestant.server.address,
            questions,
            judged: contestant.variant.is_exact() || case.absent_only,
            connections,
            changes: changes.map(|per_second| (&mut contestant.churn, per_second)),
            warm_up: time / 5,
            time,
        };
        let outcome = load::run(load, || system::processor_time(process));
        outcome.map_err(|error| format!("{}, {case}: {error}", contestant.variant))
    }

    pub(crate) fn memory(&self) -> Vec<Memory> {
        let memory = |contestant: &Contestant| Memory {
            variant: contestant.variant,
            start: contestant.memory,
            end: system::memory(contestant.server.child.id()),
        };
        self.contestants.iter().map(memory).collect()
    }
}

/// Makes a folder with this list, and a snapshot; says how many keys it has.
fn store(options: &serve::Options, listed: &[String]) -> Result<u64, String> {
    let made_keys = options.keys;
    let options = list::Options {
        folder: options.data.clone(),
        capacity: options.capacity,
        false_positive_rate: options.false_positive_rate,
        overflow_limit: 100_000,
        cache_bytes: 256 << 20,
    };
    let list = List::open(options, |_| {}).map_err(|error| error.to_string())?.list;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("no threads to store the list: {error}"))?;
    runtime.block_on(async {
        let mut replacement = list.begin_replacement().await.map_err(|error| error.to_string())?;
        let made_keys = (0..made_keys).map(|number| made(Kind::Listed, number).into_boxed_str());
        let mut keys = listed.iter().map(|key| key.as_str().into()).chain(made_keys);
        loop {
            let group: Vec<Box<str>> = keys.by_ref().take(GROUP).collect();
            if group.is_empty() {
                break;
            }
            replacement.add(group).await.map_err(|error| error.to_string())?;
        }
        let replaced = replacement.commit().await.map_err(|error| error.to_string())?;
        list.close().await.map_err(|error| error.to_string())?;
        Ok(replaced.keys)
    })
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir(to)?;
    for file in std::fs::read_dir(from)? {
        let file = file?;
        std::fs::copy(file.path(), to.join(file.file_name()))?;
    }
    Ok(())
}

fn start(options: &serve::Options) -> Result<Server, String> {
    let program = std::env::current_exe().map_err(|error| format!("the path of this program is not known: {error}"))?;
    let mut command = Command::new(program);
    command.args(options.to_args());
    // The child ends with this pipe.
    command.stdin(Stdio::piped());
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("RISK_SERVER_") {
            command.env_remove(name);
        }
    }
    let mut server = Server::start(&mut command, PATIENCE)?;
    server.wait_until_ready(PATIENCE, |_| Ok(()))?;
    Ok(server)
}
