//! Files in which the system shows the memory, environment or open files of processes, and raw devices.
//! Takes an absolute path without `..`; says whether it may be one. Patterns count as whatever they may match.

use std::path::Path;

/// Files directly below `/proc` that tell of the machine, not of its processes.
const MACHINE: &str = "\
    cpuinfo meminfo loadavg uptime version stat vmstat filesystems partitions swaps diskstats devices interrupts cmdline \
    cgroups crypto modules misc buddyinfo zoneinfo slabinfo softirqs sys bus fs driver";
/// Devices that hold nothing.
const DEVICES: &str = "null zero full random urandom stdin stdout stderr tty ptmx shm";

/// Whether the path leads to such a file. Standard input and output stay what the line says they are.
#[must_use]
pub fn shows_processes(path: &Path) -> bool {
    let text = path.to_string_lossy().to_ascii_lowercase();
    let names: Vec<&str> = text.split('/').filter(|name| !name.is_empty()).collect();
    match names.as_slice() {
        // A list of processes shows none of their files.
        ["proc"] | ["dev"] => false,
        ["proc", name] => !is_listed(MACHINE, name),
        ["proc", first, ..] => !is_listed(MACHINE, first),
        ["dev", "fd", number] => !matches!(*number, "0" | "1" | "2"),
        ["dev", first, ..] => !is_listed(DEVICES, first),
        [first, rest @ ..] => is_pattern(first) && !rest.is_empty() && may_be_root(first),
        [] => false,
    }
}

fn is_listed(table: &str, name: &str) -> bool {
    !is_pattern(name) && table.split_ascii_whitespace().any(|known| known == name)
}

fn is_pattern(name: &str) -> bool {
    name.contains(['*', '?', '[', '{', '$', '`'])
}

/// Whether a pattern may match `proc` or `dev`.
fn may_be_root(pattern: &str) -> bool {
    let start = pattern.split(['*', '?', '[', '{', '$', '`']).next().unwrap_or_default();
    ["proc", "dev"].iter().any(|name| name.starts_with(start))
}

/// `/proc/$PPID/environ`, `/proc/$(pgrep x)/mem`, and `$x/proc/self/environ` where `x` may be empty.
pub(super) fn is_behind_expansion(text: &str) -> bool {
    if !text.contains(['$', '`']) {
        return false;
    }
    let is_inside = |path: &str| {
        let names = path.trim_start_matches('/').split('/').filter(|name| !matches!(*name, "" | "."));
        let names: Vec<&str> = names.collect();
        let is_process = |name: &str| {
            name.contains(['$', '`', '*', '?', '['])
                || matches!(name, "self" | "thread-self")
                || name.parse::<u32>().is_ok()
        };
        matches!(names.as_slice(), ["proc", process, _, ..] if is_process(process))
    };
    let behind = text.starts_with(['$', '`']).then(|| text.find("/proc/")).flatten().and_then(|at| text.get(at..));
    (text.starts_with('/') && is_inside(text)) || behind.is_some_and(is_inside)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::shows_processes;

    #[test]
    fn self_1_files_of_processes_and_raw_devices_are_known() {
        for path in [
            "/proc/1/environ",
            "/proc/self/environ",
            "/proc/thread-self/mem",
            "/proc/*/environ",
            "/proc/[0-9]*/maps",
            "/p*/1/environ",
            "/pro?/self/environ",
            "/*/self/environ",
            "/proc/12/fd/3",
            "/proc/12/root/etc/passwd",
            "/proc/12/cwd",
            "/proc/self",
            "/proc/kcore",
            "/proc/kallsyms",
            "/PROC/self/environ",
            "/dev/mem",
            "/dev/kmem",
            "/dev/sda1",
            "/dev/nvme0n1",
            "/dev/fd/7",
            "/dev/mapper/root",
            "/dev/tcp/example.com/80",
        ] {
            assert!(shows_processes(Path::new(path)), "{path}");
        }
        for path in [
            "/proc",
            "/proc/cpuinfo",
            "/proc/meminfo",
            "/proc/sys/kernel/hostname",
            "/dev/null",
            "/dev/stdin",
            "/dev/fd/1",
            "/dev/urandom",
            "/srv/proc/1/environ",
            "/tmp/x",
            "/",
            "/usr/*/x",
            "/*",
        ] {
            assert!(!shows_processes(Path::new(path)), "{path}");
        }
    }
}
