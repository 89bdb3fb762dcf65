//! The calls that replace a file, of which tests make some fail.

use super::*;
use std::cell::RefCell;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

const OLD: &[u8] = b"the old file";
const NEW: &[u8] = b"a new file";

/// The calls that replace an old file.
const CALLS: [&str; 7] = ["open folder", "permissions", "create", "set permissions", "sync", "rename", "sync folder"];

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
