//! The result of `save` in a folder: one complete file, with the right permissions.

use crate::support::{Folder, Stable, hasher};
use concurrent_cuckoo_filter::{CuckooFilter, SnapshotError, SnapshotReader};
use std::error::Error;
use std::ffi::OsString;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Barrier;
use testkit::watchdog;

fn filter(keys: u64) -> CuckooFilter<u64> {
    let filter = CuckooFilter::with_capacity(1000);
    (0..keys).for_each(|key| filter.insert(&key).unwrap());
    filter
}

fn names(folder: &Path) -> Vec<OsString> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect()
}

/// Two threads save versions to one path, and a third loads: each time one complete version.
#[test]
fn several_that_save_to_one_path_do_not_mix() {
    const ROUNDS: u64 = 50;
    let _alive = watchdog();
    let (folder, path) = &Folder::with_path("file-several");
    filter(7).save(path).unwrap();
    let barrier = &Barrier::new(3);
    std::thread::scope(|scope| {
        for first in [0, ROUNDS] {
            scope.spawn(move || {
                barrier.wait();
                for keys in first..first + ROUNDS {
                    filter(keys).snapshot().metadata(&keys.to_le_bytes()).save(path).unwrap();
                }
            });
        }
        scope.spawn(move || {
            barrier.wait();
            for _ in 0..2 * ROUNDS {
                let bytes = fs::read(path).unwrap();
                let reader = SnapshotReader::new(&bytes[..]).unwrap();
                let keys = reader.header().metadata[..].try_into().map_or(7, u64::from_le_bytes);
                let loaded: CuckooFilter<u64> = reader.into_filter().unwrap();
                assert_eq!(loaded.len() as u64, keys);
                assert!((0..keys).all(|key| loaded.contains(&key)));
            }
        });
    });
    assert_eq!(names(&folder.0), ["filter"]);
}

#[test]
fn what_cannot_be_saved_leaves_no_file() {
    let (folder, path) = Folder::with_path("file-refused");
    assert!(filter(7).snapshot().metadata(&[0; 65_537]).save(&path).is_err());
    assert!(filter(7).snapshot().shards(1..2).save(&path).is_err());
    assert!(names(&folder.0).is_empty());
    filter(7).save(&path).unwrap();
    assert!(filter(8).snapshot().metadata(&[0; 65_537]).save(&path).is_err());
    assert_eq!(CuckooFilter::<u64>::load(&path).unwrap().len(), 7);
    assert_eq!(names(&folder.0), ["filter"]);
}

type Way = fn(&Path) -> Result<Stable, SnapshotError>;

const WAYS: [Way; 3] = [
    |path| Stable::load(path),
    |path| SnapshotReader::open(path)?.in_parallel().into_filter(),
    |path| SnapshotReader::open(path)?.into_filter_with_hasher(hasher()),
];

/// The kind of a system error that names this file and has the system's own error as its source.
#[track_caller]
fn kind_of<T>(result: Result<T, SnapshotError>, path: &Path) -> ErrorKind {
    let Err(error) = result else { panic!("this was to fail") };
    assert!(error.to_string().starts_with(&format!("{path:?}: ")), "{error}");
    let SnapshotError::Io(error) = error else { panic!("not an error of the system: {error}") };
    let source = error.source().and_then(|source| source.downcast_ref::<io::Error>()).expect("the system's own error");
    assert_eq!(source.kind(), error.kind());
    assert_eq!(error.to_string(), format!("{path:?}: {source}"));
    error.kind()
}

#[test]
fn errors_of_the_system_name_the_file() {
    let folder = Folder::new("file-named");
    let missing = folder.0.join("missing");
    for load in WAYS {
        assert_eq!(kind_of(load(&missing), &missing), ErrorKind::NotFound);
        assert_eq!(kind_of(load(&folder.0), &folder.0), ErrorKind::InvalidInput);
    }
    for (path, kind) in [
        (missing.join("filter"), ErrorKind::NotFound),
        (folder.0.clone(), ErrorKind::InvalidInput),
        (folder.0.join(".."), ErrorKind::InvalidInput),
    ] {
        assert_eq!(kind_of(filter(7).save(&path), &path), kind);
        assert_eq!(kind_of(filter(7).snapshot().metadata(b"more").save(&path), &path), kind);
    }
    // Other errors are unchanged.
    fs::write(&missing, b"text").unwrap();
    assert!(matches!(Stable::load(&missing), Err(SnapshotError::NotASnapshot)));
}

