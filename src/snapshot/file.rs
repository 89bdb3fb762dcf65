//! Atomic replacement of files: on Unix, a crash leaves the old file or the new one.

use crate::error::SnapshotError;
use core::hash::BuildHasher;
use std::ffi::OsStr;
use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::hash::RandomState;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// The number of names tried for a new file.
const NAMES: usize = 16;

/// The number of characters of the name of a file, of at most four bytes each, with which the name of the new file begins.
const NAME_CHARS: usize = 32;

/// Replaces a file: writes the new file next to it, syncs it, renames it and syncs the folder. Predictable errors occur before
/// anything is written. If anything fails before the renaming, the new file is removed.
pub(super) fn save(
    path: &Path,
    write: impl FnOnce(&mut File) -> Result<(), SnapshotError>,
) -> Result<(), SnapshotError> {
    replace(path, write).map_err(|error| error.of_file(path))
}

fn replace(path: &Path, write: impl FnOnce(&mut File) -> Result<(), SnapshotError>) -> Result<(), SnapshotError> {
    let (folder, _) = folder_and_name(path)?;
    // Elsewhere, folders cannot be opened.
    let opened = call("open folder", || cfg!(unix).then(|| File::open(folder)).transpose())?;
    let permissions = call("permissions", || permissions_to_keep(path))?;
    // The file is dropped before its path: some systems do not remove open files.
    let (mut temporary, mut file) = TempFile::create(path)?;
    write(&mut file)?;
    if let Some(permissions) = permissions {
        call("set permissions", || file.set_permissions(permissions))?;
    }
    call("sync", || file.sync_all())?;
    temporary.rename_to(path)?;
    Ok(call("sync folder", || opened.as_ref().map_or(Ok(()), File::sync_all))?)
}

/// Calls the system, unless a test makes the call of this name fail.
#[cfg_attr(not(test), expect(unused_variables))]
fn call<T>(name: &'static str, call: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    #[cfg(test)]
    in_tests::failure_of(name)?;
    call()
}

/// A file under a temporary name, which is removed when dropped, unless it was renamed.
pub(crate) struct TempFile(pub(crate) PathBuf);

impl TempFile {
    /// Creates a file in the folder of `path`, readable and writable by its owner only. A random name may be taken: a process and
    /// its forked child draw equal numbers.
    pub(crate) fn create(path: &Path) -> io::Result<(Self, File)> {
        let (folder, name) = folder_and_name(path)?;
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut tried = 1;
        loop {
            let temporary = temporary_path(folder, name);
            match call("create", || options.open(&temporary)) {
                Ok(file) => return Ok((TempFile(temporary), file)),
                Err(error) if error.kind() == ErrorKind::AlreadyExists && tried < NAMES => tried += 1,
                Err(error) => return Err(error),
            }
        }
    }

    /// Replaces the file at `path`, if any.
    pub(crate) fn rename_to(&mut self, path: &Path) -> io::Result<()> {
        call("rename", || fs::rename(&self.0, path))?;
        // A forked child may create a file with this name.
        self.0.clear();
        Ok(())
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        if !self.0.as_os_str().is_empty() {
            // The first error is returned.
            let _ = call("remove", || fs::remove_file(&self.0));
        }
    }
}

pub(crate) fn folder_and_name(path: &Path) -> io::Result<(&Path, &OsStr)> {
    let no_name = || io::Error::new(ErrorKind::InvalidInput, "the path does not end in the name of a file");
    let name = path.file_name().ok_or_else(no_name)?;
    let folder = path.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."));
    Ok((folder, name))
}

/// Returns a random name. Process ids repeat, and the file of a killed process may remain. The name contains only the beginning of
/// the name of the file, so that it is not too long for the file system.
fn temporary_path(folder: &Path, name: &OsStr) -> PathBuf {
    let begin: String = name.to_string_lossy().chars().take(NAME_CHARS).collect();
    folder.join(format!(".{begin}.{:016x}.tmp", RandomState::new().hash_one(())))
}

/// Returns the permissions of the old file that the new one keeps, if any: on Unix, the bits for reading, writing and executing,
/// without set-user-ID and set-group-ID. A link is replaced, so the permissions of its target are not kept.
fn permissions_to_keep(path: &Path) -> io::Result<Option<Permissions>> {
    let old = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        old => old?,
    };
    if !old.is_file() && !old.is_symlink() {
        let message = "the path is neither a regular file nor a link, so a file cannot replace it";
        return Err(io::Error::new(ErrorKind::InvalidInput, message));
    }
    #[cfg(unix)]
    if old.is_file() {
        use std::os::unix::fs::PermissionsExt;
        return Ok(Some(Permissions::from_mode(old.permissions().mode() & 0o777)));
    }
    Ok(None)
}

