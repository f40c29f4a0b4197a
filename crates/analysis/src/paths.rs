//! The heaviest call paths of a rung, and the locks that were waited for longest.

use crate::by_path::{ByPath, Heavy};
use crate::call_paths::{CallPaths, PathId};
use crate::sampled::{SampledPaths, WaitedFor};
use scaleprof_bundle::{CallPath, LockRow, LockSummary, NumberMap};
use scaleprof_vocabulary::ThreadState;
use std::collections::BTreeMap;

/// Call paths that the summary keeps of a rung.
const MOST_PATHS: usize = 20;
/// Locks that it keeps.
pub(crate) const MOST_LOCKS: usize = 10;

/// The heaviest call paths by state.
pub(crate) fn heaviest_paths(by_path: &ByPath<'_>, call_paths: &CallPaths<'_>) -> Vec<CallPath> {
    let found = by_path.heaviest(MOST_PATHS, |_| true).into_iter();
    found.map(|heavy| told(heavy, call_paths)).collect()
}

/// The heaviest call paths of each of these states.
pub(crate) fn heaviest_of_each(
    by_path: &ByPath<'_>,
    states: &[ThreadState],
    most: usize,
    call_paths: &CallPaths<'_>,
) -> Vec<CallPath> {
    let of_state = |state: &ThreadState| by_path.heaviest(most, |of| of == *state);
    let found = states.iter().flat_map(of_state);
    found.map(|heavy| told(heavy, call_paths)).collect()
}

fn told(heavy: Heavy, call_paths: &CallPaths<'_>) -> CallPath {
    CallPath {
        state: heavy.state,
        path: call_paths.functions(heavy.path),
        seconds_per_txn: heavy.seconds_per_txn,
        samples: heavy.samples,
    }
}

/// Numbers the call paths of those that held these locks or ended waits for them; `rows` are those
/// of the same measurements.
pub(crate) fn number_holders_and_wakers(
    locks: &[WaitedFor],
    samples: &SampledPaths<'_>,
    rows: &[&LockRow],
    call_paths: &mut CallPaths<'_>,
) {
    for lock in locks {
        let of_lock = rows.iter().filter(|row| row.lock == lock.lock);
        for stack in of_lock.filter_map(|row| row.holder_stack) {
            call_paths.path(stack);
        }
        for (stack, _) in woken(lock, samples) {
            call_paths.path(stack);
        }
    }
}

/// What is known of these locks, whose holders and wakers have their numbers.
pub(crate) fn lock_summaries(
    locks: &[WaitedFor],
    samples: &SampledPaths<'_>,
    rows: &[&LockRow],
    call_paths: &CallPaths<'_>,
) -> Vec<LockSummary> {
    let summary = |lock: &WaitedFor| {
        let of_lock = || rows.iter().filter(|row| row.lock == lock.lock);
        let named = of_lock().find(|row| row.name.is_some());
        let waits = samples.sampled.waits_for(lock.number).map(|wait| wait.row);
        let waiting = heaviest(waits.map(|row| (samples.path(&row), row.seconds)));
        let mut holders: BTreeMap<PathId, i64> = BTreeMap::new();
        for row in of_lock() {
            if let Some(path) = row.holder_stack.and_then(|stack| call_paths.known(stack)) {
                let seen = holders.entry(path).or_default();
                // Only a damaged table has so many.
                *seen = seen.saturating_add(row.holder_samples.max(0));
            }
        }
        let holder = holders.into_iter().max_by_key(|(_, samples)| *samples);
        let woken: Vec<(PathId, f64)> = woken(lock, samples)
            .filter_map(|(stack, seconds)| Some((call_paths.known(stack)?, seconds)))
            .collect();
        let waker = heaviest(woken.iter().copied());
        LockSummary {
            name: named.and_then(|row| row.name.clone()),
            module: named.and_then(|row| row.module.clone()),
            seconds_per_txn: lock.seconds_per_txn,
            samples: lock.samples,
            waiter: waiting.map_or(Vec::new(), |path| call_paths.functions(path)),
            holder: holder.map_or(Vec::new(), |(path, _)| call_paths.functions(path)),
            holder_samples: holder.map_or(0, |(_, samples)| samples.unsigned_abs()),
            total_waits: of_lock()
                .map(|row| row.waits.max(0).unsigned_abs())
                .fold(0, u64::saturating_add),
            waker: waker.map_or(Vec::new(), |path| call_paths.functions(path)),
            waker_samples: woken.iter().filter(|(path, _)| Some(*path) == waker).count() as u64,
        }
    };
    locks.iter().map(summary).collect()
}

/// Where the threads of the server were that ended the waits for a lock whose holder is not known,
/// with the thread-seconds of these.
fn woken(lock: &WaitedFor, samples: &SampledPaths<'_>) -> impl Iterator<Item = (i64, f64)> {
    let waits = samples.sampled.waits_for(lock.number);
    let of_nobody = waits.filter(|wait| wait.holder_state.is_none());
    of_nobody.filter_map(|wait| Some((wait.waker_stack?, wait.row.seconds)))
}

/// The path with most thread-seconds.
fn heaviest(parts: impl Iterator<Item = (PathId, f64)>) -> Option<PathId> {
    let mut sums: NumberMap<PathId, f64> = NumberMap::default();
    for (path, seconds) in parts {
        *sums.entry(path).or_default() += seconds;
    }
    let found = sums.into_iter().max_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0)));
    found.map(|(path, _)| path)
}

#[cfg(test)]
mod tests;
