//! What only one thread can do at a time and one always does: the culprit of a convoy, whose own time need not grow.
//!
//! Growth names those who wait. What they wait for is busy all the time instead: the threads that are at work in it level off at
//! one while throughput does, and one over its time per transaction is a bound that throughput cannot pass (research: the
//! utilisation law, Denning and Buzen 1978).

use crate::call_paths::{CallPaths, PathId};
use crate::path_costs::PathCosts;
use scaleprof_bundle::SaturatedPath;
use std::collections::BTreeMap;

/// States in which a thread gets on with something that others may need.
const AT_WORK: [&str; 5] = ["cpu", "io", "runq", "sleep", "other"];
/// Threads at work that count as one that always is; a sampled figure is never exactly 1.
const ALWAYS: std::ops::RangeInclusive<f64> = 0.85..=1.1;
/// While the connections double, throughput gains at most so much.
const LEVELLED: f64 = 1.15;
/// Where waiting is less than this many threads, nobody queues.
const LEAST_WAITING: f64 = 1.0;

/// One rung, as the test needs it.
pub(crate) struct Loaded<'a> {
    pub connections: u32,
    /// Transactions per second.
    pub throughput: f64,
    pub costs: &'a PathCosts,
    /// Whether all CPUs were busy: then whatever levels off may have levelled off with them.
    pub is_busy: bool,
}

/// Finds them among rungs by rising connections: at least two rungs, the last ones with twice the connections and the same
/// throughput, must show one thread always at work in it, while others wait for a lock.
pub(crate) fn saturated(rungs: &[Loaded<'_>], call_paths: &CallPaths<'_>) -> Vec<SaturatedPath> {
    let Some((last, before)) = rungs.split_last().filter(|(last, _)| !last.is_busy) else {
        return Vec::new();
    };
    let Some(earlier) = before
        .iter()
        .rev()
        .find(|rung| !rung.is_busy && rung.connections * 2 <= last.connections)
    else {
        return Vec::new();
    };
    let waiting: f64 = last.costs.pathways("lock").map(|path| last.costs.seconds(path)).sum();
    if last.throughput > LEVELLED * earlier.throughput || waiting * last.throughput < LEAST_WAITING {
        return Vec::new();
    }
    let (now, then) = (at_work(last, call_paths), at_work(earlier, call_paths));
    let is_always = |path: &PathId| {
        let share = |threads: &BTreeMap<PathId, f64>| threads.get(path).copied().unwrap_or(0.0);
        ALWAYS.contains(&share(&now)) && ALWAYS.contains(&share(&then))
    };
    let always: Vec<PathId> = now.keys().copied().filter(is_always).collect();
    // Those that call it are as busy; the innermost one is what they are busy with.
    let innermost = always.iter().copied().filter(|outer| {
        !always
            .iter()
            .any(|inner| inner != outer && call_paths.is_within(*inner, *outer))
    });
    innermost
        .map(|path| SaturatedPath {
            path: call_paths.functions(path),
            active_threads: rungs
                .iter()
                .map(|rung| at_work(rung, call_paths).get(&path).copied().unwrap_or(0.0))
                .collect(),
            cap: last.throughput / now.get(&path).copied().unwrap_or(1.0),
        })
        .collect()
}

/// Threads at work within each path, its inner ones included.
fn at_work(rung: &Loaded<'_>, call_paths: &CallPaths<'_>) -> BTreeMap<PathId, f64> {
    let mut threads: BTreeMap<PathId, f64> = BTreeMap::new();
    for pathway in AT_WORK.iter().flat_map(|state| rung.costs.pathways(state)) {
        let active = rung.costs.seconds(pathway) * rung.throughput;
        let mut at = Some(pathway.path);
        while let Some(path) = at {
            *threads.entry(path).or_default() += active;
            at = call_paths.parent(path);
        }
    }
    threads
}
