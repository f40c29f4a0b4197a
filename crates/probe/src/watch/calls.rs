//! What a thread that is blocked in a system call waits for.

use super::layout::MAX_CALLS;

const FUTEX: u8 = 1;
const DISK: u8 = 2;
const NET: u8 = 3;
const SLEEP: u8 = 4;
const DESCRIPTOR: u8 = 5;
const POLL: u8 = 6;
const SELECT: u8 = 7;

/// System calls that are younger than the numbers of the C library's crate; the same on all architectures.
const FUTEX_WAITV: libc::c_long = 449;
const FUTEX_WAKE: libc::c_long = 454;
const FUTEX_WAIT: libc::c_long = 455;
const FUTEX_REQUEUE: libc::c_long = 456;

/// Classes by call number (`enum call_class` of bpf/layout.h). What is not in the table is state `other`; a wait of the block
/// layer (`in_iowait`) is state `io` whatever the call.
pub(crate) fn call_classes() -> [u8; MAX_CALLS] {
    let mut table = [0; MAX_CALLS];
    let mut class = |class: u8, calls: &[libc::c_long]| {
        for call in calls {
            if let Some(place) = usize::try_from(*call).ok().and_then(|call| table.get_mut(call)) {
                *place = class;
            }
        }
    };
    class(
        FUTEX,
        &[libc::SYS_futex, FUTEX_WAITV, FUTEX_WAKE, FUTEX_WAIT, FUTEX_REQUEUE],
    );
    class(
        DISK,
        &[
            libc::SYS_fsync,
            libc::SYS_fdatasync,
            libc::SYS_sync_file_range,
            libc::SYS_msync,
            libc::SYS_pread64,
            libc::SYS_pwrite64,
            libc::SYS_preadv,
            libc::SYS_pwritev,
            libc::SYS_preadv2,
            libc::SYS_pwritev2,
            libc::SYS_io_getevents,
            libc::SYS_io_submit,
            libc::SYS_io_uring_enter,
            libc::SYS_fallocate,
            libc::SYS_ftruncate,
            libc::SYS_openat,
            libc::SYS_unlinkat,
        ],
    );
    class(
        NET,
        &[
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
        ],
    );
    class(SLEEP, &[libc::SYS_nanosleep, libc::SYS_clock_nanosleep]);
    class(
        DESCRIPTOR,
        &[
            libc::SYS_read,
            libc::SYS_readv,
            libc::SYS_write,
            libc::SYS_writev,
            libc::SYS_close,
            libc::SYS_shutdown,
        ],
    );
    class(POLL, &[libc::SYS_ppoll]);
    class(SELECT, &[libc::SYS_pselect6]);
    #[cfg(target_arch = "x86_64")]
    {
        class(POLL, &[libc::SYS_poll]);
        class(NET, &[libc::SYS_epoll_wait]);
        class(SELECT, &[libc::SYS_select]);
        class(DISK, &[libc::SYS_open]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_futex_is_a_lock_and_an_unknown_call_is_nothing() {
        let table = call_classes();
        assert_eq!(table[libc::SYS_futex as usize], FUTEX);
        assert_eq!(table[FUTEX_WAITV as usize], FUTEX);
        assert_eq!(table[libc::SYS_fdatasync as usize], DISK);
        assert_eq!(table[libc::SYS_getpid as usize], 0);
    }
}
