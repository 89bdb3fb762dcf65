//! A place for a list.

use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A folder of its own, removed with all that is in it when it is dropped.
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Folder(tempfile::Builder::new().prefix("risk-server.").tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn snapshot(&self) -> PathBuf {
        self.path().join("filter.snapshot")
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.path().join("list.redb")
    }

    /// A file in it with these contents.
    pub(crate) fn file(&self, name: &str, contents: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        fs::write(&path, contents).unwrap();
        path
    }
}
