//! A file that is the old one or the new one, whatever happens.

use crate::error::SnapshotError;
use core::hash::BuildHasher;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::hash::RandomState;
use std::io::{self, BufReader, Write};
use std::path::{Path, PathBuf};

/// What is asked of the system, one by one, so that tests can fail each.
pub(super) trait Disk {
    type File: Write;

    /// Makes a file that is not there yet.
    fn create(&self, path: &Path) -> io::Result<Self::File>;

    /// Returns when the contents are on the disk.
    fn sync(&self, file: &mut Self::File) -> io::Result<()>;

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Returns when the names in the folder are on the disk.
    fn sync_folder(&self, folder: &Path) -> io::Result<()>;

    fn remove(&self, path: &Path) -> io::Result<()>;
}

/// The system's own.
pub(super) struct System;

impl Disk for System {
    type File = File;

    fn create(&self, path: &Path) -> io::Result<File> {
        OpenOptions::new().write(true).create_new(true).open(path)
    }

    fn sync(&self, file: &mut File) -> io::Result<()> {
        file.sync_all()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    /// Where folders cannot be opened, as on Windows, the system is left to keep the order itself.
    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }
}

/// Puts a file in the place of an older one: written beside it, synced, renamed, the folder synced. What was written is
/// removed when anything fails before the renaming.
pub(super) fn replace<D: Disk>(
    disk: &D,
    path: &Path,
    write: impl FnOnce(&mut D::File) -> Result<(), SnapshotError>,
) -> Result<(), SnapshotError> {
    let (folder, beside) = beside(path)?;
    let mut file = disk.create(&beside)?;
    let written = write(&mut file).and_then(|()| {
        disk.sync(&mut file)?;
        Ok(disk.rename(&beside, path)?)
    });
    drop(file);
    if written.is_err() {
        // What is wrong has been found; that the rest cannot be cleared away adds nothing.
        let _ = disk.remove(&beside);
        return written;
    }
    Ok(disk.sync_folder(&folder)?)
}

/// The folder of a path, and a name there that nobody else uses: a random one, for the numbers of processes come again,
/// and what a killed one has left may still be there.
fn beside(path: &Path) -> Result<(PathBuf, PathBuf), SnapshotError> {
    let name = path.file_name().ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidInput, format!("{} is not the name of a file", path.display()))
    })?;
    let folder = match path.parent() {
        Some(parent) if parent != Path::new("") => parent.to_path_buf(),
        _ => PathBuf::from("."),
    };
    let mut temporary = OsString::from(".");
    temporary.push(name);
    temporary.push(format!(".{:016x}.tmp", RandomState::new().hash_one(())));
    let beside = folder.join(temporary);
    Ok((folder, beside))
}

pub(super) fn open(path: &Path) -> Result<BufReader<File>, SnapshotError> {
    Ok(BufReader::with_capacity(1 << 16, File::open(path)?))
}

#[cfg(all(test, not(cuckoo_loom)))]
mod tests {
    use super::*;
    use crate::filter::CuckooFilter;
    use std::cell::{Cell, RefCell};
    use std::collections::BTreeMap;
    use std::rc::Rc;

    const PATH: &str = "folder/filter";
    const OLD: &[u8] = b"the old file";
    /// Written in two pieces.
    const NEW: [&[u8]; 2] = [b"a new ", b"file"];

    /// A disk in memory that fails as it is told.
    #[derive(Default)]
    struct Fake {
        files: RefCell<BTreeMap<PathBuf, Vec<u8>>>,
        calls: RefCell<Vec<&'static str>>,
        /// The numbers of the calls that fail, from 0.
        failing: Vec<usize>,
        /// Bytes that a file takes at a time.
        short: Option<usize>,
        /// Bytes that have arrived when the file was synced.
        synced: Cell<usize>,
    }

    impl Fake {
        fn with_old_file() -> Self {
            let fake = Fake::default();
            fake.files.borrow_mut().insert(PATH.into(), OLD.into());
            fake
        }

        fn call(&self, call: &'static str) -> io::Result<()> {
            let number = self.calls.borrow().len();
            self.calls.borrow_mut().push(call);
            if self.failing.contains(&number) { Err(io::Error::other(format!("{call} failed"))) } else { Ok(()) }
        }

        fn old_file_alone(&self) -> bool {
            *self.files.borrow() == BTreeMap::from([(PATH.into(), OLD.to_vec())])
        }

        fn new_file_alone(&self) -> bool {
            *self.files.borrow() == BTreeMap::from([(PATH.into(), NEW.concat())])
        }
    }

    struct FakeFile {
        disk: Rc<Fake>,
        path: PathBuf,
    }

