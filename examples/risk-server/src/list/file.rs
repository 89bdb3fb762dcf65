//! The files of a list, and the words in which a snapshot says which list it is of.

use super::options::{Filter, Options};
use super::store::Meta;
use concurrent_cuckoo_filter::SnapshotReader;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, BufReader, Read, Write};
use std::path::Path;

/// A file that is being written, and is left behind if the process is killed meanwhile.
const TEMPORARY: (&str, &str) = (".filter.snapshot.", ".tmp");

/// Makes the folder and those above it, for the owner alone. One that exists stays as it is.
pub(super) fn make_folder(path: &Path) -> io::Result<()> {
    let mut folder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut folder, 0o700);
    folder.recursive(true).create(path)
}

/// Opens the file of the store, or makes it, for the owner alone. One that exists stays as it is.
pub(super) fn open_store(path: &Path) -> io::Result<File> {
    let mut file = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut file, 0o600);
    file.read(true).write(true).create(true).truncate(false).open(path)
}

/// Which state of which list a snapshot is of: the metadata of the filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    /// The id of the store.
    pub(super) id: u128,
    /// The number of the last change that the filter has.
    pub(super) sequence: u64,
}

impl Stamp {
    /// The last byte is the version.
    const MAGIC: [u8; 8] = *b"risklst\x01";

    pub(super) fn to_bytes(self) -> [u8; 32] {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&Stamp::MAGIC);
        bytes[8..24].copy_from_slice(&self.id.to_le_bytes());
        bytes[24..].copy_from_slice(&self.sequence.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (magic, rest) = bytes.split_first_chunk()?;
        let (id, rest) = rest.split_first_chunk()?;
        let stamp = Stamp { id: u128::from_le_bytes(*id), sequence: u64::from_le_bytes(rest.try_into().ok()?) };
        (*magic == Stamp::MAGIC).then_some(stamp)
    }
}

/// Loads the filter of the snapshot, if it is of this list and the log has all changes since. An error says why not.
pub(super) fn read(options: &Options, meta: &Meta) -> Result<(Filter, Stamp), String> {
    let file = File::open(options.snapshot()).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => "there is no snapshot".to_owned(),
        _ => format!("the snapshot cannot be opened: {error}"),
    })?;
    let mut file = BufReader::with_capacity(1 << 16, file);
    let reader = SnapshotReader::new(&mut file).map_err(|error| error.to_string())?;
    let header = reader.header();
    let stamp = Stamp::from_bytes(header.metadata()).ok_or("the snapshot is not one of a list")?;
    if stamp.id != meta.id {
        return Err("the snapshot is of another list".to_owned());
    }
    if stamp.sequence < meta.floor {
        return Err(format!(
            "the snapshot is too old: it ends at change {}, and the log begins after change {}",
            stamp.sequence, meta.floor
        ));
    }
    if stamp.sequence > meta.sequence {
        return Err(format!(
            "the snapshot is newer than the store: it ends at change {}, the store at change {}",
            stamp.sequence, meta.sequence
        ));
    }
    let capacity = header.capacity();
    if capacity < options.capacity {
        return Err(format!("the snapshot is of a filter for {capacity} keys; {} are asked for", options.capacity));
    }
    let asked = options.filter_of(capacity).map_err(|error| error.to_string())?.fingerprint_bits();
    if header.fingerprint_bits() != asked {
        return Err(format!(
            "the snapshot has fingerprints of {} bits; {asked} are asked for",
            header.fingerprint_bits()
        ));
    }
    let filter = reader.into_filter_with_its_keys().map_err(|error| error.to_string())?;
    match file.bytes().next() {
        None => Ok((filter, stamp)),
        Some(Ok(_)) => Err("something follows the snapshot in its file".to_owned()),
        Some(Err(error)) => Err(error.to_string()),
    }
}

/// Writes the snapshot: its file is the old one or the new one, whatever happens.
pub(super) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new().prefix(TEMPORARY.0).suffix(TEMPORARY.1).tempfile_in(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    sync(folder)
}

/// The new name of a file is on disk when its folder is.
fn sync(folder: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}

/// Sets a snapshot that was refused aside: if the store goes on to the change that the snapshot names, it might be
/// taken for one of this store, which it may not be.
pub(super) fn set_aside(path: &Path) -> io::Result<()> {
    let mut aside = path.as_os_str().to_owned();
    aside.push(".refused");
    match std::fs::rename(path, aside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => sync(path.parent().unwrap_or(Path::new("."))),
    }
}

/// Removes what writers that were killed have left behind. What cannot be removed stays.
pub(super) fn remove_temporary(folder: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if name.to_str().is_some_and(|name| name.starts_with(TEMPORARY.0) && name.ends_with(TEMPORARY.1)) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_read_as_it_was_written_and_nothing_else_is_one() {
        let stamp = Stamp { id: 0x0123_4567_89ab_cdef_0011_2233_4455_6677, sequence: 7 };
        let bytes = stamp.to_bytes();
        assert_eq!(Stamp::from_bytes(&bytes), Some(stamp));
        assert_eq!(bytes[8], 0x77);
        for len in 0..bytes.len() {
            assert_eq!(Stamp::from_bytes(&bytes[..len]), None);
        }
        assert_eq!(Stamp::from_bytes(&[&bytes[..], &[0]].concat()), None);
        for at in 0..8 {
            let mut other = bytes;
            other[at] ^= 1;
            assert_eq!(Stamp::from_bytes(&other), None);
        }
    }

    #[test]
    fn a_file_is_written_as_a_whole_and_what_was_left_behind_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("filter.snapshot");
        write(&path, b"one").unwrap();
        write(&path, b"another").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"another");
        std::fs::write(folder.path().join(".filter.snapshot.abc.tmp"), b"half").unwrap();
        std::fs::write(folder.path().join("mine.tmp"), b"mine").unwrap();
        remove_temporary(folder.path()).unwrap();
        let mut names: Vec<_> =
            std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["filter.snapshot", "mine.tmp"]);
        set_aside(&path).unwrap();
        set_aside(&path).unwrap();
        assert!(!path.exists() && folder.path().join("filter.snapshot.refused").exists());
    }
}
