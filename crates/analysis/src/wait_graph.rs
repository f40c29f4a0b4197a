//! Who waits for whom: locks, the call paths that wait for them, who held them, and who woke those that waited.
//!
//! All figures are mean numbers of threads, that is thread-seconds per second of the measured windows; of the threads that serve
//! the load alone. Every wait counts once: by who held the lock when it began, where that is known; else by who ended it. What has
//! neither is told as such and shared out to nobody.
//!
//! Only a glibc mutex names its owner. Of condition variables, rw-locks and the servers' own latches there are wakers: who woke
//! a thread gave something back that it waited for, but need not be the one that held it all the time.

mod chains;
mod owners;
mod shown;
mod waits;

use crate::call_paths::CallPaths;
use crate::findings::knowledge::Knowledge;
use crate::measurement_rows::{MeasurementRows, by_measurement, complete_by_connections};
use crate::pacing::Pacing;
use crate::rung;
use crate::sampled::Sampled;
use crate::watch;
use chains::Chains;
use scaleprof_bundle::{Bundle, Estimate, in_parallel};
use scaleprof_vocabulary::{ThreadState, WakerKind, WorkloadName};
use shown::Labels;
use waits::Waits;

/// Locks of a rung that are told, but for those that holders of these wait for.
pub const MOST_LOCKS: usize = 10;
/// Locks that are told because a holder waits for them.
pub const MOST_CHAINED: usize = 5;
/// Waiting call paths, places of holders, and wakers that are told of each lock.
pub const MOST_OF_EACH: usize = 4;
/// The part of a lock's waiting from which on they are told, but for the first of each.
pub const LEAST_SHARE: f64 = 0.02;

/// The waits of one rung.
#[derive(Debug, Clone, PartialEq)]
pub struct WaitGraph {
    /// Connections; none for a watch.
    pub connections: Option<u32>,
    /// Measurements that count.
    pub measurements: usize,
    /// Seconds that count, of all measurements.
    pub seconds: f64,
    /// Threads that wait for a lock: the ledger's `lock` over the same seconds.
    pub waiting: Estimate,
    /// What is known of the other side of it.
    pub attribution: Known,
    /// How holders are known.
    pub holders: HolderSource,
    /// The locks with most waiting threads, the worst first, and behind them those that only a chain leads to.
    pub locks: Vec<WaitedLock>,
    /// Locks that are not among them.
    pub omitted: LeftOut,
}

/// How the bundle knows who held a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HolderSource {
    /// Wait by wait, with what the holder was doing.
    PerWait,
    /// No owner of any lock was seen.
    Unknown,
}

/// Waiting threads by what is known of the other side.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Known {
    /// It was seen who held the lock when the wait began.
    pub holder: f64,
    /// Only who or what ended the wait.
    pub waker: f64,
    /// Neither.
    pub neither: f64,
}

/// What bounds cut off.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct LeftOut {
    /// How many.
    pub count: usize,
    /// Threads that wait there.
    pub threads: f64,
}

/// One lock.
#[derive(Debug, Clone, PartialEq)]
pub struct WaitedLock {
    /// What it is.
    pub lock: LockName,
    /// Threads that wait for it off their CPUs.
    pub waiting: Estimate,
    /// Threads that fight for it on a CPU: only of locks of the kernel.
    pub on_cpu: f64,
    /// Sampled waits.
    pub samples: u64,
    /// What is known of the other side of `waiting`.
    pub attribution: Known,
    /// Who waits, the most first.
    pub waiters: Vec<Waiters>,
    /// Waiters that are not told.
    pub omitted_waiters: LeftOut,
    /// Where its holder was when waits began, the most first.
    pub holders: Vec<Holder>,
    /// Holders that are not told.
    pub omitted_holders: LeftOut,
    /// Who ended the waits of which no holder is known.
    pub wakers: Vec<Waker>,
    /// Wakers that are not told.
    pub omitted_wakers: LeftOut,
}

/// What a lock is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockName {
    /// Its number in the bundle; none for waits that began before the server was watched.
    pub lock: Option<i64>,
    /// The variable with the offset in it, or for a lock of the kernel who takes it; none for one on the heap.
    pub name: Option<String>,
    /// Executable, library or part of the kernel that has it.
    pub module: Option<String>,
    /// The operations by which it is waited for, as in the table `locks`.
    pub operations: Vec<String>,
    /// For whose sake it is waited for most, innermost function first.
    pub waited_for_in: Vec<String>,
}

