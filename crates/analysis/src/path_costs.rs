//! What each call path costs a transaction at one rung, second by second.

use crate::block_ratio::Transactions;
use crate::by_path::ByPath;
use crate::call_paths::{CallPaths, PathId};
use crate::grouped::Grouped;
use crate::path_set::PathSet;
use scaleprof_bundle::Estimate;
use scaleprof_vocabulary::{PerState, ThreadState};
use std::collections::HashMap;
use std::ops::Range;

/// A call path in one state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct StatePath {
    pub path: PathId,
    pub state: ThreadState,
}

/// The thread-seconds of the connections' threads by state and whole call path.
#[derive(Debug, Default)]
pub(crate) struct PathCosts {
    /// Transactions of each measured second.
    transactions: Transactions,
    /// The paths of each state by rising number, state after state.
    paths: Vec<PathId>,
    /// Which of them are those of each state.
    of_states: PerState<Range<usize>>,
    /// Their thread-seconds by place of the second.
    blocks: Grouped,
    /// Seconds per transaction of each.
    seconds: Vec<f64>,
    /// The innermost function of each.
    leaves: Vec<usize>,
}

impl PathCosts {
    /// Whether no stack was sampled.
    pub(crate) fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    pub(crate) fn of(by_path: ByPath<'_>, call_paths: &CallPaths<'_>) -> PathCosts {
        let transactions = by_path.samples.sampled.seconds.transactions.clone();
        let all = transactions.all();
        let of_states = PerState::from_fn(|state| {
            let begin = by_path.state_paths.partition_point(|(of, _)| *of < state);
            let length = by_path.state_paths[begin..].partition_point(|(of, _)| *of == state);
            begin..begin + length
        });
        let paths: Vec<PathId> = by_path.state_paths.iter().map(|(_, path)| *path).collect();
        let blocks = by_path.rows.merged();
        PathCosts {
            leaves: paths.iter().map(|path| call_paths.leaf(*path)).collect(),
            seconds: blocks.iter().map(|blocks| per_transaction(blocks, all)).collect(),
            transactions,
            paths,
            of_states,
            blocks,
        }
    }

    /// The same without some waits in one state: each path with thread-seconds that it has, by the place of the second.
    pub(crate) fn without<'a>(
        &self,
        state: ThreadState,
        waits: impl Iterator<Item = (PathId, &'a [(u32, f64)])> + Clone,
    ) -> PathCosts {
        let taken = || {
            let places = waits.clone().filter_map(|(path, parts)| {
                let place = self.place(StatePath { path, state })?;
                Some((place, parts))
            });
            places.flat_map(|(place, parts)| parts.iter().map(move |(second, time)| (place as u32, *second, -time)))
        };
        let kept = || {
            let groups = self.blocks.iter().zip(0..);
            groups.flat_map(|(parts, place)| parts.iter().map(move |(second, time)| (place, *second, *time)))
        };
        let blocks = Grouped::of(self.blocks.iter().count(), || kept().chain(taken()));
        let all = self.transactions.all();
        let per_transaction = |blocks: &[(u32, f64)]| per_transaction(blocks, all).max(0.0);
        PathCosts {
            transactions: self.transactions.clone(),
            paths: self.paths.clone(),
            of_states: self.of_states.clone(),
            seconds: blocks.iter().map(per_transaction).collect(),
            blocks,
            leaves: self.leaves.clone(),
        }
    }

    /// Transactions of each measured second.
    pub(crate) fn transactions_of_seconds(&self) -> &[f64] {
        self.transactions.of_seconds()
    }

    /// The thread-seconds of one path by the place of the second.
    pub(crate) fn blocks(&self, state_path: StatePath) -> &[(u32, f64)] {
        self.place(state_path).map_or(&[], |place| self.blocks.get(place))
    }

