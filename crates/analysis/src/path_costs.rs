//! What each call path costs a transaction at one rung, second by second.

use crate::block_ratio::ratio;
use crate::call_paths::{CallPaths, PathId};
use crate::paths::Sampled;
use scaleprof_bundle::Estimate;
use std::collections::{BTreeMap, HashMap};

/// A call path in one state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Pathway {
    pub path: PathId,
    /// Place of the state's name in [`STATES`].
    state: usize,
}

/// The thread-seconds of the connections' threads by state and whole call path.
#[derive(Debug, Default)]
pub(crate) struct PathCosts {
    /// Transactions of each measured second.
    transactions: Vec<f64>,
    /// By place of the second.
    seconds: HashMap<Pathway, Vec<(u32, f64)>>,
    /// The innermost function of each path.
    leaves: HashMap<PathId, usize>,
}

/// The states that samples have.
pub(crate) const STATES: [&str; 8] = ["cpu", "spin", "runq", "lock", "io", "net", "sleep", "other"];

impl PathCosts {
    pub(crate) fn of(sampled: &Sampled<'_>, call_paths: &mut CallPaths<'_>) -> PathCosts {
        let places: BTreeMap<(i32, i32), u32> = sampled
            .seconds()
            .zip(0..)
            .map(|((second, _), place)| (second, place))
            .collect();
        let mut costs = PathCosts {
            transactions: sampled.seconds().map(|(_, transactions)| transactions).collect(),
            ..PathCosts::default()
        };
        for (row, seconds) in sampled.rows() {
            let state = STATES.iter().position(|state| *state == row.state);
            let Some((state, second)) = state.zip(places.get(&(row.visit, row.second))) else {
                continue;
            };
            let path = call_paths.path(row.stack);
            let blocks = costs.seconds.entry(Pathway { path, state }).or_default();
            match blocks.last_mut().filter(|(last, _)| last == second) {
                Some((_, sum)) => *sum += seconds,
                None => blocks.push((*second, seconds)),
            }
            costs.leaves.entry(path).or_insert_with(|| call_paths.leaf(path));
        }
        costs
    }

    /// Transactions of all measured seconds.
    fn transactions(&self) -> f64 {
        self.transactions.iter().sum()
    }

    /// Transactions of each measured second.
    pub(crate) fn transactions_of_seconds(&self) -> &[f64] {
        &self.transactions
    }

    /// The thread-seconds of one path by the place of the second.
    pub(crate) fn blocks(&self, pathway: Pathway) -> &[(u32, f64)] {
        self.seconds.get(&pathway).map_or(&[], Vec::as_slice)
    }

    /// The paths of one state.
    pub(crate) fn pathways(&self, state: &str) -> impl Iterator<Item = Pathway> {
        let state = STATES.iter().position(|name| *name == state);
        let mut found: Vec<Pathway> = self
            .seconds
            .keys()
            .copied()
            .filter(|pathway| Some(pathway.state) == state)
            .collect();
        found.sort();
        found.into_iter()
    }

    /// Seconds per transaction of one path.
    pub(crate) fn seconds(&self, pathway: Pathway) -> f64 {
        let blocks = self.seconds.get(&pathway).into_iter().flatten();
        let sum: f64 = blocks.map(|(_, seconds)| seconds).sum();
        match self.transactions() {
            all if all > 0.0 => sum / all,
            _ => 0.0,
        }
    }

    /// Seconds per transaction of some paths together, with their interval; none where nothing was measured.
    pub(crate) fn estimate(&self, pathways: &[Pathway]) -> Option<Estimate> {
        let mut blocks: Vec<(f64, f64)> = self
            .transactions
            .iter()
            .map(|transactions| (0.0, *transactions))
            .collect();
        for (second, seconds) in pathways
            .iter()
            .filter_map(|pathway| self.seconds.get(pathway))
            .flatten()
        {
            if let Some((sum, _)) = blocks.get_mut(*second as usize) {
                *sum += seconds;
            }
        }
        ratio(&blocks)
    }

    /// Seconds per transaction in one state by innermost function.
    pub(crate) fn by_leaf(&self, state: &str) -> HashMap<usize, f64> {
        let mut sums = HashMap::new();
        for pathway in self.pathways(state) {
            if let Some(leaf) = self.leaves.get(&pathway.path) {
                *sums.entry(*leaf).or_default() += self.seconds(pathway);
            }
        }
        sums
    }
}
