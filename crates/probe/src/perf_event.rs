//! `perf_event_open`, as far as counting needs it (man 2 perf_event_open; no sampling here).
//!
//! Bound by hand: the 72 bytes of the second version of `struct perf_event_attr` (Linux 2.6.33) are all that counting uses, and
//! every kernel that runs BPF takes them.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::privileges::how_to_get_privileges;

/// An event that the kernel or the CPU can count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    /// CPU cycles that were not halted.
    Cycles,
    /// Instructions that were retired.
    Instructions,
    /// Accesses of the last cache level (the kernel maps it per CPU model).
    CacheReferences,
    /// Accesses that missed it.
    CacheMisses,
    /// Branches that were predicted wrongly.
    BranchMisses,
    /// Nanoseconds on a CPU (software).
    CpuClock,
    /// Context switches (software).
    ContextSwitches,
    /// Moves of a thread to another CPU (software).
    Migrations,
}

impl Event {
    /// `type` and `config` of include/uapi/linux/perf_event.h.
    fn code(self) -> (u32, u64) {
        match self {
            Self::Cycles => (0, 0),
            Self::Instructions => (0, 1),
            Self::CacheReferences => (0, 2),
            Self::CacheMisses => (0, 3),
            Self::BranchMisses => (0, 5),
            Self::CpuClock => (1, 0),
            Self::ContextSwitches => (1, 3),
            Self::Migrations => (1, 4),
        }
    }

    /// Its name as perf writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cycles => "cycles",
            Self::Instructions => "instructions",
            Self::CacheReferences => "cache-references",
            Self::CacheMisses => "cache-misses",
            Self::BranchMisses => "branch-misses",
            Self::CpuClock => "cpu-clock",
            Self::ContextSwitches => "context-switches",
            Self::Migrations => "cpu-migrations",
        }
    }

    fn is_hardware(self) -> bool {
        self.code().0 == 0
    }
}

/// Whom an event counts.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Target<'a> {
    /// The calling thread, wherever it runs.
    ThisThread,
    /// All that runs on one CPU.
    Cpu(u32),
    /// All of a cgroup that runs on one CPU.
    CgroupOnCpu(BorrowedFd<'a>, u32),
}

/// `struct perf_event_attr`, second version (PERF_ATTR_SIZE_VER1).
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_type: u32,
    /// Of a watchpoint: the address.
    config1: u64,
    /// Of a watchpoint: how many bytes from there on.
    config2: u64,
}
const _: () = assert!(size_of::<Attributes>() == 72);

const FLAG_DISABLED: u64 = 1;
const FLAG_PINNED: u64 = 1 << 2;
const FLAG_EXCLUDE_KERNEL: u64 = 1 << 5;
const FLAG_EXCLUDE_HYPERVISOR: u64 = 1 << 6;
const FLAG_FREQUENCY: u64 = 1 << 10;
/// PERF_TYPE_BREAKPOINT, and HW_BREAKPOINT_W of include/uapi/linux/hw_breakpoint.h.
const TYPE_BREAKPOINT: u32 = 5;
const BREAKPOINT_WRITE: u32 = 2;
/// TOTAL_TIME_ENABLED, TOTAL_TIME_RUNNING, GROUP.
const READ_FORMAT: u64 = 1 | 2 | 8;
const OPEN_CGROUP: libc::c_ulong = 1 << 2;
const OPEN_CLOSE_ON_EXEC: libc::c_ulong = 1 << 3;
const IOCTL_ENABLE: libc::Ioctl = 0x2400;
const IOCTL_DISABLE: libc::Ioctl = 0x2401;
const IOCTL_WHOLE_GROUP: libc::c_ulong = 1;

/// Most events in one group here; bounds the buffer of a read.
const MOST_EVENTS: usize = 8;

/// Events that are counted together: all of them at once or none, so that their ratios hold.
#[derive(Debug)]
pub(crate) struct EventGroup {
    leader: OwnedFd,
    /// Kept because closing one ends its counting.
    _members: Vec<OwnedFd>,
    count: usize,
}

impl EventGroup {
    /// Opens the events, not counting yet. `pinned` asks the kernel for a counter of their own all the time: without one
    /// the group reads as lost instead of as a guess.
    pub(crate) fn open(events: &[Event], target: Target<'_>, pinned: bool) -> Result<Self, String> {
        let (first, rest) = events.split_first().ok_or("no event was named")?;
        debug_assert!(events.len() <= MOST_EVENTS);
        let failed = |event: Event| move |error: io::Error| explain(event, &error, &paranoid());
        let leader = open(*first, target, None, pinned).map_err(failed(*first))?;
        let mut members = Vec::with_capacity(rest.len());
        for event in rest {
            members.push(open(*event, target, Some(&leader), false).map_err(failed(*event))?);
        }
        Ok(Self {
            leader,
            _members: members,
            count: events.len(),
        })
    }

