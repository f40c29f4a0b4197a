//! What `/proc/PID` says of a whole process: CPU time by mode, page faults, resident memory, bytes from and to disk.
//!
//! `/proc/PID/stat` and `/proc/PID/io` (of the process, not of a thread) add up all threads **including those that
//! have ended** (kernel: fs/proc/array.c `do_task_stat(whole = 1)`, fs/proc/base.c `do_io_accounting`), so nothing
//! is lost when connections close. Both walk the threads inside the kernel: about 70 ns a thread.

use std::time::Duration;

use crate::error::ProbeError;
use crate::kernel_file::KernelFile;

/// Figures of `/proc/PID/stat` for a whole process (man 5 proc_pid_stat).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessStat {
    /// CPU time in user mode, in clock ticks (`sysconf(_SC_CLK_TCK)`, 10 ms on Linux). Since the process began.
    pub user_ticks: u64,
    /// CPU time in kernel mode, in clock ticks. Since the process began.
    pub system_ticks: u64,
    /// Page faults that needed no disk.
    pub minor_faults: u64,
    /// Page faults that needed the disk.
    pub major_faults: u64,
    /// Threads that live now.
    pub threads: u64,
    /// Start of the process, in clock ticks since boot: with the number it names a process for ever.
    pub start_ticks: u64,
    /// Resident memory, in pages.
    pub resident_pages: u64,
}

/// Reads the text of `/proc/PID/stat`. The program's name stands in brackets and may hold brackets and blanks itself:
/// the fields begin after the last closing bracket. (When [`text`](crate::kernel_file) cut the file at a name that is
/// not UTF-8 there is no such bracket, and the answer is `None`.)
pub fn parse_stat(text: &str) -> Option<ProcessStat> {
    let after_name = &text[text.rfind(')')? + 1..];
    let fields: Vec<&str> = after_name.split_ascii_whitespace().collect();
    // The first field after the name is field 3 of the manual.
    let field = |number: usize| fields.get(number - 3).and_then(|f| f.parse::<u64>().ok());
    Some(ProcessStat {
        minor_faults: field(10)?,
        major_faults: field(12)?,
        user_ticks: field(14)?,
        system_ticks: field(15)?,
        threads: field(20)?,
        start_ticks: field(22)?,
        resident_pages: field(24)?,
    })
}

/// Bytes that a process caused to be read from and written to disk (not from the page cache).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessIo {
    /// Bytes fetched from block devices.
    pub read_bytes: u64,
    /// Bytes sent to block devices (counted when the page is dirtied).
    pub write_bytes: u64,
}

/// Reads the text of `/proc/PID/io` (man 5 proc_pid_io).
pub fn parse_io(text: &str) -> Option<ProcessIo> {
    let value = |key: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix(key)?.strip_prefix(':')?.trim().parse::<u64>().ok())
    };
    Some(ProcessIo {
        read_bytes: value("read_bytes")?,
        write_bytes: value("write_bytes")?,
    })
}

/// The open files of one process.
#[derive(Debug)]
pub(crate) struct ProcessFiles {
    pid: u32,
    stat: KernelFile,
    io: Result<KernelFile, String>,
}

impl ProcessFiles {
    pub(crate) fn open(pid: u32) -> Result<Self, ProbeError> {
        let stat = KernelFile::open(format!("/proc/{pid}/stat")).map_err(|error| match error {
            ProbeError::Read { source, .. } => ProbeError::NoProcess { pid, source },
            other => other,
        })?;
        let io = KernelFile::open(format!("/proc/{pid}/io")).map_err(|error| error.to_string());
        Ok(Self { pid, stat, io })
    }

    pub(crate) fn stat(&mut self) -> Result<ProcessStat, String> {
        let pid = self.pid;
        let text = self.stat.head().map_err(|_| format!("process {pid} has ended"))?;
        parse_stat(text).ok_or_else(|| format!("/proc/{pid}/stat has an unknown form"))
    }

