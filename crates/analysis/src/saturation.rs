//! What only one thread can do at a time and one always does: the culprit of a convoy, whose own time need not grow.
//!
//! Growth names those who wait. What they wait for is busy all the time instead: the threads that are at work in it level off at
//! one while throughput does, and one over its time per transaction is a bound that throughput cannot pass (research: the
//! utilisation law, Denning and Buzen 1978).

use crate::call_paths::{CallPaths, PathId};
use crate::path_costs::PathCosts;
use scaleprof_bundle::SaturatedPath;
use scaleprof_vocabulary::ThreadState;
use std::collections::HashSet;

/// What a thread in a state is for others.
#[derive(PartialEq, Eq)]
enum Part {
    /// It gets on with something that they may need.
    AtWork,
    /// It waits for them.
    Waits,
    /// It has nothing to do.
    None,
}

const fn part(state: ThreadState) -> Part {
    match state {
        ThreadState::Cpu | ThreadState::Io | ThreadState::RunQueue | ThreadState::Sleep | ThreadState::Other => {
            Part::AtWork
        }
        ThreadState::Spin | ThreadState::Lock | ThreadState::Net => Part::Waits,
        ThreadState::Idle => Part::None,
    }
}

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
    let waiting: f64 = last
        .costs
        .with_seconds(ThreadState::Lock)
        .map(|(_, seconds)| seconds)
        .sum();
    if last.throughput > LEVELLED * earlier.throughput || waiting * last.throughput < LEAST_WAITING {
        return Vec::new();
    }
    let at_work: Vec<Vec<f64>> = rungs
        .iter()
        .map(|rung| threads_in(rung, &Part::AtWork, call_paths))
        .collect();
    // Where others wait within a path, more than one can be in it, however many are at work there.
    let waiting_within = threads_in(last, &Part::Waits, call_paths);
    let (Some(now), Some(then)) = (
        at_work.last(),
        rungs
            .iter()
            .position(|rung| rung.connections == earlier.connections)
            .and_then(|place| at_work.get(place)),
    ) else {
        return Vec::new();
    };
    let always: Vec<PathId> = call_paths
        .ids()
        .filter(|path| ALWAYS.contains(&of(now, *path)) && ALWAYS.contains(&of(then, *path)))
        .filter(|path| of(now, *path) + of(&waiting_within, *path) <= *ALWAYS.end())
        .collect();
    // Those that call it are as busy; the innermost one is what they are busy with.
    let outer: HashSet<PathId> = always.iter().filter_map(|path| call_paths.parent(*path)).collect();
    let innermost = always.iter().copied().filter(|path| !outer.contains(path));
    innermost
        .map(|path| SaturatedPath {
            path: call_paths.functions(path),
            active_threads: at_work.iter().map(|threads| of(threads, path)).collect(),
            // One thread is one at most, however it was sampled.
            cap: last.throughput / of(now, path).min(1.0),
        })
        .collect()
}

fn of(threads: &[f64], path: PathId) -> f64 {
    threads.get(path.place()).copied().unwrap_or(0.0)
}

/// Threads in these states within each path, its inner ones included, by the path's place.
fn threads_in(rung: &Loaded<'_>, meant: &Part, call_paths: &CallPaths<'_>) -> Vec<f64> {
    let mut threads = vec![0.0; call_paths.ids().len()];
    let states = ThreadState::ALL.into_iter().filter(|state| part(*state) == *meant);
    for (state_path, seconds) in states.flat_map(|state| rung.costs.with_seconds(state)) {
        if let Some(sum) = threads.get_mut(state_path.path.place()) {
            *sum += seconds * rung.throughput;
        }
    }
    // What is within a path stands after it.
    for path in call_paths.ids().rev() {
        let inner = of(&threads, path);
        if let Some(sum) = call_paths
            .parent(path)
            .and_then(|parent| threads.get_mut(parent.place()))
        {
            *sum += inner;
        }
    }
    threads
}
