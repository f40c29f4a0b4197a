//! How the kernel schedules load threads on CPUs that they share with the server (docs/adr/0025).
//!
//! With the priority of all threads a load thread has one share of a CPU beside dozens of runnable
//! threads of the server: requests leave only as fast as that share allows, and of many connections
//! few are ever at work. With priority alone it interrupts the server at every reply. As a batch
//! thread it interrupts nobody by waking up: it is the next to run when a thread of the server waits
//! or its time is up, and answers all that has come by then.

use rustix::process::{getpriority_process, setpriority_process};
use std::io;

/// The highest priority of a thread without real-time scheduling; a server's threads have 0
/// (sched(7)). It counts among threads of the same control group and, with autogroups, of the same
/// session, which are those of a private server.
const HIGHEST: i32 = -20;

/// How the kernel schedules load threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadScheduling {
    /// As all threads.
    Usual,
    /// As batch threads, for a server that yields by its own nice value.
    Batch,
    /// As batch threads with the highest priority.
    First,
}

impl LoadScheduling {
    /// What a load needs that shares its CPUs with a private server: [`First`](Self::First) as root
    /// or with CAP_SYS_NICE, else [`Batch`](Self::Batch). Tried in a thread that ends.
    pub fn on_shared_cpus() -> LoadScheduling {
        let tried = std::thread::Builder::new().spawn(|| LoadScheduling::First.apply());
        match tried.map(std::thread::JoinHandle::join) {
            Ok(Ok(Ok(()))) => LoadScheduling::First,
            _ => LoadScheduling::Batch,
        }
    }

    /// What it is called in a bundle.
    pub fn name(self) -> &'static str {
        match self {
            LoadScheduling::Usual => "usual",
            LoadScheduling::Batch => "batch",
            LoadScheduling::First => "batch, nice -20",
        }
    }

    /// Schedules the calling thread so.
    ///
    /// # Errors
    /// It is not allowed. Priority is not raised then: without the batch policy it does harm.
    pub(super) fn apply(self) -> io::Result<()> {
        match self {
            LoadScheduling::Usual => Ok(()),
            LoadScheduling::Batch => become_batch(),
            LoadScheduling::First => {
                become_batch()?;
                // Zero is the calling thread: each has a nice value of its own (setpriority(2)).
                Ok(setpriority_process(None, HIGHEST)?)
            }
        }
    }
}

/// While it lives, the calling thread goes before the server's threads beside a load that does. It reads
/// counters at the end of each second: as one among hundreds of threads that are ready to run it reads
/// them late, and the ledger does not close (docs/adr/0025).
pub(super) struct ReadsInTime {
    nice_before: Option<i32>,
}

impl ReadsInTime {
    pub(super) fn beside(scheduling: LoadScheduling) -> ReadsInTime {
        let first = scheduling == LoadScheduling::First;
        let nice_before = first.then(|| getpriority_process(None).ok()).flatten();
        ReadsInTime {
            nice_before: nice_before.filter(|_| setpriority_process(None, HIGHEST).is_ok()),
        }
    }
}

impl Drop for ReadsInTime {
    fn drop(&mut self) {
        if let Some(nice) = self.nice_before {
            let _ = setpriority_process(None, nice);
        }
    }
}

/// A batch thread does not preempt others when it wakes up (`SCHED_BATCH`, sched(7)). Nobody needs a
/// privilege for it.
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

    /// Policy and nice value of the calling thread.
    fn scheduled() -> (i32, i32) {
        // SAFETY: a call without memory; 0 is the calling thread.
        let policy = unsafe { libc::sched_getscheduler(0) };
        (policy, getpriority_process(None).expect("its own"))
    }

    fn scheduled_as(scheduling: LoadScheduling) -> (i32, i32) {
        std::thread::spawn(move || {
            scheduling.apply().expect("allowed");
            scheduled()
        })
        .join()
        .expect("no panic")
    }

    #[test]
    fn a_thread_is_scheduled_as_it_is_said_and_those_beside_it_stay_as_they_were() {
        let before = scheduled();
        assert_eq!(scheduled_as(LoadScheduling::Usual), before);
        assert_eq!(scheduled_as(LoadScheduling::Batch), (libc::SCHED_BATCH, before.1));
        match LoadScheduling::on_shared_cpus() {
            LoadScheduling::First => {
                assert_eq!(scheduled_as(LoadScheduling::First), (libc::SCHED_BATCH, HIGHEST));
            }
            _ => testing::skip!("a higher priority: it needs root or CAP_SYS_NICE"),
        }
        assert_eq!(scheduled(), before);
    }

    #[test]
    fn who_reads_counters_goes_first_beside_a_load_that_does_and_no_longer() {
        let before = scheduled();
        for scheduling in [LoadScheduling::Usual, LoadScheduling::Batch] {
            let _in_time = ReadsInTime::beside(scheduling);
            assert_eq!(scheduled(), before);
        }
        if LoadScheduling::on_shared_cpus() != LoadScheduling::First {
            testing::skip!("a higher priority: it needs root or CAP_SYS_NICE");
            return;
        }
        let in_time = ReadsInTime::beside(LoadScheduling::First);
        assert_eq!(scheduled(), (before.0, HIGHEST));
        drop(in_time);
        assert_eq!(scheduled(), before);
    }
}
