//! One sampling event: a clock that runs while one thread is on one CPU.
//!
//! What the kernel allows to everybody (kernel.perf_event_paranoid = 2): events of one's own threads, without the
//! kernel. Threads that begin later inherit the events, but then an event for all CPUs at once cannot have a ring
//! (kernel/events/core.c, `perf_mmap`: "inherited events cannot be mmapped with cpu == -1"), so there is one event for
//! each thread and CPU, and those of a CPU share a ring. The clock is the task clock and no counter of the CPU: switching
//! counters with each thread took a third of a server's throughput on a virtual machine.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use super::record::{REGISTERS, SAMPLE_TYPE};

/// What is asked of every event.
#[derive(Debug, Clone, Copy)]
pub(super) struct EventOptions {
    /// Samples in a second of CPU time; 0 for none.
    pub(super) frequency_hz: u32,
    /// Bytes of the stack that are copied with each sample.
    pub(super) stack_bytes: u32,
    /// Whether time in the kernel is sampled too; needs kernel.perf_event_paranoid < 2 or a privilege.
    pub(super) kernel: bool,
    /// Whether each switch of threads is told.
    pub(super) switches: bool,
    /// Whether child processes inherit the event as threads do: before Linux 5.13 it is both or none.
    pub(super) children: bool,
    /// Bytes in the ring at which a waiting reader is woken.
    pub(super) wake_at: u32,
}

/// `struct perf_event_attr`, the version of 96 bytes (PERF_ATTR_SIZE_VER3).
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
    wakeup: u32,
    breakpoint_type: u32,
    config1: u64,
    config2: u64,
    branch_sample_type: u64,
    sample_regs_user: u64,
    sample_stack_user: u32,
    clock: i32,
}
const _: () = assert!(size_of::<Attributes>() == 96);

const SOFTWARE: u32 = 1;
const TASK_CLOCK: u64 = 1;
const DUMMY: u64 = 9;

const DISABLED: u64 = 1;
const INHERIT: u64 = 1 << 1;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
const MAPPINGS: u64 = 1 << 8;
const NAMES: u64 = 1 << 9;
const TASKS: u64 = 1 << 13;
const WAKE_AT_BYTES: u64 = 1 << 14;
const MOMENT_ON_ALL: u64 = 1 << 18;
const NO_USER_CHAIN: u64 = 1 << 22;
const MAPPINGS_2: u64 = 1 << 23;
const USE_CLOCK: u64 = 1 << 25;
const SWITCHES: u64 = 1 << 26;
/// Threads inherit, child processes do not (Linux 5.13).
const INHERIT_BY_THREADS: u64 = 1 << 35;

const CLOSE_ON_EXEC: libc::c_ulong = 1 << 3;
const IOCTL_ENABLE: libc::Ioctl = 0x2400;
const IOCTL_DISABLE: libc::Ioctl = 0x2401;
const IOCTL_SET_OUTPUT: libc::Ioctl = 0x2405;
/// `_IOR('$', 7, __u64 *)`
const IOCTL_ID: libc::Ioctl = 0x8008_2407u32 as libc::Ioctl;

/// Opens the event of a thread on a CPU. It counts when it is [switched](switch) on; threads that begin earlier than that inherit it
/// too, and are switched on with it.
pub(super) fn open(thread: u32, cpu: u32, options: EventOptions) -> io::Result<OwnedFd> {
    let always = DISABLED
        | INHERIT
        | EXCLUDE_HYPERVISOR
        | MAPPINGS
        | MAPPINGS_2
        | NAMES
        | TASKS
        | WAKE_AT_BYTES
        | MOMENT_ON_ALL
        | NO_USER_CHAIN
        | USE_CLOCK;
    let attributes = Attributes {
        kind: SOFTWARE,
        size: size_of::<Attributes>() as u32,
        config: if options.frequency_hz == 0 { DUMMY } else { TASK_CLOCK },
        sample_period: 1_000_000_000u64.checked_div(options.frequency_hz.into()).unwrap_or(0),
        sample_type: SAMPLE_TYPE,
        flags: always
            | if options.kernel { 0 } else { EXCLUDE_KERNEL }
            | if options.switches { SWITCHES } else { 0 }
            | if options.children { 0 } else { INHERIT_BY_THREADS },
        wakeup: options.wake_at,
        sample_regs_user: REGISTERS,
        sample_stack_user: options.stack_bytes,
        clock: libc::CLOCK_MONOTONIC,
        ..Attributes::default()
    };
    open_with(&attributes, thread as libc::pid_t, cpu)
}

/// Opens an event of our own that counts nothing and has a ring for others to write into.
pub(super) fn open_ring_owner(cpu: u32, wake_at: u32) -> io::Result<OwnedFd> {
    let attributes = Attributes {
        kind: SOFTWARE,
        size: size_of::<Attributes>() as u32,
        config: DUMMY,
        flags: EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR | WAKE_AT_BYTES | USE_CLOCK,
        wakeup: wake_at,
        clock: libc::CLOCK_MONOTONIC,
        ..Attributes::default()
    };
    open_with(&attributes, 0, cpu)
}

fn open_with(attributes: &Attributes, thread: libc::pid_t, cpu: u32) -> io::Result<OwnedFd> {
    // SAFETY: `attributes` is valid for the call and says its own size.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            std::ptr::from_ref(attributes),
            thread,
            cpu as libc::c_int,
            -1,
            CLOSE_ON_EXEC,
        )
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel just gave us this descriptor.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as libc::c_int) })
}

/// Lets an event and all that threads inherited from it count, or stops them.
pub(super) fn switch(event: BorrowedFd<'_>, on: bool) -> io::Result<()> {
    let request = if on { IOCTL_ENABLE } else { IOCTL_DISABLE };
    // SAFETY: the request takes a plain number.
    if unsafe { libc::ioctl(event.as_raw_fd(), request, 0) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// The number that stands in all records of an event, and in those of what threads inherited from it.
pub(super) fn number(event: BorrowedFd<'_>) -> io::Result<u64> {
    let mut number = 0u64;
    // SAFETY: the request writes eight bytes there.
    if unsafe { libc::ioctl(event.as_raw_fd(), IOCTL_ID, &raw mut number) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(number)
}

/// Lets an event write into the ring of another one of the same CPU.
pub(super) fn share_ring(event: BorrowedFd<'_>, with: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: the request takes the number of a descriptor.
    if unsafe { libc::ioctl(event.as_raw_fd(), IOCTL_SET_OUTPUT, with.as_raw_fd()) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
