//! Atomic replacement of files: on Unix, a crash leaves the old file or the new one.

mod disk;
#[cfg(test)]
mod fake;

pub(super) use disk::System;

use crate::error::SnapshotError;
use core::hash::BuildHasher;
use disk::Disk;
use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::hash::RandomState;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// The number of names tried for a new file.
const NAMES: usize = 16;

/// The number of characters of the name of a file, of at most four bytes each, with which the name of the new file
/// begins.
const NAME_CHARS: usize = 32;

/// Replaces a file: writes the new file next to it, syncs it, renames it and syncs the folder. Foreseeable errors occur
/// before anything is written. If anything fails before the renaming, the new file is removed.
pub(super) fn replace<D: Disk>(
    disk: &D,
    path: &Path,
    write: impl FnOnce(&mut D::File) -> Result<(), SnapshotError>,
) -> Result<(), SnapshotError> {
    let (folder, name) = folder_and_name(path)?;
    let opened = disk.open_folder(folder)?;
    let permissions = disk.permissions(path)?;
    // The file is dropped before its path: some systems do not remove open files.
    let (mut temporary, mut file) = TempFile::create(disk, folder, name)?;
    write(&mut file)?;
    if let Some(permissions) = permissions {
        disk.set_permissions(&mut file, permissions)?;
    }
    disk.sync(&mut file)?;
    temporary.rename(path)?;
    Ok(disk.sync_folder(&opened)?)
}

/// A file that is removed when dropped, unless it was renamed.
struct TempFile<'a, D: Disk> {
    disk: &'a D,
    path: PathBuf,
    renamed: bool,
}

impl<'a, D: Disk> TempFile<'a, D> {
    /// Creates a file. A random name may be taken: a process and its forked child draw equal numbers.
    fn create(disk: &'a D, folder: &Path, name: &OsStr) -> io::Result<(Self, D::File)> {
        let mut tried = 1;
        loop {
            let path = temporary_path(folder, name);
            match disk.create(&path) {
                Ok(file) => return Ok((TempFile { disk, path, renamed: false }, file)),
                Err(error) if error.kind() == ErrorKind::AlreadyExists && tried < NAMES => tried += 1,
                Err(error) => return Err(error),
            }
        }
    }

    fn rename(&mut self, to: &Path) -> io::Result<()> {
        self.disk.rename(&self.path, to)?;
        self.renamed = true;
        Ok(())
    }
}

impl<D: Disk> Drop for TempFile<'_, D> {
    fn drop(&mut self) {
        if !self.renamed {
            // The first error is returned; a failure to remove the file adds nothing.
            let _ = self.disk.remove(&self.path);
        }
    }
}

pub(crate) fn folder_and_name(path: &Path) -> io::Result<(&Path, &OsStr)> {
    let no_name = || io::Error::new(ErrorKind::InvalidInput, "this is not the name of a file");
    let name = path.file_name().ok_or_else(no_name)?;
    let folder = path.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."));
    Ok((folder, name))
}

/// Returns a random name. Process ids repeat, and the file of a killed process may remain. The name contains only the
/// beginning of the name of the file, so that it is not too long for the file system.
pub(crate) fn temporary_path(folder: &Path, name: &OsStr) -> PathBuf {
    let begin: String = name.to_string_lossy().chars().take(NAME_CHARS).collect();
    folder.join(format!(".{begin}.{:016x}.tmp", RandomState::new().hash_one(())))
}

/// Replaces a file of the system.
pub(super) fn save(
    path: &Path,
    write: impl FnOnce(&mut <System as Disk>::File) -> Result<(), SnapshotError>,
) -> Result<(), SnapshotError> {
    replace(&System, path, write).map_err(|error| error.of_file(path))
}

