//! What a blocked thread waits for, from the system call in which it is blocked (`/proc/PID/task/TID/syscall`) and the
//! kernel function that blocks it (`wchan`); man 5 proc_pid_syscall, proc_pid_wchan.

use scaleprof_vocabulary::ThreadState;

/// The system call in which a thread is blocked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SystemCall {
    /// Its number on this kind of processor; -1 outside of any, as in a page fault.
    pub(super) number: i64,
    /// Its first three arguments.
    pub(super) arguments: [u64; 3],
}

/// What `/proc/PID/task/TID/syscall` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SystemCallNow {
    /// The thread is on a CPU or could be.
    Running,
    /// It is blocked.
    Blocked(SystemCall),
}

/// Reads the text of `/proc/PID/task/TID/syscall`.
pub(super) fn parse_system_call(text: &str) -> Option<SystemCallNow> {
    let mut fields = text.split_ascii_whitespace();
    let first = fields.next()?;
    if first == "running" {
        return Some(SystemCallNow::Running);
    }
    let number = first.parse().ok()?;
    let mut argument = || u64::from_str_radix(fields.next()?.strip_prefix("0x")?, 16).ok();
    // Outside of a system call only the stack pointer and the instruction pointer follow.
    let arguments = match number {
        -1 => [0; 3],
        _ => [argument()?, argument()?, argument()?],
    };
    Some(SystemCallNow::Blocked(SystemCall { number, arguments }))
}

/// What kind of thing an open file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileKind {
    /// A socket.
    Socket,
    /// A file or a device.
    File,
    /// A pipe, an event counter and the like.
    Other,
}

/// The kind of an open file, from what `/proc/PID/fd/NUMBER` points to.
pub(super) fn file_kind(target: &str) -> FileKind {
    match target {
        target if target.starts_with("socket:") => FileKind::Socket,
        target if target.starts_with('/') && !target.starts_with("/dev/pts/") => FileKind::File,
        _ => FileKind::Other,
    }
}

/// What else can be asked about a wait.
pub(super) trait WaitFacts {
    /// The kind of the open file of this number.
    fn file(&mut self, number: u64) -> Option<FileKind>;
    /// The open files of an array of `struct pollfd` at this address.
    fn polled(&mut self, address: u64, count: u64) -> Vec<u64>;
    /// The kernel function that blocks the thread.
    fn kernel_function(&mut self) -> String;
}

/// The state of a thread that is blocked in a system call.
pub(super) fn state_of_call(call: SystemCall, facts: &mut dyn WaitFacts) -> ThreadState {
    let SystemCall { number, arguments } = call;
    let is = |numbers: &[i64]| numbers.contains(&number);
    if is(FUTEX) {
        ThreadState::Lock
    } else if is(SLEEP) {
        ThreadState::Sleep
    } else if is(NET) {
        ThreadState::Net
    } else if is(FLUSH) {
        ThreadState::Io
    } else if is(TRANSFER) {
        match facts.file(arguments[0]) {
            Some(FileKind::Socket) => ThreadState::Net,
            Some(FileKind::File) => ThreadState::Io,
            Some(FileKind::Other) => ThreadState::Other,
            None => state_of_kernel_function(&facts.kernel_function()),
        }
    } else if is(POLL) {
        state_of_poll(arguments[0], arguments[1], facts)
    } else if is(SELECT) {
        // With no files at all it is the sleep of old programs.
        match arguments[0] {
            0 => ThreadState::Sleep,
            _ => ThreadState::Net,
        }
    } else {
        state_of_kernel_function(&facts.kernel_function())
    }
}

fn state_of_poll(address: u64, count: u64, facts: &mut dyn WaitFacts) -> ThreadState {
    if count == 0 {
        return ThreadState::Sleep;
    }
    let files = facts.polled(address, count);
    if files.is_empty() || files.iter().any(|file| facts.file(*file) == Some(FileKind::Socket)) {
        // Where it cannot be seen what is polled: servers poll sockets.
        ThreadState::Net
    } else {
        ThreadState::Other
    }
}

/// The state of a thread that is blocked in this function of the kernel: all that is known where the system call may not
/// be read, and what tells a page that comes from disk from one that waits for a lock.
pub(super) fn state_of_kernel_function(name: &str) -> ThreadState {
    let begins = |parts: &[&str]| parts.iter().any(|part| name.starts_with(part));
    if begins(&["futex"]) {
        ThreadState::Lock
    } else if begins(&["hrtimer_nanosleep", "do_nanosleep", "common_nsleep"]) {
        ThreadState::Sleep
    } else if begins(&[
        "ep_poll",
        "do_epoll",
        "poll_schedule",
        "do_poll",
        "do_sys_poll",
        "do_select",
        "sk_",
        "unix_",
        "tcp_",
        "inet_",
        "wait_woken",
        "__skb_wait",
        "sock_",
        "skb_",
    ]) {
        ThreadState::Net
    } else if begins(&[
        "io_schedule",
        "folio_wait",
        "wait_on_page",
        "wait_on_buffer",
        "__wait_on_buffer",
        "bit_wait_io",
        "blk_",
        "blkdev_",
        "submit_bio",
        "rq_qos",
        "wbt_",
        "jbd2_",
        "xfs_",
        "xlog_",
        "btrfs_",
        "ext4_",
        "filemap_",
        "iomap_",
        "__iomap",
        "read_events",
        "io_cqring_wait",
        "balance_dirty_pages",
        "nfs_",
    ]) {
        ThreadState::Io
    } else {
        ThreadState::Other
    }
}