/// A place in the code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The server's functions, outermost first; none in it where the place is not known.
    pub path: Vec<String>,
    /// The few that say what it is about, innermost first.
    pub label: Vec<String>,
}

/// Threads that wait in one call path.
#[derive(Debug, Clone, PartialEq)]
pub struct Waiters {
    /// Where.
    pub place: Place,
    /// Whether on a CPU.
    pub on_cpu: bool,
    /// How many.
    pub threads: Estimate,
    /// Samples behind it.
    pub samples: u64,
}

/// What held a lock when waits began.
#[derive(Debug, Clone, PartialEq)]
pub struct Holder {
    /// Where it was; none while it ran, and where its stack could not be read.
    pub place: Option<Place>,
    /// What it was doing; none where the bundle does not say.
    pub state: Option<ThreadState>,
    /// Threads whose wait began then.
    pub threads: f64,
    /// Sampled waits.
    pub samples: u64,
    /// Where it waited for a lock itself: for which. Known from the waits at the same place.
    pub waits_for: Vec<WaitsFor>,
}

/// A lock that a holder waits for.
#[derive(Debug, Clone, PartialEq)]
pub struct WaitsFor {
    /// What it is.
    pub lock: LockName,
    /// Its place in [`WaitGraph::locks`]; none where it is not told.
    pub told_as: Option<usize>,
    /// The part of the time at that place.
    pub share: f64,
}

/// What ended waits.
#[derive(Debug, Clone, PartialEq)]
pub struct Waker {
    /// What it was.
    pub kind: WakerKind,
    /// Where that thread of the server was.
    pub place: Option<Place>,
    /// Threads whose wait it ended.
    pub threads: f64,
    /// Sampled waits.
    pub samples: u64,
}

/// For whose sake a thread of such a server is in a call path that takes, waits for or gives back a lock: the innermost function
/// that is not merely how that is done.
pub fn in_one_word<'a>(product: &str, path: &'a [String]) -> Option<&'a str> {
    Knowledge::of(product).takers(path, 1).first().copied()
}

/// What a thread of such a server waits for that sleeps at a condition variable in this call path, where it is known to be something that
/// somebody holds, such as `a metadata lock`.
pub fn held_behind_condition(product: &str, path: &[String]) -> Option<String> {
    Knowledge::of(product).held_behind_condition(path)
}

/// The waits of every rung, by rising connections; one entry for a watch. Rungs without a thread that waits for a lock are
/// left out.
pub fn wait_graphs(bundle: &Bundle) -> Vec<WaitGraph> {
    let measurements = by_measurement(bundle);
    let mut call_paths = CallPaths::of(bundle);
    let knowledge = Knowledge::of(&bundle.manifest.server.product);
    if bundle.manifest.workload.name == WorkloadName::Watch {
        let all: Vec<&MeasurementRows> = measurements.values().collect();
        let found = watch::sampled(&all).and_then(|sampled| graph(None, &all, &sampled, &mut call_paths, &knowledge));
        return found.into_iter().collect();
    }
    let pacing = Pacing::of(&bundle.manifest.workload);
    let rungs = complete_by_connections(bundle, &measurements);
    let sampled = in_parallel(rungs.iter().collect(), |(connections, measurements)| {
        rung::sampled(*connections, pacing, measurements)
    });
    let graphs = rungs
        .iter()
        .zip(sampled)
        .filter_map(|((connections, measurements), sampled)| {
            graph(Some(*connections), measurements, &sampled?, &mut call_paths, &knowledge)
        });
    graphs.collect()
}

fn graph(
    connections: Option<u32>,
    measurements: &[&MeasurementRows<'_>],
    sampled: &Sampled<'_>,
    call_paths: &mut CallPaths<'_>,
    knowledge: &Knowledge,
) -> Option<WaitGraph> {
    let waits = Waits::of(sampled, call_paths);
    let chains = Chains::of(measurements, call_paths);
    let labels = Labels::of(measurements, knowledge);
    waits.graph(
        connections,
        sampled.seconds.measurements().count(),
        owners::source(measurements),
        &chains,
        &labels,
        call_paths,
    )
}

#[cfg(test)]
mod tests;