/// Opens a regular file. Opening a named pipe would wait for a writer.
pub(crate) fn open_regular(path: &Path, options: &OpenOptions) -> io::Result<File> {
    let check = |metadata: Metadata| {
        let message = "not a regular file; `SnapshotReader::new` reads from anything else";
        if metadata.is_file() { Ok(()) } else { Err(io::Error::new(ErrorKind::InvalidInput, message)) }
    };
    check(fs::metadata(path)?)?;
    let file = options.open(path)?;
    // The file may have been replaced in the meantime.
    check(file.metadata()?)?;
    Ok(file)
}

// Not `tests`: `call` uses it, and the builds of teeth leave out modules of that name.
#[cfg(test)]
pub(crate) mod in_tests {
    use super::*;
    use std::cell::RefCell;
    use std::io::Write;
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

    const OLD: &[u8] = b"the old file";
    const NEW: &[u8] = b"a new file";

    /// The calls that replace an old file.
    const CALLS: [&str; 7] =
        ["open folder", "permissions", "create", "set permissions", "sync", "rename", "sync folder"];

    pub(crate) type Calls = Vec<&'static str>;
    type Failures = Vec<(usize, ErrorKind)>;

    thread_local! {
        /// The calls so far, and the kind of error with which some fail.
        static CALLED: RefCell<(Calls, Failures)> = RefCell::default();
    }

    pub(super) fn failure_of(call: &'static str) -> io::Result<()> {
        CALLED.with_borrow_mut(|(calls, failing)| {
            calls.push(call);
            let failure = failing.iter().find(|(number, _)| number + 1 == calls.len());
            failure.map_or(Ok(()), |&(_, kind)| Err(io::Error::new(kind, format!("{call} failed"))))
        })
    }

    /// Runs `work` while some calls fail. Returns the calls and the result.
    pub(crate) fn with_failing_calls<T>(failing: &[(usize, ErrorKind)], work: impl FnOnce() -> T) -> (Calls, T) {
        CALLED.set((Vec::new(), failing.into()));
        let result = work();
        (CALLED.take().0, result)
    }

    /// A temporary folder for a test, removed with its contents.
    struct Folder(PathBuf);

    impl Folder {
        fn new() -> Self {
            let path = std::env::temp_dir().join(format!("cuckoo-filter-{:016x}", RandomState::new().hash_one(())));
            fs::create_dir(&path).unwrap();
            Folder(path)
        }

        fn path(&self) -> PathBuf {
            self.0.join("filter")
        }

        /// Replaces the file while some calls fail. Returns the calls and the text of the error.
        fn save(
            &self,
            failing: &[(usize, ErrorKind)],
            write: impl FnOnce(&mut File) -> Result<(), SnapshotError>,
        ) -> (Vec<&'static str>, Option<String>) {
            let (calls, result) = with_failing_calls(failing, || replace(&self.path(), write));
            (calls, result.err().map(|error| error.to_string()))
        }