    pub(crate) fn io(&mut self) -> Result<ProcessIo, String> {
        let pid = self.pid;
        let file = self.io.as_mut().map_err(|reason| reason.clone())?;
        let text = file.head().map_err(|error| error.to_string())?;
        parse_io(text).ok_or_else(|| format!("/proc/{pid}/io has an unknown form"))
    }
}

/// Clock ticks in a second of every figure that `/proc` gives in ticks (`USER_HZ`).
pub(crate) fn ticks_per_second() -> f64 {
    rustix::param::clock_ticks_per_second() as f64
}

/// In how many PID namespaces a process has a number: 1 outside of containers (`NSpid` of proc(5)). None where that is not told.
pub fn pid_namespaces(pid: u32) -> Option<usize> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    Some(numbers.split_whitespace().count())
}

/// CPU time of a whole process as the scheduler counts it, with nanoseconds, threads that ended included.
///
/// This is the process CPU clock (man 3 clock_getcpuclockid), read through `clock_gettime`. It needs no permission.
/// A thread that is running on another CPU was last brought up to date at the last timer tick (kernel:
/// kernel/sched/cputime.c `thread_group_cputime`), so it lags by at most one tick (4 ms at 250 Hz) for each busy CPU;
/// the lag is the same at both ends of a window on average.
pub fn process_cpu_clock(pid: u32) -> Result<Duration, ProbeError> {
    let missing = |code: i32| ProbeError::NoProcess {
        pid,
        source: std::io::Error::from_raw_os_error(code),
    };
    let number = libc::pid_t::try_from(pid).map_err(|_| missing(libc::ESRCH))?;
    let mut clock: libc::clockid_t = 0;
    // SAFETY: `clock` is a valid place for the answer.
    let code = unsafe { libc::clock_getcpuclockid(number, &mut clock) };
    if code != 0 {
        return Err(missing(code));
    }
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place for the answer.
    if unsafe { libc::clock_gettime(clock, &mut time) } != 0 {
        return Err(ProbeError::NoProcess {
            pid,
            source: std::io::Error::last_os_error(),
        });
    }
    Ok(Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
}

/// User and system CPU time of the calling process with microseconds, ended threads included (man 2 getrusage).
pub(crate) fn own_cpu_times() -> (Duration, Duration) {
    // SAFETY: all-zero bytes are a valid rusage, and the pointer is valid for the call, which cannot fail with
    // RUSAGE_SELF.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage
    };
    let duration = |t: libc::timeval| Duration::new(t.tv_sec as u64, t.tv_usec as u32 * 1000);
    (duration(usage.ru_utime), duration(usage.ru_stime))
}

/// CPU time of the calling thread: what a sample costs.
pub(crate) fn own_thread_clock() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_name_with_brackets_and_blanks_shifts_no_field() {
        let text = "77 (my) sql d) S 1 77 77 0 -1 4194304 11 0 13 0 15 16 0 0 20 0 21 0 23 24000 25 184 0";
        let stat = parse_stat(text).expect("parses");
        assert_eq!(
            stat,
            ProcessStat {
                minor_faults: 11,
                major_faults: 13,
                user_ticks: 15,
                system_ticks: 16,
                threads: 21,
                start_ticks: 23,
                resident_pages: 25
            }
        );
    }

    #[test]
    fn a_cut_file_is_refused() {
        assert_eq!(parse_stat("77 (mysqld) S 1 2"), None);
        assert_eq!(parse_io("rchar: 5\nread_bytes: 7\n"), None);
    }

    #[test]
    fn bytes_of_disk_are_not_those_of_the_page_cache() {
        let text = "rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 5\nwrite_bytes: 6\ncancelled_write_bytes: 7\n";
        assert_eq!(
            parse_io(text),
            Some(ProcessIo {
                read_bytes: 5,
                write_bytes: 6
            })
        );
    }

    #[test]
    fn a_process_that_does_not_exist_is_named() {
        let error = process_cpu_clock(u32::MAX).expect_err("no such process");
        assert!(error.to_string().contains("4294967295"), "{error}");
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let text = String::from_utf8_lossy(&bytes);
            let _ = parse_stat(&text);
            let _ = parse_io(&text);
        }
    }
}
