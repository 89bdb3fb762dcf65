//! The working tree, copies of it, and folders for the output of checks.

use crate::run;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::{env, fs};

/// Returns the folder of the workspace.
pub(crate) fn root() -> PathBuf {
    let package = env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    Path::new(&package).parent().expect("the package is a folder of the workspace").to_owned()
}

/// Returns a folder of the target directory for the output of a check, created if necessary.
pub(crate) fn target(name: &str) -> Result<PathBuf> {
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    let folder = root().join(target).join(name);
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    Ok(folder)
}

pub(crate) fn remove(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    Ok(())
}

/// Makes the folder a copy of the working tree, as git would commit it.
pub(crate) fn copy_to(folder: &Path) -> Result<()> {
    remove(folder)?;
    let files = run::stdout(run::plain("git ls-files -z --cached --others --exclude-standard"))?;
    // A file that was deleted is still listed.
    for file in files.split_terminator('\0').filter(|file| Path::new(file).exists()) {
        let copy = folder.join(file);
        fs::create_dir_all(copy.parent().expect("a folder"))?;
        fs::copy(file, &copy).with_context(|| format!("cannot copy {file}"))?;
    }
    Ok(())
}