    pub(crate) fn enable(&self) -> Result<(), String> {
        self.control(IOCTL_ENABLE)
    }

    pub(crate) fn disable(&self) -> Result<(), String> {
        self.control(IOCTL_DISABLE)
    }

    fn control(&self, request: libc::Ioctl) -> Result<(), String> {
        // SAFETY: the request takes a plain number.
        if unsafe { libc::ioctl(self.leader.as_raw_fd(), request, IOCTL_WHOLE_GROUP) } < 0 {
            return Err(format!("a counter cannot be switched: {}", io::Error::last_os_error()));
        }
        Ok(())
    }

    pub(crate) fn read(&self) -> Result<RawGroup, String> {
        let mut bytes = [0u8; 8 * (3 + MOST_EVENTS)];
        let length =
            rustix::io::read(&self.leader, &mut bytes).map_err(|error| format!("a counter cannot be read: {error}"))?;
        parse_group(&bytes[..length], self.count).ok_or_else(|| {
            "the CPU has no free counter for it: another profiler or the NMI watchdog holds them; \
             sysctl -w kernel.nmi_watchdog=0, or end the other profiler"
                .to_owned()
        })
    }
}

/// The counts of a group as the kernel gives them, since it was opened.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RawGroup {
    /// Nanoseconds in which the group was meant to count (for a cgroup: while the cgroup ran on this CPU).
    pub time_enabled: u64,
    /// Nanoseconds in which it did.
    pub time_running: u64,
    /// One count for each event of the group.
    pub values: Vec<u64>,
}

/// Reads what `read` gives for a group. A pinned group that found no counter gives nothing at all: `None`.
pub fn parse_group(bytes: &[u8], events: usize) -> Option<RawGroup> {
    let mut words = bytes
        .chunks_exact(8)
        .filter_map(|chunk| Some(u64::from_ne_bytes(chunk.try_into().ok()?)));
    let count = usize::try_from(words.next()?).ok()?;
    let (time_enabled, time_running) = (words.next()?, words.next()?);
    let values: Vec<u64> = words.take(count).collect();
    (count == events && values.len() == events).then_some(RawGroup {
        time_enabled,
        time_running,
        values,
    })
}

fn open(event: Event, target: Target<'_>, leader: Option<&OwnedFd>, pinned: bool) -> io::Result<OwnedFd> {
    let (kind, config) = event.code();
    let mut flags = 0;
    if leader.is_none() {
        flags |= FLAG_DISABLED;
        flags |= if pinned { FLAG_PINNED } else { 0 };
    }
    let attributes = Attributes {
        kind,
        size: size_of::<Attributes>() as u32,
        config,
        read_format: READ_FORMAT,
        flags,
        ..Attributes::default()
    };
    let (pid, cpu, mode) = match target {
        Target::ThisThread => (0, -1, OPEN_CLOSE_ON_EXEC),
        Target::Cpu(cpu) => (-1, cpu as libc::c_int, OPEN_CLOSE_ON_EXEC),
        Target::CgroupOnCpu(cgroup, cpu) => (cgroup.as_raw_fd(), cpu as libc::c_int, OPEN_CLOSE_ON_EXEC | OPEN_CGROUP),
    };
    open_raw(&attributes, pid, cpu, leader.map_or(-1, AsRawFd::as_raw_fd), mode)
}

fn open_raw(
    attributes: &Attributes,
    pid: libc::pid_t,
    cpu: libc::c_int,
    group: libc::c_int,
    mode: libc::c_ulong,
) -> io::Result<OwnedFd> {
    // SAFETY: `attributes` is valid for the call and says its own size.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            std::ptr::from_ref(attributes),
            pid,
            cpu,
            group,
            mode,
        )
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel just gave us this descriptor.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as libc::c_int) })
}

/// A timer for samples on one CPU, whatever runs there: `per_second` times a second of `event` (CPU cycles are counted only
/// while it is busy; the CPU clock always runs). It sends nothing by itself: a BPF program is attached to it.
pub(crate) fn open_timer(event: Event, cpu: u32, per_second: u32) -> io::Result<OwnedFd> {
    let (kind, config) = event.code();
    // The kernel steers the period of an event that comes unevenly; the clock has one period for ever.
    let (sample_period, flags) = match event {
        Event::CpuClock => (1_000_000_000 / u64::from(per_second.max(1)), 0),
        _ => (u64::from(per_second), FLAG_FREQUENCY),
    };
    let attributes = Attributes {
        kind,
        size: size_of::<Attributes>() as u32,
        config,
        sample_period,
        flags,
        ..Attributes::default()
    };
    open_raw(&attributes, -1, cpu as libc::c_int, -1, OPEN_CLOSE_ON_EXEC)
}

