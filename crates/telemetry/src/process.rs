//! What the operating system says of this process. Nothing is said where it keeps no `/proc`.

use std::path::Path;

/// Memory and open files.
#[derive(Debug, Clone, Copy, Default)]
pub struct ProcessObserved {
    pub resident_bytes: Option<u64>,
    pub open_files: Option<u64>,
}

impl ProcessObserved {
    /// Reads files of the kernel: not for the thread that serves calls.
    #[must_use]
    pub fn now() -> Self {
        Self { resident_bytes: resident_bytes(), open_files: open_files(Path::new("/proc/self/fd")) }
    }
}

fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    kibibytes.checked_mul(1024)
}

fn open_files(directory: &Path) -> Option<u64> {
    let count = std::fs::read_dir(directory).ok()?.count();
    // The directory itself is open while it is read.
    u64::try_from(count.saturating_sub(1)).ok()
}
