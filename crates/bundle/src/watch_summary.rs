//! What a watch of a running server comes to, in `summary.json`: no load of ours, so nothing is per transaction.

use crate::{BackgroundThreads, Estimate};
use scaleprof_vocabulary::{PerState, ThreadState};
use serde::{Deserialize, Serialize};

/// What the server's threads did while they were watched. All times are thread-seconds per second.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WatchSummary {
    /// Seconds that were watched.
    pub seconds: f64,
    /// Threads that serve clients; nothing is known of them where they cannot be told from the others.
    pub connections: WatchedThreads,
    /// All other threads together; by name in `background`.
    pub others: WatchedThreads,
    /// Threads that serve no client, those of one name together; the busiest first.
    pub background: Vec<BackgroundThreads>,
    /// CPUs that the server used, by the states of its threads; none where only waits were recorded.
    pub cpus_by_states: Option<f64>,
    /// CPUs that it used, by the scheduler's account, over the seconds that have it.
    pub cpus_by_scheduler: Option<f64>,
    /// CPU time by the states, without what was not their own, over that by the scheduler's account, less 1, over the
    /// seconds that have both.
    pub cpu_residual: Option<f64>,
    /// Part of the CPU time by the states that the scheduler charges to no thread, such as that of interrupts and what the host of a
    /// virtual machine took; a warning says how much these two explain.
    pub uncharged_cpu_share: Option<f64>,
    /// Part of the walks through a thread's stack that reached its first frame.
    pub complete_stacks_share: Option<f64>,
    /// Samples of threads that were taken.
    pub samples: Option<u64>,
    /// Samples that found no room in a buffer.
    pub samples_lost: Option<u64>,
    /// Part of the time in which it was seen what threads wait for. Where switches come too often, it is concluded for the rest
    /// of the time; time on CPU and in run queues is exact all the same.
    pub observed_waits_share: Option<f64>,
    /// The heaviest call paths of every state of the threads that serve clients; by state, the heaviest first.
    pub paths: Vec<WatchedPath>,
    /// The locks for which these threads waited longest, the worst first.
    pub locks: Vec<WatchedLock>,
}

/// Threads of one kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WatchedThreads {
    /// How many different ones were seen; none where it cannot be told whom a thread serves.
    pub threads: Option<u32>,
    /// Thread-seconds per second in each state; none in all of them where there was no such thread.
    pub seconds_per_second: PerState<Option<f64>>,
    /// Thread-seconds per second in which they were alive, measured apart from the states: threads on average.
    pub lifetime_per_second: Option<f64>,
    /// Sum of the states over the lifetime, less 1.
    pub states_residual: Option<f64>,
}

/// One call path in one state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WatchedPath {
    /// The state.
    pub state: ThreadState,
    /// Functions, outermost first; those of the kernel end in ` [k]`.
    pub path: Vec<String>,
    /// Thread-seconds per second. The paths of a state add up to it.
    pub seconds_per_second: Estimate,
    /// Samples behind it.
    pub samples: u64,
}

/// One lock that threads which serve clients waited for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WatchedLock {
    /// The variable that holds it, with the offset in it; none for a lock on the heap.
    pub name: Option<String>,
    /// Executable or library of the variable.
    pub module: Option<String>,
    /// Thread-seconds per second that threads waited for it.
    pub seconds_per_second: Estimate,
    /// Sampled waits behind it.
    pub samples: u64,
    /// The call path that waited longest, outermost first.
    pub waiter: Vec<String>,
    /// Where the holder was most often when a wait began; empty where that was not seen.
    pub holder: Vec<String>,
    /// Sampled waits in which it was there.
    pub holder_samples: u64,
    /// Where the thread was most often that ended a wait; empty where that was not seen.
    pub waker: Vec<String>,
}
