//! The heaviest call paths of a rung, and the locks that were waited for longest.

use crate::block_ratio::ratio;
use crate::call_paths::{CallPaths, PathId};
use crate::ledger::{CONNECTION, Watched, in_windows};
use crate::totals::Window;
use scaleprof_bundle::{CallPath, Estimate, LockRow, LockSummary, SampleRow, StateSeconds};
use std::collections::{BTreeMap, HashMap};

/// Call paths that the summary keeps of a rung.
const MOST_PATHS: usize = 20;
/// Locks that it keeps.
const MOST_LOCKS: usize = 10;

/// The samples of the connections' threads in the measured windows, each with the thread-seconds that it stands for.
pub(crate) struct Sampled<'a> {
    rows: Vec<(&'a SampleRow, f64)>,
    /// Transactions by visit and second.
    transactions: BTreeMap<(i32, i32), f64>,
    /// How long each of these seconds was.
    lengths: BTreeMap<(i32, i32), f64>,
    /// By what the weights of each state were multiplied.
    scales: HashMap<&'a str, f64>,
}

impl<'a> Sampled<'a> {
    /// Time on and off the CPU is known exactly by state, and samples only share it out: with
    /// these times per
    /// transaction, the weights of a state's samples are scaled to the time in that state. So the paths of a state add up to
    /// it, whatever was lost.
    pub(crate) fn of(windows: &[Window], watched: &Watched<'a>, per_transaction: Option<&StateSeconds>) -> Sampled<'a> {
        let mut rows: Vec<(&SampleRow, f64)> = in_windows(windows, &watched.samples)
            .filter(|row| row.role == CONNECTION && row.weight_ns.is_finite() && row.weight_ns >= 0.0)
            .map(|row| (row, row.weight_ns / 1e9))
            .collect();
        let transactions: BTreeMap<(i32, i32), f64> = windows
            .iter()
            .flat_map(|window| {
                window
                    .seconds
                    .iter()
                    .map(|(second, amount)| ((window.visit, *second), amount.transactions))
            })
            .collect();
        let lengths = windows.iter().flat_map(|window| {
            let lengths = window.seconds.iter();
            lengths.map(|(second, amount)| ((window.visit, *second), amount.seconds))
        });
        let all: f64 = transactions.values().sum();
        let exact: HashMap<&str, f64> = per_transaction
            .into_iter()
            .flat_map(|states| states.named())
            .filter_map(|(state, per_txn)| Some((state, per_txn? * all)))
            .collect();
        let mut sampled: HashMap<&'a str, f64> = HashMap::new();
        for (row, seconds) in &rows {
            *sampled.entry(row.state.as_str()).or_default() += seconds;
        }
        let scales: HashMap<&str, f64> = sampled
            .into_iter()
            .filter_map(|(state, sampled)| {
                let exact = exact.get(state).filter(|exact| **exact > 0.0 && sampled > 0.0)?;
                Some((state, exact / sampled))
            })
            .collect();
        for (row, seconds) in &mut rows {
            *seconds *= scales.get(row.state.as_str()).copied().unwrap_or(1.0);
        }
        Sampled {
            rows,
            lengths: lengths.collect(),
            transactions,
            scales,
        }
    }

    /// By what the weights of a state's samples were multiplied to add up to the exact time; 1 where that is not known.
    pub(crate) fn scale(&self, state: &str) -> f64 {
        self.scales.get(state).copied().unwrap_or(1.0)
    }

    /// The samples with the thread-seconds that each stands for.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (&'a SampleRow, f64)> {
        self.rows.iter().copied()
    }

    /// The measured seconds, by visit and second, with their transactions.
    pub(crate) fn seconds(&self) -> impl Iterator<Item = ((i32, i32), f64)> {
        self.transactions
            .iter()
            .map(|(second, transactions)| (*second, *transactions))
    }

    /// The measured seconds, by visit and second, with how long each was.
    pub(crate) fn lengths(&self) -> impl Iterator<Item = ((i32, i32), f64)> {
        self.lengths.iter().map(|(second, length)| (*second, *length))
    }

