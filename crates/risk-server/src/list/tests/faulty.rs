//! A file whose operations fail on demand.

use redb::StorageBackend;
use redb::backends::FileBackend;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

#[derive(Debug)]
pub(super) struct Faulty {
    pub(super) file: FileBackend,
    pub(super) switch: Arc<Switch>,
}

/// Decides when operations that change the file fail.
#[derive(Debug)]
pub(super) struct Switch {
    /// This many succeed, then one fails.
    succeed: AtomicI64,
    /// All that follow fail too.
    for_good: AtomicI64,
}

/// Data with this in it is never written.
const UNLUCKY: &[u8] = b"unlucky";

impl Switch {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Switch { succeed: AtomicI64::new(i64::MAX), for_good: AtomicI64::new(0) })
    }

    pub(super) fn fail_once_after(&self, operations: i64) {
        self.for_good.store(0, Ordering::SeqCst);
        self.succeed.store(operations, Ordering::SeqCst);
    }

    pub(super) fn fail_after(&self, operations: i64) {
        self.for_good.store(1, Ordering::SeqCst);
        self.succeed.store(operations, Ordering::SeqCst);
    }

    /// Ends the failures, and returns whether there were any.
    pub(super) fn heal(&self) -> bool {
        self.succeed.swap(i64::MAX, Ordering::SeqCst) < 0
    }

    fn operation(&self) -> io::Result<()> {
        let left = self.succeed.fetch_sub(1, Ordering::SeqCst);
        if left == 0 || left < 0 && self.for_good.load(Ordering::SeqCst) == 1 {
            return Err(io::Error::other("the disk is on fire"));
        }
        Ok(())
    }
}

impl StorageBackend for Faulty {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }
    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read(offset, out)
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.switch.operation()?;
        self.file.set_len(len)
    }
    fn sync_data(&self) -> io::Result<()> {
        self.switch.operation()?;
        self.file.sync_data()
    }
    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.switch.operation()?;
        if data.windows(UNLUCKY.len()).any(|bytes| bytes == UNLUCKY) {
            return Err(io::Error::other("no space left for this"));
        }
        self.file.write(offset, data)
    }
    fn close(&self) -> io::Result<()> {
        self.file.close()
    }
}