    impl Write for FakeFile {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let taken = self.disk.short.map_or(bytes.len(), |most| bytes.len().min(most));
            // The first byte arrives, whether the rest does or not.
            let result = self.disk.call("write");
            let arrived = if result.is_ok() { taken } else { 1 };
            let mut files = self.disk.files.borrow_mut();
            files.get_mut(&self.path).expect("a file that was created").extend(&bytes[..arrived]);
            result.map(|()| taken)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Disk for Rc<Fake> {
        type File = FakeFile;

        fn create(&self, path: &Path) -> io::Result<FakeFile> {
            self.call("create")?;
            assert_eq!(path.parent(), Path::new(PATH).parent(), "only within a folder is a renaming one step");
            assert!(self.files.borrow_mut().insert(path.into(), Vec::new()).is_none(), "the name was taken");
            Ok(FakeFile { disk: Rc::clone(self), path: path.into() })
        }

        fn sync(&self, file: &mut FakeFile) -> io::Result<()> {
            self.call("sync")?;
            self.synced.set(self.files.borrow()[&file.path].len());
            Ok(())
        }

        fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
            self.call("rename")?;
            let mut files = self.files.borrow_mut();
            let file = files.remove(from).expect("a file that was created");
            files.insert(to.into(), file);
            Ok(())
        }

        fn sync_folder(&self, folder: &Path) -> io::Result<()> {
            assert_eq!(folder, Path::new(PATH).parent().unwrap());
            self.call("sync folder")
        }

        fn remove(&self, path: &Path) -> io::Result<()> {
            self.call("remove")?;
            self.files.borrow_mut().remove(path).expect("a file that was created");
            Ok(())
        }
    }

    fn write_new(file: &mut FakeFile) -> Result<(), SnapshotError> {
        Ok(NEW.into_iter().try_for_each(|piece| file.write_all(piece))?)
    }

    /// Replaces the old file on this disk. Says what the error was.
    fn replaced(fake: Fake) -> (Rc<Fake>, Option<String>) {
        let disk = Rc::new(fake);
        let result = replace(&disk, Path::new(PATH), write_new);
        (disk, result.err().map(|error| error.to_string()))
    }

    #[test]
    fn a_file_is_synced_before_it_is_renamed_and_its_folder_after() {
        let (disk, error) = replaced(Fake::with_old_file());
        assert_eq!(error, None);
        assert_eq!(*disk.calls.borrow(), ["create", "write", "write", "sync", "rename", "sync folder"]);
        assert_eq!(disk.synced.get(), NEW.concat().len(), "all that was written is synced");
        assert!(disk.new_file_alone());
    }

    #[test]
    fn where_no_file_was_there_is_one() {
        let (disk, error) = replaced(Fake::default());
        assert_eq!(error, None);
        assert!(disk.new_file_alone());
    }

    /// Each call of the order above fails in turn, the second write when a part of it has arrived.
    #[test]
    fn whatever_fails_before_the_renaming_leaves_the_old_file_alone() {
        for (failing, failed, calls) in [
            (0, "create", &["create"][..]),
            (1, "write", &["create", "write", "remove"]),
            (2, "write", &["create", "write", "write", "remove"]),
            (3, "sync", &["create", "write", "write", "sync", "remove"]),
            (4, "rename", &["create", "write", "write", "sync", "rename", "remove"]),
        ] {
            let (disk, error) = replaced(Fake { failing: vec![failing], ..Fake::with_old_file() });
            assert_eq!(error, Some(format!("{failed} failed")));
            assert_eq!(*disk.calls.borrow(), calls);
            assert!(disk.old_file_alone(), "{failed} failed: {:?}", disk.files);
        }
    }

    /// The new file is there; whether it would be after a power cut is not known.
    #[test]
    fn a_folder_that_cannot_be_synced_is_an_error() {
        let (disk, error) = replaced(Fake { failing: vec![5], ..Fake::with_old_file() });
        assert_eq!(error.as_deref(), Some("sync folder failed"));
        assert_eq!(*disk.calls.borrow(), ["create", "write", "write", "sync", "rename", "sync folder"]);
        assert!(disk.new_file_alone());
    }

    #[test]
    fn a_file_that_cannot_be_removed_does_not_hide_what_was_wrong() {
        let (disk, error) = replaced(Fake { failing: vec![3, 4], ..Fake::with_old_file() });
        assert_eq!(error.as_deref(), Some("sync failed"));
        assert_eq!(disk.files.borrow()[Path::new(PATH)], OLD);
    }