    /// Sums up the rows by `key`, and gives the `most` heaviest keys with their time per transaction and their samples.
    fn heaviest<K: Ord + Copy>(
        &self,
        most: usize,
        mut key: impl FnMut(&'a SampleRow) -> Option<K>,
    ) -> Vec<(K, Estimate, u64)> {
        let keys: Vec<Option<K>> = self.rows.iter().map(|(row, _)| key(row)).collect();
        let mut sums: BTreeMap<K, (f64, u64)> = BTreeMap::new();
        for ((_, seconds), key) in self.rows.iter().zip(&keys) {
            if let Some(key) = key {
                let sum = sums.entry(*key).or_default();
                sum.0 += seconds;
                sum.1 += 1;
            }
        }
        let mut order: Vec<(K, f64, u64)> = sums.into_iter().map(|(key, (sum, count))| (key, sum, count)).collect();
        order.sort_by(|a, b| b.1.total_cmp(&a.1));
        order.truncate(most);
        let places: BTreeMap<K, usize> = order
            .iter()
            .enumerate()
            .map(|(place, (key, ..))| (*key, place))
            .collect();
        let mut blocks: Vec<BTreeMap<(i32, i32), f64>> = vec![BTreeMap::new(); order.len()];
        for ((row, seconds), key) in self.rows.iter().zip(&keys) {
            if let Some(place) = key.and_then(|key| places.get(&key)) {
                *blocks[*place].entry((row.visit, row.second)).or_default() += seconds;
            }
        }
        let estimate = |block: &BTreeMap<(i32, i32), f64>| {
            let pairs: Vec<(f64, f64)> = self
                .transactions
                .iter()
                .map(|(second, transactions)| (block.get(second).copied().unwrap_or(0.0), *transactions))
                .collect();
            ratio(&pairs)
        };
        let found = order.into_iter().zip(&blocks);
        found
            .filter_map(|((key, _, count), block)| Some((key, estimate(block)?, count)))
            .collect()
    }

    /// The heaviest call paths by state.
    pub(crate) fn paths(&self, call_paths: &mut CallPaths<'_>) -> Vec<CallPath> {
        let mut states: Vec<&'a str> = Vec::new();
        let found = self.heaviest(MOST_PATHS, |row| {
            let state = states.iter().position(|state| *state == row.state);
            // A state is named by its place, so that keys are small.
            let state = state.unwrap_or_else(|| {
                states.push(&row.state);
                states.len() - 1
            });
            Some((state, call_paths.path(row.stack)))
        });
        found
            .into_iter()
            .map(|((state, path), seconds_per_txn, samples)| CallPath {
                state: states[state].to_owned(),
                path: call_paths.functions(path),
                seconds_per_txn,
                samples,
            })
            .collect()
    }

    /// The heaviest call paths of each of these states.
    pub(crate) fn paths_of_each(&self, states: &[&str], most: usize, call_paths: &mut CallPaths<'_>) -> Vec<CallPath> {
        let mut paths = Vec::new();
        for state in states {
            let found = self.heaviest(most, |row| (row.state == *state).then(|| call_paths.path(row.stack)));
            paths.extend(found.into_iter().map(|(path, seconds_per_txn, samples)| CallPath {
                state: (*state).to_owned(),
                path: call_paths.functions(path),
                seconds_per_txn,
                samples,
            }));
        }
        paths
    }

    /// The locks that were waited for longest; `rows` are those of the same visits.
    pub(crate) fn locks(&self, rows: &[&LockRow], call_paths: &mut CallPaths<'_>) -> Vec<LockSummary> {
        let found = self.heaviest(MOST_LOCKS, |row| row.lock);
        found
            .into_iter()
            .map(|(lock, seconds_per_txn, samples)| {
                let of_lock = || rows.iter().filter(|row| row.lock == lock);
                let named = of_lock().find(|row| row.name.is_some());
                let waiting = self.most(call_paths, |row, seconds| {
                    (row.lock == Some(lock)).then_some((row.stack, seconds))
                });
                let mut holders: BTreeMap<PathId, i64> = BTreeMap::new();
                for row in of_lock() {
                    if let Some(stack) = row.owner_stack {
                        let seen = holders.entry(call_paths.path(stack)).or_default();
                        // Only a damaged table has so many.
                        *seen = seen.saturating_add(row.owner_samples.max(0));
                    }
                }
                let holder = holders.into_iter().max_by_key(|(_, samples)| *samples);
                let is_woken = |row: &SampleRow| row.lock == Some(lock) && row.owner_state.is_none();
                let waker = self.most(call_paths, |row, seconds| {
                    Some((row.waker_stack.filter(|_| is_woken(row))?, seconds))
                });
                let woken_there = |row: &&(&SampleRow, f64)| {
                    let at = row.0.waker_stack.filter(|_| is_woken(row.0));
                    waker.is_some() && at.map(|stack| call_paths.path(stack)) == waker
                };
                let waker_samples = self.rows.iter().filter(woken_there).count() as u64;
                LockSummary {
                    name: named.and_then(|row| row.name.clone()),
                    module: named.and_then(|row| row.module.clone()),
                    seconds_per_txn,
                    samples,
                    waiting: waiting.map_or(Vec::new(), |path| call_paths.functions(path)),
                    holder: holder.map_or(Vec::new(), |(path, _)| call_paths.functions(path)),
                    holder_samples: holder.map_or(0, |(_, samples)| samples.unsigned_abs()),
                    waker: waker.map_or(Vec::new(), |path| call_paths.functions(path)),
                    waker_samples,
                }
            })
            .collect()
    }

    /// The path with the most of what `part` gives.
    fn most(
        &self,
        call_paths: &mut CallPaths<'_>,
        part: impl Fn(&SampleRow, f64) -> Option<(i64, f64)>,
    ) -> Option<PathId> {
        let mut sums: BTreeMap<PathId, f64> = BTreeMap::new();
        for (stack, seconds) in self.rows.iter().filter_map(|(row, seconds)| part(row, *seconds)) {
            *sums.entry(call_paths.path(stack)).or_default() += seconds;
        }
        sums.into_iter()
            .max_by(|a, b| a.1.total_cmp(&b.1))
            .map(|(path, _)| path)
    }
}

#[cfg(test)]
mod tests;
