//! The state of folders, as git names it. `benches` compiles this file, too.

use std::path::Path;
use std::process::Command;

/// Returns the trees of these folders on disk, such as `src 1f2e3d4c5b, tests 6a7b8c9d0e`: the beginnings of what `git rev-parse
/// COMMIT:FOLDER` prints for a commit that contains them. `index` is a file that git may write.
pub(crate) fn trees(folders: &[&str], index: &Path) -> Result<String, String> {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).env("GIT_INDEX_FILE", index).output();
        let output = output.map_err(|error| format!("cannot run git: {error}"))?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
            false => Err(format!("git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr).trim())),
        }
    };
    git(&["read-tree", "--empty"])?;
    git(&[&["add", "--all", "--"], folders].concat())?;
    let tree = |folder: &&str| Ok(format!("{folder} {:.10}", git(&["write-tree", &format!("--prefix={folder}/")])?));
    Ok(folders.iter().map(tree).collect::<Result<Vec<_>, String>>()?.join(", "))
}
