//! What `save` leaves in a folder: one file, whole, and of whose permissions one can be sure.

#[path = "common/folder.rs"]
mod folder;
#[path = "common/watchdog.rs"]
mod watchdog;

use concurrent_cuckoo_filter::{CuckooFilter, SnapshotError, SnapshotReader, StableHashBuilder};
use folder::Folder;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::sync::Barrier;
use watchdog::watchdog;

fn filter(keys: u64) -> CuckooFilter<u64> {
    let filter = CuckooFilter::with_capacity(1000);
    (0..keys).for_each(|key| filter.insert(&key).unwrap());
    filter
}

fn names(folder: &Path) -> Vec<OsString> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect()
}

/// Two threads save versions to one path, and a third loads: each time one of them, whole.
#[test]
fn several_that_save_to_one_path_do_not_mix() {
    const ROUNDS: u64 = 50;
    let _alive = watchdog();
    let folder = Folder::new("file-several");
    let path = &folder.0.join("filter");
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
                let keys = reader.header().metadata().try_into().map_or(7, u64::from_le_bytes);
                let loaded: CuckooFilter<u64> = reader.into_filter_with_its_keys().unwrap();
                assert_eq!(loaded.len() as u64, keys);
                assert!((0..keys).all(|key| loaded.contains(&key)));
            }
        });
    });
    assert_eq!(names(&folder.0), ["filter"]);
}

#[test]
fn what_cannot_be_saved_leaves_no_file() {
    let folder = Folder::new("file-refused");
    let path = folder.0.join("filter");
    assert!(filter(7).snapshot().metadata(&[0; 65_537]).save(&path).is_err());
    assert!(filter(7).snapshot().shards(1..2).save(&path).is_err());
    assert!(names(&folder.0).is_empty());
    filter(7).save(&path).unwrap();
    assert!(filter(8).snapshot().metadata(&[0; 65_537]).save(&path).is_err());
    assert_eq!(CuckooFilter::<u64>::load(&path).unwrap().len(), 7);
    assert_eq!(names(&folder.0), ["filter"]);
}

#[cfg(unix)]
mod unix {
    use super::*;
    use concurrent_cuckoo_filter::SnapshotError;
    use std::fs::{File, Permissions};
    use std::io::ErrorKind;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn a_new_file_is_for_its_owner_alone_and_who_was_let_in_stays_so() {
        let folder = Folder::new("file-permissions");
        let path = folder.0.join("filter");
        filter(7).save(&path).unwrap();
        assert_eq!(mode(&path), 0o600);
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        filter(8).save(&path).unwrap();
        assert_eq!(mode(&path), 0o644);
        assert_eq!(CuckooFilter::<u64>::load(&path).unwrap().len(), 8);
    }

    #[test]
    fn a_link_is_replaced_by_a_file() {
        let folder = Folder::new("file-link");
        let (path, target) = (folder.0.join("filter"), folder.0.join("target"));
        filter(7).save(&target).unwrap();
        symlink(&target, &path).unwrap();
        filter(8).save(&path).unwrap();
        assert!(fs::symlink_metadata(&path).unwrap().is_file());
        let [of_path, of_target] = [&path, &target].map(|path| CuckooFilter::<u64>::load(path).unwrap().len());
        assert_eq!((of_path, of_target), (8, 7));
    }

    /// A file could be made there and renamed, but nobody could say whether the name outlives a power cut. Root may
    /// read every folder.
    #[test]
    fn a_folder_that_cannot_be_read_keeps_the_old_file() {
        let folder = Folder::new("file-unreadable");
        let path = folder.0.join("filter");
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

/// A file's end is checked by whoever loads it, in each way.
#[test]
fn every_way_of_loading_takes_the_whole_file() {
    let folder = Folder::new("file-longer");
    let path = &folder.0.join("filter");
    let hasher = StableHashBuilder::with_keys(1, 2);
    let saved = CuckooFilter::<u64, _>::with_capacity_and_hasher(100, hasher.clone());
    saved.insert(&7).unwrap();
    saved.save(path).unwrap();
    type Stable = CuckooFilter<u64, StableHashBuilder>;
    type Way = fn(&Path, &StableHashBuilder) -> Result<Stable, SnapshotError>;
    let ways: [Way; 3] = [
        |path, _| Stable::load(path),
        |path, _| Stable::par_load(path),
        |path, hasher| Stable::load_with_hasher(path, hasher.clone()),
    ];
    for load in ways {
        let loaded = load(path, &hasher).unwrap();
        assert!(loaded.contains(&7) && loaded.len() == 1);
    }
    let mut longer = fs::read(path).unwrap();
    longer.push(0);
    fs::write(path, longer).unwrap();
    for load in ways {
        let error = load(path, &hasher).unwrap_err();
        assert!(matches!(error, SnapshotError::TrailingBytes), "{error}");
        assert!(error.to_string().contains("follows"), "{error}");
    }
}
