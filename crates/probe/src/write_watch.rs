//! How often the threads of a process write a variable, by the CPU's debug registers.
//!
//! This works without performance counters, in most virtual machines too. But every write raises an exception, which costs the
//! thread some microseconds: so it is done for a moment only, and ends early where writes are many (as Feather does it, PPoPP
//! 2018, with data registers as watchpoints).

use std::io;
use std::ops::Range;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use scaleprof_binary::loads::{bias, segments};

use crate::perf_event::{EventGroup, open_watchpoint, paranoid};
use crate::plain::{Mapping, parse_maps};
use crate::privileges::{how_to_get_privileges, remedy};

/// Writes after which it is known that there are many.
const ENOUGH_WRITES: u64 = 20_000;
/// How often it is looked whether it is enough.
const LOOK: Duration = Duration::from_millis(5);
/// The widest place that a debug register watches.
const WIDEST: u64 = 8;

/// Writes that were counted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WriteCount {
    /// How many.
    pub writes: u64,
    /// For how long they were counted.
    pub watched: Duration,
    /// Threads of the process that were watched.
    pub threads: u32,
    /// Those of them that wrote.
    pub writers: u32,
}

/// What tells a file from all others of a machine: inodes are numbered by device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileNumber {
    device: u64,
    inode: u64,
}

impl FileNumber {
    fn of(found: &std::fs::Metadata) -> FileNumber {
        FileNumber {
            device: found.dev(),
            inode: found.ino(),
        }
    }

    /// Whether a mapping is of this file. Some file systems (Btrfs, overlays) show one device in `/proc/PID/maps` and another to
    /// stat(2); then `of_mapping`, what stat says of the mapped file itself, decides.
    fn is_mapped_by(self, mapping: &Mapping, of_mapping: impl Fn() -> Option<FileNumber>) -> bool {
        let (major, minor) = mapping.device;
        let is_there = mapping.inode == self.inode && libc::makedev(major, minor) == self.device;
        is_there || of_mapping() == Some(self)
    }
}

/// The variables of a running process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessData {
    pid: u32,
    /// To be subtracted from an address in the process to get the file's.
    bias: u64,
}

impl ProcessData {
    /// Those of a process that runs a binary, or has loaded it as a library.
    ///
    /// # Errors
    /// In words: the process cannot be looked at, or it has not loaded that file.
    pub fn of(pid: u32, binary: &Path) -> Result<ProcessData, String> {
        let unreadable = |what: &str, error: io::Error| {
            format!(
                "cannot read {what}: {error}. Is there a process {pid}?{}",
                remedy(&error)
            )
        };
        let maps = format!("/proc/{pid}/maps");
        let mappings = parse_maps(&std::fs::read_to_string(&maps).map_err(|error| unreadable(&maps, error))?);
        let name = binary.display().to_string();
        let file = FileNumber::of(&std::fs::metadata(binary).map_err(|error| unreadable(&name, error))?);
        let mapping = mappings.iter().find(|mapping| {
            let of_mapping = || {
                let Range { start, end } = mapping.addresses;
                let link = format!("/proc/{pid}/map_files/{start:x}-{end:x}");
                std::fs::metadata(link).ok().map(|found| FileNumber::of(&found))
            };
            mapping.executable && file.is_mapped_by(mapping, of_mapping)
        });
        let mapping =
            mapping.ok_or_else(|| format!("process {pid} does not run {name}: name the file that it runs"))?;
        let bytes = std::fs::read(binary).map_err(|error| unreadable(&name, error))?;
        let bias = bias(mapping.addresses.start, mapping.file_offset, &segments(&bytes))
            .ok_or_else(|| format!("{name} is not the file that process {pid} has mapped"))?;
        Ok(ProcessData { pid, bias })
    }

    /// Counts the writes of all its threads to a place of the file, by its address and bytes there. Of a wide place the first
    /// eight bytes are watched, or fewer where it is not at a multiple of eight. Threads that begin meanwhile are not watched.
    ///
    /// # Errors
    /// In words, with what mends it.
    pub fn count_writes(&self, place: u64, bytes: u64, longest: Duration) -> Result<WriteCount, String> {
        let address = place.wrapping_add(self.bias);
        let width = watched_bytes(address, bytes);
        let mut groups = Vec::new();
        for thread in self.threads()? {
            match open_watchpoint(thread, address, width) {
                Ok(group) => groups.push(group),
                // It has ended meanwhile.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                Err(error) => return Err(self.explain(&error)),
            }
        }
        let start = Instant::now();
        for group in &groups {
            group.enable()?;
        }
        loop {
            std::thread::sleep(LOOK.min(longest));
            let writes = counts(&groups)?.iter().sum::<u64>();
            if start.elapsed() >= longest || writes >= ENOUGH_WRITES {
                break;
            }
        }
        for group in &groups {
            group.disable()?;
        }
        let watched = start.elapsed();
        let counts = counts(&groups)?;
        // A process that is gone writes nothing: that says nothing of the variable.
        if counts.is_empty() || self.threads().is_err() {
            return Err(format!("process {} ended while it was watched", self.pid));
        }
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        Ok(WriteCount {
            writes: counts.iter().sum(),
            watched,
            threads: number(counts.len()),
            writers: number(counts.iter().filter(|count| **count > 0).count()),
        })
    }

