//! The operations of the file system.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::path::Path;

/// The operations of the file system, which tests can fail one by one.
pub(in crate::snapshot) trait Disk {
    type File: Write;
    type Folder;
    type Permissions;

    /// Opens a folder for [`sync_folder`](Disk::sync_folder).
    fn open_folder(&self, folder: &Path) -> io::Result<Self::Folder>;

    /// Returns the permissions of the old file that the new one keeps, if any. An error if the path is not replaceable
    /// by a file.
    fn permissions(&self, path: &Path) -> io::Result<Option<Self::Permissions>>;

    /// Creates a new file, readable and writable by its owner only.
    fn create(&self, path: &Path) -> io::Result<Self::File>;

    fn set_permissions(&self, file: &mut Self::File, permissions: Self::Permissions) -> io::Result<()>;

    /// Returns when the contents and the permissions are on the disk.
    fn sync(&self, file: &mut Self::File) -> io::Result<()>;

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Returns when the names in the folder are on the disk.
    fn sync_folder(&self, folder: &Self::Folder) -> io::Result<()>;

    fn remove(&self, path: &Path) -> io::Result<()>;
}

/// The file system of the operating system.
pub(in crate::snapshot) struct System;

impl Disk for System {
    type File = File;
    /// `None` where folders cannot be opened, such as on Windows, where the order is left to the system.
    type Folder = Option<File>;
    type Permissions = Permissions;

    fn open_folder(&self, folder: &Path) -> io::Result<Option<File>> {
        cfg!(unix).then(|| File::open(folder)).transpose()
    }

