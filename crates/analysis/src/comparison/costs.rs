//! What call paths cost in one measurement, or in all measurements of a rung together.

use crate::block_ratio::variance_of_seconds;
use crate::call_paths::PathId;
use crate::rung::RungResult;
use scaleprof_vocabulary::ThreadState;
use std::collections::BTreeMap;

/// One account of time per transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Account {
    /// On a CPU, waiting loops included.
    OnCpu,
    /// Off it, in one state.
    Waiting(ThreadState),
}

impl Account {
    /// The states that it holds.
    pub(super) fn states(self) -> impl Iterator<Item = ThreadState> {
        ThreadState::ALL.into_iter().filter(move |state| match self {
            Account::OnCpu => state.is_on_cpu(),
            Account::Waiting(waits) => *state == waits,
        })
    }
}

/// Thread-seconds of paths in each measured second.
#[derive(Debug, Default)]
pub(super) struct MeasurementCosts {
    transactions: Vec<f64>,
    /// Whole paths, as they were sampled, with what they spent in the seconds in which they were seen: most are in few of them.
    whole: BTreeMap<PathId, Vec<(u32, f64)>>,
}

impl MeasurementCosts {
    /// Of one measurement, or of several that were summed up together.
    pub(super) fn of(measurements: &RungResult, account: Account) -> MeasurementCosts {
        let transactions = measurements.costs.transactions_of_seconds().to_vec();
        let mut whole: BTreeMap<PathId, Vec<(u32, f64)>> = BTreeMap::new();
        for state in account.states() {
            for state_path in measurements.costs.state_paths(state) {
                whole
                    .entry(state_path.path)
                    .or_default()
                    .extend(measurements.costs.blocks(state_path));
            }
        }
        MeasurementCosts { transactions, whole }
    }

    /// The whole paths.
    pub(super) fn paths(&self) -> impl Iterator<Item = PathId> {
        self.whole.keys().copied()
    }

    /// Seconds per transaction of one whole path.
    pub(super) fn of_path(&self, path: PathId) -> f64 {
        let seconds = self.whole.get(&path).into_iter().flatten();
        self.of_all_transactions(seconds.map(|(_, seconds)| seconds).sum())
    }

    /// The seconds of those whole paths of which `are_meant` says so, together.
    pub(super) fn together(&self, are_meant: impl Fn(PathId) -> bool) -> Vec<f64> {
        let mut sum = vec![0.0; self.transactions.len()];
        for (_, blocks) in self.whole.iter().filter(|(path, _)| are_meant(**path)) {
            add_seen(&mut sum, blocks);
        }
        sum
    }

    /// The seconds of `count` pieces, of which `piece_of` tells for each whole path which one it belongs to.
    pub(super) fn pieces(&self, piece_of: &BTreeMap<PathId, usize>, count: usize) -> Vec<Vec<f64>> {
        let mut sums = vec![vec![0.0; self.transactions.len()]; count];
        for (path, blocks) in &self.whole {
            if let Some(sum) = piece_of.get(path).and_then(|piece| sums.get_mut(*piece)) {
                add_seen(sum, blocks);
            }
        }
        sums
    }

    /// Seconds per transaction.
    pub(super) fn per_transaction(&self, blocks: &[f64]) -> f64 {
        self.of_all_transactions(blocks.iter().sum())
    }

    fn of_all_transactions(&self, seconds: f64) -> f64 {
        let all: f64 = self.transactions.iter().sum();
        match all > 0.0 {
            true => seconds / all,
            false => 0.0,
        }
    }

    /// Variance of that, as the seconds scatter; 0 where there are too few to tell.
    pub(super) fn variance(&self, blocks: &[f64]) -> f64 {
        variance_of_seconds(blocks, &self.transactions).unwrap_or(0.0)
    }
}

/// Adds to the seconds in which something was seen.
fn add_seen(sum: &mut [f64], seen: &[(u32, f64)]) {
    for (second, seconds) in seen {
        if let Some(sum) = sum.get_mut(*second as usize) {
            *sum += seconds;
        }
    }
}

/// Adds block by block.
pub(super) fn add(sum: &mut [f64], blocks: &[f64]) {
    for (sum, block) in sum.iter_mut().zip(blocks) {
        *sum += block;
    }
}
