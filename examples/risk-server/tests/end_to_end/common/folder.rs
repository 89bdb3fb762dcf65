//! A place for a list.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
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

    /// A pipe in place of the snapshot: a server that reads it goes on loading until somebody writes to the pipe.
    pub(crate) fn block_loading(&self) {
        // What is there from before is not needed.
        let _ = fs::remove_file(self.snapshot());
        assert!(Command::new("mkfifo").arg(self.snapshot()).status().unwrap().success());
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