const FUTEX: &[i64] = &[libc::SYS_futex, libc::SYS_futex_waitv, FUTEX_WAIT, FUTEX_REQUEUE];
/// The calls of futex2 (Linux 6.7); the same numbers on all processors.
const FUTEX_WAIT: i64 = 455;
const FUTEX_REQUEUE: i64 = 456;
const SLEEP: &[i64] = &[libc::SYS_nanosleep, libc::SYS_clock_nanosleep];
/// Calls that only sockets have, and waiting for many of them at once.
const NET: &[i64] = &[
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_recvmmsg,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_sendmmsg,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_connect,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_epoll_wait,
];
/// Calls that wait for a disk and nothing else. A thread that collects finished requests of asynchronous I/O is one.
const FLUSH: &[i64] = &[
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_sync_file_range,
    libc::SYS_msync,
    libc::SYS_syncfs,
    libc::SYS_io_getevents,
    IO_PGETEVENTS,
    libc::SYS_io_submit,
    libc::SYS_io_uring_enter,
];
#[cfg(target_arch = "x86_64")]
const IO_PGETEVENTS: i64 = 333;
#[cfg(target_arch = "aarch64")]
const IO_PGETEVENTS: i64 = 292;
/// Calls that wait for whatever their first argument is.
const TRANSFER: &[i64] = &[
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_readv,
    libc::SYS_writev,
    libc::SYS_pread64,
    libc::SYS_pwrite64,
    libc::SYS_preadv,
    libc::SYS_pwritev,
    libc::SYS_preadv2,
    libc::SYS_pwritev2,
    libc::SYS_sendfile,
];
const POLL: &[i64] = &[
    libc::SYS_ppoll,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
];
const SELECT: &[i64] = &[
    libc::SYS_pselect6,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_select,
];

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A process whose file 3 is a socket, 4 a file, 5 a pipe.
    struct Facts(&'static str);

    impl WaitFacts for Facts {
        fn file(&mut self, number: u64) -> Option<FileKind> {
            match number {
                3 => Some(file_kind("socket:[123]")),
                4 => Some(file_kind("/var/lib/mysql/ibdata1")),
                5 => Some(file_kind("pipe:[5]")),
                _ => None,
            }
        }
        fn polled(&mut self, address: u64, _: u64) -> Vec<u64> {
            vec![address]
        }
        fn kernel_function(&mut self) -> String {
            self.0.to_owned()
        }
    }

    fn state(number: i64, first: u64, second: u64, function: &'static str) -> ThreadState {
        let call = SystemCall {
            number,
            arguments: [first, second, 0],
        };
        state_of_call(call, &mut Facts(function))
    }

    #[test]
    fn each_wait_has_its_state() {
        assert_eq!(state(libc::SYS_futex, 0, 0, ""), ThreadState::Lock);
        assert_eq!(state(449, 0, 0, ""), ThreadState::Lock);
        assert_eq!(state(455, 0, 0, ""), ThreadState::Lock);
        assert_eq!(state(libc::SYS_clock_nanosleep, 0, 0, ""), ThreadState::Sleep);
        assert_eq!(state(libc::SYS_recvfrom, 3, 0, ""), ThreadState::Net);
        assert_eq!(state(libc::SYS_fdatasync, 4, 0, ""), ThreadState::Io);
    }

    #[test]
    fn reading_is_what_is_read() {
        assert_eq!(state(libc::SYS_read, 3, 0, ""), ThreadState::Net);
        assert_eq!(state(libc::SYS_pread64, 4, 0, ""), ThreadState::Io);
        assert_eq!(state(libc::SYS_read, 5, 0, ""), ThreadState::Other);
        assert_eq!(state(libc::SYS_read, 9, 0, "unix_stream_data_wait"), ThreadState::Net);
    }

    #[test]
    fn polling_is_what_is_polled_and_polling_nothing_is_sleep() {
        assert_eq!(state(libc::SYS_ppoll, 3, 1, ""), ThreadState::Net);
        assert_eq!(state(libc::SYS_ppoll, 5, 1, ""), ThreadState::Other);
        assert_eq!(state(libc::SYS_ppoll, 0, 0, ""), ThreadState::Sleep);
        assert_eq!(state(libc::SYS_pselect6, 0, 0, ""), ThreadState::Sleep);
    }

    #[test]
    fn a_page_fault_is_a_disk_wait_only_if_the_kernel_waits_for_the_disk() {
        assert_eq!(state(-1, 0, 0, "folio_wait_bit_common"), ThreadState::Io);
        assert_eq!(state(-1, 0, 0, "userfaultfd_wait"), ThreadState::Other);
        assert_eq!(state(-1, 0, 0, "0"), ThreadState::Other);
    }

    #[test]
    fn the_kernels_text_is_read() {
        let blocked = |number, arguments| Some(SystemCallNow::Blocked(SystemCall { number, arguments }));
        assert_eq!(parse_system_call("running\n"), Some(SystemCallNow::Running));
        assert_eq!(
            parse_system_call("202 0x7f 0x80 0x2 0x0 0x0 0x0 0x7ffd 0x7f12\n"),
            blocked(202, [0x7f, 0x80, 2])
        );
        assert_eq!(parse_system_call("-1 0x7ffd 0x7f12\n"), blocked(-1, [0; 3]));
        assert_eq!(parse_system_call("202 0x7f"), None);
        assert_eq!(parse_system_call(""), None);
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_panic(text in "(-?[0-9]{1,5} )?(0x[0-9a-f]{0,20} ?){0,9}.{0,20}") {
            if let Some(SystemCallNow::Blocked(call)) = parse_system_call(&text) {
                let _ = state_of_call(call, &mut Facts(""));
            }
        }
    }
}
