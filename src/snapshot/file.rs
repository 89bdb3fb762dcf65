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

#[cfg(test)]
#[path = "../../tests/internal/replaced_file.rs"]
pub(crate) mod in_tests;
