//! Teeth: faults that are inserted into a copy of the tree, and the models that must then fail.

use crate::{run, tree};
use anyhow::{Context, Result, bail, ensure};
use rayon::prelude::*;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

const FOLDER: &str = "loom-tests/teeth";

/// An entry of a table in `loom-tests/teeth`.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Tooth {
    #[serde(skip)]
    pub(crate) name: String,
    /// The fault and its consequence, for readers.
    #[serde(rename = "breaks")]
    _breaks: String,
    edits: Vec<Edit>,
    /// The names of the models that must fail, by the text that they must print.
    caught_by: BTreeMap<String, String>,
    /// The reason why schedules cannot find it.
    pub(crate) not_for_schedules: Option<String>,
}

/// A file in `src`, or `FILE: FUNCTION` for the functions of this name in it; code that occurs once there; and its replacement.
/// White space and comments are ignored.
#[derive(Deserialize)]
struct Edit(String, String, String);

impl Tooth {
    /// Returns each model that must fail, with the text that it must print.
    pub(crate) fn caught_by(&self) -> impl Iterator<Item = (&str, &str)> {
        self.caught_by
            .iter()
            .flat_map(|(text, models)| models.split_whitespace().map(move |model| (model, text.as_str())))
    }

    /// Returns the files that it changes in the tree of this folder, with their changed texts.
    fn broken(&self, folder: &Path) -> Result<BTreeMap<PathBuf, String>> {
        let (mut files, mut puts) = (BTreeMap::new(), Vec::new());
        for Edit(place, find, put) in &self.edits {
            let (file, function) = place.split_once(": ").unwrap_or((place, ""));
            let path = folder.join("src").join(file);
            let text = run::read(&path)?;
            let found: Vec<_> = parts(&text, function).flat_map(|part| occurrences(&text, part, find)).collect();
            let lines: Vec<_> = found.iter().map(|at| text[..at.start].matches('\n').count() + 1).collect();
            let [at] = &found[..] else {
                bail!("does not fit: src/{place} has this code in {} places, lines {lines:?}: {find}", lines.len());
            };
            puts.push((path.clone(), at.start, at.end, put));
            files.insert(path, text);
        }
        puts.sort();
        for (index, (path, start, end, put)) in puts.iter().enumerate().rev() {
            let text = files.get_mut(path).expect("it was read");
            let next = puts.get(index + 1).filter(|next| next.0 == *path);
            ensure!(next.is_none_or(|next| *end <= next.1), "edits of {} overlap", path.display());
            text.replace_range(*start..*end, put);
        }
        Ok(files)
    }
}

/// Returns the functions of this name, or the whole text if the name is empty.
fn parts(text: &str, name: &str) -> impl Iterator<Item = Range<usize>> {
    let starts = ["(", "<"].map(|next| format!("fn {name}{next}"));
    let starts = starts.iter().flat_map(|start| text.match_indices(start)).map(|(at, _)| at).collect::<Vec<_>>();
    let function = |at: usize| {
        let line = text[..at].rfind('\n').map_or(0, |end| end + 1);
        let indent = text[line..].len() - text[line..].trim_start().len();
        let end = format!("\n{}}}\n", &text[line..line + indent]);
        at..text[at..].find(&end).map_or(text.len(), |length| at + length)
    };
    let whole = name.is_empty().then_some(0..text.len());
    whole.into_iter().chain(starts.into_iter().map(function))
}

/// Returns the occurrences of the code in this part of the text.
fn occurrences(text: &str, part: Range<usize>, code: &str) -> Vec<Range<usize>> {
    let (text, code) = (solid(&text[part.clone()]), solid(code));
    let same = |window: &&[(usize, char)]| window.iter().map(|(_, c)| c).eq(code.iter().map(|(_, c)| c));
    let found = text.windows(code.len().max(1)).filter(same);
    let range = |window: &[(usize, char)]| {
        let (last, c) = window[window.len() - 1];
        part.start + window[0].0..part.start + last + c.len_utf8()
    };
    found.map(range).collect()
}

/// Returns the characters without white space and comments, each with its position.
fn solid(text: &str) -> Vec<(usize, char)> {
    let mut solid = Vec::new();
    for line in text.split_inclusive('\n') {
        let begin = line.as_ptr() as usize - text.as_ptr() as usize;
        let code = line.split("//").next().expect("a part").char_indices().filter(|(_, c)| !c.is_whitespace());
        solid.extend(code.map(|(at, c)| (begin + at, c)));
    }
    solid
}