    /// The paths of one state by rising number.
    pub(crate) fn state_paths(&self, state: ThreadState) -> impl Iterator<Item = StatePath> {
        self.with_seconds(state).map(|(state_path, _)| state_path)
    }

    /// The paths of one state by rising number, with their seconds per transaction.
    pub(crate) fn with_seconds(&self, state: ThreadState) -> impl Iterator<Item = (StatePath, f64)> {
        self.of_state(state).map(move |place| {
            let path = self.paths[place];
            (StatePath { path, state }, self.seconds[place])
        })
    }

    fn of_state(&self, state: ThreadState) -> Range<usize> {
        self.of_states[state].clone()
    }

    fn place(&self, state_path: StatePath) -> Option<usize> {
        let places = self.of_state(state_path.state);
        let found = self.paths.get(places.clone())?.binary_search(&state_path.path);
        Some(places.start + found.ok()?)
    }

    /// Seconds per transaction of one path.
    pub(crate) fn seconds(&self, state_path: StatePath) -> f64 {
        self.place(state_path).map_or(0.0, |place| self.seconds[place])
    }

    /// Seconds per transaction of those paths of a state that are in `paths`.
    pub(crate) fn seconds_within(&self, state: ThreadState, paths: &PathSet) -> f64 {
        let within = self.with_seconds(state);
        let within = within.filter(|(state_path, _)| paths.contains(&state_path.path));
        within.fold(0.0, |sum, (_, seconds)| sum + seconds)
    }

    /// Seconds per transaction of some paths together, with their interval; none where nothing was measured.
    pub(crate) fn estimate(&self, state_paths: &[StatePath]) -> Option<Estimate> {
        self.together(state_paths.iter().filter_map(|state_path| self.place(*state_path)))
    }

    /// The same of all paths of a state.
    pub(crate) fn estimate_of_state(&self, state: ThreadState) -> Option<Estimate> {
        self.together(self.of_state(state))
    }

    /// What part of the CPU time is spent in loops that wait, with its interval; none without CPU time. Its error is that of the part:
    /// measurements in which a transaction cost more, waiting and working alike, agree.
    pub(crate) fn spinning_share(&self) -> Option<Estimate> {
        let mut on_cpu = vec![0.0; self.transactions.of_seconds().len()];
        let places = [ThreadState::Cpu, ThreadState::Spin]
            .into_iter()
            .flat_map(|state| self.of_state(state));
        for (second, seconds) in places.flat_map(|place| self.blocks.get(place)) {
            if let Some(sum) = on_cpu.get_mut(*second as usize) {
                *sum += seconds;
            }
        }
        let spinning = self
            .of_state(ThreadState::Spin)
            .flat_map(|place| self.blocks.get(place));
        self.transactions.with_amounts(on_cpu).ratio(spinning.copied())
    }

    /// Seconds per transaction of those paths of a state that are in `paths`, with their interval.
    pub(crate) fn estimate_within(&self, state: ThreadState, paths: &PathSet) -> Option<Estimate> {
        let places = self.of_state(state);
        self.together(places.filter(|place| paths.contains(&self.paths[*place])))
    }

    fn together(&self, places: impl Iterator<Item = usize>) -> Option<Estimate> {
        let parts = places.flat_map(|place| self.blocks.get(place));
        self.transactions.ratio(parts.copied())
    }

    /// Seconds per transaction in one state by innermost function.
    pub(crate) fn by_leaf(&self, state: ThreadState) -> HashMap<usize, f64> {
        let mut sums = HashMap::new();
        for place in self.of_state(state) {
            *sums.entry(self.leaves[place]).or_default() += self.seconds[place];
        }
        sums
    }
}

/// The thread-seconds of all parts over so many transactions; 0 without transactions.
fn per_transaction(blocks: &[(u32, f64)], transactions: f64) -> f64 {
    let sum: f64 = blocks.iter().map(|(_, seconds)| seconds).sum();
    if transactions > 0.0 { sum / transactions } else { 0.0 }
}
