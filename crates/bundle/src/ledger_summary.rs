//! The thread ledger in `summary.json`: where the connections' time goes.

use crate::Estimate;
use scaleprof_vocabulary::{PerState, ThreadState};
use serde::{Deserialize, Serialize};

/// Where the time of the threads that serve the load's connections goes (DESIGN section 2). By Little's law the times of all
/// states add up to connections over throughput; the residuals say how well they do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ledger {
    /// Thread-seconds per transaction in each state, of the threads that serve the load's connections. A state that cannot be told
    /// apart is none, and the time is in another: without stacks `spin` is in `cpu`.
    pub seconds_per_txn: PerState<Option<f64>>,
    /// N/X: seconds that all connections together spend per transaction, by the client's count.
    pub connections_over_throughput: Option<f64>,
    /// Sum of the states over N/X, less 1.
    pub residual: Option<f64>,
    /// Sum of the states over the time in which the threads were alive, less 1.
    pub states_residual: Option<f64>,
    /// CPU time of all threads of the server by their states, without what was not their own, over that by the scheduler's
    /// account, less 1.
    pub cpu_residual: Option<f64>,
    /// Part of the CPU time by the states that the scheduler charges to no thread, such as that of interrupts and what the host of a
    /// virtual machine took; a warning says how much these two explain.
    pub uncharged_cpu_share: Option<f64>,
    /// Threads that serve no connection, those of one name together; the busiest first.
    pub background: Vec<BackgroundThreads>,
    /// Part of the walks through a thread's stack that reached its first frame.
    pub complete_stacks_share: Option<f64>,
    /// Samples of threads that were taken.
    pub samples: Option<u64>,
    /// Samples that found no room in a buffer.
    pub samples_lost: Option<u64>,
    /// Part of the time in which it was seen what threads wait for. Where switches come too often, it is concluded for the rest
    /// of the time; time on CPU and in run queues is exact all the same.
    pub observed_waits_share: Option<f64>,
}

/// Background threads of one name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BackgroundThreads {
    /// Their name.
    pub name: String,
    /// How many there were at most in one measurement; none where they were not told apart.
    pub threads: Option<u32>,
    /// Thread-seconds per second in each state.
    pub seconds_per_second: PerState<Option<f64>>,
}

/// One call path of the connections' threads in one state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallPath {
    /// The state.
    pub state: ThreadState,
    /// Functions, outermost first; those of the kernel end in ` [k]`.
    pub path: Vec<String>,
    /// Thread-seconds per transaction.
    pub seconds_per_txn: Estimate,
    /// Samples behind it.
    pub samples: u64,
}

/// One lock that the connections' threads waited for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LockSummary {
    /// The variable that holds it, with the offset in it; none for a lock on the heap.
    pub name: Option<String>,
    /// Executable or library of the variable.
    pub module: Option<String>,
    /// Thread-seconds per transaction that threads waited for it.
    pub seconds_per_txn: Estimate,
    /// Sampled waits behind it.
    pub samples: u64,
    /// The call path that waited longest, outermost first.
    pub waiter: Vec<String>,
    /// Where the holder was most often when a wait began; empty where that was not seen.
    pub holder: Vec<String>,
    /// Sampled waits in which it was there, of [`LockSummary::total_waits`].
    pub holder_samples: u64,
    /// Sampled waits of all threads of the server over whole measurements, those before the
    /// measured seconds included.
    pub total_waits: u64,
    /// Of the waits whose holder is not known, where the thread of the server was that ended most of their time; empty where none
    /// was seen. It gave something back that was waited for, and need not have held it all the time.
    pub waker: Vec<String>,
    /// Sampled waits that a thread ended there.
    pub waker_samples: u64,
}