/// Returns the teeth of these names, or all of them if there are no names. All teeth must fit the tree.
pub(crate) fn choose(names: &[String]) -> Result<Vec<Tooth>> {
    let mut teeth = BTreeMap::new();
    for entry in fs::read_dir(FOLDER).with_context(|| format!("no folder {FOLDER}"))? {
        let path = entry?.path();
        let table: BTreeMap<String, Tooth> =
            toml::from_str(&run::read(&path)?).with_context(|| format!("{} is no table of teeth", path.display()))?;
        for (name, tooth) in table {
            ensure!(tooth.caught_by().next().is_some(), "tooth {name} names no model");
            let twin = teeth.insert(name.clone(), Tooth { name: name.clone(), ..tooth });
            ensure!(twin.is_none(), "two teeth have the name {name}");
        }
    }
    if !names.is_empty() {
        let unknown: Vec<_> = names.iter().filter(|&name| !teeth.contains_key(name)).cloned().collect();
        ensure!(unknown.is_empty(), "there are no teeth {}", unknown.join(" "));
        teeth.retain(|name, _| names.contains(name));
    }
    let misfits = teeth
        .values()
        .filter_map(|tooth| Some(format!("tooth {}: {:#}", tooth.name, tooth.broken(Path::new(".")).err()?)));
    let misfits: Vec<_> = misfits.collect();
    ensure!(misfits.is_empty(), "{}\n{} of {} teeth", misfits.join("\n"), misfits.len(), teeth.len());
    Ok(teeth.into_values().collect())
}

/// The build of the unit tests for one of the checkers.
#[derive(Clone)]
pub(crate) struct Build {
    pub(crate) cfg: &'static str,
    pub(crate) target: PathBuf,
    pub(crate) config: &'static [&'static str],
}

impl Build {
    /// Builds the unit tests of the tree in this folder. Dependencies are compiled once, and the crate incrementally.
    pub(crate) fn tests(&self, folder: &Path) -> Result<Tests> {
        let mut cargo = run::plain("cargo test --locked --profile loom --lib --no-run");
        self.config.iter().for_each(|setting| _ = cargo.args(["--config", setting]));
        cargo.current_dir(folder).env("CARGO_INCREMENTAL", "1").env("CARGO_PROFILE_LOOM_DEBUG", "false");
        cargo.env("CARGO_TARGET_DIR", &self.target).env("RUSTFLAGS", format!("--cfg cuckoo_model --cfg {}", self.cfg));
        let said = run::quietly(cargo)?;
        let path = said.lines().find_map(|line| line.split_once("unittests src/lib.rs (")?.1.strip_suffix(")"));
        let binary = path.with_context(|| format!("{said}\ncargo names no unit tests"))?;
        Ok(Tests { binary: binary.to_owned(), folder: folder.to_owned() })
    }
}

/// The binary of the unit tests.
pub(crate) struct Tests {
    binary: String,
    folder: PathBuf,
}

impl Tests {
    /// Returns a command that runs them with these arguments and a time limit.
    pub(crate) fn command(&self, seconds: u64, arguments: &str) -> Command {
        let mut command = run::command(&format!("timeout --kill-after=5 {seconds}"), [&self.binary]);
        command.args(arguments.split_whitespace()).current_dir(&self.folder);
        command
    }
}

/// Builds the tests of a copy of the tree with each of the teeth, on all cores, and passes them to `judge`, which returns a message
/// and a result. All teeth are tried before an error is returned.
pub(crate) fn pull<R: Send>(
    teeth: &[Tooth],
    build: &Build,
    judge: impl Fn(&Tooth, &Tests) -> Result<(String, R)> + Sync,
) -> Result<Vec<R>> {
    let workers = build.target.join("workers");
    // Left by an interrupted run.
    tree::remove(&workers)?;
    let pull = |tooth: &Tooth| {
        // A single tooth is pulled by this thread, which is not of the pool.
        let own = workers.join(rayon::current_thread_index().unwrap_or_default().to_string());
        if !own.exists() {
            fs::create_dir_all(&own)?;
            // With the built dependencies. Copies, not links: a linker writes into an existing file.
            run::quietly(run::command("cp -a", [&build.target.join("loom"), &own]))?;
        }
        let copy = own.join("tree");
        tree::copy_to(&copy)?;
        for (path, text) in tooth.broken(&copy)? {
            fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        }
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

#[cfg(test)]
mod tests {
    use super::{choose, occurrences, parts};

    const CODE: &str = "
        fn one() {
            a.b(c); // a.b(c)
        }
        fn two<X>() {
            a
                .b(c);
        }
        ";

    #[test]
    fn code_is_found_whatever_its_lines_and_comments() {
        let found = occurrences(CODE, 0..CODE.len(), "a.b( // twice\n c)");
        assert_eq!(found.iter().map(|at| CODE[at.clone()].replace([' ', '\n'], "")).collect::<Vec<_>>(), ["a.b(c)"; 2]);
        let two = parts(CODE, "two").next().unwrap();
        assert_eq!(occurrences(CODE, two, "a.b(c)"), found[1..]);
        assert_eq!(parts(CODE, "tw").count() + occurrences(CODE, 0..CODE.len(), "a.c").len(), 0);
    }

    #[test]
    fn all_teeth_fit_the_tree() {
        std::env::set_current_dir(crate::tree::root()).unwrap();
        choose(&[]).unwrap();
    }
}
