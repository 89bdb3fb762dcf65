//! A place for files.

use std::path::PathBuf;
use std::{env, fs, process};

/// A folder of its own, removed with all that is in it when it is dropped.
pub(super) struct Folder(pub(super) PathBuf);

impl Folder {
    /// No two tests use one name.
    pub(super) fn new(name: &str) -> Self {
        let path = env::temp_dir().join(format!("concurrent-cuckoo-filter.{name}.{}", process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A test that has failed says more than a folder that stays.
        let _ = fs::remove_dir_all(&self.0);
    }
}