/// Opens a regular file. Opening a named pipe would wait for a writer.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    let check = |metadata: Metadata| {
        let message = "this is not a regular file; `SnapshotReader::new` reads from anything else";
        if metadata.is_file() { Ok(()) } else { Err(io::Error::new(ErrorKind::InvalidInput, message)) }
    };
    check(fs::metadata(path)?)?;
    let file = File::open(path)?;
    // The file may have been replaced in the meantime.
    check(file.metadata()?)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::fake::{Fake, FakeFile, MODE, NEW_MODE, OLD, PATH};
    use super::*;
    use crate::filter::CuckooFilter;
    use std::io::Write;
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
    use std::rc::Rc;

    /// Written in two pieces.
    const NEW: [&[u8]; 2] = [b"a new ", b"file"];

    /// In place of an old file.
    const CALLS: [&str; 9] =
        ["open folder", "permissions", "create", "write", "write", "set permissions", "sync", "rename", "sync folder"];

    fn write_new(file: &mut FakeFile) -> Result<(), SnapshotError> {
        Ok(NEW.into_iter().try_for_each(|piece| file.write_all(piece))?)
    }

    /// Replaces the old file on this disk, and returns the text of the error.
    fn replaced(fake: Fake) -> (Rc<Fake>, Option<String>) {
        let disk = Rc::new(fake);
        let result = replace(&disk, Path::new(PATH), write_new);
        (disk, result.err().map(|error| error.to_string()))
    }

    #[test]
    fn a_file_is_synced_before_it_is_renamed_and_its_folder_after() {
        let (disk, error) = replaced(Fake::with_old_file());
        assert_eq!(error, None);
        assert_eq!(*disk.calls.borrow(), CALLS);
        assert_eq!(*disk.synced.borrow(), (NEW.concat(), MODE), "all that was written is synced");
        assert!(disk.holds(&NEW.concat(), MODE));
    }

    #[test]
    fn where_no_file_was_there_is_one_for_its_owner_alone() {
        let (disk, error) = replaced(Fake::default());
        assert_eq!(error, None);
        assert!(!disk.calls.borrow().contains(&"set permissions"));
        assert!(disk.holds(&NEW.concat(), NEW_MODE));
    }

    /// Each call of the order above fails in turn, the second write when a part of it has arrived.
    #[test]
    fn whatever_fails_before_the_renaming_leaves_the_old_file_alone() {
        for (failing, failed) in CALLS[..CALLS.len() - 1].iter().enumerate() {
            let (disk, error) = replaced(Fake { failing: vec![failing], ..Fake::with_old_file() });
            assert_eq!(error, Some(format!("{failed} failed")));
            let created = failing > 2;
            let calls = [&CALLS[..=failing], if created { &["remove"] } else { &[] }].concat();
            assert_eq!(*disk.calls.borrow(), calls);
            assert!(disk.holds_the_old_file(), "{failed} failed: {:?}", disk.files);
        }
    }

    /// The new file is there; whether it would be after a power cut is not known.
    #[test]
    fn a_folder_that_cannot_be_synced_is_an_error() {
        let (disk, error) = replaced(Fake { failing: vec![CALLS.len() - 1], ..Fake::with_old_file() });
        assert_eq!(error.as_deref(), Some("sync folder failed"));
        assert_eq!(*disk.calls.borrow(), CALLS);
        assert!(disk.holds(&NEW.concat(), MODE));
    }

    #[test]
    fn a_file_that_cannot_be_removed_does_not_hide_what_was_wrong() {
        let (disk, error) = replaced(Fake { failing: vec![6, 7], ..Fake::with_old_file() });
        assert_eq!(error.as_deref(), Some("sync failed"));
        assert_eq!(disk.calls.borrow().last(), Some(&"remove"));
        assert_eq!(disk.files.borrow()[Path::new(PATH)], (OLD.to_vec(), MODE));
    }

    #[test]
    fn short_writes_go_on_and_one_of_nothing_is_an_error() {
        let (disk, error) = replaced(Fake { short: Some(3), ..Fake::with_old_file() });
        assert_eq!(error, None);
        let writes = disk.calls.borrow().iter().filter(|&&call| call == "write").count();
        assert_eq!(writes, 4);
        assert!(disk.holds(&NEW.concat(), MODE));

        let (disk, error) = replaced(Fake { short: Some(0), ..Fake::with_old_file() });
        assert!(error.is_some());
        assert_eq!(disk.calls.borrow()[2..], ["create", "write", "remove"]);
        assert!(disk.holds_the_old_file());
    }

    #[test]
    fn names_that_are_taken_are_not_the_last_ones() {
        let (disk, error) = replaced(Fake { taken: (NAMES - 1).into(), ..Fake::with_old_file() });
        assert_eq!(error, None);
        assert_eq!(disk.calls.borrow().iter().filter(|&&call| call == "create").count(), NAMES);
        assert!(disk.holds(&NEW.concat(), MODE));
    }

    #[test]
    fn names_that_are_all_taken_are_an_error() {
        let disk = Rc::new(Fake { taken: usize::MAX.into(), ..Fake::with_old_file() });
        assert_eq!(kind(replace(&disk, Path::new(PATH), write_new)), ErrorKind::AlreadyExists);
        assert_eq!(disk.calls.borrow()[2..], ["create"; NAMES]);
        assert!(disk.holds_the_old_file());
    }

    /// The writing closure may fail by itself, for example when allocation fails.
    #[test]
    fn an_error_that_is_not_of_the_disk_leaves_the_old_file_alone() {
        let disk = Rc::new(Fake::with_old_file());
        let error = replace(&disk, Path::new(PATH), |_| Err(SnapshotError::OutOfMemory { bytes: 7 })).unwrap_err();
        assert!(matches!(error, SnapshotError::OutOfMemory { bytes: 7 }));
        assert_eq!(disk.calls.borrow()[2..], ["create", "remove"]);
        assert!(disk.holds_the_old_file());
    }

    #[test]
    fn a_panic_leaves_the_old_file_alone() {
        let disk = Rc::new(Fake::with_old_file());
        let panicking = |file: &mut FakeFile| {
            write_new(file)?;
            resume_unwind(Box::new("half way"))
        };
        let panic = catch_unwind(AssertUnwindSafe(|| replace(&disk, Path::new(PATH), panicking))).unwrap_err();
        assert_eq!(panic.downcast_ref(), Some(&"half way"));
        assert_eq!(disk.calls.borrow()[2..], ["create", "write", "write", "remove"]);
        assert!(disk.holds_the_old_file());
    }

    /// Saves a filter to a disk that fails at each call in turn.
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
            assert!(disk.holds_the_old_file(), "call {failing} failed: {failed}");
        }
    }

    fn kind(result: Result<(), SnapshotError>) -> ErrorKind {
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
            assert_eq!(kind(result), ErrorKind::InvalidInput, "{path:?}");
            assert!(disk.calls.borrow().is_empty());
        }
    }

    #[test]
    fn a_file_without_a_folder_is_written_to_the_one_of_the_process() {
        let (folder, name) = folder_and_name(Path::new("filter")).unwrap();
        assert_eq!((folder, name), (Path::new("."), OsStr::new("filter")));
        assert_eq!(folder_and_name(Path::new("/filter")).unwrap().0, Path::new("/"));
        let [one, other] = [(); 2].map(|()| temporary_path(folder, name));
        assert_ne!(one, other, "two that save to one path do not write to one file");
        for path in [one, other] {
            assert_eq!(path.parent(), Some(Path::new(".")));
            let name = path.file_name().unwrap().to_str().unwrap();
            assert!(name.starts_with(".filter.") && name.ends_with(".tmp"), "{name}");
        }
    }
}
