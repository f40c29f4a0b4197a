//! What call paths cost in one visit, with all that is inside of them.

use crate::block_ratio::error_of_ratio;
use crate::call_paths::{CallPaths, PathId};
use crate::rung::RungResult;
use std::collections::BTreeMap;

/// One account of time per transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Account {
    /// On a CPU, waiting loops included.
    OnCpu,
    /// Off it, in one state.
    Waiting(&'static str),
}

impl Account {
    /// The states that it holds.
    pub(super) fn states(self) -> &'static [&'static str] {
        match self {
            Account::OnCpu => &["cpu", "spin"],
            Account::Waiting("lock") => &["lock"],
            Account::Waiting("io") => &["io"],
            Account::Waiting("sleep") => &["sleep"],
            Account::Waiting(_) => &["other"],
        }
    }
}

/// Thread-seconds of paths in each measured second of one visit.
#[derive(Debug, Default)]
pub(super) struct VisitCosts {
    transactions: Vec<f64>,
    /// Whole paths, as they were sampled.
    whole: BTreeMap<PathId, Vec<f64>>,
}

impl VisitCosts {
    pub(super) fn of(visit: &RungResult, account: Account) -> VisitCosts {
        let transactions = visit.costs.transactions_of_seconds().to_vec();
        let mut whole: BTreeMap<PathId, Vec<f64>> = BTreeMap::new();
        for state in account.states() {
            for pathway in visit.costs.pathways(state) {
                let blocks = whole
                    .entry(pathway.path)
                    .or_insert_with(|| vec![0.0; transactions.len()]);
                for (second, seconds) in visit.costs.blocks(pathway) {
                    if let Some(block) = blocks.get_mut(*second as usize) {
                        *block += seconds;
                    }
                }
            }
        }
        VisitCosts { transactions, whole }
    }

    /// The whole paths.
    pub(super) fn paths(&self) -> impl Iterator<Item = PathId> {
        self.whole.keys().copied()
    }

    /// Seconds per transaction of one whole path.
    pub(super) fn of_path(&self, path: PathId) -> f64 {
        self.whole.get(&path).map_or(0.0, |blocks| self.per_transaction(blocks))
    }

    /// Seconds per transaction of all.
    pub(super) fn all(&self) -> f64 {
        self.whole.values().map(|blocks| self.per_transaction(blocks)).sum()
    }

    /// The seconds of some whole paths together.
    pub(super) fn together<'a>(&self, paths: impl IntoIterator<Item = &'a PathId>) -> Vec<f64> {
        let mut sum = vec![0.0; self.transactions.len()];
        for blocks in paths.into_iter().filter_map(|path| self.whole.get(path)) {
            add(&mut sum, blocks);
        }
        sum
    }

    /// The seconds of every path with all that goes on from it.
    pub(super) fn inclusive(&self, call_paths: &CallPaths<'_>) -> BTreeMap<PathId, Vec<f64>> {
        let mut sums: BTreeMap<PathId, Vec<f64>> = BTreeMap::new();
        for (path, blocks) in &self.whole {
            let mut at = Some(*path);
            while let Some(path) = at {
                let sum = sums.entry(path).or_insert_with(|| vec![0.0; blocks.len()]);
                add(sum, blocks);
                at = call_paths.parent(path);
            }
        }
        sums
    }

    /// Seconds per transaction.
    pub(super) fn per_transaction(&self, blocks: &[f64]) -> f64 {
        let all: f64 = self.transactions.iter().sum();
        match all > 0.0 {
            true => blocks.iter().sum::<f64>() / all,
            false => 0.0,
        }
    }

    /// Variance of that, as the seconds scatter; 0 where there are too few to tell.
    pub(super) fn variance(&self, blocks: &[f64]) -> f64 {
        let pairs: Vec<(f64, f64)> = blocks.iter().copied().zip(self.transactions.iter().copied()).collect();
        error_of_ratio(&pairs).map_or(0.0, |error| error * error)
    }
}

fn add(sum: &mut [f64], blocks: &[f64]) {
    for (sum, block) in sum.iter_mut().zip(blocks) {
        *sum += block;
    }
}
