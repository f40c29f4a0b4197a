//! What a thread waited for, where a recording only tells where it waited: the function of the kernel, or of the C library, that it
//! was in.

use super::resolve::Names;
use crate::RawStack;
use scaleprof_vocabulary::ThreadState;

/// Beginnings of functions of the C library in which threads wait, and for what. Underscores in front are left out.
const WAITS: [(&str, ThreadState); 30] = [
    ("futex", ThreadState::Lock),
    ("lll_lock", ThreadState::Lock),
    ("pthread_mutex", ThreadState::Lock),
    ("pthread_cond", ThreadState::Lock),
    ("pthread_rwlock", ThreadState::Lock),
    ("sem_", ThreadState::Lock),
    ("new_sem_", ThreadState::Lock),
    ("poll", ThreadState::Net),
    ("ppoll", ThreadState::Net),
    ("epoll_", ThreadState::Net),
    // With descriptors or without, as InnoDB sleeps: that is not told.
    ("select", ThreadState::Other),
    ("recv", ThreadState::Net),
    ("send", ThreadState::Net),
    ("accept", ThreadState::Net),
    ("connect", ThreadState::Net),
    ("pread", ThreadState::Io),
    ("pwrite", ThreadState::Io),
    ("fsync", ThreadState::Io),
    ("fdatasync", ThreadState::Io),
    ("sync_file_range", ThreadState::Io),
    ("msync", ThreadState::Io),
    ("io_getevents", ThreadState::Io),
    ("io_uring", ThreadState::Io),
    ("fallocate", ThreadState::Io),
    ("open", ThreadState::Io),
    ("unlink", ThreadState::Io),
    ("nanosleep", ThreadState::Sleep),
    ("clock_nanosleep", ThreadState::Sleep),
    ("usleep", ThreadState::Sleep),
    ("sched_yield", ThreadState::RunQueue),
];

/// The same of the kernel (names as of Linux 5.4 to 6.18); of those that a stack holds the innermost one says it.
const WAITS_IN_KERNEL: [(&str, ThreadState); 26] = [
    // Stopped by somebody, whatever it waited for before.
    ("do_signal_stop", ThreadState::Other),
    ("ptrace_stop", ThreadState::Other),
    ("get_signal", ThreadState::Other),
    ("futex_", ThreadState::Lock),
    ("do_futex", ThreadState::Lock),
    ("io_schedule", ThreadState::Io),
    ("bit_wait_io", ThreadState::Io),
    ("read_events", ThreadState::Io),
    ("do_io_getevents", ThreadState::Io),
    ("io_cqring_wait", ThreadState::Io),
    ("submit_bio_wait", ThreadState::Io),
    ("blk_", ThreadState::Io),
    ("jbd2_", ThreadState::Io),
    ("vfs_fsync", ThreadState::Io),
    ("folio_wait", ThreadState::Io),
    ("do_sys_poll", ThreadState::Net),
    ("ep_poll", ThreadState::Net),
    ("do_epoll_wait", ThreadState::Net),
    ("do_select", ThreadState::Other),
    ("sk_wait_data", ThreadState::Net),
    ("unix_stream_", ThreadState::Net),
    ("tcp_recvmsg", ThreadState::Net),
    ("inet_csk_accept", ThreadState::Net),
    ("do_nanosleep", ThreadState::Sleep),
    ("hrtimer_nanosleep", ThreadState::Sleep),
    ("__x64_sys_sched_yield", ThreadState::RunQueue),
];

/// Frames from the inner end that are looked at.
const DEPTH: usize = 4;

/// The state of a thread that is off its CPU in each of the stacks of a recording.
pub(super) struct BlockedStates(Vec<ThreadState>);

impl BlockedStates {
    pub(super) fn of(stacks: &[RawStack], names: &Names) -> BlockedStates {
        BlockedStates(stacks.iter().map(|stack| state(stack, names)).collect())
    }

    /// Of a recording of which no event is a wait: nobody asks.
    pub(super) fn none() -> BlockedStates {
        BlockedStates(Vec::new())
    }

    pub(super) fn state(&self, stack: u32) -> ThreadState {
        self.0.get(stack as usize).copied().unwrap_or(ThreadState::Other)
    }
}

fn state(stack: &RawStack, names: &Names) -> ThreadState {
    let in_kernel = stack.kernel.iter().find_map(|address| {
        let (function, ..) = names.kernel.as_ref()?.function(*address)?;
        let known = WAITS_IN_KERNEL.iter().find(|(begin, _)| function.starts_with(begin));
        known.map(|(_, state)| *state)
    });
    if let Some(state) = in_kernel {
        return state;
    }
    let lookups = stack.user.iter().take(DEPTH).enumerate();
    let known = lookups.flat_map(|(position, address)| names.of_place(address.saturating_sub(u64::from(position > 0))));
    known
        .filter_map(|frame| frame.function.as_deref())
        .find_map(waited_for)
        .unwrap_or(ThreadState::Other)
}

fn waited_for(function: &str) -> Option<ThreadState> {
    let plain = function.trim_start_matches('_').trim_start_matches("GI_");
    let plain = plain.trim_start_matches('_').trim_start_matches("libc_");
    let known = WAITS.iter().find(|(begin, _)| plain.starts_with(begin));
    known.map(|(_, state)| *state)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_c_librarys_function_says_what_was_waited_for() {
        for (function, state) in [
            ("__lll_lock_wait", Some(ThreadState::Lock)),
            ("__GI___poll", Some(ThreadState::Net)),
            ("__libc_recv", Some(ThreadState::Net)),
            ("___pthread_cond_timedwait64", Some(ThreadState::Lock)),
            ("fdatasync", Some(ThreadState::Io)),
            ("__GI___clock_nanosleep", Some(ThreadState::Sleep)),
            ("row_search_for_mysql", None),
        ] {
            assert_eq!(waited_for(function), state, "{function}");
        }
    }
}
