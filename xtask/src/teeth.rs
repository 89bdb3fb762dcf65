//! Teeth: patches that break the code by hand, each applied to a copy of the tree.

use crate::{run, tree};
use anyhow::{Context, Result, bail, ensure};
use rayon::prelude::*;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const FOLDER: &str = "loom-tests/teeth";

/// A patch and what its head says.
pub(crate) struct Tooth {
    pub(crate) name: String,
    /// Models that must fail, and the text that each must then print.
    pub(crate) caught_by: Vec<(String, String)>,
    /// Why schedules cannot find it.
    pub(crate) not_for_schedules: Option<String>,
}

impl Tooth {
    /// Reads the head of a patch. The first two lines may come again, the third may be left out:
    ///
    /// ```text
    /// caught-by: MODEL...
    /// saying: TEXT
    /// schedules: no, REASON
    /// ```
    fn parse(name: &str, patch: &str) -> Result<Tooth> {
        let (mut caught_by, mut not_for_schedules, mut models) = (Vec::new(), None, None);
        for line in patch.lines().take_while(|line| !line.starts_with("--- ")) {
            if let Some(names) = line.strip_prefix("caught-by: ") {
                ensure!(models.replace(names).is_none(), "two lines \"caught-by:\" without \"saying:\" between them");
            } else if let Some(text) = line.strip_prefix("saying: ") {
                let models = models.take().context("a line \"saying:\" without \"caught-by:\" before it")?;
                caught_by.extend(models.split_whitespace().map(|model| (model.to_owned(), text.to_owned())));
            } else if let Some(reason) = line.strip_prefix("schedules: no, ") {
                not_for_schedules = Some(reason.to_owned());
            }
        }
        ensure!(models.is_none() && !caught_by.is_empty(), "needs lines \"caught-by: MODEL...\" and \"saying: TEXT\"");
        Ok(Tooth { name: name.to_owned(), caught_by, not_for_schedules })
    }

    fn path(name: &str) -> PathBuf {
        Path::new(FOLDER).join(format!("{name}.patch"))
    }
}

/// The teeth of these names; all of them if there are none.
pub(crate) fn choose(names: &[String]) -> Result<Vec<Tooth>> {
    let mut names = names.to_vec();
    if names.is_empty() {
        for entry in fs::read_dir(FOLDER).with_context(|| format!("no folder {FOLDER}"))? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            names.push(name.strip_suffix(".patch").with_context(|| format!("{FOLDER}/{name} is no patch"))?.to_owned());
        }
        names.sort();
    }
    let tooth = |name: &String| {
        let patch = run::read(Tooth::path(name)).with_context(|| format!("there is no tooth {name}"))?;
        Tooth::parse(name, &patch).with_context(|| format!("tooth {name}"))
    };
    names.iter().map(tooth).collect()
}

/// How unit tests are built for one of the checkers.
#[derive(Clone)]
pub(crate) struct Build {
    pub(crate) cfg: &'static str,
    pub(crate) target: PathBuf,
    pub(crate) config: &'static [&'static str],
}

impl Build {
    /// Builds the unit tests of the tree in this folder. Dependencies are compiled once, and of the crate only what a tooth
    /// has changed.
    pub(crate) fn tests(&self, folder: &Path) -> Result<Tests> {
        let mut cargo = run::plain("cargo test --locked --profile loom --lib --no-run");
        self.config.iter().for_each(|setting| _ = cargo.args(["--config", setting]));
        cargo.current_dir(folder).env("CARGO_INCREMENTAL", "1").env("CARGO_PROFILE_LOOM_DEBUG", "false");
        cargo.env("CARGO_TARGET_DIR", &self.target).env("RUSTFLAGS", format!("--cfg {}", self.cfg));
        let said = run::quietly(cargo)?;
        let path = said.lines().find_map(|line| line.split_once("unittests src/lib.rs (")?.1.strip_suffix(")"));
        let binary = path.with_context(|| format!("{said}\ncargo names no unit tests"))?;
        Ok(Tests { binary: binary.to_owned(), folder: folder.to_owned() })
    }
}

/// Unit tests that were built.
pub(crate) struct Tests {
    binary: String,
    folder: PathBuf,
}

impl Tests {
    /// A command that runs them with these arguments and a time limit.
    pub(crate) fn command(&self, seconds: u64, arguments: &str) -> Command {
        let mut command = run::command(&format!("timeout --kill-after=5 {seconds}"), [&self.binary]);
        command.args(arguments.split_whitespace()).current_dir(&self.folder);
        command
    }
}

/// Judges the tests of a copy of the tree with each of the teeth, on all cores; `judge` says what came of it, or what is
/// wrong. Every tooth is tried before one that is wrong is an error.
pub(crate) fn pull<R: Send>(
    teeth: &[Tooth],
    build: &Build,
    judge: impl Fn(&Tooth, &Tests) -> Result<(String, R)> + Sync,
) -> Result<Vec<R>> {
    let workers = build.target.join("workers");
    // Those of a run that was stopped.
    tree::remove(&workers)?;
    let pull = |tooth: &Tooth| {
        // A single tooth is pulled by this thread, which is none of the pool's.
        let own = workers.join(rayon::current_thread_index().unwrap_or_default().to_string());
        if !own.exists() {
            fs::create_dir_all(&own)?;
            // With the dependencies that are built already. No links: a linker writes into the file that is there.
            run::quietly(run::command("cp -a", [&build.target.join("loom"), &own]))?;
        }
        let copy = own.join("tree");
        tree::copy_to(&copy)?;
        tree::patch(&copy, &Tooth::path(&tooth.name)).context("does not apply")?;
        tree::leave_out_unit_tests(&copy)?;
        judge(tooth, &Build { target: own, ..build.clone() }.tests(&copy).context("does not compile")?)
    };
    let pulled = teeth.par_iter().with_max_len(1).map(|tooth| match pull(tooth) {
        Ok((text, result)) => {
            println!("tooth {:<44} {text}", tooth.name);
            Ok(result)
        }
        Err(error) => {
            println!("tooth {:<44} {error:#}", tooth.name);
            Err(tooth.name.as_str())
        }
    });
    let pulled = pulled.collect::<Vec<_>>();
    tree::remove(&workers)?;
    let wrong: Vec<_> = pulled.iter().filter_map(|result| result.as_ref().err().copied()).collect();
    if !wrong.is_empty() {
        bail!("{} of {} teeth did not bite: {}", wrong.len(), teeth.len(), wrong.join(" "));
    }
    Ok(pulled.into_iter().flatten().collect())
}