/// It can be opened, but not read.
#[cfg(target_os = "linux")]
#[test]
fn an_error_in_the_middle_of_a_file_names_it() {
    let path = Path::new("/proc/self/mem");
    for load in WAYS {
        kind_of(load(path), path);
    }
}

/// The longest name of a file has 255 bytes.
#[test]
fn names_may_be_as_long_as_the_system_takes_them() {
    let folder = Folder::new("file-long-names");
    for name in ["a".repeat(233), "b".repeat(234), "c".repeat(255), "\u{20ac}".repeat(85), "\u{1f980}".repeat(63)] {
        let path = folder.0.join(&name);
        filter(7).save(&path).unwrap();
        filter(8).save(&path).unwrap();
        assert_eq!(CuckooFilter::<u64>::load(&path).unwrap().len(), 8);
        assert_eq!(names(&folder.0), [&name[..]]);
        fs::remove_file(&path).unwrap();
    }
}

#[cfg(unix)]
mod unix {
    use super::*;
    use std::fs::{File, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::process::Command;

    /// Opening one waits for a writer.
    #[test]
    fn a_named_pipe_is_refused_and_not_waited_for() {
        let _alive = watchdog();
        let folder = Folder::new("file-pipe");
        let (pipe, link) = (folder.0.join("pipe"), folder.0.join("link"));
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        symlink(&pipe, &link).unwrap();
        for load in WAYS {
            for path in [&pipe, &link] {
                assert_eq!(kind_of(load(path), path), ErrorKind::InvalidInput);
                assert!(load(path).unwrap_err().to_string().contains("not a regular file"));
            }
        }
        assert_eq!(kind_of(filter(7).save(&pipe), &pipe), ErrorKind::InvalidInput);
    }

    /// A file could be created there and renamed, but it would be unknown whether the name survives a power cut. Root may read
    /// every folder.
    #[test]
    fn a_folder_that_cannot_be_read_keeps_the_old_file() {
        let (folder, path) = Folder::with_path("file-unreadable");
        filter(7).save(&path).unwrap();
        fs::set_permissions(&folder.0, Permissions::from_mode(0o300)).unwrap();
        let may_be_read = File::open(&folder.0).is_ok();
        let result = filter(8).save(&path);
        fs::set_permissions(&folder.0, Permissions::from_mode(0o700)).unwrap();
        if may_be_read {
            result.unwrap();
        } else {
            assert!(matches!(result, Err(SnapshotError::Io(error)) if error.kind() == ErrorKind::PermissionDenied));
            assert_eq!(CuckooFilter::<u64>::load(&path).unwrap().len(), 7);
        }
        assert_eq!(names(&folder.0), ["filter"]);
    }
}

/// Every way to load a file checks its end.
#[test]
fn every_way_of_loading_takes_the_whole_file() {
    let (folder, path) = &Folder::with_path("file-longer");
    let saved = Stable::with_capacity_and_hasher(100, hasher());
    saved.insert(&7).unwrap();
    saved.save(path).unwrap();
    for load in WAYS {
        let loaded = load(path).unwrap();
        assert!(loaded.contains(&7) && loaded.len() == 1);
    }
    let whole = &folder.0.join("whole");
    fs::copy(path, whole).unwrap();
    let mut longer = fs::read(path).unwrap();
    longer.push(0);
    fs::write(path, longer).unwrap();
    for load in WAYS {
        let error = load(path).unwrap_err();
        assert!(matches!(error, SnapshotError::TrailingBytes), "{error}");
        assert!(error.to_string().contains("follows"), "{error}");
    }
    let open = |path| SnapshotReader::open(path).unwrap();
    for [newer, older] in [[path, whole], [whole, path]] {
        let error = open(newer).write_delta_since(open(older), Vec::new()).unwrap_err();
        assert!(matches!(error, SnapshotError::TrailingBytes), "{error}");
    }
    open(whole).write_delta_since(open(whole), Vec::new()).unwrap();
}