    #[test]
    fn short_writes_go_on_and_one_of_nothing_is_an_error() {
        let (disk, error) = replaced(Fake { short: Some(3), ..Fake::with_old_file() });
        assert_eq!(error, None);
        let writes = disk.calls.borrow().iter().filter(|&&call| call == "write").count();
        assert_eq!(writes, 4);
        assert!(disk.new_file_alone());

        let (disk, error) = replaced(Fake { short: Some(0), ..Fake::with_old_file() });
        assert!(error.is_some());
        assert_eq!(*disk.calls.borrow(), ["create", "write", "remove"]);
        assert!(disk.old_file_alone());
    }

    /// What is written may refuse on its own account, as when there is no memory.
    #[test]
    fn an_error_that_is_not_of_the_disk_leaves_the_old_file_alone() {
        let disk = Rc::new(Fake::with_old_file());
        let error = replace(&disk, Path::new(PATH), |_| Err(SnapshotError::OutOfMemory { bytes: 7 })).unwrap_err();
        assert!(matches!(error, SnapshotError::OutOfMemory { bytes: 7 }));
        assert_eq!(*disk.calls.borrow(), ["create", "remove"]);
        assert!(disk.old_file_alone());
    }

    /// What writes filters, on a disk that fails at each call in turn.
    #[test]
    fn a_filter_whose_saving_fails_anywhere_leaves_the_old_file_alone() {
        let filter = CuckooFilter::<u64>::with_capacity(300_000);
        filter.insert(&7).unwrap();
        for failing in 0.. {
            let disk = Rc::new(Fake { failing: vec![failing], ..Fake::with_old_file() });
            let result = replace(&disk, Path::new(PATH), |file| filter.snapshot().write_to(file));
            let failed = disk.calls.borrow()[failing];
            assert_eq!(result.unwrap_err().to_string(), format!("{failed} failed"));
            if failed == "sync folder" {
                assert!(failing > filter.shards(), "each shard is written by itself");
                break;
            }
            assert!(disk.old_file_alone(), "call {failing} failed: {failed}");
        }
    }

    fn kind(result: Result<(), SnapshotError>) -> io::ErrorKind {
        match result {
            Err(SnapshotError::Io(error)) => error.kind(),
            other => panic!("not an error of the system: {other:?}"),
        }
    }

    #[test]
    fn a_path_without_the_name_of_a_file_is_refused_before_anything_is_created() {
        for path in ["", "/", "..", "folder/.."] {
            let disk = Rc::new(Fake::default());
            let result = replace(&disk, Path::new(path), |_| panic!("nothing can be written to {path:?}"));
            assert_eq!(kind(result), io::ErrorKind::InvalidInput, "{path:?}");
            assert!(disk.calls.borrow().is_empty());
        }
    }

    #[test]
    fn a_file_without_a_folder_is_written_to_the_one_of_the_process() {
        let (folder, one) = beside(Path::new("filter")).unwrap();
        let (_, other) = beside(Path::new("filter")).unwrap();
        assert_eq!(folder, Path::new("."));
        assert_eq!(one.parent(), Some(Path::new(".")));
        assert_ne!(one, other, "two that save to one path do not write to one file");
        for path in [one, other] {
            let name = path.file_name().unwrap().to_str().unwrap();
            assert!(name.starts_with(".filter.") && name.ends_with(".tmp"), "{name}");
        }
    }

    /// A folder of its own for a test, removed with all that is in it.
    struct Folder(PathBuf);

    impl Folder {
        fn new() -> Self {
            let path = std::env::temp_dir().join(format!("cuckoo-filter-{:016x}", RandomState::new().hash_one(())));
            fs::create_dir(&path).unwrap();
            Folder(path)
        }

        fn names(&self) -> Vec<OsString> {
            fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().file_name()).collect()
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn save(path: &Path, contents: &'static [u8]) -> Result<(), SnapshotError> {
        replace(&System, path, |file| Ok(file.write_all(contents)?))
    }

    #[test]
    fn the_system_replaces_a_file() {
        let folder = Folder::new();
        let path = folder.0.join("filter");
        for contents in [&b"first"[..], b"second", b""] {
            save(&path, contents).unwrap();
            assert_eq!(fs::read(&path).unwrap(), contents);
            assert_eq!(folder.names(), ["filter"]);
        }
    }

    #[test]
    fn the_system_says_what_is_wrong() {
        let folder = Folder::new();
        let missing = folder.0.join("missing").join("filter");
        assert_eq!(kind(save(&missing, b"new")), io::ErrorKind::NotFound);
        assert_eq!(kind(open(&missing).map(drop)), io::ErrorKind::NotFound);
        assert!(folder.names().is_empty());

        // A folder is in the way: it is there still, and nothing else.
        let taken = folder.0.join("filter");
        fs::create_dir(&taken).unwrap();
        assert!(save(&taken, b"new").is_err());
        assert_eq!(folder.names(), ["filter"]);
        assert!(taken.is_dir());
    }
}