    /// A link is replaced, not followed: the permissions of its target do not apply to the new file.
    fn permissions(&self, path: &Path) -> io::Result<Option<Permissions>> {
        match fs::symlink_metadata(path) {
            Ok(old) if old.is_file() => Ok(bits(&old.permissions())),
            Ok(old) if old.is_symlink() => Ok(None),
            Ok(_) => Err(io::Error::new(
                ErrorKind::InvalidInput,
                "this is not a regular file, so no file can take its place",
            )),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn create(&self, path: &Path) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(path)
    }

    fn set_permissions(&self, file: &mut File, permissions: Permissions) -> io::Result<()> {
        file.set_permissions(permissions)
    }

    fn sync(&self, file: &mut File) -> io::Result<()> {
        file.sync_all()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn sync_folder(&self, folder: &Option<File>) -> io::Result<()> {
        folder.as_ref().map_or(Ok(()), File::sync_all)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }
}

/// The bits for reading, writing and executing, without set-user-ID and set-group-ID.
#[cfg(unix)]
fn bits(permissions: &Permissions) -> Option<Permissions> {
    use std::os::unix::fs::PermissionsExt;
    Some(Permissions::from_mode(permissions.mode() & 0o777))
}

/// Elsewhere a new file has the permissions of its folder.
#[cfg(not(unix))]
fn bits(_: &Permissions) -> Option<Permissions> {
    None
}

#[cfg(test)]
mod tests {
    use super::super::replace;
    use super::*;
    use crate::error::SnapshotError;
    use core::hash::BuildHasher;
    use std::ffi::OsString;
    use std::hash::RandomState;
    use std::path::PathBuf;

    /// A temporary folder for a test, removed with its contents.
    struct Folder(PathBuf);

    impl Folder {
        fn new() -> Self {
            let path = std::env::temp_dir().join(format!("cuckoo-filter-{:016x}", RandomState::new().hash_one(())));
            fs::create_dir(&path).unwrap();
            Folder(path)
        }

        fn names(&self) -> Vec<OsString> {
            let mut names: Vec<_> = fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            names
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

    fn kind(result: Result<(), SnapshotError>) -> ErrorKind {
        match result {
            Err(SnapshotError::Io(error)) => error.kind(),
            other => panic!("not an error of the system: {other:?}"),
        }
    }

    #[test]
    fn what_is_no_file_is_left_alone_before_anything_is_written() {
        let folder = Folder::new();
        let taken = folder.0.join("filter");
        fs::create_dir(&taken).unwrap();
        let result = replace(&System, &taken, |_| panic!("there is nothing to be written to"));
        assert_eq!(kind(result), ErrorKind::InvalidInput);
        assert_eq!(folder.names(), ["filter"]);
        assert!(taken.is_dir());
    }

    #[test]
    fn a_file_that_is_there_is_not_created() {
        let folder = Folder::new();
        let path = folder.0.join("filter");
        save(&path, b"old").unwrap();
        assert_eq!(System.create(&path).unwrap_err().kind(), ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&path).unwrap(), b"old");
    }

    #[cfg(unix)]
    mod unix {
        use super::*;
        use std::os::unix::fs::{PermissionsExt, symlink};

        fn mode(path: &Path) -> u32 {
            fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
        }

        /// A file that cannot be synced stands for a failing disk: only the system can return the error.
        #[cfg(target_os = "linux")]
        #[test]
        fn the_system_is_asked_to_sync() {
            let null = || File::options().write(true).open("/dev/null").unwrap();
            assert!(System.sync(&mut null()).is_err());
            assert!(System.sync_folder(&Some(null())).is_err());
            let folder = Folder::new();
            let opened = System.open_folder(&folder.0).unwrap();
            assert!(opened.is_some());
            System.sync_folder(&opened).unwrap();
        }

        #[test]
        fn what_stands_in_the_way_is_told() {
            let folder = Folder::new();
            let (file, missing) = (folder.0.join("file"), folder.0.join("missing"));
            fs::write(&file, b"").unwrap();
            assert!(System.permissions(&missing).unwrap().is_none());
            assert!(System.permissions(&file.join("name")).is_err(), "a file is no folder");
            System.remove(&file).unwrap();
            assert_eq!(System.remove(&file).unwrap_err().kind(), ErrorKind::NotFound);
            assert!(folder.names().is_empty());
        }

        #[test]
        fn a_new_file_is_for_its_owner_alone() {
            let folder = Folder::new();
            let path = folder.0.join("filter");
            replace(&System, &path, |file| {
                assert_eq!(file.metadata()?.permissions().mode() & 0o777, 0o600);
                Ok(file.write_all(b"new")?)
            })
            .unwrap();
            assert_eq!(mode(&path), 0o600);
        }

        #[test]
        fn a_file_keeps_the_permissions_of_the_one_it_replaces() {
            let folder = Folder::new();
            let path = folder.0.join("filter");
            fs::write(&path, "old").unwrap();
            for bits in [0o644, 0o640, 0o400, 0o600, 0o666] {
                fs::set_permissions(&path, Permissions::from_mode(bits)).unwrap();
                replace(&System, &path, |file| {
                    assert_eq!(
                        file.metadata()?.permissions().mode() & 0o777,
                        0o600,
                        "a temporary file is its owner's alone"
                    );
                    Ok(file.write_all(b"new")?)
                })
                .unwrap();
                assert_eq!(mode(&path), bits, "{bits:o}");
            }
        }

        #[test]
        fn a_file_does_not_act_as_its_owner_because_an_older_one_did() {
            let folder = Folder::new();
            let path = folder.0.join("filter");
            fs::write(&path, "old").unwrap();
            fs::set_permissions(&path, Permissions::from_mode(0o6755)).unwrap();
            assert_eq!(mode(&path), 0o6755);
            save(&path, b"new").unwrap();
            assert_eq!(mode(&path), 0o755);
        }

        #[test]
        fn a_link_is_replaced_and_what_it_points_to_stays() {
            let folder = Folder::new();
            let (path, target) = (folder.0.join("filter"), folder.0.join("target"));
            fs::write(&target, "old").unwrap();
            fs::set_permissions(&target, Permissions::from_mode(0o644)).unwrap();
            // Also one that points to nothing, and one to a folder.
            for to in [&target, &folder.0.join("missing"), &folder.0] {
                let _ = fs::remove_file(&path);
                symlink(to, &path).unwrap();
                save(&path, b"new").unwrap();
                assert!(fs::symlink_metadata(&path).unwrap().is_file(), "{}", to.display());
                assert_eq!(mode(&path), 0o600, "{}", to.display());
                assert_eq!(fs::read(&path).unwrap(), b"new");
                assert_eq!(folder.names(), ["filter", "target"]);
            }
            assert_eq!(fs::read(&target).unwrap(), b"old");
            assert_eq!(mode(&target), 0o644);
        }
    }
}
