//! What the system knows of a process. Only Linux tells; elsewhere nothing is known.

use std::path::Path;
use std::process::Child;
use std::time::Duration;

/// The bytes of memory that a process holds.
pub(crate) fn memory(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes << 10)
}

/// The processor time that a process has used, in itself and for it.
#[cfg(target_os = "linux")]
pub(crate) fn processor_time(process: u32) -> Option<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name, in parentheses, may hold anything.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<u64>().ok();
    let ticks = ticks()? + ticks()?;
    Some(Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64))
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn processor_time(_process: u32) -> Option<Duration> {
    None
}

/// Asks a process to end: SIGTERM, where there is one.
pub(crate) fn ask_to_end(child: &mut Child) -> std::io::Result<()> {
    #[cfg(unix)]
    {
        use rustix::process::{Pid, Signal, kill_process};
        Ok(kill_process(Pid::from_child(child), Signal::TERM)?)
    }
    #[cfg(not(unix))]
    child.kill()
}

/// The bytes of the files in a folder, and how many there are. A file that vanishes meanwhile does not count.
pub(crate) fn disk(folder: &Path) -> (u64, usize) {
    let files = std::fs::read_dir(folder).into_iter().flatten().filter_map(|file| file.ok()?.metadata().ok());
    files.fold((0, 0), |(bytes, count), file| (bytes + file.len(), count + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn the_system_tells_of_this_process() {
        let me = std::process::id();
        let before = processor_time(me).unwrap();
        let memory = memory(me).unwrap();
        assert!((1 << 20..1 << 40).contains(&memory), "{memory}");
        assert!(processor_time(me).unwrap() >= before);
        assert_eq!((super::memory(u32::MAX), processor_time(u32::MAX)), (None, None));
    }

    #[test]
    fn the_files_of_a_folder_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a"), [0; 10]).unwrap();
        std::fs::write(folder.path().join("b"), [0; 5]).unwrap();
        assert_eq!(disk(folder.path()), (15, 2));
        assert_eq!(disk(&folder.path().join("absent")), (0, 0));
    }
}
