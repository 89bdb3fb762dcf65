//! Teeth: patches that break the code by hand, each applied to a copy of the tree.

use crate::{run, tree};
use anyhow::{Context, Result, bail, ensure};
use rayon::prelude::*;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

const FOLDER: &str = "loom-tests/teeth";

/// A patch and what its head says.
#[derive(Debug)]
pub(crate) struct Tooth {
    pub(crate) name: String,
    /// Models that must fail, and the text that each must then print.
    pub(crate) caught_by: Vec<(String, String)>,
    /// Why schedules cannot find it.
    pub(crate) not_for_schedules: Option<String>,
}

impl Tooth {
    /// Reads the head of a patch:
    ///
    /// ```text
    /// What is broken, and why that must be seen.
    ///
    /// caught-by: model [model...]
    /// saying: text
    /// schedules: no, REASON
    ///
    /// --- a/src/...
    /// ```
    ///
    /// The lines "caught-by" and "saying" may come again, "schedules" may be left out.
    fn parse(name: &str, patch: &str) -> Result<Tooth> {
        let (mut caught_by, mut not_for_schedules) = (Vec::new(), None);
        let mut models: Option<&str> = None;
        for line in patch.lines().take_while(|line| !line.starts_with("--- ")) {
            if let Some(names) = line.strip_prefix("caught-by: ") {
                ensure!(models.replace(names).is_none(), "a line \"caught-by:\" without a line \"saying:\" after it");
            } else if let Some(text) = line.strip_prefix("saying: ") {
                let models = models.take().context("a line \"saying:\" without a line \"caught-by:\" before it")?;
                caught_by.extend(models.split_whitespace().map(|model| (model.to_owned(), text.to_owned())));
            } else if let Some(reason) = line.strip_prefix("schedules: no, ") {
                not_for_schedules = Some(reason.to_owned());
            }
        }
        ensure!(models.is_none(), "a line \"caught-by:\" without a line \"saying:\" after it");
        ensure!(!caught_by.is_empty(), "no line \"caught-by: MODEL...\" with a line \"saying: TEXT\" after it");
        Ok(Tooth { name: name.to_owned(), caught_by, not_for_schedules })
    }

    fn path(name: &str) -> PathBuf {
        Path::new(FOLDER).join(name).with_extension("patch")
    }
}

/// The teeth of these names; all of them if there are none.
pub(crate) fn choose(names: &[String]) -> Result<Vec<Tooth>> {
    let mut names = names.to_vec();
    if names.is_empty() {
        for entry in fs::read_dir(FOLDER).context(FOLDER)? {
            let path = entry?.path();
            ensure!(path.extension().is_some_and(|extension| extension == "patch"), "{} is no patch", path.display());
            names.extend(path.file_stem().map(|name| name.to_string_lossy().into_owned()));
        }
        names.sort();
        ensure!(!names.is_empty(), "no teeth in {FOLDER}");
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
        let said = run::quietly(&mut cargo, &self.target.join("build.log"))?;
        let path = said
            .lines()
            .find_map(|line| line.trim().strip_prefix("Executable unittests src/lib.rs (")?.strip_suffix(")"));
        let binary = folder.join(path.with_context(|| format!("{said}\ncargo names no unit tests"))?);
        Ok(Tests { binary, folder: folder.to_owned(), log: self.target.join("tests.log") })
    }
}

/// Unit tests that were built.
pub(crate) struct Tests {
    binary: PathBuf,
    folder: PathBuf,
    log: PathBuf,
}

impl Tests {
    /// A command that runs them with these arguments.
    pub(crate) fn command(&self, arguments: &str) -> Command {
        let mut command = run::command(&self.binary.to_string_lossy(), arguments.split_whitespace());
        command.current_dir(&self.folder);
        command
    }

    /// Runs them with these arguments and a time limit.
    pub(crate) fn run(&self, seconds: u64, arguments: &str, env: &[(&str, &str)]) -> Result<(ExitStatus, String)> {
        let mut command = run::command(&format!("timeout --kill-after=5 {seconds}"), [&self.binary]);
        command.args(arguments.split_whitespace()).current_dir(&self.folder).envs(env.iter().copied());
        let status = run::logged(&mut command, &self.log)?;
        Ok((status, run::read(&self.log)?))
    }
}

/// Judges the tests of a copy of the tree with each of the teeth, on all cores; `judge` says what came of it, or what is
/// wrong. Every tooth is tried before one that is wrong is an error.
pub(crate) fn pull<R: Send>(
    teeth: &[Tooth],
    build: &Build,
    judge: impl Fn(&Tooth, &Tests) -> Result<(String, R)> + Sync,
) -> Result<Vec<R>> {
    let worker = |number: usize| build.target.join(format!("worker-{number}"));
    let workers = rayon::current_num_threads();
    // Those of a run that was stopped.
    (0..workers).map(worker).filter(|folder| folder.exists()).try_for_each(fs::remove_dir_all)?;
    let pull = |tooth: &Tooth| {
        let own = worker(rayon::current_thread_index().expect("in the pool"));
        if !own.exists() {
            fs::create_dir(&own)?;
            // With the dependencies that are built already. No links: a linker writes into the file that is there.
            run::output(&mut run::command("cp -a", [&build.target.join("loom"), &own]))?;
        }
        let copy = own.join("tree");
        tree::copy_to(&copy)?;
        tree::patch(&copy, &Tooth::path(&tooth.name), &own.join("patch.log")).context("does not apply")?;
        let tests = Build { target: own, ..build.clone() }.tests(&copy).context("does not compile")?;
        judge(tooth, &tests)
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
    let (mut results, mut wrong) = (Vec::new(), Vec::new());
    for result in pulled.collect::<Vec<_>>() {
        result.map_or_else(|name| wrong.push(name), |result| results.push(result));
    }
    (0..workers).map(worker).filter(|folder| folder.exists()).try_for_each(fs::remove_dir_all)?;
    if !wrong.is_empty() {
        bail!("{} of {} teeth did not bite: {}", wrong.len(), teeth.len(), wrong.join(" "));
    }
    Ok(results)
}
