//! `CF.EXPORT key name`: a background thread writes the filter's snapshot while the server continues.

use crate::commands::{Outcome, existing};
use crate::settings;
use crate::sys::{Context, Failure, Text, blocked, fork};
use crate::value::Filter;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, LazyLock, MutexGuard};

/// Has a second owner while an export runs: the module has at most one export thread.
static RUNNING: LazyLock<Arc<()>> = LazyLock::new(Arc::default);

pub(crate) fn export(context: Context<'_>, arguments: &[Text<'_>]) -> Outcome {
    let &[_, name, file] = arguments else { return Err(Failure::WrongArity) };
    let folder = settings::get().export_dir.as_deref();
    let folder = folder.ok_or("ERR no folder for exports: load the module with 'export-dir FOLDER'")?;
    let possible = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-".contains(byte);
    let file = str::from_utf8(file.bytes()).ok().filter(|name| {
        (1..=200).contains(&name.len()) && !name.starts_with('.') && name.as_bytes().iter().all(possible)
    });
    let file = file.ok_or("ERR a file is named by up to 200 letters, digits, '.', '_' and '-', and not '.' first")?;
    if !context.may_block() {
        return Err("ERR no export in a transaction or a script".into());
    }
    let filter = existing(&mut context.open(name), "ERR not found")?.filter.clone();
    if Arc::strong_count(&RUNNING) > 1 {
        return Err("ERR an export is running".into());
    }
    let running = Arc::clone(&RUNNING);
    let path = folder.join(file);
    blocked::reply_later(context, move || {
        let _running = running;
        save(&filter, &path).map_err(|error| format!("ERR {}: {error}", path.display()))
    })
}

/// Writes to a temporary file beside `path`, then renames it.
fn save(filter: &Filter, path: &Path) -> io::Result<()> {
    let mut new = path.as_os_str().to_owned();
    new.push(".new~");
    let write = || {
        let mut writer = Outside { file: File::create(&new)?, inside: Some(fork::unforked()) };
        filter.write_to(&mut writer).map_err(|error| io::Error::other(error.to_string()))?;
        writer.inside = None;
        writer.file.sync_all()?;
        fs::rename(&new, path)
    };
    let written = write();
    if written.is_err() {
        let _ = fs::remove_file(&new);
    }
    written
}

/// The file of an export. Between calls of `write`, the filter copies its tables with their stripes locked, and the process must not
/// fork. It may fork during the system call.
struct Outside {
    file: File,
    inside: Option<MutexGuard<'static, ()>>,
}

impl Write for Outside {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.inside = None;
        let written = self.file.write(bytes);
        self.inside = Some(fork::unforked());
        written
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
