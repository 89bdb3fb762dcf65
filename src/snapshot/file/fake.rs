//! A disk in memory that fails at chosen calls.

use super::disk::Disk;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;

pub(super) const PATH: &str = "folder/filter";
pub(super) const OLD: &[u8] = b"the old file";
/// The permissions of the old file and of a new one.
pub(super) const MODE: u32 = 0o640;
pub(super) const NEW_MODE: u32 = 0o600;

#[derive(Default)]
pub(super) struct Fake {
    /// Bytes and permissions.
    pub(super) files: RefCell<BTreeMap<PathBuf, (Vec<u8>, u32)>>,
    pub(super) calls: RefCell<Vec<&'static str>>,
    /// The numbers of the calls that fail, from 0.
    pub(super) failing: Vec<usize>,
    /// The maximum number of bytes per write.
    pub(super) short: Option<usize>,
    /// The number of new names that are taken.
    pub(super) taken: Cell<usize>,
    /// The bytes and permissions at the sync of the file.
    pub(super) synced: RefCell<(Vec<u8>, u32)>,
    /// Whether a file is open.
    pub(super) open: Cell<bool>,
}

impl Fake {
    pub(super) fn with_old_file() -> Self {
        let fake = Fake::default();
        fake.files.borrow_mut().insert(PATH.into(), (OLD.into(), MODE));
        fake
    }

    fn call(&self, call: &'static str) -> io::Result<()> {
        let number = self.calls.borrow().len();
        self.calls.borrow_mut().push(call);
        if self.failing.contains(&number) { Err(io::Error::other(format!("{call} failed"))) } else { Ok(()) }
    }

    pub(super) fn holds(&self, bytes: &[u8], mode: u32) -> bool {
        *self.files.borrow() == BTreeMap::from([(PATH.into(), (bytes.to_vec(), mode))])
    }

    pub(super) fn holds_the_old_file(&self) -> bool {
        self.holds(OLD, MODE)
    }
}

pub(super) struct FakeFile {
    disk: Rc<Fake>,
    path: PathBuf,
}

impl Write for FakeFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = self.disk.short.map_or(bytes.len(), |most| bytes.len().min(most));
        // The first byte arrives even if the write fails.
        let result = self.disk.call("write");
        let arrived = if result.is_ok() { taken } else { 1 };
        let mut files = self.disk.files.borrow_mut();
        files.get_mut(&self.path).expect("a file that was created").0.extend(&bytes[..arrived]);
        result.map(|()| taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for FakeFile {
    fn drop(&mut self) {
        self.disk.open.set(false);
    }
}

impl Disk for Rc<Fake> {
    type File = FakeFile;
    type Folder = PathBuf;
    type Permissions = u32;

    fn open_folder(&self, folder: &Path) -> io::Result<PathBuf> {
        self.call("open folder")?;
        Ok(folder.into())
    }

    fn permissions(&self, path: &Path) -> io::Result<Option<u32>> {
        self.call("permissions")?;
        Ok(self.files.borrow().get(path).map(|&(_, mode)| mode))
    }

    fn create(&self, path: &Path) -> io::Result<FakeFile> {
        self.call("create")?;
        if self.taken.get() > 0 {
            self.taken.set(self.taken.get() - 1);
            return Err(ErrorKind::AlreadyExists.into());
        }
        assert_eq!(path.parent(), Path::new(PATH).parent(), "only within a folder is a renaming one step");
        assert!(self.files.borrow_mut().insert(path.into(), (Vec::new(), NEW_MODE)).is_none(), "the name was taken");
        self.open.set(true);
        Ok(FakeFile { disk: Rc::clone(self), path: path.into() })
    }

    fn set_permissions(&self, file: &mut FakeFile, mode: u32) -> io::Result<()> {
        self.call("set permissions")?;
        self.files.borrow_mut().get_mut(&file.path).expect("a file that was created").1 = mode;
        Ok(())
    }

    fn sync(&self, file: &mut FakeFile) -> io::Result<()> {
        self.call("sync")?;
        *self.synced.borrow_mut() = self.files.borrow()[&file.path].clone();
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.call("rename")?;
        let mut files = self.files.borrow_mut();
        let file = files.remove(from).expect("a file that was created");
        files.insert(to.into(), file);
        Ok(())
    }

    fn sync_folder(&self, folder: &PathBuf) -> io::Result<()> {
        assert_eq!(Some(&**folder), Path::new(PATH).parent());
        self.call("sync folder")
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        assert!(!self.open.get(), "not every system removes a file that is open");
        self.call("remove")?;
        self.files.borrow_mut().remove(path).expect("a file that was created");
        Ok(())
    }
}
