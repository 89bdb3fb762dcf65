//! The arguments of the module.

use crate::sys::Text;
use core::time::Duration;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) export_dir: Option<PathBuf>,
    /// The time after which an unused dump ends.
    pub(crate) dump_idle: Duration,
}

static SETTINGS: OnceLock<Settings> = OnceLock::new();

/// Parses `export-dir FOLDER` and `dump-idle SECONDS`.
pub(crate) fn set(arguments: &[Text<'_>]) -> Result<(), String> {
    let mut settings = Settings { export_dir: None, dump_idle: Duration::from_secs(60) };
    let (pairs, rest) = arguments.as_chunks();
    for &[name, value] in pairs {
        let value = str::from_utf8(value.bytes()).map_err(|_| "a value is not UTF-8")?;
        match &name.bytes().to_ascii_lowercase()[..] {
            b"export-dir" => {
                if !Path::new(value).is_dir() {
                    return Err(format!("export-dir {value} is no folder"));
                }
                settings.export_dir = Some(value.into());
            }
            b"dump-idle" => {
                let seconds = value.parse().map_err(|_| format!("dump-idle {value} is no number of seconds"))?;
                settings.dump_idle = Duration::from_secs(seconds);
            }
            name => {
                let name = name.escape_ascii();
                return Err(format!("unknown argument '{name}'; 'export-dir' and 'dump-idle' are known"));
            }
        }
    }
    if !rest.is_empty() {
        return Err("an argument without its value".into());
    }
    SETTINGS.get_or_init(|| settings);
    Ok(())
}

pub(crate) fn get() -> &'static Settings {
    SETTINGS.get().expect("they are set while the module is loaded")
}