        /// Asserts that the folder has the file with these contents, and nothing else.
        #[track_caller]
        fn assert_holds(&self, contents: &[u8]) {
            let names: Vec<_> = fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            assert_eq!((&names[..], &fs::read(self.path()).unwrap()[..]), (&["filter".into()][..], contents));
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn with_old_file() -> Folder {
        let folder = Folder::new();
        fs::write(folder.path(), OLD).unwrap();
        folder
    }

    fn write_new(file: &mut File) -> Result<(), SnapshotError> {
        Ok(file.write_all(NEW)?)
    }

    #[test]
    #[cfg(unix)]
    fn whatever_fails_before_the_renaming_leaves_the_old_file_alone() {
        for (failing, failed) in CALLS.into_iter().enumerate() {
            let folder = with_old_file();
            let (calls, error) = folder.save(&[(failing, ErrorKind::Other)], write_new);
            assert_eq!(error, Some(format!("{failed} failed")));
            // After the renaming, another process may have created a file with the temporary name.
            let removes = if (3..=5).contains(&failing) { &["remove"][..] } else { &[] };
            assert_eq!(calls, [&CALLS[..=failing], removes].concat());
            folder.assert_holds(if failed == "sync folder" { NEW } else { OLD });
        }
        let folder = with_old_file();
        assert_eq!(folder.save(&[], write_new), (CALLS.to_vec(), None));
        folder.assert_holds(NEW);
    }

    #[test]
    fn an_error_or_a_panic_during_a_write_leaves_the_old_file_alone() {
        let folder = with_old_file();
        let refused = |file: &mut File| write_new(file).and(Err(SnapshotError::OutOfMemory { bytes: 7 }));
        assert_eq!(folder.save(&[], refused).1, Some(SnapshotError::OutOfMemory { bytes: 7 }.to_string()));
        folder.assert_holds(OLD);
        let panics = |file: &mut File| write_new(file).and_then(|()| resume_unwind(Box::new("half way")));
        assert!(catch_unwind(AssertUnwindSafe(|| folder.save(&[], panics))).is_err());
        folder.assert_holds(OLD);
    }

    /// A file that cannot be synced stands for a failing disk: only the system can return the error.
    #[test]
    #[cfg(target_os = "linux")]
    fn the_system_syncs_the_file() {
        let folder = Folder::new();
        let null = |file: &mut File| {
            *file = File::options().write(true).open("/dev/null")?;
            Ok(())
        };
        assert_eq!(folder.save(&[], null).0.last_chunk(), Some(&["sync", "remove"]));
        assert!(!folder.path().exists());
    }

    #[test]
    fn a_failure_to_remove_the_new_file_does_not_hide_the_first_error() {
        let folder = with_old_file();
        let failing = [4, 5].map(|call| (call, ErrorKind::Other));
        assert_eq!(folder.save(&failing, write_new).1.as_deref(), Some("sync failed"));
        assert_eq!(fs::read(folder.path()).unwrap(), OLD);
    }

    #[test]
    fn sixteen_names_are_tried() {
        let folder = with_old_file();
        let taken = |count| Vec::from_iter((2..2 + count).map(|call| (call, ErrorKind::AlreadyExists)));
        let (calls, error) = folder.save(&taken(NAMES), write_new);
        assert_eq!((&calls[2..], error.as_deref()), (&["create"; NAMES][..], Some("create failed")));
        folder.assert_holds(OLD);
        assert_eq!(folder.save(&taken(NAMES - 1), write_new).1, None);
        folder.assert_holds(NEW);
    }

    #[test]
    fn a_file_without_a_folder_is_written_to_the_working_directory() {
        let (folder, name) = folder_and_name(Path::new("filter")).unwrap();
        assert_eq!((folder, name), (Path::new("."), OsStr::new("filter")));
        assert_eq!(folder_and_name(Path::new("/filter")).unwrap().0, Path::new("/"));
        let [one, other] = [(); 2].map(|()| temporary_path(folder, name));
        assert_ne!(one, other, "two that save to one path do not write to one file");
        let name = one.file_name().unwrap().to_str().unwrap();
        assert!(one.parent() == Some(Path::new(".")) && name.starts_with(".filter.") && name.ends_with(".tmp"));
    }

    #[cfg(unix)]
    mod unix {
        use super::*;
        use std::os::unix::fs::{PermissionsExt, symlink};

        fn mode(path: &Path) -> u32 {
            fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
        }

        /// Also a file that replaces one of wider permissions, until it is renamed.
        fn write_as_owner(file: &mut File) -> Result<(), SnapshotError> {
            assert_eq!(file.metadata()?.permissions().mode() & 0o777, 0o600);
            write_new(file)
        }

        #[test]
        fn a_file_keeps_the_permission_bits_of_its_predecessor() {
            let folder = Folder::new();
            assert_eq!(folder.save(&[], write_as_owner).1, None);
            assert_eq!(mode(&folder.path()), 0o600);
            for (bits, kept) in [(0o644, 0o644), (0o640, 0o640), (0o400, 0o400), (0o666, 0o666), (0o6755, 0o755)] {
                fs::set_permissions(folder.path(), Permissions::from_mode(bits)).unwrap();
                assert_eq!(mode(&folder.path()), bits);
                assert_eq!(folder.save(&[], write_as_owner).1, None);
                assert_eq!(mode(&folder.path()), kept, "{bits:o}");
            }
        }

        #[test]
        fn a_link_is_replaced_and_its_target_stays() {
            let (folder, elsewhere) = (Folder::new(), with_old_file());
            let target = elsewhere.path();
            fs::set_permissions(&target, Permissions::from_mode(0o644)).unwrap();
            for to in [&target, &elsewhere.0.join("missing"), &elsewhere.0] {
                let _ = fs::remove_file(folder.path());
                symlink(to, folder.path()).unwrap();
                assert_eq!(folder.save(&[], write_as_owner).1, None);
                assert!(fs::symlink_metadata(folder.path()).unwrap().is_file(), "{to:?}");
                assert_eq!(mode(&folder.path()), 0o600, "{to:?}");
                folder.assert_holds(NEW);
                elsewhere.assert_holds(OLD);
            }
            assert_eq!(mode(&target), 0o644);
        }
    }
}
