//! The scaling profile in `summary.json`: how many of the connections do nothing useful, and where (DESIGN section 2).

use crate::Estimate;
use scaleprof_vocabulary::{GrowthShape, ThreadState};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Where the threads go that a rung has more than the best one, and gains nothing by.
///
/// `N = N_eff(N) + sum of all lost threads`: N_eff connections would do at the efficiency of the base rung what N do at theirs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScalingProfile {
    /// The rung with the most throughput per connection; the others are compared with it.
    pub base_connections: u32,
    /// One entry a rung that counts and whose threads were watched, by rising connections.
    pub rungs: Vec<LostThreads>,
    /// The call paths in which most threads of the last rung are lost, the worst first. None is within another of its state. What
    /// waits for the client is not among them, nor what waits for a CPU while all are busy.
    pub paths: Vec<LostPath>,
    /// What always keeps one thread busy, and so sets a bound to throughput.
    pub saturated: Vec<SaturatedPath>,
}

/// The threads of one rung.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LostThreads {
    /// Its connections, N.
    pub connections: u32,
    /// N_eff: the connections that would do as much at the base rung's efficiency.
    pub effective_threads: f64,
    /// Whether no CPU was free, or none of those that the server may use: whoever waits for something loses nothing by it then.
    pub cpus_busy: bool,
    /// Threads lost, by state: throughput times what a transaction spends more in it than at the base rung. Negative where it
    /// spends less (group commit saves).
    pub lost_threads: BTreeMap<ThreadState, Estimate>,
    /// How many times longer the same work took in all functions alike (caches, SMT, the clock) than at the base rung, at least 1;
    /// none where that cannot be told. It is taken out of the losses of call paths on a CPU.
    pub uniform_slowdown: Option<f64>,
    /// Threads that neither of them explains over N: the ledger's residual here, less the one of
    /// the base rung.
    pub residual: f64,
}

/// A call path in one state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LostPath {
    /// The state.
    pub state: ThreadState,
    /// Functions, outermost first; those of the kernel end in ` [k]`.
    pub path: Vec<String>,
    /// Threads lost in it at each rung of the profile, in its order.
    pub lost_threads: Vec<Estimate>,
    /// How its time per transaction grows with the connections; none where it cannot be told.
    pub shape: Option<GrowthShape>,
}

/// Something that only one thread can do at a time, and that one always does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SaturatedPath {
    /// The function, with those that it is called by, outermost first.
    pub path: Vec<String>,
    /// Threads that were in it and did not wait for a lock or the client, at each rung of the profile.
    pub active_threads: Vec<f64>,
    /// Transactions per second that it lets pass where no more threads can be in it than were at the last rung: one over its time per
    /// transaction there. Whether more can is not known from the samples alone.
    pub cap: f64,
}
