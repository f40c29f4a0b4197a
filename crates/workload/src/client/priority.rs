//! Load threads go before the server's on CPUs that both use, without interrupting them (docs/adr/0025).
//!
//! With the priority of all threads a load thread has one share of a CPU beside dozens of runnable threads of the server: requests leave
//! only as fast as that share allows, and of many connections few are ever at work. With priority alone it interrupts the server at
//! every reply. As a batch thread it interrupts nobody: it is the next to run whenever a thread of the server waits or its time is
//! up, and answers all that has come by then.

use rustix::process::setpriority_process;
use std::io;

/// The highest priority of a thread without real-time scheduling; a server's threads have 0 (sched(7)). With autogroups and control
/// groups it counts among threads of the same group, which a private server's are.
const HIGHEST: i32 = -20;

/// Whether this process may give its load threads a higher priority: as root, or with CAP_SYS_NICE. Tried in a thread that ends.
pub fn load_threads_can_go_first() -> bool {
    let tried = std::thread::spawn(|| setpriority_process(None, HIGHEST));
    matches!(tried.join(), Ok(Ok(())))
}

/// Makes the calling thread a batch thread of the highest priority that it may have. Where that is refused the load runs all the
/// same: how many connections were at work is measured.
pub(super) fn go_first() {
    let _ = become_batch();
    // Zero is the calling thread: in Linux each thread has a nice value of its own (setpriority(2)).
    let _ = setpriority_process(None, HIGHEST);
}

/// A batch thread does not preempt others when it wakes up (`SCHED_BATCH`, sched(7)). Nobody needs a privilege for it.
fn become_batch() -> io::Result<()> {
    let unused = libc::sched_param { sched_priority: 0 };
    // SAFETY: the kernel reads `unused`, which outlives the call; 0 is the calling thread.
    match unsafe { libc::sched_setscheduler(0, libc::SCHED_BATCH, &raw const unused) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::getpriority_process;

    fn policy() -> i32 {
        // SAFETY: a call without memory; 0 is the calling thread.
        unsafe { libc::sched_getscheduler(0) }
    }

    #[test]
    fn a_load_thread_goes_first_and_the_thread_that_asked_stays_as_it_was() {
        let before = getpriority_process(None).expect("ours");
        let may = load_threads_can_go_first();
        let (nice, its_policy) = std::thread::spawn(|| {
            go_first();
            (getpriority_process(None).expect("its own"), policy())
        })
        .join()
        .expect("no panic");
        assert_eq!(its_policy, libc::SCHED_BATCH);
        assert_eq!(nice, if may { HIGHEST } else { before });
        assert_eq!(
            (getpriority_process(None), policy()),
            (Ok(before), libc::SCHED_OTHER),
            "ours"
        );
    }
}