/// Lets the timer run, or stops it.
pub(crate) fn switch_timer(timer: BorrowedFd<'_>, on: bool) -> io::Result<()> {
    let request = if on { IOCTL_ENABLE } else { IOCTL_DISABLE };
    // SAFETY: the request takes a plain number.
    match unsafe { libc::ioctl(timer.as_raw_fd(), request, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Counts the writes of one thread to `bytes` bytes (1, 2, 4 or 8, at a multiple of that) by the CPU's debug registers, not
/// counting yet. Every write then costs the thread an exception.
pub(crate) fn open_watchpoint(thread: u32, address: u64, bytes: u64) -> io::Result<EventGroup> {
    let attributes = Attributes {
        kind: TYPE_BREAKPOINT,
        size: size_of::<Attributes>() as u32,
        read_format: READ_FORMAT,
        flags: FLAG_DISABLED | FLAG_EXCLUDE_KERNEL | FLAG_EXCLUDE_HYPERVISOR,
        breakpoint_type: BREAKPOINT_WRITE,
        config1: address,
        config2: bytes,
        ..Attributes::default()
    };
    let leader = open_raw(&attributes, thread as libc::pid_t, -1, -1, OPEN_CLOSE_ON_EXEC)?;
    Ok(EventGroup {
        leader,
        _members: Vec::new(),
        count: 1,
    })
}

/// The setting that decides who may count, as text.
pub(crate) fn paranoid() -> String {
    std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid")
        .map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned())
}

/// Why an event could not be opened, with the command that mends it where there is one.
pub(crate) fn explain(event: Event, error: &io::Error, paranoid: &str) -> String {
    let name = event.name();
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => format!(
            "counting {name} is not allowed (kernel.perf_event_paranoid is {paranoid}, or a container's seccomp \
             profile bars it); {}, or: sysctl -w kernel.perf_event_paranoid=-1",
            how_to_get_privileges()
        ),
        Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV | libc::ENXIO) if event.is_hardware() => format!(
            "no hardware counter for {name}: most virtual machines have none; use bare metal or a machine type with \
             a PMU"
        ),
        Some(libc::EMFILE | libc::ENFILE) => {
            format!("no file descriptor was left for counting {name}; ulimit -n 65536")
        }
        Some(libc::ENOSYS) => format!("the kernel was built without perf events, so {name} cannot be counted"),
        Some(libc::EBUSY | libc::ENOSPC) => {
            format!("another profiler holds the counters that {name} needs; end it: ps -C perf")
        }
        _ => format!("{name} cannot be counted: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    #[test]
    fn a_group_reads_as_it_was_written() {
        let group = RawGroup {
            time_enabled: 10,
            time_running: 5,
            values: vec![7, 8],
        };
        assert_eq!(parse_group(&bytes(&[2, 10, 5, 7, 8]), 2), Some(group));
    }

    #[test]
    fn a_group_that_got_no_counter_is_lost_and_not_zero() {
        assert_eq!(parse_group(&[], 2), None);
        assert_eq!(parse_group(&bytes(&[1, 10, 5, 7]), 2), None);
        assert_eq!(parse_group(&bytes(&[u64::MAX, 10, 5, 7]), 1), None);
    }

    #[test]
    fn every_refusal_names_the_event() {
        for code in [
            libc::EACCES,
            libc::ENOENT,
            libc::EMFILE,
            libc::ENOSYS,
            libc::EBUSY,
            libc::EINVAL,
        ] {
            let text = explain(Event::Cycles, &io::Error::from_raw_os_error(code), "2");
            assert!(text.contains("cycles"), "{text}");
        }
    }

    #[test]
    fn what_can_be_helped_names_the_way_out() {
        for (code, way_out) in [
            (libc::EACCES, "sysctl -w"),
            (libc::ENOENT, "bare metal"),
            (libc::EMFILE, "ulimit -n"),
            (libc::EBUSY, "ps -C perf"),
        ] {
            let text = explain(Event::Cycles, &io::Error::from_raw_os_error(code), "2");
            assert!(text.contains(way_out), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100), events in 0usize..8) {
            let _ = parse_group(&bytes, events);
        }
    }
}