    fn threads(&self) -> Result<Vec<u32>, String> {
        let folder = format!("/proc/{}/task", self.pid);
        let entries = std::fs::read_dir(&folder).map_err(|error| format!("cannot read {folder}: {error}"))?;
        let names = entries.flatten().map(|entry| entry.file_name());
        Ok(names.filter_map(|name| name.to_str()?.parse().ok()).collect())
    }

    fn explain(&self, error: &io::Error) -> String {
        match error.raw_os_error() {
            Some(libc::EACCES | libc::EPERM) => format!(
                "watching writes is not allowed (kernel.perf_event_paranoid is {}): process {} belongs to another user; {}",
                paranoid(),
                self.pid,
                how_to_get_privileges()
            ),
            Some(libc::ENOSPC | libc::EBUSY) => {
                "all watchpoints of the CPU are taken: end the debugger that holds them".to_owned()
            }
            Some(libc::EMFILE | libc::ENFILE) => {
                "no file descriptor was left for watching every thread; ulimit -n 65536".to_owned()
            }
            Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV) => {
                "this machine gives no watchpoints to its programs (some hypervisors keep them)".to_owned()
            }
            _ => format!("writes cannot be watched: {error}"),
        }
    }
}

fn counts(groups: &[EventGroup]) -> Result<Vec<u64>, String> {
    let read = groups
        .iter()
        .map(|group| Ok(group.read()?.values.first().copied().unwrap_or(0)));
    read.collect()
}

/// The most bytes at an address that one debug register watches without going past the place: a power of two that the address
/// is a multiple of.
fn watched_bytes(address: u64, bytes: u64) -> u64 {
    let mut width = WIDEST;
    while width > 1 && (width > bytes || !address.is_multiple_of(width)) {
        width /= 2;
    }
    width
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

    static WRITTEN: AtomicU64 = AtomicU64::new(0);
    static QUIET: AtomicU64 = AtomicU64::new(0);
    static ENDED: AtomicBool = AtomicBool::new(false);

    #[test]
    fn writes_of_a_thread_are_counted_and_silence_is_silence() {
        let binary = std::env::current_exe().expect("a path");
        let data = ProcessData::of(std::process::id(), &binary).expect("the own process");
        let in_file = |place: &AtomicU64| (place.as_ptr() as u64).wrapping_sub(data.bias);
        let writer = std::thread::spawn(|| {
            while !ENDED.load(Ordering::Relaxed) {
                WRITTEN.fetch_add(1, Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let before = WRITTEN.load(Ordering::Relaxed);
        let counted = data.count_writes(in_file(&WRITTEN), 8, Duration::from_millis(300));
        let after = WRITTEN.load(Ordering::Relaxed);
        let quiet = data.count_writes(in_file(&QUIET), 8, Duration::from_millis(20));
        ENDED.store(true, Ordering::Relaxed);
        writer.join().expect("it ends");
        let (Ok(counted), Ok(quiet)) = (counted.clone(), quiet) else {
            let why = counted.expect_err("one of them");
            return testing::skip!("watchpoints: {why}");
        };
        assert!(
            // Setting it up and taking it down is done in far less than the 300 ms between.
            2 * counted.writes >= after - before && counted.writes <= after - before,
            "{counted:?} of {}",
            after - before
        );
        assert_eq!((counted.writers, quiet.writes, quiet.writers), (1, 0, 0), "{quiet:?}");
        assert!(
            counted.watched >= Duration::from_millis(300) && counted.threads >= 2,
            "{counted:?}"
        );
    }

    #[test]
    fn a_debug_register_watches_a_power_of_two_at_a_multiple_of_it() {
        let found = [
            (0x1000, 40),
            (0x1004, 8),
            (0x1002, 8),
            (0x1001, 8),
            (0x1000, 1),
            (0x1000, 7),
            (0x1000, 0),
        ];
        let found = found.map(|(address, bytes)| watched_bytes(address, bytes));
        assert_eq!(found, [8, 4, 2, 1, 1, 4, 1]);
    }

    #[test]
    fn a_file_of_the_same_number_on_another_device_is_another_file() {
        let file = FileNumber {
            device: libc::makedev(0xfe, 1),
            inode: 4711,
        };
        let mapped = |device: &str, inode: u64| {
            let line = format!("1000-2000 r-xp 00000000 {device} {inode}          /usr/sbin/mysqld");
            parse_maps(&line).remove(0)
        };
        let unknown = || None;
        assert!(file.is_mapped_by(&mapped("fe:01", 4711), unknown));
        assert!(!file.is_mapped_by(&mapped("fe:02", 4711), unknown));
        assert!(!file.is_mapped_by(&mapped("fe:01", 4712), unknown));
        // On Btrfs maps shows another device than stat.
        assert!(file.is_mapped_by(&mapped("00:1f", 4711), || Some(file)));
        let other = FileNumber { device: 7, ..file };
        assert!(!file.is_mapped_by(&mapped("00:1f", 4711), || Some(other)));
    }

    #[test]
    fn processes_that_are_not_there_or_run_something_else_are_refused() {
        let error = ProcessData::of(u32::MAX, Path::new("/proc/self/exe")).expect_err("no such process");
        assert!(error.contains("Is there a process"), "{error}");
        let error = ProcessData::of(std::process::id(), Path::new("/etc/passwd")).expect_err("no program");
        assert!(error.contains("does not run /etc/passwd"), "{error}");
    }
}
